"""On tiny random models the planner equals brute force over all history-dependent policies."""

from __future__ import annotations

import math
import tempfile
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from brute_force import (
    OCE,
    Game,
    attainable,
    distribution_of_policy,
    mean,
    named,
    of_utility,
)
from ocerl.planning import evaluate, load_policy, plan, save_policy
from ocerl.risk import Risk, Utility, parse_risk
from support.games import HALVES, assert_same_returns, games, largest_cdf_gap

LEVELS = st.sampled_from([0.05, 0.1, 0.25, 1 / 3, 0.5, 0.75, 1.0]) | st.floats(0.01, 1.0)
LINEAR = st.one_of(
    st.just("mean"),
    LEVELS.map(lambda tau: f"cvar:{tau!r}"),
    st.builds("mean-cvar:{!r},{!r}".format, st.sampled_from([0.0, 0.25, 0.9]), LEVELS),
)
"""Risks with one kink: their first budget is a return, and nothing has to be searched."""
SMOOTH = st.sampled_from(
    [
        "entropic:-0.2",
        "entropic:-1",
        "entropic:-3",
        "mean-variance:0.3",
        "mean-variance:2",
        "monotone-mean-variance:0.3",
        "monotone-mean-variance:2",
    ]
)


def logarithm(t: float) -> float:
    """No loss of 1 or more against the budget is acceptable."""
    return math.log1p(t) if t > -1.0 else -math.inf


def elementwise_logarithm(t: NDArray[np.float64]) -> NDArray[np.float64]:
    inside = t > -1.0
    return np.where(inside, np.log1p(np.where(inside, t, 0.0)), -np.inf)


def check(game: Game, risk: Risk, oce: OCE, tolerance: float, method: str | None = None) -> None:
    """The whole claim of one plan: its value, its certificate, its policy, its returns, its budget."""
    model = game.model()
    result = plan(model, risk, method=method)
    policies = attainable(game)
    best = max(map(oce, policies))

    assert result.exact
    assert result.value == pytest.approx(best, rel=0, abs=tolerance)
    assert result.lower <= result.value <= result.upper
    assert result.lower - tolerance <= best <= result.upper + tolerance

    walked = distribution_of_policy(game, model, result.policy)
    assert oce(walked) == pytest.approx(best, rel=0, abs=tolerance)
    assert_same_returns(result.returns, walked)
    assert_same_returns(evaluate(model, result.policy), walked)
    assert result.returns.mean == pytest.approx(mean(walked), abs=1e-9)

    values, probabilities = np.array([(float(value), float(p)) for value, p in walked]).T
    attained = result.budget + probabilities @ risk.utility(values - result.budget)
    assert attained == pytest.approx(best, rel=0, abs=max(tolerance, 1e-8)), "the budget attains the value"

    assert result.risk_neutral.value == pytest.approx(max(map(mean, policies)), abs=1e-9)
    assert result.risk_neutral.oce <= result.value + tolerance


@settings(max_examples=80)
@given(games(policies=1000), LINEAR)
def test_one_kink(game: Game, text: str) -> None:
    check(game, parse_risk(text), named(text), 1e-9)


@settings(max_examples=40)
@given(games(policies=300), SMOOTH)
def test_smooth(game: Game, text: str) -> None:
    check(game, parse_risk(text), named(text), 1e-6)


@settings(max_examples=20)
@given(games(policies=300), st.sampled_from(["entropic:-0.2", "entropic:-1", "entropic:-3"]))
def test_entropic_with_budgets(game: Game, text: str) -> None:
    check(game, parse_risk(text), named(text), 1e-6, method="augmented")


@settings(max_examples=25)
@given(games(policies=200))
def test_a_users_utility(game: Game) -> None:
    """Slopes 3, 3/2 and 1/2, with kinks at -1 and 0."""
    risk = Utility(lambda t: np.minimum(t / 2.0, np.minimum(1.5 * t, 3.0 * t + 1.5)), label="two kinks")
    check(game, risk, of_utility(lambda t: min(t / 2.0, 1.5 * t, 3.0 * t + 1.5)), 1e-6)


@settings(max_examples=10)
@given(games(policies=100, horizon=3))
def test_a_users_utility_with_losses_that_must_not_be(game: Game) -> None:
    """Where u is minus infinity no slope bounds the objective between two budgets."""
    check(game, Utility(elementwise_logarithm, label="log"), of_utility(logarithm), 1e-6)


@settings(max_examples=25)
@given(games(policies=500, discounts=HALVES), LINEAR)
def test_discounts_with_a_lattice(game: Game, text: str) -> None:
    """Halves of a common unit are on a lattice too."""
    check(game, parse_risk(text), named(text), 1e-9)


@settings(max_examples=10)
@given(games(policies=100), st.sampled_from(["cvar:0.01", "cvar:0.0001", "mean-cvar:0.1,0.001"]))
def test_tiny_levels(game: Game, text: str) -> None:
    """What settles ties in favour of the mean must not be magnified by 1/τ."""
    check(game, parse_risk(text), named(text), 1e-9)


@settings(max_examples=15)
@given(games(policies=300), st.sampled_from(["cvar:0.25", "mean-variance:1"]))
def test_simulation_draws_from_the_distribution(game: Game, text: str) -> None:
    """Dvoretzky-Kiefer-Wolfowitz: 1000 episodes are more than 0.1 off with probability 2 exp(-20) < 5e-9."""
    model = game.model()
    result = plan(model, text)
    episodes = np.asarray(result.simulate(1000, seed=7))
    assert episodes.shape == (1000,)
    assert largest_cdf_gap(episodes, distribution_of_policy(game, model, result.policy)) <= 0.1
    assert np.array_equal(episodes, result.simulate(1000, seed=7))


@settings(max_examples=15)
@given(games(policies=300, discounts=HALVES), st.sampled_from(["cvar:0.25", "mean-variance:1", "mean"]))
def test_a_policy_read_back_from_a_folder_acts_alike(game: Game, text: str) -> None:
    model = game.model()
    policy = plan(model, text).policy
    with tempfile.TemporaryDirectory() as folder:
        save_policy(policy, folder)
        again = load_policy(folder)
        assert distribution_of_policy(game, model, again) == distribution_of_policy(game, model, policy)


@pytest.mark.parametrize(
    "risk",
    [parse_risk("mean-variance:0.08"), Utility(lambda t: t - 0.08 * t * t, label="the same, by hand")],
    ids=["named", "a user's"],
)
def test_the_best_budget_hides_between_returns(risk: Risk) -> None:
    """A local maximum on the lattice is a trap: the best policy is only best for budgets no return equals.

    With u(t) = t - 0.08 t^2 a policy is worth mean - 0.08 variance - 0.08 (b - mean)^2 at the budget b.
    `wide` (0 or 20) is worth 10 - 8 = 2 at the return b = 10. `narrow` (0 or 10) is worth 5 - 2 = 3 at b = 5,
    but only 1 at the returns 0 and 10: on the lattice {0, 10, 20} `wide` wins, and is best where it is best.
    """
    half = Fraction(1, 2)
    game = Game(
        (
            {
                0: {
                    "wide": ((half, 0, Fraction(0)), (half, 0, Fraction(20))),
                    "narrow": ((half, 0, Fraction(0)), (half, 0, Fraction(10))),
                }
            },
        ),
        horizon=1,
        start={0: Fraction(1)},
    )
    check(game, risk, named("mean-variance:0.08"), 1e-6)
    result = plan(game.model(), risk)
    assert result.value == pytest.approx(3.0, abs=1e-7)
    assert result.budget == pytest.approx(5.0, abs=1e-3)
