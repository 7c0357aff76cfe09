r"""How good a budget policy is, and the first budget to begin it with: always from fresh episodes.

The value network's own :math:`b + \hat V(b)` is no judge of the first budget: for CVaR an error of it is multiplied
by :math:`1/\tau`. Instead episodes are played from each of many first budgets, and the one whose *returns* have
the best certainty equivalent is taken: first among candidates, then, on new episodes, among the best of those.
What is reported comes from episodes that had no part in the choice.

**Ties** go to the better mean: above its budget a CVaR is indifferent to more reward, so that policies of equal
tail may differ in their mean. First budgets tie with the best that are behind it by at most one standard error of the
difference.
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

    @property
    def total(self) -> int:
        """All episodes, those of an estimate included."""
        return 2 * self.candidates * self.episodes + (self.finalists + 1) * self.final_episodes

    def for_horizon(self, horizon: int) -> Effort:
        """More first budgets and episodes where these are short."""
        more = int(np.clip(LONG // horizon, 1, MOST_MORE))
        wider = min(more, 2)
        return Effort(wider * self.candidates, more * self.episodes, wider * self.finalists, more * self.final_episodes)


LONG, MOST_MORE = 160, 16
"""Episodes of so many steps are long; short ones are played at most so many times as often."""
COMPILED_QUICK = Effort(candidates=9, episodes=256, finalists=3, final_episodes=1024)
COMPILED_FULL = Effort(candidates=33, episodes=1024, finalists=6, final_episodes=8192)
GYMNASIUM_QUICK = Effort(candidates=3, episodes=16, finalists=2, final_episodes=48)
GYMNASIUM_FULL = Effort(candidates=17, episodes=64, finalists=4, final_episodes=256)
"""Gymnasium's environments are some hundred times slower."""


class Sample(NamedTuple):
    """Returns of fresh episodes of a policy from some first budgets."""

    budgets: Floats
    """In increasing order."""
    returns: Floats
    """`[budgets, episodes]`"""

    def values(self, risk: Risk) -> Floats:
        """The certainty equivalent of the returns from each first budget."""
        return np.array([risk.certainty_equivalent(row).value for row in self.returns])

    def best(self, risk: Risk) -> int:
        """The number of the best first budget; of those that it does not beat for certain, the one of the best mean.

        Episode `i` meets the same chance from every first budget, so differences have a smaller error than values.
        """
        found = [risk.certainty_equivalent(row) for row in self.returns]
        top = int(np.argmax([one.value for one in found]))
        # By the envelope theorem, the certainty equivalent errs as the mean of `b + u(Z - b)` does.
        earned = np.stack(
            [risk.utility(row - one.budget) + one.budget for row, one in zip(self.returns, found, strict=True)]
        )
        behind = earned[top] - earned
        error = behind.std(axis=1) / np.sqrt(behind.shape[1])
        means = np.where(behind.mean(axis=1) <= error, self.returns.mean(axis=1), -np.inf)
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
    finalists = np.sort(np.argsort(sample.values(risk))[-effort.finalists :])
    budgets = sample.budgets[finalists]
    final = Sample(budgets, driver.returns(policy, budgets, effort.final_episodes, seed))
    return float(budgets[final.best(risk)])


def _require_finite(driver: Driver, returns: Floats) -> None:
    broken = returns[~np.isfinite(returns)]
    if broken.size:
        raise OcerlError(
            f"an episode of {driver.task.name} has the return {broken[0]}: the environment has to pay finite rewards"
        )
