"""Worlds of rich observations as environments: an exogenous block MDP in bits, a low-rank MDP in vectors."""

from __future__ import annotations

from typing import Any, NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ocerl.envs._base import Environment, TimeStep
from ocerl.envs.tabular import TabularEnvironment, TabularState
from ocerl.mdp.rich import ExogenousBlockMDP, VectorMDP, exogenous_lock, low_rank_lock
from ocerl.mdp.rich import low_rank_vectors as vectors_world


class ExogenousState(NamedTuple):
    step: jax.Array
    latent: jax.Array
    bits: jax.Array


class _Hidden(Environment[Any]):
    """What worlds share that hide the state of a tabular model: its actions, its returns, and its full horizon."""

    inner: eqx.AbstractVar[TabularEnvironment]

    @property
    def action_space(self) -> spaces.Discrete:
        return self.inner.action_space

    @property
    def return_range(self) -> tuple[float, float]:
        return self.inner.return_range

    @property
    def budget_range(self) -> tuple[float, float]:
        return self.inner.budget_range

    @property
    def return_support(self) -> NDArray[Any] | None:
        return self.inner.return_support


@final
class ExogenousEnvironment(_Hidden):
    """An exogenous block MDP: the observation is the row of bits `M · (z_en, z_ex)` over GF(2).

    An episode always has its full length: an early end would say what the latent is.

    >>> lock = risky_lock(bits=16)
    >>> state, observation = lock.reset(jax.random.key(0))
    >>> observation.shape, lock.step(jax.random.key(1), state, jnp.array(0)).terminated.item()
    ((18,), False)
    """

    inner: TabularEnvironment
    horizon: int = eqx.field(static=True)
    discount: float = eqx.field(static=True)
    matrix: jax.Array
    """`[observation bit, latent bit]`: M."""
    flips: jax.Array

    def __init__(self, world: ExogenousBlockMDP) -> None:
        self.inner = TabularEnvironment(world.endogenous)
        self.horizon, self.discount = self.inner.horizon, self.inner.discount
        size = world.columns.size
        self.matrix = jnp.asarray((world.columns[None, :] >> np.arange(size)[:, None]) & 1, dtype=jnp.int32)
        self.flips = jnp.asarray(world.flips, dtype=jnp.float32)

    def reset(self, key: jax.Array) -> tuple[ExogenousState, jax.Array]:
        state, latent = self.inner.reset(key)
        after = ExogenousState(state.step, latent, jnp.zeros(self.flips.shape, dtype=jnp.int32))
        return after, self._observe(after)

    def step(self, key: jax.Array, state: ExogenousState, action: jax.Array) -> TimeStep[ExogenousState]:
        latent_key, bits_key = jax.random.split(key)
        taken = self.inner.step(latent_key, TabularState(state.step, state.latent), action)
        flipped = jax.random.bernoulli(bits_key, self.flips).astype(jnp.int32)
        after = ExogenousState(taken.state.step, taken.state.state, state.bits ^ flipped)
        return TimeStep(after, self._observe(after), taken.reward, after.step >= self.horizon)

    def _observe(self, state: ExogenousState) -> jax.Array:
        width = self.matrix.shape[0] - self.flips.size
        latent = (state.latent >> jnp.arange(width)) & 1
        return (self.matrix @ jnp.concatenate([latent, state.bits]) % 2).astype(jnp.int8)

    @property
    def observation_space(self) -> spaces.MultiBinary:
        return spaces.MultiBinary(self.matrix.shape[0])


class VectorState(NamedTuple):
    step: jax.Array
    state: jax.Array


@final
class VectorEnvironment(_Hidden):
    """A low-rank MDP with continuous observations: the state's point in space, with uniform noise on each coordinate.

    >>> world = low_rank_vectors(states=20, dimension=8)
    >>> state, observation = world.reset(jax.random.key(0))
    >>> observation.shape, world.return_support.max().item()
    ((8,), 2.25)
    """

    inner: TabularEnvironment
    horizon: int = eqx.field(static=True)
    discount: float = eqx.field(static=True)
    points: jax.Array
    """`[state, coordinate]`."""
    noise: jax.Array

    def __init__(self, world: VectorMDP) -> None:
        self.inner = TabularEnvironment(world.inner.model())
        self.horizon, self.discount = self.inner.horizon, self.inner.discount
        self.points = jnp.asarray(world.points, dtype=jnp.float32)
        self.noise = jnp.asarray(world.noise, dtype=jnp.float32)

    def reset(self, key: jax.Array) -> tuple[VectorState, jax.Array]:
        state, number = self.inner.reset(key)
        return VectorState(state.step, number), self._observe(key, number)

    def step(self, key: jax.Array, state: VectorState, action: jax.Array) -> TimeStep[VectorState]:
        state_key, noise_key = jax.random.split(key)
        taken = self.inner.step(state_key, TabularState(state.step, state.state), action)
        after = VectorState(taken.state.step, taken.state.state)
        return TimeStep(after, self._observe(noise_key, after.state), taken.reward, after.step >= self.horizon)

    def _observe(self, key: jax.Array, state: jax.Array) -> jax.Array:
        point = self.points[state]
        return point + self.noise * jax.random.uniform(key, point.shape, minval=-1.0, maxval=1.0)

    @property
    def observation_space(self) -> spaces.Box:
        return spaces.Box(-np.inf, np.inf, shape=(self.points.shape[1],), dtype=np.float32)


def risky_lock(
    *, bits: int = 4, horizon: int = 5, slip: float = 0.02, flip: float = 0.3, seed: int = 0
) -> ExogenousEnvironment:
    """`ocerl.mdp.rich.exogenous_lock` as an environment."""
    world = exogenous_lock(bits=bits, horizon=horizon, slip=slip, flip=flip, candidates=1, seed=seed)
    return ExogenousEnvironment(world)


def low_rank(*, states: int = 20, horizon: int = 5, actions: int = 4, seed: int = 0) -> TabularEnvironment:
    """`ocerl.mdp.rich.low_rank_lock` as an environment with its states as observations."""
    world = low_rank_lock(states=states, horizon=horizon, actions=actions, candidates=1, seed=seed)
    return TabularEnvironment(world.model())


def low_rank_vectors(
    *, states: int = 20, dimension: int = 8, noise: float = 0.1, horizon: int = 5, actions: int = 4, seed: int = 0
) -> VectorEnvironment:
    """`ocerl.mdp.rich.low_rank_vectors` as an environment."""
    world = vectors_world(states=states, dimension=dimension, noise=noise, horizon=horizon, actions=actions, seed=seed)
    return VectorEnvironment(world)
