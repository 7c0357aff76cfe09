"""The American put: when to exercise the right to sell, as an optimal stopping problem under risk."""

from __future__ import annotations

from typing import NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from ocerl.envs._base import Environment, Number, TimeStep, discount_of, horizon_of, parameter

GO_ON, STOP = 0, 1


class PutState(NamedTuple):
    step: jax.Array
    price: jax.Array


@final
class AmericanPut(Environment[PutState]):
    r"""Stop and receive :math:`(1 - S)^+`, or go on; the tenth decision stops whatever was chosen.

    The price starts at :math:`S_0 = K = 1`, where the first decision is taken, and moves between decisions as

    .. math:: S_{h+1} = S_h \exp\bigl((\mu - \sigma^2/2)\,\Delta t + \sigma \sqrt{\Delta t}\,\xi_h\bigr),
              \qquad \xi_h \sim N(0, 1),

    with :math:`\mu = -0.3, \sigma = 0.3, \Delta t = 0.1`. Actions: 0 goes on, 1 stops. The observation is the
    price. The best mean at discount 0.99 is 0.2369.

    >>> put = AmericanPut()
    >>> state, observation = put.reset(jax.random.key(0))
    >>> step = put.step(jax.random.key(1), state._replace(price=jnp.float32(0.75)), jnp.array(STOP))
    >>> step.reward.item(), step.terminated.item()
    (0.25, True)
    """

    horizon: int = horizon_of(10)
    discount: float = discount_of(0.99)
    drift: Number = parameter("drift", -0.3)
    volatility: Number = parameter("volatility", 0.3, low=0.0)
    interval: Number = parameter("interval", 0.1, low=0.0)
    r"""The time :math:`\Delta t` between two decisions."""

    def reset(self, key: jax.Array) -> tuple[PutState, jax.Array]:
        state = PutState(step=jnp.int32(0), price=jnp.float32(1.0))
        return state, state.price[None]

    def step(self, key: jax.Array, state: PutState, action: jax.Array) -> TimeStep[PutState]:
        step = state.step + 1
        stopped = (action == STOP) | (step >= self.horizon)
        reward = jnp.where(stopped, jnp.maximum(1.0 - state.price, 0.0), 0.0)
        growth = (self.drift - self.volatility**2 / 2) * self.interval
        shock = self.volatility * jnp.sqrt(self.interval) * jax.random.normal(key)
        price = jnp.where(stopped, state.price, state.price * jnp.exp(growth + shock))
        return TimeStep(PutState(step, price), price[None], reward, stopped)

    @property
    def observation_space(self) -> spaces.Box:
        return spaces.Box(0.0, np.inf, shape=(1,), dtype=np.float32)

    @property
    def action_space(self) -> spaces.Discrete:
        return spaces.Discrete(2)

    @property
    def return_range(self) -> tuple[float, float]:
        # At once the option is worth nothing; one move later a price near 0 would pay nearly 1.
        return 0.0, self.discount

    @property
    def budget_range(self) -> tuple[float, float]:
        return self.return_range

    @property
    def return_support(self) -> None:
        return None
