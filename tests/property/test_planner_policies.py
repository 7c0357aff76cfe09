"""Exact evaluation of any policy, the best Markov policy, and iterated risk, against brute force."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from brute_force import (
    NOTHING,
    STAY,
    Game,
    MarkovTable,
    State,
    attainable,
    cvar,
    distribution_of_policy,
    distribution_of_table,
    markov_optimum,
    markov_tables,
    mixture,
    named,
    optimum,
)
from ocerl.planning import best_markov, evaluate, iterated, plan
from support.games import DISCOUNTED, HALVES, OFF_LATTICE, assert_same_returns, games

RISKS = st.sampled_from(
    ["mean", "cvar:0.25", "cvar:0.6", "mean-cvar:0.5,0.25", "entropic:-1", "monotone-mean-variance:1"]
)


def in_slots(game: Game, step: int, state: State) -> list[str]:
    """The actions of a state in the order of its slots: that of the model's list."""
    choices = list(game.choices(step, state))
    return choices if choices == [STAY] else sorted(choices, key=game.model().actions.index)


def slots_of(game: Game, table: MarkovTable) -> NDArray[np.int64]:
    """A Markov policy as an array of slots."""
    model = game.model()
    slots = np.zeros((game.horizon, model.n_states), dtype=np.int64)
    for (step, state), action in table.items():
        slots[step, model.states.index(state)] = in_slots(game, step, state).index(action)
    return slots


@settings(max_examples=40)
@given(games(policies=1000, discounts=HALVES), st.randoms(use_true_random=False))
def test_evaluation_of_a_markov_table(game: Game, random: Random) -> None:
    table = random.choice(list(markov_tables(game)))
    assert_same_returns(evaluate(game.model(), slots_of(game, table)), distribution_of_table(game, table))


@settings(max_examples=30)
@given(games(policies=1000, discounts=HALVES))
def test_evaluation_of_a_table_that_draws(game: Game) -> None:
    """A policy that draws with probabilities 2/3, 2/9, ... is a model with one blended action per state."""
    model = game.model()
    most = max(len(choices) for table in game.tables for choices in table.values())
    probabilities = np.zeros((game.horizon, model.n_states, most))
    blended = []
    for step in range(game.horizon):
        table = {}
        for index, state in enumerate(model.states):
            listed = in_slots(game, step, state)
            weights = [Fraction(2, 3 ** (slot + 1)) for slot in range(len(listed))]
            weights[-1] = 1 - sum(weights[:-1])
            probabilities[step, index, : len(listed)] = [float(weight) for weight in weights]
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
@given(OFF_LATTICE | DISCOUNTED, st.randoms(use_true_random=False), st.sampled_from([20.0, 1000.0]))
def test_evaluation_off_the_lattice_knows_its_error(game: Game, random: Random, points: float) -> None:
    model, table = game.model(), random.choice(list(markov_tables(game)))
    low, high = model.return_range()
    resolution = max(high - low, 1e-3) / points
    returns = evaluate(model, slots_of(game, table), resolution=resolution)
    exact = distribution_of_table(game, table)
    least, most = returns.error
    # Each step is rounded down by less than a unit; a discounted tail may be left out where that loses less.
    assert most - least <= (game.horizon + 1e-6) * resolution
    for tau in (0.05, 0.5, 1.0):
        rounded = returns.certainty_equivalent(f"cvar:{tau}")
        assert rounded + least - 1e-9 <= cvar(tau)(exact) <= rounded + most + 1e-9


@settings(max_examples=40)
@given(games(policies=500), RISKS | st.just("mean-variance:1"))
def test_best_markov(game: Game, text: str) -> None:
    result, oce = best_markov(game.model(), text), named(text)
    walked = distribution_of_policy(game, game.model(), result.policy)
    assert result.exhaustive
    assert result.value == pytest.approx(markov_optimum(game, oce), rel=0, abs=1e-9)
    assert oce(walked) == pytest.approx(result.value, rel=0, abs=1e-9)
    assert_same_returns(result.returns, walked)
    assert result.value <= result.upper <= optimum(game, oce) + 1e-9


