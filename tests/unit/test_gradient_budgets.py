"""Which first budgets are trained, and the graph of what they lead to, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ocerl.errors import OcerlError
from ocerl.gradient import augmented_graph, first_budgets
from ocerl.mdp import TabularMDP, random_mdp, zoo
from ocerl.risk import CVaR, Entropic, Utility

CVAR = CVaR(0.25)


def test_kinks_take_the_returns_that_can_occur() -> None:
    # 2 is on the lattice of halves, but neither Ber(1/2) + 1.5 Ber(3/4) nor Ber(1/2) + 0.5 can be 2.
    assert first_budgets(zoo.make("paper"), CVAR).values.tolist() == [0.0, 0.5, 1.0, 1.5, 2.5]


def test_smooth_utilities_take_a_refined_lattice() -> None:
    budgets = first_budgets(zoo.make("paper"), Entropic(-1.0))
    assert budgets.values.tolist() == [i / 16 for i in range(41)]  # halves, each cut in 8: at least 41 points
    assert budgets.lattice.unit == 1 / 16


def test_positions_are_minus_the_units_earned() -> None:
    shifted = TabularMDP.from_outcomes({"s": {"a": [(0.5, "s", -1.0), (0.5, "s", 2.0)]}}, horizon=2)
    budgets = first_budgets(shifted, CVAR)
    assert budgets.values.tolist() == [-2.0, 1.0, 4.0]
    assert budgets.positions.tolist() == [0, -1, -2]


def test_many_returns_are_thinned_with_both_ends_kept() -> None:
    long = TabularMDP.from_outcomes({"s": {"a": [(0.5, "s", 0.0), (0.5, "s", 1.0)]}}, horizon=100)
    assert first_budgets(long, CVAR).values.size == 101
    assert first_budgets(long, CVAR, most=5).values.tolist() == [0.0, 25.0, 50.0, 75.0, 100.0]


def test_few_sums_off_the_lattice_are_exact() -> None:
    model = TabularMDP.from_outcomes({"s": {"a": [(0.5, "s", math.pi), (0.5, "s", math.sqrt(2))]}}, horizon=2)
    expected = sorted({2 * math.pi, math.pi + math.sqrt(2), 2 * math.sqrt(2)})
    np.testing.assert_allclose(first_budgets(model, CVAR).values, expected, rtol=0, atol=1e-8)


def test_many_sums_off_the_lattice_are_rounded_down() -> None:
    model = random_mdp(0, states=3, horizon=12, continuous=True)
    budgets = first_budgets(model, CVAR)
    low, high = model.return_range()
    assert budgets.lattice.unit == pytest.approx((high - low) / 200)
    assert budgets.lattice.error[0] >= -1e-9  # a true return is never below the one it is counted as
    assert first_budgets(model, CVAR, resolution=0.5).lattice.unit == 0.5


def test_the_graph_of_the_paper() -> None:
    graph = augmented_graph(CVAR, first_budgets(zoo.make("paper"), CVAR))
    # Step 1: s1 with 5 budgets. Step 2: s2 with these less 0 or 1: -1 … 1, 1.5, 2.5.
    own = slice(graph.layer_start[1], graph.layer_start[2])
    budgets = -graph.positions[own] * graph.budgets.lattice.unit
    assert sorted(budgets.tolist()) == [-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.5]
    assert graph.n_entries == 2 * (5 + 7)
    assert graph.payoff.min() == -10.0  # 0 earned from a budget of 2.5: -2.5 / 0.25
    assert graph.payoff.max() == 0.0
    assert graph.states[graph.first_nodes].tolist() == [[0] * 5]
    assert (-graph.positions[graph.first_nodes[0]]).tolist() == [0, 1, 2, 3, 5]


def test_errors_name_what_would_be_right() -> None:
    with pytest.raises(OcerlError, match="at least 2 first budgets are needed, got 1"):
        first_budgets(zoo.make("paper"), CVAR, most=1)
    with pytest.raises(OcerlError, match="resolution must be a positive number"):
        first_budgets(random_mdp(0, continuous=True), CVAR, resolution=-1.0)
    barrier = Utility(lambda t: np.log1p(t), label="log")
    with pytest.raises(OcerlError, match="not finite on the returns of paper"):
        augmented_graph(barrier, first_budgets(zoo.make("paper"), barrier))
