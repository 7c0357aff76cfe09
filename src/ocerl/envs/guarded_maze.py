"""The Guarded Maze: a short way that may cost dearly, and a long one that does not."""

from __future__ import annotations

from typing import NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ocerl.envs._base import Environment, Number, TimeStep, discount_of, horizon_of, parameter

SIZE = 8
GUARD, GOAL = (5, 1), (6, 2)
START_LOW, START_HIGH = 0.6, 3.6
PRIZE = 16.0
COSTLY_STEPS = 32
DIRECTIONS = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]], dtype=np.float32)


def _walls() -> NDArray[np.bool_]:
    walls = np.ones((SIZE, SIZE), dtype=bool)
    walls[1:-1, 1:-1] = False
    walls[3:6, 5] = True
    walls[5, 2:6] = True
    return walls


WALLS = _walls()
"""Whether a cell (x, y) is a wall."""


class MazeState(NamedTuple):
    step: jax.Array
    position: jax.Array
    penalty: jax.Array
    """Hidden: what the guard will take, `16 g c`; 0 where there is none, or once it was taken."""


@final
class GuardedMaze(Environment[MazeState]):
    r"""Reach the goal: shortly, past a guard who may take a lot, or by the long way around.

    From "Efficient Risk-Averse Reinforcement Learning" (Greenberg, Chow, Ghavamzadeh, Mannor; NeurIPS 2022).

    Positions are continuous, :math:`(x, y) \in [0, 7]^2`, in cells by rounding. The border, (3, 5), (4, 5)
    and (5, 2) … (5, 5) are walls, the guard watches (5, 1) and the goal is (6, 2). The start is uniform on
    :math:`[0.6, 3.6]^2`.

    - Actions 0 … 3 are steps of 1 towards −x, +x, −y, +y, with noise :math:`N(0, 0.2^2)` on both coordinates,
      clipped to the square. A step into or across a wall (by its end or its midpoint) leaves the position.
    - Reaching the goal pays 16 and ends the episode; any other of the first 32 steps costs 1.
    - Hidden draws of the episode are :math:`g \sim \mathrm{Bernoulli}(0.2)` and an exponential :math:`c` with
      mean 2. If `g`, the first step whose end or midpoint is in the guard's cell costs :math:`16 c`; the
      midpoint counts even for a step that a wall held back.

    The horizon is 160. The observation is the position as 64 bilinear weights of the cells' centres. Returns
    have no lower bound. Staying away is worth −32 for certain, so no CVaR-optimal budget lies below; first
    budgets begin at −40, under the tail of the short way, which a risk close to the mean may take.

    >>> maze = GuardedMaze(noise=0.0)
    >>> state, _ = maze.reset(jax.random.key(0))
    >>> state = state._replace(position=jnp.array([6.0, 1.0]))
    >>> step = maze.step(jax.random.key(1), state, jnp.array(3))
    >>> step.reward.item(), step.terminated.item()
    (16.0, True)
    """

    horizon: int = horizon_of(160)
    discount: float = discount_of(1.0)
    noise: Number = parameter("noise", 0.2, low=0.0)
    """The standard deviation of a step."""
    guard_probability: Number = parameter("guard_probability", 0.2, low=0.0, high=1.0)
    mean_cost: Number = parameter("mean_cost", 2.0, low=0.0)

    def reset(self, key: jax.Array) -> tuple[MazeState, jax.Array]:
        start, guard, cost = jax.random.split(key, 3)
        position = jax.random.uniform(start, (2,), minval=START_LOW, maxval=START_HIGH)
        guarded = jax.random.bernoulli(guard, self.guard_probability)
        penalty = jnp.where(guarded, PRIZE * self.mean_cost * jax.random.exponential(cost), 0.0)
        return MazeState(jnp.int32(0), position, penalty), soft_one_hot(position)

    def step(self, key: jax.Array, state: MazeState, action: jax.Array) -> TimeStep[MazeState]:
        move = jnp.asarray(DIRECTIONS)[action] + self.noise * jax.random.normal(key, (2,))
        return self.advance(state, move)

    def advance(self, state: MazeState, move: jax.Array) -> TimeStep[MazeState]:
        """What an attempt to move by so much brings; all that is random has been drawn."""
        target = jnp.clip(state.position + move, 0.0, SIZE - 1.0)
        middle = (state.position + target) / 2
        free = ~(_in_wall(target) | _in_wall(middle))
        position = jnp.where(free, target, state.position)

        reached = _in_cell(position, GOAL)
        seen = _in_cell(position, GUARD) | _in_cell(middle, GUARD)
        walking = jnp.where(state.step < COSTLY_STEPS, -1.0, 0.0)
        reward = jnp.where(reached, PRIZE, walking) - jnp.where(seen, state.penalty, 0.0)
        after = MazeState(state.step + 1, position, jnp.where(seen, 0.0, state.penalty))
        return TimeStep(after, soft_one_hot(position), reward, reached | (after.step >= self.horizon))

    @property
    def observation_space(self) -> spaces.Box:
        return spaces.Box(0.0, 1.0, shape=(SIZE * SIZE,), dtype=np.float32)

    @property
    def action_space(self) -> spaces.Discrete:
        return spaces.Discrete(len(DIRECTIONS))

    @property
    def return_range(self) -> tuple[float, float]:
        return -np.inf, PRIZE

    @property
    def budget_range(self) -> tuple[float, float]:
        return -40.0, PRIZE

    @property
    def return_support(self) -> None:
        return None


def soft_one_hot(position: jax.Array) -> jax.Array:
    """The weights `(1 - |x - i|)₊ (1 - |y - j|)₊` of the cells (i, j), in rows of x; they sum to 1."""
    weights = jnp.maximum(1.0 - jnp.abs(position[:, None] - jnp.arange(SIZE)), 0.0)
    return jnp.outer(weights[0], weights[1]).ravel()


def _in_wall(position: jax.Array) -> jax.Array:
    x, y = jnp.round(position).astype(jnp.int32)
    return jnp.asarray(WALLS)[x, y]


def _in_cell(position: jax.Array, cell: tuple[int, int]) -> jax.Array:
    return (jnp.round(position) == jnp.asarray(cell)).all()
