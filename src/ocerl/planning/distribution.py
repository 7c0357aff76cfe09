"""The distribution of the return: what every policy on a known model is judged by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ocerl.risk import Risk, parse_risk


@dataclass(frozen=True, eq=False)
class ReturnDistribution:
    """A discrete distribution of returns: increasing values and their positive probabilities.

    Where rewards had to be rounded, `error` says by how much the true return of an episode can lie below and
    above the value it is counted under; it is (0, 0) where the distribution is exact.

    >>> paper = ReturnDistribution(np.array([0.0, 1.5]), np.array([0.125, 0.875]))
    >>> paper.mean, paper.certainty_equivalent("cvar:0.25")
    (1.3125, 0.75)
    """

    values: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    error: tuple[float, float] = (0.0, 0.0)

    @cached_property
    def mean(self) -> float:
        return float(self.values @ self.probabilities)

    @cached_property
    def deviation(self) -> float:
        """The standard deviation."""
        return float(np.sqrt(self.probabilities @ (self.values - self.mean) ** 2))

    def certainty_equivalent(self, risk: Risk | str) -> float:
        """The OCE of the return."""
        return parse_risk(risk).certainty_equivalent(self.values, self.probabilities).value

    def quantile(self, level: float) -> float:
        """The smallest value with at least this much probability at or below it."""
        return parse_risk(f"cvar:{level!r}").certainty_equivalent(self.values, self.probabilities).budget

    def sample(self, episodes: int, seed: int = 0) -> NDArray[np.float64]:
        """Independent draws."""
        return np.random.default_rng(seed).choice(self.values, episodes, p=self.probabilities)
