"""The driver for Gymnasium's environments: they are played in Python, the policy and its updates are compiled.

An acting policy is one compiled call per step of all environments. What happened is written down as it was seen, and
one compiled call turns a batch of it into features and learns. Budgets and pay-offs are computed here, from the
rewards that the environment pays, in 64 bits, by the functions of `ocerl.mdp.augmentation`.

Seeds play in turn, each in environments of its own.

**Where an episode ends.** At its end, its time limit or the horizon: all three are the end of a static risk's task,
and nothing is bootstrapped. **Range of first budgets**: a guess follows the returns, see `following`. The units of
the pay-offs stay what they were at the beginning.

**Next-step vector environments** spend a step on beginning an episode. Such steps are left out of a batch: play goes
on until every lane has enough steps, and the few steps by which other lanes are ahead are dropped.

**Rewards that are not finite** are reported in `Report.broken`, and count as 0 in budgets and pay-offs, so that
nothing breaks before the caller has seen the report.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import cycle
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from ocerl.envs import AugmentedObservation
from ocerl.errors import OcerlError
from ocerl.gradient.deep.actions import Actions, as_played
from ocerl.gradient.deep.config import DeepConfig
from ocerl.gradient.deep.driver import Greedy, Report, Task, all_finite, first_broken, part_of
from ocerl.gradient.deep.following import Range, carried, followed
from ocerl.gradient.deep.inputs import Inputs
from ocerl.gradient.deep.knots import knots_over, spread
from ocerl.gradient.deep.lanes import Lanes
from ocerl.gradient.deep.learner import Batch, LearnerState, update
from ocerl.gradient.deep.playing import FirstBudgets, Played, Stage
from ocerl.gradient.deep.sources import Source
from ocerl.gradient.deep.trials import independent_seeds, seeds_from, trial_returns
from ocerl.mdp.augmentation import dense_payoff, terminal_utility
from ocerl.risk import Risk

TRAINING, TRIALS = 0, 1
"""What seeds are for."""


class GymnasiumProblem(NamedTuple):
    """What is to be learned, apart from the environment."""

    risk: Risk
    inputs: Inputs
    """With the budget's knots of the beginning."""
    unit: float
    """The pay-off that the critic counts as 1."""
    reward_unit: float
    """The same for the reward, whose small weight prefers the better mean."""


class GymnasiumState(NamedTuple):
    """Learners, and the episodes they are in the middle of.

    The episodes are not data but environments, which a step changes: a state can be advanced once. To go on from
    saved learners, give them with the inputs and ranges of their state to `GymnasiumDriver.begin`; episodes begin
    anew, as environments cannot be saved.
    """

    learner: LearnerState
    """With a leading axis of seeds, like `inputs` and `ranges`."""
    inputs: Inputs
    ranges: NDArray[np.float64]
    stages: tuple[Stage, ...]


class Kept(NamedTuple):
    """What is saved of a state."""

    learner: LearnerState
    inputs: Inputs
    ranges: NDArray[np.float64]


