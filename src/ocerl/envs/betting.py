"""The betting game: six rounds, each a bet of some eighths of the money on a favourable coin."""

from __future__ import annotations

from typing import NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from ocerl.envs._base import Environment, Number, TimeStep, discount_of, horizon_of, parameter

START, CAP, PARTS = 16.0, 256.0, 8


class BettingState(NamedTuple):
    step: jax.Array
    wealth: jax.Array


@final
class BettingGame(Environment[BettingState]):
    r"""Bet `k/8` of the wealth, `k = 0 … 8`, at win probability 0.8; six rounds, from 16, capped at 256.

    .. math:: W' = \min(W + \tfrac{k}{8} W,\; 256) \text{ or } W - \tfrac{k}{8} W, \qquad r = (W' - W) / 256

    The observation is the wealth over 256. In six rounds every wealth is a multiple of :math:`2^{-14}` up to
    :math:`2^8`: 32-bit floats hold wealths and rewards exactly. The zoo's `betting-game` is the same game as a
    table, in which the planner finds the optimum.

    >>> game = BettingGame()
    >>> state, observation = game.reset(jax.random.key(0))
    >>> game.step(jax.random.key(1), state, jnp.array(0)).reward.item()
    0.0
    """

    horizon: int = horizon_of(6)
    discount: float = discount_of(1.0)
    win_probability: Number = parameter("win_probability", 0.8, low=0.0, high=1.0)

    def reset(self, key: jax.Array) -> tuple[BettingState, jax.Array]:
        state = BettingState(step=jnp.int32(0), wealth=jnp.float32(START))
        return state, _observe(state.wealth)

    def step(self, key: jax.Array, state: BettingState, action: jax.Array) -> TimeStep[BettingState]:
        bet = state.wealth * action / PARTS
        won = jax.random.bernoulli(key, self.win_probability)
        wealth = jnp.where(won, jnp.minimum(state.wealth + bet, CAP), state.wealth - bet)
        after = BettingState(step=state.step + 1, wealth=wealth)
        return TimeStep(after, _observe(wealth), (wealth - state.wealth) / CAP, after.step >= self.horizon)

    @property
    def observation_space(self) -> spaces.Box:
        return spaces.Box(0.0, 1.0, shape=(1,), dtype=np.float32)

    @property
    def action_space(self) -> spaces.Discrete:
        return spaces.Discrete(PARTS + 1)

    @property
    def return_range(self) -> tuple[float, float]:
        highest = min(START * 2.0**self.horizon, CAP)
        return -START / CAP, (highest - START) / CAP

    @property
    def budget_range(self) -> tuple[float, float]:
        return self.return_range

    @property
    def return_support(self) -> None:
        return None


def _observe(wealth: jax.Array) -> jax.Array:
    return wealth[None] / CAP
