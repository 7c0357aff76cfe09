"""On tiny random models the planner equals brute force over all history-dependent policies."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from brute_force import (
    OCE,
    STAY,
    Game,
    attainable,
    distribution_of_policy,
    distribution_of_table,
    markov_tables,
    mean,
    named,
    of_utility,
    optimum,
)
from ocerl.planning import best_markov, evaluate, plan
from ocerl.risk import Risk, Utility, parse_risk
from support.games import assert_same_returns, games, largest_cdf_gap

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
HALVES = (Fraction(1), Fraction(1, 2))


def two_kinks(t: float) -> float:
    """Slopes 3, 3/2 and 1/2, with kinks at -1 and 0."""
    return min(t / 2.0, 1.5 * t, 3.0 * t + 1.5)


def logarithm(t: float) -> float:
    """No loss of 1 or more against the budget is acceptable."""
    return math.log1p(t) if t > -1.0 else -math.inf


def users(function: Callable[[float], float]) -> Utility:
    """The same function as a user would pass it, elementwise."""
    return Utility(np.vectorize(function, otypes=[float]), label=function.__name__)


def check(game: Game, risk: Risk, oce: OCE, tolerance: float, method: str | None = None) -> None:
    """The whole claim of one plan: its value, its certificate, its policy, its returns, its budget."""
    model = game.model()
    result = plan(model, risk, method=method)
    best = optimum(game, oce)

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

    assert result.risk_neutral.value == pytest.approx(optimum(game, mean), abs=1e-9)
    assert result.risk_neutral.oce <= result.value + tolerance


@settings(max_examples=80)
@given(games(policies=2000), LINEAR)
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
@given(games(policies=200), st.sampled_from([two_kinks, logarithm]))
def test_a_users_utility(game: Game, function: Callable[[float], float]) -> None:
    check(game, users(function), of_utility(function), 1e-6)


@settings(max_examples=25)
@given(games(policies=500, discounts=HALVES), LINEAR)
def test_discounts_with_a_lattice(game: Game, text: str) -> None:
    """Halves of a common unit are on a lattice too."""
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


def in_slots(game: Game, step: int, state: int) -> list[str]:
    """The actions of a state in the order of its slots: that of the model's list."""
    choices = list(game.choices(step, state))
    return choices if choices == [STAY] else sorted(choices, key=game.model().actions.index)


def slots_of(game: Game, table: dict[tuple[int, int], str]) -> NDArray[np.int64]:
    """A Markov policy as an array of slots."""
    model = game.model()
    slots = np.zeros((game.horizon, model.n_states), dtype=np.int64)
    for (step, state), action in table.items():
        slots[step, model.states.index(state)] = in_slots(game, step, state).index(action)
    return slots


@settings(max_examples=40)
@given(games(policies=2000, discounts=HALVES), st.randoms(use_true_random=False))
def test_evaluation_of_a_markov_table(game: Game, random: Random) -> None:
    table = dict(random.choice(list(markov_tables(game))))
    returns = evaluate(game.model(), slots_of(game, table))
    assert_same_returns(returns, distribution_of_table(game, table))


@settings(max_examples=40)
@given(games(policies=2000, discounts=HALVES))
def test_evaluation_of_a_table_that_draws(game: Game) -> None:
    """A policy that draws with probabilities 2/3, 2/9, ... is a model with one blended action per state."""
    model = game.model()
    most = max(len(choices) for table in game.tables for choices in table.values())
    probabilities = np.zeros((game.horizon, model.n_states, most))
    probabilities[:, :, 0] = 1.0
    blended = []
    for step in range(game.horizon):
        table = {}
        for state in model.states:
            listed = in_slots(game, step, state)
            weights = [Fraction(2, 3 ** (slot + 1)) for slot in range(len(listed))]
            weights[-1] = 1 - sum(weights[:-1])
            probabilities[step, model.states.index(state), : len(listed)] = [float(w) for w in weights]
            table[state] = {
                "blend": [
                    (weight * p, after, reward)
                    for weight, action in zip(weights, listed, strict=True)
                    for p, after, reward in game.choices(step, state)[action]
                ]
            }
        blended.append(table)
    (expected,) = attainable(Game(tuple(blended), game.horizon, game.start, game.discount))
    assert_same_returns(evaluate(model, probabilities), expected)


@settings(max_examples=30)
@given(games(policies=2000, horizon=3), LINEAR | SMOOTH)
def test_best_markov(game: Game, text: str) -> None:
    model, oce = game.model(), named(text)
    result = best_markov(model, text)
    best = max(oce(distribution_of_table(game, table)) for table in markov_tables(game))
    walked = distribution_of_policy(game, model, result.policy)
    assert_same_returns(result.returns, walked)
    assert oce(walked) == pytest.approx(result.value, rel=0, abs=1e-6)
    assert result.value <= best + 1e-6
    assert result.upper >= best - 1e-6
    assert result.exhaustive
    assert result.value == pytest.approx(best, rel=0, abs=1e-6)