@final
class GymnasiumDriver:
    """Gymnasium environments: a vector environment for each seed, played in turn."""

    def __init__(
        self, source: Source, task: Task, problem: GymnasiumProblem, config: DeepConfig, *, processes: bool = False
    ) -> None:
        self.source = source
        self.task = task
        self.inputs = problem.inputs
        self.room = 1
        self.problem = problem
        self.config = replace(config, group=1)  # what is chance in them is not ours to repeat
        self._processes = processes
        self._training: list[VectorEnv[Any, Any, Any]] = []
        self._trials: VectorEnv[Any, Any, Any] | None = None

    def begin(
        self,
        learners: LearnerState,
        seed: int,
        *,
        inputs: Inputs | None = None,
        ranges: NDArray[np.floating] | None = None,
    ) -> GymnasiumState:
        """New episodes for learners with a leading axis of seeds; those of a saved state with its inputs and ranges."""
        seeds, made = learners.updates.shape[0], int(learners.updates[0])
        if ranges is None:
            ranges = np.tile(self.config.first_budget or self.task.budget_range, (seeds, 1))
        return GymnasiumState(
            learners,
            _stacked([self.problem.inputs] * seeds) if inputs is None else inputs,
            np.asarray(ranges, dtype=np.float64),
            tuple(self._stage(number, seed + number, ranges[number], made) for number in range(seeds)),
        )

    def advance(self, state: GymnasiumState, updates: int) -> tuple[GymnasiumState, Report]:
        """So many updates of every seed; reports `[updates, seeds]`."""
        learners, inputs, reports = [], [], []
        ranges = state.ranges.copy()
        for number, stage in enumerate(state.stages):
            learner, seen_as = part_of(state.learner, number), part_of(state.inputs, number)
            low, high = ranges[number].tolist()
            told: list[Report] = []
            for _ in range(updates):
                learner, seen_as, (low, high), report = self._train_once(stage, learner, seen_as, (low, high))
                told.append(report)
            ranges[number] = low, high
            learners.append(learner)
            inputs.append(seen_as)
            reports.append(_stacked(told))
        after = GymnasiumState(_stacked(learners), _stacked(inputs), ranges, state.stages)
        return after, jax.tree.map(lambda *x: jnp.stack(x, axis=1), *reports)

    def kept(self, state: GymnasiumState) -> Kept:
        """What is written to disk of a state: everything but the episodes, which cannot be saved."""
        return Kept(state.learner, state.inputs, state.ranges)

    def resumed(self, kept: Kept, seed: int) -> GymnasiumState:
        """The state to go on from: the same learners, in new episodes."""
        return self.begin(kept.learner, seed, inputs=kept.inputs, ranges=kept.ranges)

    def inputs_of(self, state: GymnasiumState) -> Inputs:
        """What the networks of a state see, with a leading axis of seeds."""
        return state.inputs

    def ranges_of(self, state: GymnasiumState) -> NDArray[np.float64]:
        """The ranges that first budgets are drawn from, `[seeds, 2]`."""
        return state.ranges

    def returns(self, policy: Greedy, budgets: NDArray[np.floating], episodes: int, seed: int) -> NDArray[np.float64]:
        """The returns of fresh episodes of a policy from each of some first budgets, `[budgets, episodes]`.

        All budgets meet the same seeds: what differs between them is the policy. (A vector environment of the
        user's begins its episodes by itself and draws on.)
        """
        if self._trials is None:
            self._trials = self._copies(AutoresetMode.DISABLED)
        seeds = cycle(independent_seeds((seed, TRIALS), episodes))
        lanes = Lanes(self._trials, self.task.horizon, seeds)

        def act(seen: AugmentedObservation) -> Any:
            return as_played(_mode(policy, seen), self.task.action_space)

        return trial_returns(lanes, act, budgets, episodes, self.task.discount)

    def close(self) -> None:
        """Close the environments."""
        for environment in (*self._training, *([self._trials] if self._trials is not None else [])):
            environment.close()
        self._training.clear()
        self._trials = None

    def _stage(self, number: int, seed: int, budgets: NDArray[np.floating], made: int) -> Stage:
        """The environments of a seed, at the beginning of their episodes: others after updates have been made."""
        while len(self._training) <= number:
            self._training.append(self._copies(AutoresetMode.SAME_STEP))
        lanes = Lanes(self._training[number], self.task.horizon, seeds_from((seed, TRAINING, made)))
        return Stage(lanes, self.task.discount, seed, self.first_budgets((budgets[0], budgets[1])), begun=made)

    def _copies(self, mode: AutoresetMode) -> VectorEnv[Any, Any, Any]:
        wanted = self.config.environments
        made = self.source.copies(wanted, self.task.horizon, mode, processes=self._processes)
        if made.num_envs != wanted:
            made.close()
            raise OcerlError(
                f"{self.task.name} has {made.num_envs} environments side by side: "
                f"environments must be {made.num_envs}, got {wanted}"
            )
        return made

    def _train_once(
        self, stage: Stage, learner: LearnerState, inputs: Inputs, budgets: Range
    ) -> tuple[LearnerState, Inputs, Range, Report]:
        """Play a batch and learn from it; then see whether the range still holds the returns."""
        key, count = stage.key(), iter(range(1 << 30))

        def act(seen: AugmentedObservation) -> tuple[Any, Any]:
            action, played = _sample(learner, inputs, key, np.int32(next(count)), seen)
            return np.asarray(action), as_played(played, self.task.action_space)

        played = stage.play(self.config.rollout, act, self.first_budgets(budgets))
        learner, report = _learn(
            self.config, inputs, learner, played._replace(returns=None), jnp.asarray(self.payoff(played))
        )
        if self.task.guessed and self.config.first_budget is None and played.returns is not None:
            wider = followed(budgets, played.returns)
            if wider != budgets:
                before, new = inputs, knots_over(wider, inputs.budget_knots.size)
                agent, inputs = carried(learner.agent, before, new)
                average, _ = carried(learner.average, before, new)
                return learner._replace(agent=agent, average=average), inputs, wider, report
        return learner, inputs, budgets, report

    def first_budgets(self, budgets: Range) -> FirstBudgets:
        """How first budgets are drawn: spread over the range."""
        knots = knots_over(budgets, self.config.budget_knots)
        return lambda rng, number: spread(knots, budgets, rng.random(number))

    def payoff(self, played: Played) -> NDArray[np.float64]:
        """What the learner maximises."""
        risk, before, after = self.problem.risk, played.seen.budget, played.after
        if self.config.dense:
            payoff = np.asarray(dense_payoff(risk, before, after))
        else:
            payoff = np.where(played.ended, terminal_utility(risk, after), 0.0)
        return payoff / self.problem.unit + self.config.mean_weight * (before - after) / self.problem.reward_unit


