"""One update of an oracle from a batch of steps: the same for compiled environments and for Gymnasium's."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax

from ocerl.gradient.deep.agent import Agent
from ocerl.gradient.deep.config import DeepConfig
from ocerl.gradient.deep.inputs import Features, Inputs, Moments
from ocerl.gradient.deep.objectives import Sample, Weights, advantages, loss

ADAPTATION = 2.0
"""The factor by which the KL weight follows its target …"""
TOLERANCE = 1.5
"""… once the divergence is beyond it by this factor."""
POWER = 8
"""The policy that is evaluated averages about the last 1/8 of the updates."""
FEW_STEPS = 20.0
"""A knot's own deviation counts as much as the batch's when it has so many steps."""


class Batch(NamedTuple):
    """Steps `[time, environments, …]` of the policy that is to be improved; pay-offs are in units of its scale."""

    features: Features
    action: jax.Array
    parameters: jax.Array
    payoff: jax.Array
    terminated: jax.Array
    last: Features
    """After the last step, `[environments, …]`."""


class LearnerState(NamedTuple):
    """All that an oracle carries from update to update."""

    updates: jax.Array
    agent: Agent
    average: Agent
    """The weights averaged over the last updates: the policy that is evaluated."""
    optimiser: optax.OptState
    moments: Moments
    kl_weight: jax.Array
    key: jax.Array


class Metrics(NamedTuple):
    """What an update reports."""

    kl: jax.Array
    entropy: jax.Array
    critic_error: jax.Array
    """The part of the targets' variance that the critic did not foresee."""
    gradient: jax.Array
    """The norm of the last gradient."""
    kl_weight: jax.Array


def init(key: jax.Array, inputs: Inputs, agent: Agent, config: DeepConfig) -> LearnerState:
    """The state before any update."""
    return LearnerState(
        updates=jnp.int32(0),
        agent=agent,
        average=agent,
        optimiser=_optimiser(config).init(eqx.filter(agent, eqx.is_inexact_array)),
        moments=inputs.no_moments(),
        kl_weight=jnp.float32(config.kl_weight),
        key=key,
    )


def update(state: LearnerState, batch: Batch, config: DeepConfig) -> tuple[LearnerState, Metrics]:
    """One update: advantages, then passes over the batch in pieces."""
    agent = state.agent
    value = agent.value(batch.features, batch.parameters)
    last_value = agent.value(batch.last, agent.parameters(batch.last))
    advantage = advantages(batch.payoff, batch.terminated, value, last_value, config.gae_lambda)
    hats = batch.features.budget[..., :-1].reshape(advantage.size, -1)
    own = advantage if config.group == 1 else less_common_chance(advantage, config.group)
    flat = jax.tree.map(
        lambda x: x.reshape(-1, *x.shape[2:]),
        Sample(
            features=batch.features,
            action=batch.action,
            old=batch.parameters,
            advantage=scaled(own, hats),
            target=value + advantage,
        ),
    )
    done = state.updates / config.updates
    weights = Weights(state.kl_weight, config.barrier * (1 - (1 - config.final_barrier) * done))
    rate = config.learning_rate * (1 - (1 - config.final_rate) * done)
    key, shuffle = jax.random.split(state.key)
    agent, optimiser, (kl, gradient) = _passes(agent, state.optimiser, flat, weights, rate, shuffle, config)
    metrics = Metrics(
        kl=kl,
        entropy=agent.actions.entropy(batch.parameters).mean(),
        critic_error=advantage.var() / ((value + advantage).var() + 1e-8),
        gradient=gradient,
        kl_weight=state.kl_weight,
    )
    after = state._replace(
        updates=state.updates + 1,
        agent=agent,
        average=averaged(state.average, agent, state.updates),
        optimiser=optimiser,
        kl_weight=_adapted(state.kl_weight, kl, config),
        key=key,
    )
    return after, metrics


def averaged(average: Agent, agent: Agent, updates: jax.Array) -> Agent:
    r"""The polynomial average of the weights (Shamir and Zhang, 2013): less noisy than the last of them.

    .. math:: \bar\theta_{k+1} = \bar\theta_k + \frac{p + 1}{k + p + 1} (\theta_{k+1} - \bar\theta_k)
    """
    share = (POWER + 1) / (updates + POWER + 1)
    old, _ = eqx.partition(average, eqx.is_inexact_array)
    new, rest = eqx.partition(agent, eqx.is_inexact_array)
    return eqx.combine(jax.tree.map(lambda a, w: a + share * (w - a), old, new), rest)


