"""What training asks of the place where episodes are played: compiled environments and Gymnasium's both give it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ocerl.envs import AugmentedObservation
from ocerl.gradient.deep.agent import Agent
from ocerl.gradient.deep.inputs import Inputs, Moments
from ocerl.gradient.deep.learner import LearnerState, Metrics


@dataclass(frozen=True)
class Task:
    """What a learner has to know of an environment before it plays."""

    name: str
    observation_space: Any
    action_space: Any
    horizon: int
    discount: float
    budget_range: tuple[float, float]
    """The finite range that first budgets are drawn from."""
    return_support: NDArray[Any] | None = None
    """All possible returns, where they are few."""
    guessed: bool = False
    """The range is a guess, to be widened when returns come to its ends."""


class Report(NamedTuple):
    """What an update tells of itself."""

    metrics: Metrics
    payoff: jax.Array
    """The mean pay-off of a step."""
    broken: jax.Array
    """Number of the first step (`step · environments + environment`) whose reward is not finite; -1 if none."""
    finite: jax.Array
    """Whether all weights are finite after the update."""


class Greedy(eqx.Module):
    """The policy that is evaluated: the mode of an agent's distribution at every state and budget."""

    agent: Agent
    inputs: Inputs
    moments: Moments

    def __call__(self, key: jax.Array, seen: AugmentedObservation) -> jax.Array:
        actions = self.agent.actions
        return actions.to_environment(actions.mode(self.agent.parameters(self.inputs(seen, self.moments))))


class RunState(Protocol):
    """Learners, and the episodes they are in the middle of."""

    @property
    def learner(self) -> LearnerState:
        """With a leading axis of seeds."""
        ...


class Driver(Protocol):
    """Plays episodes; its policies and updates are compiled."""

    @property
    def task(self) -> Task: ...

    @property
    def inputs(self) -> Inputs:
        """What the networks see at the beginning."""
        ...

    @property
    def room(self) -> int:
        """So many updates at most in one call of `advance`."""
        ...

    def begin(self, learners: LearnerState, seed: int) -> Any:
        """A `RunState`: new episodes for learners with a leading axis of seeds."""
        ...

    def advance(self, state: Any, updates: int) -> tuple[Any, Report]:
        """So many updates of every seed; reports `[updates, seeds]`."""
        ...

    def kept(self, state: Any) -> Any:
        """What of a state is written to disk: a tree of arrays."""
        ...

    def resumed(self, kept: Any, seed: int) -> Any:
        """A state to go on from; `seed` is for what could not be kept."""
        ...

    def inputs_of(self, state: Any) -> Inputs:
        """What the networks of a state see, with a leading axis of seeds: a driver may move the budget's knots."""
        ...

    def ranges_of(self, state: Any) -> NDArray[np.float64]:
        """The ranges that first budgets are drawn from, `[seeds, 2]`."""
        ...

    def returns(self, policy: Greedy, budgets: NDArray[np.floating], episodes: int, seed: int) -> NDArray[np.float64]:
        """The returns of fresh episodes of a policy from each of some first budgets, `[budgets, episodes]`."""
        ...


def part_of(tree: Any, number: int) -> Any:
    """One seed's part of a tree of arrays with a leading axis of seeds."""
    return jax.tree.map(lambda x: x[number], tree)


def all_finite(agent: Agent) -> jax.Array:
    """Whether no weight is infinite or NaN."""
    weights = jax.tree.leaves(eqx.filter(agent, eqx.is_inexact_array))
    return jnp.stack([jnp.isfinite(weight).all() for weight in weights]).all()


def first_broken(rewards: jax.Array) -> jax.Array:
    """The number of the first reward `[time, environments]` that is not finite; -1 if there is none."""
    bad = ~jnp.isfinite(rewards)
    return jnp.where(bad.any(), jnp.argmax(bad.ravel()), -1)
