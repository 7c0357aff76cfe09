r"""What the oracles maximise on a batch, and the advantages they use.

With the importance ratio :math:`\rho = \pi_\theta(a \mid s, b) / \pi_k(a \mid s, b)` and the advantage :math:`A`
of the policy :math:`\pi_k` that played, in units of its standard deviation over the batch:

.. math:: \text{REINFORCE} \quad & \mathbb E [\log \pi_\theta(a \mid s, b)\, A] \\
          \text{PPO, forward KL} \quad & \mathbb E [\rho A - \beta\, \mathrm{KL}(\pi_k \,\|\, \pi_\theta)] \\
          \text{PPO, backward KL} \quad & \mathbb E [\rho A - \beta\, \mathrm{KL}(\pi_\theta \,\|\, \pi_k)]

(Schulman et al., 2017; Hsu et al., 2020). All add the log-barrier :math:`\lambda\, \mathbb E\,
\tfrac1A \sum_a \log \pi_\theta(a \mid s, b)` of Appendix C. The divergences are computed in full at every state
of the batch, not estimated from the actions.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ocerl.gradient.deep.actions import Actions
from ocerl.gradient.deep.agent import Agent
from ocerl.gradient.deep.config import DeepConfig
from ocerl.gradient.deep.inputs import Features

CRITIC_WEIGHT = 0.5


class Sample(NamedTuple):
    """Steps to learn from; any number of them in the leading axis."""

    features: Features
    action: jax.Array
    old: jax.Array
    """The parameters of the distribution the action was drawn from."""
    advantage: jax.Array
    target: jax.Array
    """What the critic should say of the action."""


class Weights(NamedTuple):
    """The numbers of the objective that may change from update to update."""

    kl: jax.Array
    barrier: jax.Array


def advantages(
    payoff: jax.Array, terminated: jax.Array, value: jax.Array, last_value: jax.Array, gae_lambda: float
) -> jax.Array:
    r"""Generalised advantage estimation along the leading axis, without a discount.

    .. math:: A_t = \delta_t + \lambda A_{t+1}, \qquad \delta_t = r_t + V_{t+1} - V_t,

    where nothing follows the end of an episode.

    >>> zeros = jnp.zeros(3)
    >>> ends = jnp.array([False, True, False])
    >>> advantages(jnp.array([1.0, 2.0, 4.0]), ends, zeros, jnp.array(8.0), 0.5).tolist()
    [2.0, 2.0, 12.0]
    """
    goes_on = 1.0 - terminated
    following = jnp.concatenate([value[1:], last_value[None]])
    delta = payoff + goes_on * following - value

    def back(later: jax.Array, at: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        now = at[0] + gae_lambda * at[1] * later
        return now, now

    # Unrolled: the body is far cheaper than a turn of the loop.
    _, found = lax.scan(back, jnp.zeros_like(last_value), (delta, goes_on), reverse=True, unroll=8)
    return found


def divergence(actions: Actions, config: DeepConfig, old: jax.Array, new: jax.Array) -> jax.Array:
    """The oracle's divergence, forward or backward."""
    return actions.divergence(new, old) if config.oracle == "ppo-backward" else actions.divergence(old, new)


def loss(agent: Agent, sample: Sample, weights: Weights, config: DeepConfig) -> tuple[jax.Array, jax.Array]:
    """Minus the oracle's objective plus the critic's error; and the mean divergence from the old policy."""
    new = agent.parameters(sample.features)
    log_probability = agent.actions.log_probability(new, sample.action)
    kl = jnp.mean(divergence(agent.actions, config, sample.old, new))
    if config.oracle == "reinforce":
        gain = jnp.mean(log_probability * sample.advantage)
    else:
        ratio = jnp.exp(log_probability - agent.actions.log_probability(sample.old, sample.action))
        gain = ratio * sample.advantage
        if config.clip is not None:
            gain = jnp.minimum(gain, jnp.clip(ratio, 1 - config.clip, 1 + config.clip) * sample.advantage)
        gain = jnp.mean(gain) - weights.kl * kl
    barrier = weights.barrier * jnp.mean(agent.actions.barrier(new))
    error = jnp.mean((agent.prediction(sample.features, sample.action) - sample.target) ** 2)
    return CRITIC_WEIGHT * error - gain - barrier, kl
