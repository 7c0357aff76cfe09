"""Random models for tests and benchmarks: a seed gives the same model everywhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.checks import check_horizon, check_whole
from ocerl.mdp.tabular import TabularMDP
from ocerl.mdp.transitions import Transitions

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def random_mdp(
    seed: int,
    *,
    states: int = 5,
    actions: int = 3,
    horizon: int = 5,
    successors: int = 3,
    rewards: Sequence[float] = (0.0, 1.0, 2.0),
    continuous: bool = False,
    joint: bool = True,
    per_step: bool = False,
    absorbing: int = 0,
    action_sets: bool = False,
    random_start: bool = False,
    neighbours: bool = False,
    discount: float = 1.0,
) -> TabularMDP:
    """A random model; its states and actions are numbers, counted from 0.

    - Every state and action has `successors` next states, drawn with replacement: from all states, or with
      `neighbours` from the `2 · successors + 1` states around it (in a circle). Their probabilities are
      uniform on the simplex.
    - A reward is drawn from `rewards`, or with `continuous` uniformly between the smallest and the largest.
      With `joint`, each next state has one of its own; else a state and action has `len(rewards)` random
      rewards, with random probabilities and independent of the next state.
    - `per_step`: every step has a model of its own. `absorbing`: so many states, the last ones, stay and pay
      nothing. `action_sets`: each state has a random choice of the actions, at least one. `random_start`: a
      random distribution over all states instead of state 0.

    >>> random_mdp(1).return_range() == random_mdp(1).return_range()
    True
    """
    _check_sizes(states, actions, successors, absorbing, rewards)
    check_horizon(horizon)
    rng = np.random.default_rng(seed)

    def step() -> Transitions:
        state, action = _pairs(rng, states - absorbing, actions, action_sets)
        target = _targets(rng, state, states, successors, neighbours)
        probability = _simplex(rng, target.shape)
        values = _rewards(rng, rewards, continuous, (state.size, successors if joint else len(rewards)))
        if not joint:
            weights = _simplex(rng, values.shape)
            probability = (probability[:, :, np.newaxis] * weights[:, np.newaxis, :]).reshape(state.size, -1)
            target = np.repeat(target, values.shape[1], axis=1)
            values = np.tile(values, (1, successors))
        width = target.shape[1]
        return Transitions.from_rows(
            states,
            np.repeat(state, width),
            np.repeat(action, width),
            target.ravel(),
            probability.ravel(),
            values.ravel(),
        )

    start = np.zeros(states)
    start[0] = 1.0
    return TabularMDP(
        steps=tuple(step() for _ in range(horizon if per_step else 1)),
        states=tuple(range(states)),
        actions=tuple(range(actions)),
        start=_simplex(rng, (states,)) if random_start else start,
        horizon=horizon,
        discount=discount,
        name=f"random-{seed}",
    )


def _pairs(rng: np.random.Generator, states: int, actions: int, action_sets: bool) -> tuple[Indices, Indices]:
    """The states and actions that exist: all, or a random choice with at least one action a state."""
    exists = np.ones((states, actions), dtype=bool)
    if action_sets:
        exists = rng.random((states, actions)) < 0.5
        exists[np.arange(states), rng.integers(actions, size=states)] = True
    state, action = np.nonzero(exists)
    return state, action


def _targets(rng: np.random.Generator, state: Indices, states: int, successors: int, neighbours: bool) -> Indices:
    size = (state.size, successors)
    if not neighbours:
        return rng.integers(states, size=size)
    return (state[:, np.newaxis] + rng.integers(-successors, successors + 1, size=size)) % states


def _rewards(rng: np.random.Generator, rewards: Sequence[float], continuous: bool, size: tuple[int, int]) -> Floats:
    if continuous:
        return rng.uniform(min(rewards), max(rewards), size)
    return rng.choice(np.asarray(rewards, dtype=np.float64), size)


def _simplex(rng: np.random.Generator, size: tuple[int, ...]) -> Floats:
    """Probabilities along the last axis, uniform on the simplex."""
    weights = rng.standard_exponential(size)
    return weights / weights.sum(axis=-1, keepdims=True)


def _check_sizes(states: int, actions: int, successors: int, absorbing: int, rewards: Sequence[float]) -> None:
    for name, value in (("states", states), ("actions", actions), ("successors", successors)):
        check_whole(f"the number of {name}", value)
    if not 0 <= absorbing < states:
        raise OcerlError(f"absorbing must be between 0 and {states - 1}, one state must move; got {absorbing}")
    if not len(rewards):
        raise OcerlError("rewards must have at least one number, got none")