@settings(max_examples=30)
@given(games(policies=500), RISKS | st.just("mean-variance:1"))
def test_best_markov_by_search_says_so(game: Game, text: str) -> None:
    """Where tables are too many to try, the value is one that a policy has, and the bound is a bound."""
    oce = named(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ocerl.planning.markov.ENUMERATE_UP_TO", 0)
        patch.setattr("ocerl.planning.markov.RESTARTS", 3)
        result = best_markov(game.model(), text, seed=1)
    best = markov_optimum(game, oce)
    assert not result.exhaustive
    walked = distribution_of_policy(game, game.model(), result.policy)
    assert oce(walked) == pytest.approx(result.value, rel=0, abs=1e-9)
    assert result.value <= best + 1e-9
    assert result.upper >= best - 1e-9


@settings(max_examples=20)
@given(OFF_LATTICE | DISCOUNTED, RISKS | st.just("mean-variance:1"))
def test_best_markov_off_the_lattice(game: Game, text: str) -> None:
    model, oce = game.model(), named(text)
    result, best = best_markov(model, text), markov_optimum(game, oce)
    assert result.value - 1e-9 <= best <= result.upper + 1e-9
    assert oce(distribution_of_policy(game, model, result.policy)) >= result.value - 1e-9
    assert not result.to_dict()["exact"] or result.value == pytest.approx(best, rel=0, abs=1e-9)


def nested(game: Game, text: str) -> float:
    """Undiscounted iterated risk by plain recursion: the risk of reward plus the next nested value."""
    oce = named(text)

    def worth(parts: list[tuple[Fraction, Fraction]]) -> float:
        return oce(mixture((p, amount, NOTHING) for p, amount in parts))

    @cache
    def value(step: int, state: State) -> Fraction:
        if step == game.horizon:
            return Fraction(0)
        options = [game.outcomes(step, state, action) for action in game.choices(step, state)]
        return Fraction(
            max(worth([(p, reward + value(step + 1, after)) for p, after, reward in outcomes]) for outcomes in options)
        )

    return worth([(p, value(0, state)) for state, p in game.start.items()])


@settings(max_examples=30)
@given(games(policies=500), st.sampled_from(["cvar:0.25", "cvar:0.7", "entropic:-1"]))
def test_iterated_risk(game: Game, text: str) -> None:
    model, oce = game.model(), named(text)
    result = iterated(model, text)
    assert result.value == pytest.approx(nested(game, text), rel=0, abs=1e-9)
    walked = distribution_of_policy(game, model, result.policy)
    assert_same_returns(result.returns, walked)
    assert oce(walked) <= optimum(game, oce) + 1e-9
    if text.startswith("entropic"):
        assert result.value == pytest.approx(optimum(game, oce), rel=0, abs=1e-9)


@pytest.mark.parametrize(
    ("second", "static", "iterated_value"),
    [
        # Level 7/10; a coin pays 0 or 1, then comes nothing or another coin, alone worth 2/7.
        # After a 1 only: {0: 1/2, 1: 1/4, 2: 1/4} has CVaR (1/5) / (7/10) = 2/7, nested it is
        # 2/7 (1 + 2/7) = 18/49.
        ({0: 1}, Fraction(2, 7), Fraction(18, 49)),
        # After both: {0: 1/4, 1: 1/2, 2: 1/4} has CVaR (9/20) / (7/10) = 9/14; nested 2/7 + 2/7.
        ({0: 1, 1: 1}, Fraction(9, 14), Fraction(4, 7)),
    ],
    ids=["nested above static", "nested below static"],
)
def test_iterated_cvar_is_no_bound(second: dict[State, int], static: Fraction, iterated_value: Fraction) -> None:
    """Nested CVaR may lie on either side of CVaR: another objective, not a more cautious one."""
    half = Fraction(1, 2)
    nothing, coin = ((Fraction(1), 2, Fraction(0)),), ((half, 2, Fraction(0)), (half, 2, Fraction(1)))
    first = ((half, 1, Fraction(0)), (half, 0, Fraction(1)))
    tables = ({0: {"a": first}}, {state: {"a": coin if state in second else nothing} for state in (0, 1)})
    game = Game(tables, 2, {0: Fraction(1)})
    assert plan(game.model(), "cvar:0.7").value == pytest.approx(float(static), abs=1e-12)
    assert iterated(game.model(), "cvar:0.7").value == pytest.approx(float(iterated_value), abs=1e-12)