@jax.jit
def _sample(
    learner: LearnerState, inputs: Inputs, key: jax.Array, number: Any, seen: AugmentedObservation
) -> tuple[jax.Array, jax.Array]:
    """The actions of a step, as the learner and as the environment has them."""
    actions: Actions = learner.agent.actions
    parameters = learner.agent.parameters(inputs(seen, learner.moments))
    noise = actions.noise(jax.random.fold_in(key, number), parameters.shape[:1])
    action = actions.sample(parameters, noise)
    return action, actions.to_environment(_whole(action))


@jax.jit
def _mode(policy: Greedy, seen: AugmentedObservation) -> jax.Array:
    actions = policy.agent.actions
    mode = actions.mode(policy.agent.parameters(policy.inputs(seen, policy.moments)))
    return actions.to_environment(_whole(mode))


def _whole(action: jax.Array) -> jax.Array:
    """Without NaN: weights that are no numbers are reported, and must not break the environment before that."""
    return jnp.nan_to_num(action)


@partial(jax.jit, static_argnames="config")
def _learn(
    config: DeepConfig, inputs: Inputs, learner: LearnerState, played: Played, payoff: jax.Array
) -> tuple[LearnerState, Report]:
    """An update from what was played."""
    moments = learner.moments
    features = inputs(played.seen, moments)
    batch = Batch(
        features=features,
        action=played.action,
        parameters=learner.agent.parameters(features),
        payoff=payoff,
        terminated=jnp.asarray(played.ended),
        last=inputs(played.last, moments),
    )
    if inputs.any_normalised:
        learner = learner._replace(moments=moments.including(inputs.vector(played.seen.observation)))
    learner, metrics = update(learner, batch, config)
    return learner, Report(
        metrics, batch.payoff.mean(), first_broken(jnp.asarray(played.reward)), all_finite(learner.agent)
    )


def _stacked(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *x: jnp.stack(x), *trees)
