"""What both kinds of training say of their seeds together."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

import numpy as np

from ocerl.risk import mean_interval


class SeedValue(Protocol):
    """One seed's result."""

    @property
    def value(self) -> float: ...


Run = TypeVar("Run", bound=SeedValue)


class Seeds(Generic[Run]):
    """Results with one run for each seed."""

    runs: tuple[Run, ...]

    @property
    def best(self) -> Run:
        """The run with the best policy."""
        return max(self.runs, key=lambda run: run.value)

    @property
    def value_mean(self) -> float:
        return float(np.mean([run.value for run in self.runs]))

    @property
    def value_interval(self) -> tuple[float, float] | None:
        """A 95% interval for the mean over seeds, by Student's t; None for a single seed."""
        return mean_interval(np.array([run.value for run in self.runs]))

    def spread(self) -> str:
        """The mean with its interval, the worst and the best seed, in words."""
        interval = self.value_interval
        around = f" (95% interval {interval[0]:.6g} … {interval[1]:.6g})" if interval else ""
        worst = min(run.value for run in self.runs)
        return f"mean {self.value_mean:.6g}{around}, worst {worst:.6g}, best {self.best.value:.6g}"


def bracket(low: float, high: float) -> str:
    """Two bounds in words; one number where they agree."""
    return f"{low:.6g}" if high - low <= 1e-9 * max(1.0, abs(low)) else f"{low:.6g} … {high:.6g}"
