"""What deep training answers with: a policy for each seed, how good it is, and how it got there."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocerl.gradient.deep.config import DeepConfig
from ocerl.gradient.deep.policy import NetworkPolicy
from ocerl.gradient.seeds import Seeds, bracket
from ocerl.risk import Estimate, Risk

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class DeepSeedResult:
    """One run."""

    seed: int
    risk: str
    value: float
    """The OCE of `policy`: exact where the model is known, else estimated."""
    exact: bool
    mean: float
    """The mean of the return under `policy`."""
    estimate: Estimate
    """From fresh episodes, with an interval."""
    policy: NetworkPolicy
    """The greedy policy of the trained network, with its first budget."""

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON form."""
        return {
            "seed": self.seed,
            "value": self.value,
            "exact": self.exact,
            "value_ci": [self.estimate.low, self.estimate.high],
            "episodes": self.estimate.n,
            "tail_count": self.estimate.tail_count,
            "mean": self.mean,
            "budget": self.policy.budget,
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class DeepTraining(Seeds[DeepSeedResult]):
    """The answer to a training problem. `print` it for a summary; `save` it to a folder."""

    environment: str
    parameters: dict[str, Any]
    """What the environment was made with."""
    risk: Risk
    config: DeepConfig
    horizon: int
    discount: float
    budget_range: tuple[float, float]
    """The range of first budgets at the beginning."""
    runs: tuple[DeepSeedResult, ...]
    updates: NDArray[np.int64]
    """After how many updates the curves were recorded."""
    values: Floats
    """`[records, seeds]`: the OCE of the greedy policies, begun with first budgets chosen from fresh episodes."""
    optimum: tuple[float, float] | None
    """OCE* lies between these two, where the model is known."""
    seconds: float

    @property
    def oracle(self) -> str:
        return self.config.oracle

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON form."""
        return {
            "environment": self.environment,
            "parameters": self.parameters,
            "risk": self.risk.name,
            "horizon": self.horizon,
            "discount": self.discount,
            "budget_range": list(self.budget_range),
            "oracle": self.oracle,
            "settings": asdict(self.config),
            "steps_per_update": self.config.batch,
            "seeds": [
                {
                    **run.to_dict(),
                    "curve": [[int(k), float(v)] for k, v in zip(self.updates, self.values[:, number], strict=True)],
                }
                for number, run in enumerate(self.runs)
            ],
            "value_mean": self.value_mean,
            "value_ci": self.value_interval,
            "optimum": None if self.optimum is None else self.optimum[0],
            "optimum_upper": None if self.optimum is None else self.optimum[1],
            "seconds": self.seconds,
        }

    def save(self, folder: Path | str) -> None:
        """Write `train.json` and each seed's policy, `seed-N/`, to a folder."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for run in self.runs:
            run.policy.save(folder / f"seed-{run.seed}")
        (folder / "train.json").write_text(json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n")

    def __str__(self) -> str:
        judged = "exact" if self.best.exact else f"on {self.best.estimate.n:,} fresh episodes each"
        what = f"{self.risk.name} of {self.environment} by {self.oracle}, {len(self.runs)} seeds"
        summary = f"{what}, {judged}: {self.spread()}"
        return summary if self.optimum is None else f"{summary}\noptimum {bracket(*self.optimum)}"
