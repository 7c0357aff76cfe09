"""How the policies of a run are judged: exactly where the model is known, else by fresh episodes."""

from __future__ import annotations

from typing import Any, final

import equinox as eqx
import jax
import numpy as np

from ocerl.gradient.deep.driver import Driver, Greedy, RunState
from ocerl.gradient.deep.evaluation import Effort, Sample, choose, survey
from ocerl.gradient.deep.policy import NetworkPolicy
from ocerl.gradient.deep.result import DeepSeedResult
from ocerl.gradient.deep.world import World
from ocerl.gradient.optimum import optimum
from ocerl.mdp.lattice import exact_lattice
from ocerl.planning.evaluate import evaluate
from ocerl.risk import Risk, estimate

COMPILED_QUICK = Effort(candidates=17, episodes=512, finalists=4, final_episodes=2048)
COMPILED_FULL = Effort(candidates=65, episodes=2048, finalists=8, final_episodes=16_384)
GYMNASIUM_QUICK = Effort(candidates=5, episodes=32, finalists=2, final_episodes=96)
GYMNASIUM_FULL = Effort(candidates=17, episodes=64, finalists=4, final_episodes=256)
"""Gymnasium's environments are some hundred times slower."""
EPISODES = {True: 100_000, False: 1000}
"""What a result is estimated from unless told otherwise, compiled or not."""


@final
class Judge:
    """Judges the greedy policies of a run."""

    def __init__(self, world: World, driver: Driver, risk: Risk, episodes: int | None) -> None:
        self.world = world
        self.driver = driver
        self.risk = risk
        self.episodes = EPISODES[world.compiled] if episodes is None else episodes
        known = world.model is not None and exact_lattice(world.model) is not None
        self._model = world.model if known else None

    @property
    def exact(self) -> bool:
        return self._model is not None

    def value(self, state: RunState, number: int, seed: int) -> float:
        """The OCE of one seed's greedy policy, for the learning curve."""
        effort = COMPILED_QUICK if self.world.compiled else GYMNASIUM_QUICK
        words = _seeds(seed, int(state.learner.updates[number]))
        network, ranges = self._network(state, number)
        sample = survey(self.driver, network, ranges, effort, words[0])
        budget = choose(self.driver, network, self.risk, sample, effort, words[1])
        if self._model is not None:
            return self._exact(self._policy(network, budget, sample))[0]
        returns = self.driver.returns(network, np.array([budget]), effort.final_episodes, words[2])[0]
        return float(self.risk.certainty_equivalent(returns).value)

    def final(self, state: RunState, number: int, seed: int) -> DeepSeedResult:
        """One seed's result."""
        effort = COMPILED_FULL if self.world.compiled else GYMNASIUM_FULL
        words = _seeds(seed, -1)
        network, ranges = self._network(state, number)
        sample = survey(self.driver, network, ranges, effort, words[0])
        budget = choose(self.driver, network, self.risk, sample, effort, words[1])
        returns = self.driver.returns(network, np.array([budget]), self.episodes, words[2])[0]
        found = estimate(returns, self.risk)
        policy = self._policy(network, budget, sample)
        value, mean = self._exact(policy) if self.exact else (found.value, float(returns.mean()))
        return DeepSeedResult(seed=seed, value=value, exact=self.exact, mean=mean, estimate=found, policy=policy)

    def optimum(self) -> tuple[float, float] | None:
        """The planner's bounds on OCE*, where the model is known."""
        return None if self.world.model is None else optimum(self.world.model, self.risk)

    def _network(self, state: RunState, number: int) -> tuple[Greedy, tuple[float, float]]:
        """One seed's network, and the range of its first budgets."""
        agent, moments, inputs = _part(
            (state.learner.agent, state.learner.moments, self.driver.inputs_of(state)), number
        )
        low, high = self.driver.ranges_of(state)[number]
        return Greedy(agent, inputs, moments), (float(low), float(high))

    def _policy(self, network: Greedy, budget: float, sample: Sample) -> NetworkPolicy:
        task = self.driver.task
        return NetworkPolicy(network, task.horizon, task.discount, budget, self.risk.name, sample)

    def _exact(self, policy: NetworkPolicy) -> tuple[float, float]:
        """The exact OCE and mean on the model."""
        assert self._model is not None
        returns = evaluate(self._model, policy)
        return returns.certainty_equivalent(self.risk), returns.mean


def _seeds(*words: int) -> list[int]:
    """Seeds for a survey, a choice and an estimate, which share no random number with each other or with training."""
    drawn = np.random.SeedSequence([word + 1 for word in words]).generate_state(3)
    return [int(word) >> 1 for word in drawn]


def _part(tree: Any, number: int) -> Any:
    held, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.tree.map(lambda x: x[number], held), rest)
