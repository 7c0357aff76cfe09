"""What `explore` answers with: for every seed the learned policy, its value and the way to it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocerl.planning.policy import Policy
from ocerl.risk import Risk, mean_interval

LATE_ROUNDS = 200
"""So many of the last tenth of the rounds are judged."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SeedRun:
    """One seed's run."""

    seed: int
    value: float
    """The OCE of the recommended policy: exact where the model is known, else estimated from fresh episodes."""
    budget: float
    """The policy's first budget."""
    policy: Policy
    rounds: NDArray[np.int64]
    """Some rounds, from 1, …"""
    values: NDArray[np.float64]
    """… and the OCE of the policy played in each; without a model, of the returns since the round before."""
    played: int
    """The rounds that were played."""

    @property
    def last_tenth(self) -> float:
        """The mean OCE of the policies played in the last tenth of the rounds, as far as they were judged."""
        late = self.rounds > 0.9 * self.played
        return float(self.values[late].mean()) if late.any() else math.nan

    def regret(self, optimum: float) -> NDArray[np.float64]:
        """The cumulative regret up to each judged round, those since the one before counted like it."""
        return np.cumsum((optimum - self.values) * np.diff(self.rounds, prepend=0))


@dataclass(frozen=True, eq=False, kw_only=True)
class Exploration:
    """The answer of `explore`. `print` it for a summary; `save` it to a folder."""

    model: str
    risk: Risk
    oracle: str
    rounds: int
    horizon: int
    runs: tuple[SeedRun, ...]
    optimum: float | None
    """OCE* by the planner, where the model is known."""
    exact: bool
    """Whether values are exact evaluations: of a known model, with rewards on a lattice."""
    settings: dict[str, Any]
    binning: tuple[float, float]
    """How far true returns can be below and above the ones that were counted; (0, 0) on a lattice."""
    seconds: float

    @property
    def value_mean(self) -> float:
        """The mean over seeds of the recommended policies' OCE."""
        return float(np.mean([run.value for run in self.runs]))

    @property
    def value_ci(self) -> tuple[float, float] | None:
        """The 95% Student interval of that mean; None for a single seed."""
        return mean_interval([run.value for run in self.runs])

    @property
    def last_tenth_mean(self) -> float:
        """The mean over seeds of the last tenth of the rounds."""
        return float(np.mean([run.last_tenth for run in self.runs]))

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON form."""
        late = self.last_tenth_mean
        return {
            "model": self.model,
            "risk": self.risk.name,
            "oracle": self.oracle,
            "rounds": self.rounds,
            "horizon": self.horizon,
            "seeds": [
                {
                    "seed": run.seed,
                    "value": run.value,
                    "budget": run.budget,
                    "curve": [[int(k), float(v)] for k, v in zip(run.rounds, run.values, strict=True)],
                }
                for run in self.runs
            ],
            "value_mean": self.value_mean,
            "value_ci": None if self.value_ci is None else list(self.value_ci),
            "last_tenth_mean": None if math.isnan(late) else late,
            "optimum": self.optimum,
            "exact": self.exact,
            "binning": list(self.binning),
            "settings": self.settings,
            "seconds": self.seconds,
        }

    def save(self, folder: Path | str) -> None:
        """Write `explore.json`, and where the model is known the policies, `seed-N/`, for `load_policy`."""
        from ocerl.planning.policy import BudgetPolicy
        from ocerl.planning.storage import save_policy

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "explore.json").write_text(json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n")
        for run in self.runs:
            if isinstance(run.policy, BudgetPolicy):
                save_policy(run.policy, folder / f"seed-{run.seed}")

    def __str__(self) -> str:
        interval = "" if self.value_ci is None else f" (95% interval {self.value_ci[0]:.6g} … {self.value_ci[1]:.6g})"
        known = "" if self.optimum is None else f"; the optimum is {self.optimum:.6g}"
        judged = "exact" if self.exact else "estimated" if self.optimum is None else "on binned rewards"
        return (
            f"{self.risk.name} of {self.model} over {self.horizon} steps, {self.oracle}, {self.rounds} rounds, "
            f"{len(self.runs)} seeds:\nlearned {self.value_mean:.6g}{interval}, {judged}{known}; "
            f"mean of the last tenth of the rounds {self.last_tenth_mean:.6g}"
        )


def schedule(rounds: int) -> NDArray[np.int64]:
    """The rounds, from 1, whose policies are judged: evenly spaced in the logarithm, and in the last tenth.

    >>> schedule(10).tolist()
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    """
    early = np.geomspace(1, rounds, 100)
    late = np.linspace(0.9 * rounds + 1, rounds, LATE_ROUNDS)
    return np.unique(np.round(np.concatenate([early, late])).astype(np.int64))
