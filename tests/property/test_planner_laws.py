"""Laws every plan obeys: P1 and P2 of Appendix B, orderings of risks, certified brackets, the frontier."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brute_force import Game, attainable, cvar, distribution_of_policy, mean, named, optimum
from ocerl.errors import OcerlError
from ocerl.planning import best_markov, evaluate, exponential, frontier, plan
from support.games import DISCOUNTED, IRRATIONAL, OFF_LATTICE, games, map_rewards

MONOTONE = st.sampled_from(
    ["mean", "cvar:0.25", "cvar:0.6", "mean-cvar:0.5,0.25", "entropic:-1", "monotone-mean-variance:1"]
)
EVERY = MONOTONE | st.just("mean-variance:1")


def raised(game: Game, step: int, by: Fraction) -> Game:
    return map_rewards(game, lambda h, reward: reward + by if h == step else reward)


@settings(max_examples=40)
@given(games(policies=200), EVERY, st.integers(-6, 6).map(lambda n: Fraction(n, 2)))
def test_translation_invariance(game: Game, text: str, constant: Fraction) -> None:
    """P1: a constant paid in the last step, whatever happens, is worth itself."""
    before = plan(game.model(), text).value
    after = plan(raised(game, game.horizon - 1, constant).model(), text).value
    assert after == pytest.approx(before + float(constant), abs=1e-6)


@settings(max_examples=40)
@given(games(policies=200), MONOTONE, st.integers(0, 5), st.data())
def test_monotonicity(game: Game, text: str, step: int, data: st.DataObject) -> None:
    """P2: rewards raised, each by its own amount, are never worth less (under a monotone risk)."""
    more = st.integers(0, 3).map(Fraction)
    chosen = step % game.horizon
    better = map_rewards(game, lambda h, reward: reward + (data.draw(more) if h == chosen else 0))
    assert plan(better.model(), text).value >= plan(game.model(), text).value - 1e-7


def test_plain_mean_variance_is_not_monotone() -> None:
    """The negative control of P2: raising one of two equal rewards to 10 pays 5 and costs 25 in variance."""
    half = Fraction(1, 2)
    nothing = Game(({0: {"a": ((half, 0, Fraction(0)), (half, 0, Fraction(0)))}},), 1, {0: Fraction(1)})
    luck = Game(({0: {"a": ((half, 0, Fraction(0)), (half, 0, Fraction(10)))}},), 1, {0: Fraction(1)})
    assert plan(nothing.model(), "mean-variance:1").value == pytest.approx(0.0, abs=1e-9)
    assert plan(luck.model(), "mean-variance:1").value == pytest.approx(5.0 - 25.0, abs=1e-9)
    # Monotone: b = 1/2 is where the slope (1 + 2b)/2 of the worse half is 1, and 1/2 + u(-1/2)/2 + 1/8 = 1/4.
    # (u(-1/2) = -1/2 - 1/4, and the 10 is worth the utility's maximum of 1/4.)
    assert plan(luck.model(), "monotone-mean-variance:1").value == pytest.approx(0.25, abs=1e-9)


@settings(max_examples=40)
@given(games(policies=1000), EVERY)
def test_never_above_the_best_mean(game: Game, text: str) -> None:
    result = plan(game.model(), text)
    assert result.value <= result.risk_neutral.value + 1e-7
    assert result.risk_neutral.oce <= result.value + 1e-7
    assert plan(game.model(), "mean").value == pytest.approx(result.risk_neutral.value, abs=1e-9)


INCREASING = (
    [f"cvar:{tau}" for tau in (0.05, 0.2, 0.5, 0.8, 1.0)],
    [f"mean-cvar:{kappa},0.25" for kappa in (0.0, 0.3, 0.7, 0.99)],
    [f"entropic:{beta}" for beta in (-4.0, -1.0, -0.25)],
    [f"mean-variance:{c}" for c in (4.0, 1.0, 0.25)],
    [f"monotone-mean-variance:{c}" for c in (4.0, 1.0, 0.25)],
)


@settings(max_examples=20)
@given(games(policies=1000), st.sampled_from(INCREASING))
def test_less_aversion_is_worth_more(game: Game, texts: list[str]) -> None:
    """In τ and κ upward, in |β| and c downward: the utilities lie above each other, so do their optima."""
    model = game.model()
    for averse, bolder in pairwise(plan(model, text).value for text in texts):
        assert averse <= bolder + 1e-7


@settings(max_examples=30)
@given(games(policies=1000, discounts=(Fraction(1), Fraction(1, 2))), st.sampled_from([-0.1, -1.0, -5.0]))
def test_entropic_paths_agree(game: Game, beta: float) -> None:
    """Two independent roads: the exponential Bellman equation, and budgets."""
    model, text = game.model(), f"entropic:{beta}"
    value, policy = exponential(model, beta)
    fast, augmented = plan(model, text), plan(model, text, method="augmented")
    assert fast.value == pytest.approx(value, abs=1e-9)
    assert fast.value == pytest.approx(augmented.value, abs=1e-6)
    assert evaluate(model, policy).certainty_equivalent(text) == pytest.approx(value, abs=1e-9)


def check_bracket(game: Game, text: str) -> None:
    """The truth is inside at every resolution, and a finer one narrows the gap."""
    model, truth = game.model(), optimum(game, named(text))
    low, high = model.return_range()
    resolution = max(high - low, 1e-3) / 50.0
    gaps: list[float] = []
    for finer in (1.0, 2.0, 16.0):
        result = plan(model, text, resolution=resolution / finer)
        assert result.lower <= result.value <= result.upper
        assert result.lower - 1e-9 <= truth <= result.upper + 1e-9
        gaps.append(result.upper - result.lower)
        attained = named(text)(distribution_of_policy(game, model, result.policy))
        assert attained >= result.lower - 1e-9, "the policy keeps the promise of the lower bound"
    assert gaps[1] <= gaps[0] + 1e-7
    assert gaps[2] <= gaps[0] / 4.0 + 1e-7


@settings(max_examples=30)
@given(OFF_LATTICE, MONOTONE)
def test_brackets_off_the_lattice(game: Game, text: str) -> None:
    check_bracket(game, text)


@settings(max_examples=30)
@given(DISCOUNTED, MONOTONE)
def test_brackets_under_a_discount(game: Game, text: str) -> None:
    check_bracket(game, text)


@settings(max_examples=20)
@given(OFF_LATTICE | DISCOUNTED, st.sampled_from([0.2, 1.0]))
def test_brackets_of_plain_mean_variance(game: Game, c: float) -> None:
    """Not monotone, so rounded to the nearest: no wider than the utility's steepest slope makes it."""
    model, text = game.model(), f"mean-variance:{c}"
    truth = optimum(game, named(text))
    low, high = model.return_range()
    resolution = max(high - low, 1e-3) / 100.0
    result = plan(model, text, resolution=resolution)
    assert result.lower - 1e-9 <= truth <= result.upper + 1e-9
    moved = (game.horizon + 1) * resolution / 2
    steepest = 1.0 + 2.0 * c * (high - low + 2 * moved)
    assert result.upper - result.lower <= 2 * moved * steepest + 1e-7
    attained = named(text)(distribution_of_policy(game, model, result.policy))
    assert attained >= result.lower - 1e-9


