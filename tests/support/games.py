"""Small random games for the planner's tests, the changes the laws make to them, and two comparisons."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from brute_force import Distribution, Game, Outcome, State, Table, count_policies

UNITS = tuple(Fraction(unit) for unit in ("1", "1/2", "1/3", "1/6", "1/10"))
IRRATIONAL = tuple(Fraction(value) for value in (-math.e, -math.sqrt(2) / 2, 0.0, math.sqrt(3), math.pi - 1))
"""Rewards (exactly the floating-point numbers) that no useful lattice has in common."""

HALVES = (Fraction(1), Fraction(1, 2))
"""Discounts that keep a lattice."""

RewardStrategy = st.SearchStrategy[Fraction]


@st.composite
def _distributions(draw: st.DrawFn, size: int) -> list[Fraction]:
    weights = draw(st.lists(st.integers(1, 4), min_size=1, max_size=size))
    return [Fraction(weight, sum(weights)) for weight in weights]


@st.composite
def _outcomes(draw: st.DrawFn, states: Sequence[State], rewards: RewardStrategy, most: int) -> tuple[Outcome, ...]:
    return tuple((p, draw(st.sampled_from(states)), draw(rewards)) for p in draw(_distributions(most)))


@st.composite
def _tables(draw: st.DrawFn, states: Sequence[State], acting: Sequence[State], rewards: RewardStrategy) -> Table:
    """Every acting state gets its own set of actions, the first a real choice; others stay, for nothing."""
    table: dict[State, dict[str, tuple[Outcome, ...]]] = {}
    for state in acting:
        names = draw(st.sets(st.sampled_from("abc"), min_size=2 if state == acting[0] else 1))
        table[state] = {name: draw(_outcomes(states, rewards, 3)) for name in sorted(names)}
    return table


@st.composite
def games(
    draw: st.DrawFn,
    *,
    rewards: RewardStrategy | None = None,
    policies: int = 1000,
    horizon: int = 4,
    discounts: Sequence[Fraction] = (Fraction(1),),
) -> Game:
    """One to three states, up to three actions and outcomes; joint, negative and repeated rewards.

    The last state may be absorbing, each step may have a table of its own, and the start may be random. The
    horizon is cut until there are at most so many history-dependent policies (never below one step).
    """
    unit = draw(st.sampled_from(UNITS))
    rewards = st.integers(-3, 4).map(lambda n: n * unit) if rewards is None else rewards
    states = range(draw(st.integers(1, 3)))
    acting = states[:-1] if len(states) > 1 and draw(st.booleans()) else states
    steps = draw(st.sampled_from([steps for steps in (2, 3, 1, 4) if steps <= horizon]))
    own_tables = steps if draw(st.booleans()) else 1
    tables = tuple(draw(_tables(states, acting, rewards)) for _ in range(own_tables))
    first = draw(_distributions(len(acting)))
    start = dict(zip(draw(st.permutations(acting)), first, strict=False))
    return shortened(Game(tables, steps, start, draw(st.sampled_from(discounts))), policies)


OFF_LATTICE = games(rewards=st.sampled_from(IRRATIONAL), policies=200, horizon=3)
DISCOUNTED = games(policies=200, discounts=(Fraction(9, 10), Fraction(1, 3), Fraction(123_457, 200_000)))
"""Discounts whose powers stay on a lattice for a while, and one that soon leaves every useful one."""


def shortened(game: Game, policies: int) -> Game:
    """The game without its last steps, as many as it takes to have at most this many policies."""
    while game.horizon > 1 and count_policies(game) > policies:
        tables = game.tables if len(game.tables) == 1 else game.tables[: game.horizon - 1]
        game = replace(game, tables=tables, horizon=game.horizon - 1)
    return game


def states_of(game: Game) -> list[State]:
    """Every state the tables or the start name."""
    listed = [outcomes for table in game.tables for by_action in table.values() for outcomes in by_action.values()]
    named = {after for outcomes in listed for _, after, _ in outcomes}
    return sorted({*game.start, *named, *(state for table in game.tables for state in table)})


def map_rewards(game: Game, change: Callable[[int, Fraction], Fraction]) -> Game:
    """The game, written out step by step, with every reward `r` of step `h` (from 0) as `change(h, r)`."""
    return replace(
        game,
        tables=tuple(
            {
                state: {
                    action: tuple((p, after, change(step, reward)) for p, after, reward in outcomes)
                    for action, outcomes in game.choices(step, state).items()
                }
                for state in states_of(game)
            }
            for step in range(game.horizon)
        ),
    )


def assert_same_returns(returns: Any, distribution: Distribution, tolerance: float = 1e-9) -> None:
    """A return distribution of the library is this one: the same values, each with the same probability."""
    values, probabilities = (np.asarray(part, dtype=float) for part in (returns.values, returns.probabilities))
    assert (probabilities >= 0).all()
    assert (np.diff(values) > 0).all(), "values are sorted and each is listed once"
    kept = probabilities > tolerance
    expected = np.array([(float(value), float(probability)) for value, probability in distribution])
    np.testing.assert_allclose(values[kept], expected[:, 0], rtol=0, atol=tolerance)
    np.testing.assert_allclose(probabilities[kept], expected[:, 1], rtol=0, atol=tolerance)


def largest_cdf_gap(sample: np.ndarray, distribution: Distribution) -> float:
    """The Kolmogorov-Smirnov distance between a sample and a distribution, atoms compared within rounding."""
    atoms = np.array([float(value) for value, _ in distribution])
    cumulative = np.cumsum([float(probability) for _, probability in distribution])
    position = np.abs(sample[:, None] - atoms).argmin(axis=1)
    assert np.abs(sample - atoms[position]).max() <= 1e-9, "every simulated return is a possible return"
    empirical = np.cumsum(np.bincount(position, minlength=atoms.size)) / sample.size
    return float(np.abs(empirical - cumulative).max())
