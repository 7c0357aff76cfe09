"""Certainty equivalents of given distributions, against the paper's tables and numbers worked out by hand."""

import math

import numpy as np
import pytest

from ocerl.errors import OcerlError
from ocerl.risk import CVaR, Entropic, Mean, MeanCVaR, MeanVariance, MonotoneMeanVariance, Risk

# Table 2 of the paper: the three policies of its MDP.
RISKY = ([0.0, 1.0, 1.5, 2.5], [1 / 8, 1 / 8, 3 / 8, 3 / 8])
SAFE = ([0.5, 1.5], [1 / 2, 1 / 2])
OPTIMAL = ([0.0, 1.5], [1 / 8, 7 / 8])


@pytest.mark.parametrize(
    ("risk", "risky", "safe", "optimal"),
    [
        (CVaR(0.25), 0.5, 0.5, 0.75),  # the paper's table
        # Half of the mass: (0/8 + 1/8 + 1.5·2/8) / (1/2) = 1; 0.5; 1.5·(3/8) / (1/2) = 1.125.
        (CVaR(0.5), 1.0, 0.5, 1.125),
        # Means 1.625, 1 and 1.3125; variances 0.671875, 0.25 and 0.24609375.
        (Mean(), 1.625, 1.0, 1.3125),
        (MeanVariance(1.0), 0.953125, 0.75, 1.06640625),
        (MeanVariance(2.0), 0.28125, 0.5, 0.8203125),
        # E(a - X)₊ = 1/(2c): a = 1.9, 1.5, 1.8125 for c = 1 and 1.5, 1, 1.5625 for c = 2; b = a - 1/(2c).
        (MonotoneMeanVariance(1.0), 1.0375, 0.75, 1.06640625),
        (MonotoneMeanVariance(2.0), 0.75, 0.625, 0.8203125),
        (MeanCVaR(0.5, 0.25), (1.625 + 0.5) / 2, (1.0 + 0.5) / 2, (1.3125 + 0.75) / 2),
        (
            Entropic(-1.0),
            -math.log((1 + math.e**-1 + 3 * math.e**-1.5 + 3 * math.e**-2.5) / 8),
            -math.log((math.e**-0.5 + math.e**-1.5) / 2),
            -math.log((1 + 7 * math.e**-1.5) / 8),
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Risk) else "",
)
def test_policies_of_the_paper(risk: Risk, risky: float, safe: float, optimal: float) -> None:
    for distribution, expected in ((RISKY, risky), (SAFE, safe), (OPTIMAL, optimal)):
        assert risk.certainty_equivalent(*distribution).value == pytest.approx(expected, abs=1e-12)


def test_the_two_mean_variances_differ_for_the_best_markov_policy_and_agree_at_the_optimum() -> None:
    def best(risk: Risk, *policies: tuple[list[float], list[float]]) -> float:
        return max(risk.certainty_equivalent(*policy).value for policy in policies)

    for c, plain, monotone, optimum in ((1.0, 0.9531, 1.0375, 1.0664), (2.0, 0.5, 0.75, 0.8203)):
        assert best(MeanVariance(c), RISKY, SAFE) == pytest.approx(plain, abs=5e-5)
        assert best(MonotoneMeanVariance(c), RISKY, SAFE) == pytest.approx(monotone, abs=5e-5)
        assert best(MeanVariance(c), OPTIMAL) == pytest.approx(optimum, abs=5e-5)
        assert best(MonotoneMeanVariance(c), OPTIMAL) == pytest.approx(optimum, abs=5e-5)


@pytest.mark.parametrize(
    ("tau", "budget"),
    [(0.05, 0.0), (0.125, 0.0), (0.126, 1.0), (0.25, 1.0), (0.5, 1.5), (0.625, 1.5), (1, 2.5)],
)
def test_budget_of_cvar_is_the_lower_quantile_right_at_atoms(tau: float, budget: float) -> None:
    assert CVaR(tau).certainty_equivalent(*RISKY).budget == budget
    assert MeanCVaR(0.25, tau).certainty_equivalent(*RISKY).budget == budget


@pytest.mark.parametrize("place", range(1, 11))
def test_ten_tenths_reach_each_level_with_the_right_value(place: int) -> None:
    values = np.arange(10.0)
    result = CVaR(place / 10).certainty_equivalent(values, [0.1] * 10)
    assert result.budget == place - 1
    assert result.value == pytest.approx((place - 1) / 2)  # the mean of 0, ..., place - 1
    above = min(place / 10 + 1e-9, 1.0)
    assert CVaR(above).certainty_equivalent(values, [0.1] * 10).budget == min(place, 9)


def test_many_equal_weights_reach_a_level_with_the_right_sample() -> None:
    values = np.arange(100_000.0)
    assert CVaR(0.05).certainty_equivalent(values).budget == 4_999
    assert CVaR(0.3).certainty_equivalent(values, np.full(100_000, 1e-5)).budget == 29_999


def test_budgets_of_the_other_risks() -> None:
    entropic = Entropic(-2.0).certainty_equivalent(*SAFE)
    assert entropic.budget == entropic.value
    assert MeanVariance(1.0).certainty_equivalent(*RISKY).budget == 1.625
    assert MonotoneMeanVariance(1.0).certainty_equivalent(*RISKY).budget == pytest.approx(1.4)
    assert MonotoneMeanVariance(2.0).certainty_equivalent(*RISKY).budget == pytest.approx(1.25)


def test_closed_forms_claim_no_tolerance() -> None:
    for risk in (
        Mean(),
        CVaR(0.3),
        Entropic(-1),
        MeanVariance(1),
        MonotoneMeanVariance(1),
        MeanCVaR(0.5, 0.3),
    ):
        assert risk.certainty_equivalent(*RISKY).tolerance == 0.0


@pytest.mark.parametrize("beta", [-5.0, -0.1, -1e3])
def test_entropic_survives_large_returns(beta: float) -> None:
    # Beside -1e4 the other value has no weight left: log((1/4) exp(-1e4 β)) / β = -1e4 + log(1/4) / β.
    result = Entropic(beta).certainty_equivalent([-1e4, 1e4], [1, 3])
    assert result.value == pytest.approx(-1e4 + math.log(0.25) / beta, rel=1e-14)


def test_entropic_is_exact_for_tiny_beta() -> None:
    # E X + β Var X / 2 + O(β²)
    result = Entropic(-1e-10).certainty_equivalent([0.0, 1.0])
    assert result.value == pytest.approx(0.5 - 1e-10 / 8, abs=1e-15)


def test_entropic_sees_a_very_rare_disaster() -> None:
    # log(1e-300 + 0) / β = 300 log(10) / 1000 above the disaster.
    result = Entropic(-1e3).certainty_equivalent([-100.0, 0.0], [1e-300, 1.0])
    assert result.value == pytest.approx(-100 + 0.3 * math.log(10), rel=1e-12)


def test_monotone_mean_variance_is_exact_when_c_is_tiny_or_huge() -> None:
    assert MonotoneMeanVariance(1e-12).certainty_equivalent(*RISKY).budget == pytest.approx(1.625, abs=1e-11)
    assert MonotoneMeanVariance(1e12).certainty_equivalent(*RISKY).value == pytest.approx(0.0, abs=1e-11)


def test_cvar_at_level_one_is_the_mean() -> None:
    assert CVaR(1.0).certainty_equivalent(*RISKY).value == pytest.approx(1.625)


def test_weights_need_no_order_and_no_sum_and_equal_ones_can_be_left_out() -> None:
    risk = CVaR(0.25)
    expected = risk.certainty_equivalent(*RISKY)
    assert risk.certainty_equivalent([2.5, 1.0, 0.0, 1.5, -99.0], [3, 1, 1, 3, 0]) == expected
    assert risk.certainty_equivalent([2.5, 1.0, 2.5, 0.0, 1.5, 1.5, 2.5, 1.5]) == expected
    assert risk.certainty_equivalent(RISKY[0], [1e308, 1e308, 3e307, 3e307]).value == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("values", "probabilities", "message"),
    [
        ([], None, "values are empty"),
        ([0.0, math.nan], None, r"values\[1\] is nan"),
        ([-math.inf], None, r"values\[0\] is -inf"),
        ([[0.0, 1.0]], None, r"one-dimensional sequence, got an array of shape \(1, 2\)"),
        (3.0, None, r"one-dimensional"),
        (["a"], None, "values must be numbers"),
        ([0.0, 1.0], [1.0], "one length, got 2 and 1"),
        ([0.0, 1.0], [1.5, -0.5], r"probabilities\[1\] is -0.5"),
        ([0.0, 1.0], [0.0, 0.0], "sum to 0"),
        ([0.0, 1.0], [0.5, math.nan], r"probabilities\[1\] is nan"),
    ],
)
def test_what_is_no_distribution_is_refused(values, probabilities, message: str) -> None:
    with pytest.raises(OcerlError, match=message):
        CVaR(0.5).certainty_equivalent(values, probabilities)