@settings(max_examples=30)
@given(OFF_LATTICE | DISCOUNTED, MONOTONE)
def test_unasked_the_bracket_is_tight(game: Game, text: str) -> None:
    """Without a resolution the gap is below half a percent of the returns' range, and holds the truth."""
    model = game.model()
    result, truth = plan(model, text), optimum(game, named(text))
    low, high = model.return_range()
    assert result.lower - 1e-9 <= truth <= result.upper + 1e-9
    assert result.upper - result.lower <= 0.005 * (high - low) + 1e-6


@pytest.mark.parametrize("text", ["cvar:0.1", "mean-cvar:0.5,0.1", "monotone-mean-variance:0.1"])
def test_unasked_the_bracket_is_tight_over_many_steps(text: str) -> None:
    """Every step's rounding adds up: what is fine enough for three steps is not for thirty."""
    half = Fraction(1, 2)
    walk = {"slow": ((Fraction(1), 0, IRRATIONAL[4]),), "fast": ((half, 0, IRRATIONAL[1]), (half, 0, Fraction(5)))}
    model = Game(({0: walk},), 30, {0: Fraction(1)}).model()
    result, (low, high) = plan(model, text), model.return_range()
    assert result.upper - result.lower <= 0.005 * (high - low)


@pytest.mark.parametrize("text", ["mean", "cvar:0.25", "entropic:-1", "mean-variance:1"])
def test_the_same_irrational_reward_everywhere(text: str) -> None:
    """Returns without any spread need no resolution: three times e is three times e."""
    sure = Game(({0: {"a": ((Fraction(1), 0, IRRATIONAL[0]),)}},), 3, {0: Fraction(1)})
    result = plan(sure.model(), text)
    assert result.value == pytest.approx(3 * float(IRRATIONAL[0]), abs=1e-9)
    assert frontier(sure.model(), [0.5]).values[0] == pytest.approx(3 * float(IRRATIONAL[0]), abs=1e-9)


