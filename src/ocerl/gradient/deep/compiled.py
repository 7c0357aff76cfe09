"""The driver for environments written in JAX: playing and learning in one compiled loop."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from ocerl.envs import AugmentedEnvironment, AugmentedObservation, AugmentedState
from ocerl.gradient.deep.config import DeepConfig
from ocerl.gradient.deep.inputs import Inputs
from ocerl.gradient.deep.learner import Batch, LearnerState, Metrics, update


class RunState(NamedTuple):
    """A learner and the episodes it is in the middle of."""

    learner: LearnerState
    episodes: AugmentedState[Any]
    observation: AugmentedObservation
    key: jax.Array


class Problem(eqx.Module):
    """What is to be learned; its numbers are traced, so that another τ is no new program."""

    environment: AugmentedEnvironment[Any]
    inputs: Inputs
    unit: jax.Array
    """The pay-off that the critic counts as 1."""
    reward_unit: jax.Array
    """The same for the reward, whose small weight prefers the better mean."""


class Report(NamedTuple):
    """What an update tells of itself."""

    metrics: Metrics
    payoff: jax.Array
    """The mean pay-off of a step."""
    broken: jax.Array
    """Step and environment of the first reward that is not finite; -1 where there is none."""
    finite: jax.Array
    """Whether all weights are finite after the update."""


def begin(problem: Problem, config: DeepConfig, learner: LearnerState, key: jax.Array) -> RunState:
    """New episodes for a learner."""
    key, reset = jax.random.split(key)
    episodes, observation = jax.vmap(problem.environment.reset)(jax.random.split(reset, config.environments))
    return RunState(learner, episodes, observation, key)


def play(problem: Problem, config: DeepConfig, state: RunState) -> tuple[RunState, Batch, jax.Array]:
    """The steps of a batch; also the rewards."""
    inputs, agent, moments = problem.inputs, state.learner.agent, state.learner.moments
    discount = problem.environment.environment.discount
    key, noise_key, step_key = jax.random.split(state.key, 3)
    shape = (config.rollout, config.environments)
    noise = agent.actions.noise(noise_key, shape)
    step_keys = jax.random.split(step_key, shape)

    def move(carry: tuple[Any, AugmentedObservation], drawn: tuple[jax.Array, jax.Array]) -> Any:
        episodes, seen = carry
        noise, keys = drawn
        features = inputs(seen, moments)
        parameters = agent.parameters(features)
        action = agent.actions.sample(parameters, noise)
        played = agent.actions.to_environment(action)
        taken = jax.vmap(problem.environment.step_or_reset)(keys, episodes, played)
        earned = taken.reward if discount == 1.0 else discount**seen.step * taken.reward
        payoff = taken.payoff / problem.unit + config.mean_weight * earned / problem.reward_unit
        record = (features, action, parameters, payoff, taken.terminated, taken.reward, inputs.vector(seen.observation))
        return (taken.state, taken.observation), record

    (episodes, observation), record = lax.scan(move, (state.episodes, state.observation), (noise, step_keys))
    *batch, rewards, vectors = record
    learner = state.learner._replace(moments=moments.including(vectors) if inputs.any_normalised else moments)
    after = RunState(learner, episodes, observation, key)
    return after, Batch(*batch, last=inputs(observation, moments)), rewards


def train_once(problem: Problem, config: DeepConfig, state: RunState) -> tuple[RunState, Report]:
    """Play a batch and learn from it."""
    state, batch, rewards = play(problem, config, state)
    learner, metrics = update(state.learner, batch, config)
    bad = ~jnp.isfinite(rewards)
    first = jnp.where(bad.any(), jnp.argmax(bad.ravel()), -1)
    weights = jax.tree.leaves(eqx.filter(learner.agent, eqx.is_inexact_array))
    finite = jnp.stack([jnp.isfinite(weight).all() for weight in weights]).all()
    return state._replace(learner=learner), Report(metrics, batch.payoff.mean(), first, finite)


@eqx.filter_jit
def advance(fixed: tuple[Problem, DeepConfig, int], state: RunState, times: jax.Array) -> tuple[RunState, Report]:
    """So many updates of every seed (the leading axis of `state`); reports `[room, seeds]`, of which `times` are told.

    A number of updates up to `room` needs no new program.
    """
    problem, config, room = fixed

    def once(state: RunState) -> tuple[RunState, Report]:
        return jax.vmap(partial(train_once, problem, config))(state)

    blank = jax.tree.map(lambda x: jnp.zeros((room, *x.shape), x.dtype), jax.eval_shape(once, state)[1])

    def body(number: jax.Array, carry: tuple[RunState, Report]) -> tuple[RunState, Report]:
        state, reports = carry
        state, report = once(state)
        return state, jax.tree.map(lambda all_, one: all_.at[number].set(one), reports, report)

    return lax.fori_loop(0, times, body, (state, blank))
