"""The driver for environments written in JAX: playing and learning in one compiled loop."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from ocerl.envs import AugmentedEnvironment, AugmentedObservation, AugmentedState, sample_returns
from ocerl.gradient.deep.config import DeepConfig
from ocerl.gradient.deep.driver import Greedy, Report, Task, all_finite, first_broken
from ocerl.gradient.deep.inputs import Inputs
from ocerl.gradient.deep.learner import Batch, LearnerState, update


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


def begin(problem: Problem, config: DeepConfig, learner: LearnerState, key: jax.Array) -> RunState:
    """New episodes for a learner."""
    key, reset = jax.random.split(key)
    episodes, observation = jax.vmap(problem.environment.reset)(_shared_keys(reset, (config.environments,), config))
    return RunState(learner, episodes, observation, key)


def play(problem: Problem, config: DeepConfig, state: RunState) -> tuple[RunState, Batch, jax.Array]:
    """The steps of a batch; also the rewards."""
    inputs, agent, moments = problem.inputs, state.learner.agent, state.learner.moments
    environment, discount = problem.environment, problem.environment.environment.discount
    key, noise_key, step_key, start_key = jax.random.split(state.key, 4)
    shape = (config.rollout, config.environments)
    noise = agent.actions.noise(noise_key, shape)
    step_keys = _shared_keys(step_key, shape, config)
    # A start for every step, all drawn at once: drawn in each step's turn, they take a third of the playing.
    starts = jax.vmap(jax.vmap(environment.reset))(_shared_keys(start_key, shape, config))

    def step(key: jax.Array, episode: Any, action: jax.Array, start: Any) -> Any:
        taken = environment.step(key, episode, action)
        return taken, jax.tree.map(partial(jnp.where, taken.terminated), start, (taken.state, taken.observation))

    def move(carry: tuple[Any, AugmentedObservation], drawn: tuple[jax.Array, jax.Array, Any]) -> Any:
        episodes, seen = carry
        noise, keys, start = drawn
        features = inputs(seen, moments)
        parameters = agent.parameters(features)
        action = agent.actions.sample(parameters, noise)
        played = agent.actions.to_environment(action)
        taken, after = jax.vmap(step)(keys, episodes, played, start)
        earned = taken.reward if discount == 1.0 else discount**seen.step * taken.reward
        payoff = taken.payoff / problem.unit + config.mean_weight * earned / problem.reward_unit
        record = (features, action, parameters, payoff, taken.terminated, taken.reward, inputs.vector(seen.observation))
        return after, record

    (episodes, observation), record = lax.scan(move, (state.episodes, state.observation), (noise, step_keys, starts))
    *batch, rewards, vectors = record
    learner = state.learner._replace(moments=moments.including(vectors) if inputs.any_normalised else moments)
    after = RunState(learner, episodes, observation, key)
    return after, Batch(*batch, last=inputs(observation, moments)), rewards


def _shared_keys(key: jax.Array, shape: tuple[int, ...], config: DeepConfig) -> jax.Array:
    """A key for each environment (the last axis), the same for all of a group."""
    keys = jax.random.split(key, (*shape[:-1], shape[-1] // config.group))
    return keys if config.group == 1 else jnp.repeat(keys, config.group, axis=-1)


def train_once(problem: Problem, config: DeepConfig, state: RunState) -> tuple[RunState, Report]:
    """Play a batch and learn from it."""
    state, batch, rewards = play(problem, config, state)
    learner, metrics = update(state.learner, batch, config)
    report = Report(metrics, batch.payoff.mean(), first_broken(rewards), all_finite(learner.agent))
    return state._replace(learner=learner), report


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


EPISODES = 1
"""What a seed's key is for, beside its first weights."""
ROOM = 64
"""So many updates at most in one call."""


@final
class CompiledDriver:
    """Environments written in JAX: seeds side by side, playing and learning in one compiled loop."""

    def __init__(self, task: Task, problem: Problem, config: DeepConfig) -> None:
        self.task = task
        self.inputs = problem.inputs
        self.room = ROOM
        self.problem = problem
        self.config = config

    def begin(self, learners: LearnerState, seed: int) -> RunState:
        """New episodes for learners with a leading axis of seeds."""
        # A seed plays the same alone and among others, and shares no random number with its first weights.
        numbers = range(seed, seed + learners.updates.shape[0])
        keys = jnp.stack([jax.random.fold_in(jax.random.key(number), EPISODES) for number in numbers])
        return eqx.filter_vmap(partial(begin, self.problem, self.config))(learners, keys)

    def advance(self, state: RunState, updates: int) -> tuple[RunState, Report]:
        """So many updates (at most `ROOM`) of every seed; reports `[updates, seeds]`."""
        state, reports = advance((self.problem, self.config, ROOM), state, jnp.int32(updates))
        return state, jax.tree.map(lambda x: x[:updates], reports)

    def kept(self, state: RunState) -> RunState:
        """What is written to disk of a state: all of it, so that a run goes on to the same bits."""
        return state

    def resumed(self, kept: RunState, seed: int) -> RunState:
        """The state to go on from."""
        return kept

    def inputs_of(self, state: RunState) -> Inputs:
        """What the networks see: the same for all seeds."""
        seeds = state.learner.updates.shape[0]
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (seeds, *x.shape)), self.problem.inputs)

    def ranges_of(self, state: RunState) -> NDArray[np.float64]:
        """The range of first budgets: the same for all seeds."""
        return np.tile(self.config.first_budget or self.task.budget_range, (state.learner.updates.shape[0], 1))

    def returns(self, policy: Greedy, budgets: NDArray[np.floating], episodes: int, seed: int) -> NDArray[np.float64]:
        """The returns of fresh episodes of a policy from each of some first budgets, `[budgets, episodes]`.

        All budgets meet the same chance: what differs between them is the policy.
        """
        key = jax.random.key(seed)
        return np.asarray(_returns(self.problem.environment, policy, key, episodes, jnp.asarray(budgets)), np.float64)


@eqx.filter_jit
def _returns(
    environment: AugmentedEnvironment[Any], policy: Greedy, key: jax.Array, episodes: int, budgets: jax.Array
) -> jax.Array:
    return lax.map(lambda budget: sample_returns(environment, policy, key, episodes, budget), budgets)