def scaled(advantage: jax.Array, hats: jax.Array) -> jax.Array:
    """Advantages centred, and in units of their deviation among steps with a like budget.

    Every first budget is a problem of its own with pay-offs of its own size; with one unit for all, the budgets with
    the largest would be all that a step of the optimiser sees. `hats` are the steps' weights on the budget's knots,
    `[steps, knots]`; knots with few steps lean on the whole batch.
    """
    flat, steps = advantage.ravel(), hats.sum(axis=0) + FEW_STEPS
    flat = flat - hats @ (flat @ hats / steps)
    square = (flat**2 @ hats + FEW_STEPS * (flat**2).mean()) / steps
    return (flat / (jnp.sqrt(hats @ square) + 1e-8)).reshape(advantage.shape)


def less_common_chance(advantage: jax.Array, group: int) -> jax.Array:
    r"""Advantages `[time, environments]` less what neighbours that met the same chance tell of it.

    With the mean advantage :math:`c` of the others in a group of environments with common random numbers, the result is

    .. math:: A - \beta c, \qquad \beta = \mathbb E [A c] / \mathbb E [c^2].

    What the others did does not depend on the action taken, so this is a control variate: the gradient's expectation
    stays (but for the estimate of :math:`\beta` from the same batch, which has to be large), its variance falls by what
    is common. Where the episodes of a group have grown apart, :math:`\beta` is near 0.

    >>> less_common_chance(jnp.array([[1.0, 1.0, -2.0, -2.0]]), 2).tolist()
    [[0.0, 0.0, 0.0, 0.0]]
    """
    grouped = advantage.reshape(advantage.shape[0], -1, group)
    others = ((grouped.sum(axis=-1, keepdims=True) - grouped) / (group - 1)).reshape(advantage.shape)
    return advantage - (advantage * others).mean() / ((others**2).mean() + 1e-12) * others


def shuffled_steps(key: jax.Array, times: int, environments: int) -> jax.Array:
    """A random order of the steps of a batch, numbered `time · environments + environment`.

    The times are shuffled, and each environment begins at another place among them. Any part of this order is as mixed
    as of one in which all steps are shuffled (it holds as many steps of each environment, or nearly), but to shuffle
    all steps means to sort them, which takes a tenth of an update of a small network.
    """
    shuffle, draw = jax.random.split(key)
    order = jax.random.permutation(shuffle, times)
    start = jax.random.randint(draw, (environments,), 0, times)
    time = order[(jnp.arange(times)[:, None] + start) % times]
    return (time * environments + jnp.arange(environments)).ravel()


def _passes(
    agent: Agent,
    optimiser: optax.OptState,
    flat: Sample,
    weights: Weights,
    rate: jax.Array,
    key: jax.Array,
    config: DeepConfig,
) -> tuple[Agent, optax.OptState, tuple[jax.Array, jax.Array]]:
    """Adam steps on the pieces of a batch; also the divergence and the gradient's norm at the last piece."""
    trained, fixed = eqx.partition(agent, eqx.is_inexact_array)

    def objective(trained: Agent, piece: Sample) -> tuple[jax.Array, jax.Array]:
        return loss(eqx.combine(trained, fixed), piece, weights, config)

    def step(carry: tuple[Agent, optax.OptState], piece: Sample) -> tuple[Any, tuple[jax.Array, jax.Array]]:
        trained, optimiser = carry
        (_, kl), gradient = jax.value_and_grad(objective, has_aux=True)(trained, piece)
        norm = jnp.sqrt(sum(jnp.sum(part**2) for part in jax.tree.leaves(gradient)))
        change, optimiser = _optimiser(config).update(gradient, optimiser)
        trained = jax.tree.map(lambda w, d: w - rate * d, trained, change)
        return (trained, optimiser), (kl, norm)

    if config.pieces == 1:
        shuffled = jax.tree.map(lambda x: x[None], flat)
    else:
        order = shuffled_steps(key, config.rollout, config.environments)
        shuffled = jax.tree.map(lambda x: x[order].reshape(config.pieces, -1, *x.shape[1:]), flat)

    def one_pass(carry: Any, _: None) -> Any:
        return lax.scan(step, carry, shuffled)

    (trained, optimiser), (kl, norm) = lax.scan(one_pass, (trained, optimiser), None, length=config.passes)
    return eqx.combine(trained, fixed), optimiser, (kl[-1].mean(), norm[-1, -1])


def _adapted(weight: jax.Array, kl: jax.Array, config: DeepConfig) -> jax.Array:
    """The KL weight that brings the divergence nearer to its target (Schulman et al., 2017, Section 4)."""
    if config.kl_target is None:
        return weight
    raised = jnp.where(kl > TOLERANCE * config.kl_target, weight * ADAPTATION, weight)
    return jnp.clip(jnp.where(kl < config.kl_target / TOLERANCE, weight / ADAPTATION, raised), 1e-4, 1e3)


def _optimiser(config: DeepConfig) -> optax.GradientTransformation:
    """Adam's direction; the caller multiplies it by the step size, which changes."""
    return optax.chain(optax.clip_by_global_norm(config.max_gradient), optax.scale_by_adam())