def test_one_return_from_unlike_rewards() -> None:
    """The returns' range says nothing about the rewards': here it is a point, and they differ by two."""
    first, second = IRRATIONAL[1], IRRATIONAL[0]
    game = Game(({0: {"a": ((Fraction(1), 1, first),)}, 1: {"a": ((Fraction(1), 1, second),)}},), 2, {0: Fraction(1)})
    model, truth = game.model(), float(first + second)
    assert plan(model, "mean").returns.mean == pytest.approx(truth, abs=1e-3)
    assert plan(model, "cvar:0.5").value == pytest.approx(truth, abs=1e-3)
    assert best_markov(model, "cvar:0.5").value == pytest.approx(truth, abs=1e-3)
    assert evaluate(model, np.zeros((2, 2), dtype=int)).values == pytest.approx([truth], abs=1e-3)


def test_large_rewards_that_cancel() -> None:
    """Millions up, then down again: the bracket holds, or the answer is an error, but never a wrapped integer."""
    million, half = Fraction(1e6 * np.e), Fraction(1, 2)
    up = ((half, 1, million), (half, 2, million + IRRATIONAL[3]))
    down = {"a": ((Fraction(1), 3, -million),)}
    game = Game(({0: {"a": up}, 1: down, 2: down},), 2, {0: Fraction(1)})
    resolution = 2.0 * float(million) / (2.0**33 + 7)
    with suppress(OcerlError):
        result = plan(game.model(), "cvar:0.5", resolution=resolution)
        assert result.lower - 1e-8 <= optimum(game, cvar(0.5)) <= result.upper + 1e-8
        assert result.upper - result.lower <= 4 * resolution + 1e-8


LEVELS = (0.05, 0.1, 0.25, 1 / 3, 0.5, 0.8, 1.0)


@settings(max_examples=30)
@given(games(policies=500))
def test_frontier_is_a_plan_for_each_level(game: Game) -> None:
    model, every = game.model(), attainable(game)
    curve = frontier(model, LEVELS)
    assert curve.exact
    assert curve.levels.tolist() == list(LEVELS)
    assert (np.diff(curve.values) >= -1e-9).all()
    for level, value, upper, average in zip(LEVELS, curve.values, curve.uppers, curve.means, strict=True):
        assert value == pytest.approx(max(map(cvar(level), every)), rel=0, abs=1e-9)
        assert value == pytest.approx(plan(model, f"cvar:{level!r}").value, rel=0, abs=1e-9)
        assert upper == pytest.approx(value, rel=0, abs=1e-9)
        walked = distribution_of_policy(game, model, curve.at(level))
        assert cvar(level)(walked) == pytest.approx(value, rel=0, abs=1e-9)
        assert mean(walked) == pytest.approx(average, rel=0, abs=1e-9)
    assert curve.values[-1] == pytest.approx(plan(model, "mean").value, rel=0, abs=1e-9)


@settings(max_examples=20)
@given(OFF_LATTICE | DISCOUNTED)
def test_frontier_brackets_every_level(game: Game) -> None:
    model, every = game.model(), attainable(game)
    curve = frontier(model, LEVELS)
    for level, lower, upper in zip(LEVELS, curve.values, curve.uppers, strict=True):
        assert lower - 1e-9 <= max(map(cvar(level), every)) <= upper + 1e-9
        walked = distribution_of_policy(game, model, curve.at(level))
        assert cvar(level)(walked) >= lower - 1e-9


@settings(max_examples=30)
@given(games(policies=200, horizon=3), EVERY)
def test_history_is_worth_having(game: Game, text: str) -> None:
    model = game.model()
    assert best_markov(model, text).value <= plan(model, text).value + 1e-7


@settings(max_examples=20)
@given(games(policies=1000), MONOTONE)
def test_start_is_chosen_by_nature(game: Game, text: str) -> None:
    """A random start is one more random move: put first, as a step, it changes nothing."""
    before = max(state for table in game.tables for state in table) + 10
    nature = {before: {"draw": tuple((p, state, Fraction(0)) for state, p in game.start.items())}}
    later = map_rewards(game, lambda _, reward: reward).tables
    longer = replace(game, tables=(nature, *later), horizon=game.horizon + 1, start={before: Fraction(1)})
    assert plan(longer.model(), text).value == pytest.approx(plan(game.model(), text).value, abs=1e-6)
