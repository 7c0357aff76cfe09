r"""How good a budget policy is, and the first budget to begin it with: always from fresh episodes.

The value network's own :math:`b + \hat V(b)` is no judge of the first budget: for CVaR an error of it is multiplied
by :math:`1/\tau`. Instead episodes are played from each of many first budgets, and the one whose *returns* have
the best certainty equivalent is taken: first among candidates, then, on new episodes, among the best of those.
What is reported comes from episodes that had no part in the choice.

**Ties** go to the better mean: above its budget a CVaR is indifferent to more reward, so that policies of equal
tail may differ in their mean. All first budgets whose value is within one standard error of the best tie.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.gradient.deep.driver import Driver, Greedy
from ocerl.risk import Risk

Floats = NDArray[np.float64]


class Effort(NamedTuple):
    """How many episodes an assessment plays."""

    candidates: int
    """First budgets that are tried: so many even over the range, and as many again where returns lie dense."""
    episodes: int
    """From each of them."""
    finalists: int
    final_episodes: int
    """From each finalist."""

    def for_horizon(self, horizon: int) -> Effort:
        """More episodes where they are short."""
        more = int(np.clip(LONG // horizon, 1, MOST_MORE))
        return self._replace(episodes=more * self.episodes, final_episodes=more * self.final_episodes)


LONG, MOST_MORE = 160, 8
COMPILED_QUICK = Effort(candidates=17, episodes=512, finalists=4, final_episodes=2048)
COMPILED_FULL = Effort(candidates=65, episodes=2048, finalists=8, final_episodes=16_384)
GYMNASIUM_QUICK = Effort(candidates=5, episodes=32, finalists=2, final_episodes=96)
GYMNASIUM_FULL = Effort(candidates=17, episodes=64, finalists=4, final_episodes=256)
"""Gymnasium's environments are some hundred times slower."""


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


def survey(driver: Driver, policy: Greedy, budget_range: tuple[float, float], effort: Effort, seed: int) -> Sample:
    """Returns from candidate first budgets over a range, dense where the policy's returns are."""
    support = driver.task.return_support
    if support is not None and support.size <= 2 * effort.candidates:
        candidates = np.asarray(support, dtype=np.float64)
    else:
        even = np.linspace(*budget_range, effort.candidates)
        first = driver.returns(policy, even[:: max(1, effort.candidates // 8)], effort.episodes // 4, seed)
        _require_finite(driver, first)
        dense = np.quantile(first, (np.arange(effort.candidates) + 0.5) / effort.candidates)
        candidates = np.unique(np.concatenate([even, np.clip(dense, *budget_range)]))
    returns = driver.returns(policy, candidates, effort.episodes, seed + 1)
    _require_finite(driver, returns)
    return Sample(candidates, returns)


def choose(driver: Driver, policy: Greedy, risk: Risk, sample: Sample, effort: Effort, seed: int) -> float:
    """The first budget for a risk: the best, on new episodes, of the best candidates of a survey."""
    values, _ = sample.values(risk)
    finalists = np.sort(np.argsort(values)[-effort.finalists :])
    budgets = sample.budgets[finalists]
    final = Sample(budgets, driver.returns(policy, budgets, effort.final_episodes, seed))
    return float(budgets[final.best(risk)])


def _require_finite(driver: Driver, returns: Floats) -> None:
    broken = returns[~np.isfinite(returns)]
    if broken.size:
        raise OcerlError(
            f"an episode of {driver.task.name} has the return {broken[0]}: the environment has to pay finite rewards"
        )


def _error(risk: Risk, returns: Floats, budget: float) -> float:
    """The standard error of the certainty equivalent, by the influence function `b + u(Z - b)`."""
    return float(np.asarray(risk.utility(returns - budget)).std() / np.sqrt(returns.size))
