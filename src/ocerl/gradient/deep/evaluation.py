r"""How good a budget policy is, and the first budget to begin it with: always from fresh episodes.

The value network's own :math:`b + \hat V(b)` is no judge of the first budget: for CVaR an error of it is multiplied
by :math:`1/\tau`. Instead episodes are played from each of many first budgets, and the one whose *returns* have
the best certainty equivalent is taken: first among candidates, then, on new episodes, among the best of those.
What is reported comes from episodes that had no part in the choice.

**Ties** go to the better mean: above its budget a CVaR is indifferent to more reward, so that policies of equal
tail may differ in their mean. All first budgets whose value is within one standard error of the best tie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocerl.gradient.deep.driver import Driver, Greedy
from ocerl.risk import Estimate, Risk, estimate

Floats = NDArray[np.float64]

CANDIDATES = 65
"""First budgets that are tried: even over the range, and as many again where returns lie dense."""
MOST_STEPS = 4_000_000
"""The first choice plays about so many steps …"""
FEWEST_EPISODES, MOST_EPISODES = 512, 4096
"""… within these numbers of episodes from each candidate."""
FINALISTS = 8
FINAL_EPISODES = 4
"""The second choice is among so many finalists, on so many times the episodes."""


class Sample(NamedTuple):
    """Returns of fresh episodes of a policy from some first budgets."""

    budgets: Floats
    """In increasing order."""
    returns: Floats
    """`[budgets, episodes]`"""

    def values(self, risk: Risk) -> tuple[Floats, Floats]:
        """The certainty equivalent of the returns from each first budget, and its standard error."""
        found = [risk.certainty_equivalent(row) for row in self.returns]
        errors = [_error(risk, row, one.budget) for row, one in zip(self.returns, found, strict=True)]
        return np.array([one.value for one in found]), np.array(errors)

    def best(self, risk: Risk) -> int:
        """The number of the best first budget; among those within a standard error, the one of the best mean."""
        values, errors = self.values(risk)
        top = int(values.argmax())
        means = np.where(values >= values[top] - errors[top], self.returns.mean(axis=1), -np.inf)
        return int(means.argmax())


@dataclass(frozen=True, eq=False)
class Assessment:
    """A policy's first budget for a risk, and what it is worth on fresh episodes."""

    budget: float
    estimate: Estimate
    returns: Floats
    """Of the fresh episodes."""

    @property
    def mean(self) -> float:
        return float(self.returns.mean())


def survey(driver: Driver, policy: Greedy, seed: int) -> Sample:
    """Returns from candidate first budgets over the whole range, dense where the policy's returns are."""
    task = driver.task
    if task.return_support is not None and task.return_support.size <= CANDIDATES:
        candidates = np.asarray(task.return_support, dtype=np.float64)
    else:
        even = np.linspace(*task.budget_range, CANDIDATES)
        first = driver.returns(policy, even[:: CANDIDATES // 8], FEWEST_EPISODES, seed)
        dense = np.quantile(first, (np.arange(CANDIDATES) + 0.5) / CANDIDATES)
        candidates = np.unique(np.concatenate([even, np.clip(dense, *task.budget_range)]))
    episodes = int(np.clip(MOST_STEPS / (candidates.size * task.horizon), FEWEST_EPISODES, MOST_EPISODES))
    return Sample(candidates, driver.returns(policy, candidates, episodes, seed + 1))


def assess(driver: Driver, policy: Greedy, risk: Risk, sample: Sample, *, episodes: int, seed: int) -> Assessment:
    """Choose the first budget for a risk from a survey, and estimate its value on fresh episodes."""
    values, _ = sample.values(risk)
    finalists = np.sort(np.argsort(values)[-FINALISTS:])
    again = FINAL_EPISODES * sample.returns.shape[1]
    final = Sample(sample.budgets[finalists], driver.returns(policy, sample.budgets[finalists], again, seed))
    budget = final.budgets[final.best(risk)]
    returns = driver.returns(policy, np.array([budget]), episodes, seed + 1)[0]
    return Assessment(float(budget), estimate(returns, risk), returns)


def _error(risk: Risk, returns: Floats, budget: float) -> float:
    """The standard error of the certainty equivalent, by the influence function `b + u(Z - b)`."""
    return float(np.asarray(risk.utility(returns - budget)).std() / np.sqrt(returns.size))
