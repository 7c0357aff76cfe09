"""How the policies of a run are judged: exactly where the model is known, else by fresh episodes."""

from __future__ import annotations

from dataclasses import replace
from typing import final

import numpy as np

from ocerl.gradient.deep.driver import Driver, Greedy, RunState, part_of
from ocerl.gradient.deep.evaluation import (
    COMPILED_FULL,
    COMPILED_QUICK,
    GYMNASIUM_FULL,
    GYMNASIUM_QUICK,
    Effort,
    Sample,
    choose,
    survey,
)
from ocerl.gradient.deep.policy import NetworkPolicy
from ocerl.gradient.deep.result import DeepSeedResult
from ocerl.gradient.deep.world import World
from ocerl.gradient.optimum import optimum
from ocerl.mdp.lattice import exact_lattice
from ocerl.planning.evaluate import evaluate
from ocerl.risk import Risk, estimate

EPISODES = {True: 100_000, False: 1000}
"""What a result is estimated from unless told otherwise, compiled or not."""
EXACT_RECORDS, RECORDS = 50, (2, 20)
"""How often, evenly over a run, policies are judged: exactly, or by episodes at least and at most so often."""
KEPT_RETURNS = 2048
"""Of a survey, a policy keeps so many returns from each first budget."""


@final
class Judge:
    """Judges the greedy policies of a run."""

    def __init__(self, world: World, driver: Driver, risk: Risk, episodes: int | None = None) -> None:
        self.driver = driver
        self.risk = risk
        self.episodes = EPISODES[world.compiled] if episodes is None else episodes
        self.model = world.model
        self.exact = world.model is not None and exact_lattice(world.model) is not None
        horizon = driver.task.horizon
        # A compiled step without an update costs a fraction of one with it, and few episodes take the whole horizon.
        self._affordable = 5.0 if world.compiled else 1.0
        # Where values are exact, the episodes of a record only choose its first budget.
        quick = COMPILED_QUICK if self.exact else COMPILED_QUICK.for_horizon(horizon)
        self._quick = quick if world.compiled else GYMNASIUM_QUICK
        self._full = COMPILED_FULL.for_horizon(horizon) if world.compiled else GYMNASIUM_FULL

    def records(self, steps: int) -> int:
        """How often to judge policies, evenly over a run of so many steps: rarely where that is dear."""
        if self.exact:
            return EXACT_RECORDS
        each = self._quick.total * self.driver.task.horizon
        return int(np.clip(self._affordable * steps / each, *RECORDS))

    def value(self, state: RunState, number: int, seed: int) -> float:
        """The OCE of one seed's greedy policy, for the learning curve."""
        words = _seeds(seed, int(state.learner.updates[number]))
        policy = self._chosen(*self._network(state, number), self._quick, words)
        if self.exact:
            return self._exactly(policy)[0]
        returns = self.driver.returns(policy.network, np.array([policy.budget]), self._quick.final_episodes, words[2])
        return float(self.risk.certainty_equivalent(returns[0]).value)

    def final(self, state: RunState, number: int, seed: int) -> DeepSeedResult:
        """One seed's result."""
        network, ranges = self._network(state, number)
        policy = _thinned(self._chosen(network, ranges, self._full, _seeds(seed, -1)))
        return self.judged(policy, seed, _seeds(seed, -1)[2])

    def chosen(self, policy: NetworkPolicy, seed: int) -> NetworkPolicy:
        """A saved policy with the first budget that is best for the risk on fresh episodes of this environment."""
        budgets = policy.survey.budgets
        words = _seeds(seed, -2)
        return _thinned(self._chosen(policy.network, (float(budgets[0]), float(budgets[-1])), self._full, words))

    def judged(self, policy: NetworkPolicy, seed: int, word: int) -> DeepSeedResult:
        """What a policy is worth from its first budget, on episodes drawn from `word`."""
        returns = self.driver.returns(policy.network, np.array([policy.budget]), self.episodes, word)[0]
        found = estimate(returns, self.risk)
        value, mean = self._exactly(policy) if self.exact else (found.value, float(returns.mean()))
        return DeepSeedResult(
            seed=seed, risk=self.risk.name, value=value, exact=self.exact, mean=mean, estimate=found, policy=policy
        )

    def optimum(self) -> tuple[float, float] | None:
        """The planner's bounds on OCE*, where the model is known."""
        return None if self.model is None else optimum(self.model, self.risk)

    def _network(self, state: RunState, number: int) -> tuple[Greedy, tuple[float, float]]:
        """One seed's network, and the range of its first budgets."""
        parts = (state.learner.average, state.learner.moments, self.driver.inputs_of(state))
        agent, moments, inputs = part_of(parts, number)
        low, high = self.driver.ranges_of(state)[number]
        return Greedy(agent, inputs, moments), (float(low), float(high))

    def _chosen(
        self, network: Greedy, budget_range: tuple[float, float], effort: Effort, words: list[int]
    ) -> NetworkPolicy:
        task = self.driver.task
        sample = survey(self.driver, network, budget_range, effort, words[0])
        budget = choose(self.driver, network, self.risk, sample, effort, words[1])
        return NetworkPolicy(network, task.horizon, task.discount, budget, self.risk.name, sample)

    def _exactly(self, policy: NetworkPolicy) -> tuple[float, float]:
        """The exact OCE and mean on the model."""
        assert self.model is not None
        returns = evaluate(self.model, policy)
        return returns.certainty_equivalent(self.risk), returns.mean


def _thinned(policy: NetworkPolicy) -> NetworkPolicy:
    """The policy with at most so many returns from each first budget in its survey: even quantiles."""
    budgets, returns = policy.survey
    if returns.shape[1] <= KEPT_RETURNS:
        return policy
    kept = np.quantile(returns, (np.arange(KEPT_RETURNS) + 0.5) / KEPT_RETURNS, axis=1).T
    return replace(policy, survey=Sample(budgets, kept))


def _seeds(*words: int) -> list[int]:
    """Seeds for a survey, a choice and an estimate, which share no random number with each other or with training."""
    drawn = np.random.SeedSequence([word + 2 for word in words]).generate_state(3)
    return [int(word) >> 1 for word in drawn]
