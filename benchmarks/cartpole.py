"""CartPole-v1, written in JAX as an environment of `ocerl`: what the deep-learning benchmark plays."""

from __future__ import annotations

from math import pi
from typing import NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from ocerl.envs import Environment, TimeStep

GRAVITY, FORCE, TIME_STEP = 9.8, 10.0, 0.02
POLE_MASS, TOTAL_MASS, HALF_LENGTH = 0.1, 1.1, 0.5
FURTHEST, STEEPEST = 2.4, 12 * pi / 180


class CartPoleState(NamedTuple):
    step: jax.Array
    physics: jax.Array
    """Position, velocity, angle and angular velocity."""


@final
class CartPole(Environment[CartPoleState]):
    """Keep a pole upright on a cart that is pushed left (0) or right (1); every step pays 1.

    Physics and limits are those of Gymnasium's `CartPole-v1`. The horizon ends an episode truly, as a static risk
    needs it; Gymnasium truncates there.
    """

    horizon: int = 500
    discount: float = 1.0

    def reset(self, key: jax.Array) -> tuple[CartPoleState, jax.Array]:
        physics = jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05)
        return CartPoleState(jnp.int32(0), physics), physics

    def step(self, key: jax.Array, state: CartPoleState, action: jax.Array) -> TimeStep[CartPoleState]:
        physics = moved(state.physics, action)
        fell = (jnp.abs(physics[0]) > FURTHEST) | (jnp.abs(physics[2]) > STEEPEST)
        after = CartPoleState(state.step + 1, physics)
        return TimeStep(after, physics, jnp.float32(1.0), fell | (after.step >= self.horizon))

    @property
    def observation_space(self) -> spaces.Box:
        high = np.array([2 * FURTHEST, np.inf, 2 * STEEPEST, np.inf], dtype=np.float32)
        return spaces.Box(-high, high)

    @property
    def action_space(self) -> spaces.Discrete:
        return spaces.Discrete(2)

    @property
    def return_range(self) -> tuple[float, float]:
        return 1.0, float(self.horizon)

    @property
    def budget_range(self) -> tuple[float, float]:
        return self.return_range

    @property
    def return_support(self) -> None:
        """500 returns are too many to be shown one by one."""
        return None


def moved(physics: jax.Array, action: jax.Array) -> jax.Array:
    """One Euler step of the equations of motion (Florian, 2005, without friction)."""
    _, velocity, angle, spin = physics
    sine, cosine = jnp.sin(angle), jnp.cos(angle)
    force = jnp.where(action == 1, FORCE, -FORCE)
    pushed = (force + POLE_MASS * HALF_LENGTH * spin**2 * sine) / TOTAL_MASS
    turning = (GRAVITY * sine - cosine * pushed) / (HALF_LENGTH * (4 / 3 - POLE_MASS * cosine**2 / TOTAL_MASS))
    speeding = pushed - POLE_MASS * HALF_LENGTH * turning * cosine / TOTAL_MASS
    return physics + TIME_STEP * jnp.stack([velocity, speeding, spin, turning])
