"""What an environment is: a pure `reset` and a pure `step` over a state that `vmap` and `scan` can carry.

An environment is an immutable Equinox module. Its numbers (a probability, a volatility, a model's tables) are
leaves of a pytree, so a compiled function takes new values without being traced again; only what decides
shapes or the length of a loop, such as the horizon, is static. It describes one episode at a time; the caller
writes `jax.vmap` for many.

The horizon is part of the problem, as a static risk needs it: an episode that gets there has *terminated*, and
there is nothing beyond to bootstrap from. Time is not part of an observation; `AugmentedEnvironment` adds it.
"""

from __future__ import annotations

import abc
import math
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jax.core import Tracer
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.checks import check_horizon


class EnvState(Protocol):
    """A pytree with everything an episode needs to go on, what the agent cannot see included."""

    @property
    def step(self) -> jax.Array:
        """How many steps the episode has taken."""
        ...


StateT = TypeVar("StateT", bound=EnvState)
Space = spaces.Space[Any]
Number: TypeAlias = jax.Array | float
"""What a `parameter` may be given; it is kept as an array."""


class TimeStep(NamedTuple, Generic[StateT]):
    """What a step brings."""

    state: StateT
    observation: jax.Array
    reward: jax.Array
    terminated: jax.Array


class Environment(eqx.Module, Generic[StateT]):
    """An environment written in JAX.

    To write your own, give it these members; `GuardedMaze` is an example with hidden state. Actions are not
    checked (compiled code cannot raise): they have to lie in `action_space`.
    """

    horizon: eqx.AbstractVar[int]
    """The largest number of steps of an episode."""
    discount: eqx.AbstractVar[float]
    r"""The return is :math:`Z = \sum_{h=0}^{H-1} \gamma^h r_h`."""

    @abc.abstractmethod
    def reset(self, key: jax.Array) -> tuple[StateT, jax.Array]:
        """The state an episode starts in, and the first observation."""

    @abc.abstractmethod
    def step(self, key: jax.Array, state: StateT, action: jax.Array) -> TimeStep[StateT]:
        """Take an action. After the end of an episode the result means nothing."""

    @property
    @abc.abstractmethod
    def observation_space(self) -> Space:
        """The shape, type and bounds of an observation."""

    @property
    @abc.abstractmethod
    def action_space(self) -> Space:
        """`Discrete(n)`, actions counted from 0, or a `Box`."""

    @property
    @abc.abstractmethod
    def return_range(self) -> tuple[float, float]:
        """No return lies outside; an end is infinite where returns have no bound. Not for compiled code."""

    @property
    @abc.abstractmethod
    def budget_range(self) -> tuple[float, float]:
        """The finite range that first budgets are drawn from: `return_range`, unless that has no bound."""

    @property
    @abc.abstractmethod
    def return_support(self) -> NDArray[Any] | None:
        """All possible returns in increasing order; None where they are a continuum or too many."""


def parameter(name: str, default: float, *, low: float = -math.inf, high: float = math.inf) -> Any:
    """A field for a finite number from `low` to `high`, which may change without a new trace."""

    def as_number(value: Any) -> jax.Array:
        # A number that is being traced (environments under `vmap`) has no value to check.
        if not isinstance(value, Tracer):
            given = np.asarray(value, dtype=float)
            if not (np.isfinite(given) & (low <= given) & (given <= high)).all():
                raise OcerlError(f"{name} must be a finite number from {low:g} to {high:g}, got {value}")
        return jnp.asarray(value, dtype=jnp.float32)

    return eqx.field(default=default, converter=as_number)


def horizon_of(default: int) -> Any:
    """The field `horizon` of an environment; it is static."""

    def checked(value: int) -> int:
        check_horizon(value)
        return int(value)

    return eqx.field(default=default, static=True, converter=checked)


def discount_of(default: float) -> Any:
    """The field `discount` of an environment; it is static, since without one no power of it is computed."""

    def checked(value: float) -> float:
        if not 0.0 < value <= 1.0:
            raise OcerlError(f"the discount must be in (0, 1], got {value}")
        return float(value)

    return eqx.field(default=default, static=True, converter=checked)
