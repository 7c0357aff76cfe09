"""Stochastic budget policies: their returns against the planner's evaluation and against episodes they play."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocerl.errors import OcerlError
from ocerl.gradient import StochasticBudgetPolicy, augmented_graph, first_budgets
from ocerl.gradient.graph import AugmentedGraph
from ocerl.gradient.tables import probabilities
from ocerl.mdp import TabularMDP, random_mdp, zoo
from ocerl.planning import evaluate
from ocerl.planning.evaluate import forward_mixed
from ocerl.planning.grid import Grid
from ocerl.risk import CVaR, parse_risk

RISK = CVaR(0.25)


def random_policy(model: TabularMDP, seed: int, chosen: int) -> tuple[AugmentedGraph, StochasticBudgetPolicy]:
    graph = augmented_graph(RISK, first_budgets(model, RISK))
    logits = np.random.default_rng(seed).normal(size=graph.n_entries)
    return graph, StochasticBudgetPolicy.of(graph, probabilities(graph, logits), chosen)


def paper_policy(risky_after_0: float, risky_after_1: float) -> StochasticBudgetPolicy:
    """Begun with 1.5, and so with a budget of 1.5 in s2 after a reward of 0, and 0.5 after 1."""
    graph = augmented_graph(RISK, first_budgets(zoo.make("paper"), RISK))
    table = np.full(graph.n_entries, 0.5)
    budgets = -graph.positions * graph.budgets.lattice.unit
    for node in range(graph.layer_start[1], graph.layer_start[2]):
        risky = {1.5: risky_after_0, 0.5: risky_after_1}.get(float(budgets[node]), 0.5)
        begin = graph.layout.entry_start[node]
        table[begin : begin + 2] = risky, 1 - risky
    return StochasticBudgetPolicy.of(graph, table, 3)


def test_returns_by_hand() -> None:
    best = evaluate(zoo.make("paper"), paper_policy(1.0, 0.0))
    assert best.values.tolist() == [0.0, 1.5]
    assert best.probabilities.tolist() == [1 / 8, 7 / 8]
    # After 0 always risky (0 or 1.5); after 1 risky with 1/2: 1 + 0, 1 + 1.5 or 1 + 0.5.
    mixed = evaluate(zoo.make("paper"), paper_policy(1.0, 0.5))
    assert mixed.values.tolist() == [0.0, 1.0, 1.5, 2.5]
    np.testing.assert_allclose(mixed.probabilities, [1 / 8, 1 / 16, 3 / 8 + 1 / 4, 3 / 16], atol=1e-15)


def test_rounding_takes_the_most_probable_and_the_first_of_equals() -> None:
    rounded = paper_policy(0.6, 0.4).rounded()
    assert evaluate(zoo.make("paper"), rounded).probabilities.tolist() == [1 / 8, 7 / 8]
    assert set(rounded.probabilities.tolist()) == {0.0, 1.0}
    assert rounded.probabilities[:2].tolist() == [1.0, 0.0]


@given(st.integers(0, 10_000), st.booleans(), st.integers(0, 3))
@settings(max_examples=25)
def test_evaluation_agrees_with_the_planner(seed: int, varied: bool, chosen: int) -> None:
    model = random_mdp(
        seed, states=4, horizon=4, per_step=varied, action_sets=varied, random_start=varied, rewards=(-1, 0, 2)
    )
    graph, policy = random_policy(model, seed, chosen)
    grid = Grid.of(graph.budgets.lattice, 1)
    windows = grid.earned_windows(policy.first_position, policy.first_position)
    choice: list[np.ndarray] = []
    for step in range(grid.length):
        t = model.transitions(step)
        dense = np.zeros((t.n_pairs, int(windows.widths[step])))
        for node in range(graph.layer_start[step], graph.layer_start[step + 1]):
            column = int(graph.positions[node] - windows.low[step])
            if 0 <= column < dense.shape[1]:
                own = slice(graph.layout.entry_start[node], graph.layout.entry_start[node + 1])
                first = t.pair_start[graph.states[node]]
                dense[first : first + own.stop - own.start, column] = policy.probabilities[own]
        choice.append(dense)
    expected = forward_mixed(grid, policy.first_position, choice, windows.low[:-1])
    found = evaluate(model, policy)
    np.testing.assert_allclose(found.values, expected.values, atol=1e-12)
    np.testing.assert_allclose(found.probabilities, expected.probabilities, atol=1e-12)


def test_episodes_agree_with_the_evaluation() -> None:
    model = random_mdp(5, states=3, horizon=3, action_sets=True)
    _, policy = random_policy(model, 5, 1)
    returns, random = evaluate(model, policy), np.random.default_rng(0)
    episodes = 4000
    totals = np.empty(episodes)
    for number in range(episodes):
        policy.reset()
        state, total = 0, 0.0
        for step in range(3):
            t = model.transitions(step)
            pairs = np.arange(t.pair_start[state], t.pair_start[state + 1])
            pair = pairs[t.action[pairs] == policy.act(state)][0]
            first, last = t.outcome_start[pair], t.outcome_start[pair + 1]
            outcome = first + random.choice(last - first, p=t.probability[first:last])
            policy.observe(t.reward[outcome])
            state, total = int(t.next_state[outcome]), total + t.reward[outcome]
        totals[number] = total
    frequency = np.array([(totals == value).mean() for value in returns.values])
    assert frequency.sum() == pytest.approx(1.0)
    # Dvoretzky-Kiefer-Wolfowitz: exceeded with probability 2 exp(-2 · 4000 · 0.04²) < 1e-5.
    assert np.abs(np.cumsum(frequency) - np.cumsum(returns.probabilities)).max() < 0.04


def test_a_saved_policy_is_the_same(tmp_path: Path) -> None:
    model = random_mdp(5, states=3, horizon=3, action_sets=True, per_step=True)
    _, policy = random_policy(model, 5, 1)
    policy.save(tmp_path)
    loaded = StochasticBudgetPolicy.load(tmp_path)
    found, expected = evaluate(loaded.lattice.model, loaded), evaluate(model, policy)
    assert found.values.tolist() == expected.values.tolist()
    assert found.probabilities.tolist() == expected.probabilities.tolist()
    assert (loaded.budget, loaded.first_position) == (policy.budget, policy.first_position)


def test_another_first_budget() -> None:
    graph, policy = random_policy(zoo.make("paper"), 3, 0)
    moved = policy.from_budget(1.5)
    direct = StochasticBudgetPolicy.of(graph, policy.probabilities, 3)
    assert moved.first_position == direct.first_position
    assert evaluate(zoo.make("paper"), moved).certainty_equivalent(parse_risk("cvar:0.5")) == evaluate(
        zoo.make("paper"), direct
    ).certainty_equivalent(parse_risk("cvar:0.5"))


def test_a_pair_beyond_the_table_is_drawn_uniformly() -> None:
    _, policy = random_policy(zoo.make("paper"), 3, 0)
    far = policy.from_budget(100.0)
    # Ber(1/2) first; then a1 or a2 with 1/2 each: 0 (1/8), 0.5 (1/2), 1.5 (3/8).
    np.testing.assert_allclose(
        evaluate(zoo.make("paper"), far).probabilities,
        # 0, 0.5, 1 + 0, 1.5 + 0 or 1 + 0.5, 1 + 1.5
        [1 / 16, 1 / 4, 1 / 16, 3 / 16 + 1 / 4, 3 / 16],
        atol=1e-15,
    )


def test_what_is_not_a_policy(tmp_path: Path) -> None:
    with pytest.raises(OcerlError, match="does not hold a saved stochastic policy"):
        StochasticBudgetPolicy.load(tmp_path)
