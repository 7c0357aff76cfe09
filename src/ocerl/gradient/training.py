"""What training answers with: a policy for each seed, how good it is, and how it got there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocerl.gradient.policy import StochasticBudgetPolicy
from ocerl.gradient.seeds import Seeds, bracket
from ocerl.mdp.tabular import TabularMDP
from ocerl.planning.distribution import ReturnDistribution
from ocerl.risk import Risk

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class SeedResult:
    """One run."""

    seed: int
    value: float
    """The exact OCE of `policy`."""
    budget: float
    r"""The first budget :math:`\\hat b` it begins with."""
    policy: StochasticBudgetPolicy
    """The last softmax policy, rounded to its most probable actions."""
    softmax: StochasticBudgetPolicy
    r"""The last softmax policy itself, :math:`\\pi^K`."""
    returns: ReturnDistribution
    """The distribution of the return under `policy`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Training(Seeds[SeedResult]):
    """The answer to a training problem. `print` it for a summary; `save` it to a folder."""

    model: TabularMDP
    risk: Risk
    oracle: str
    settings: dict[str, Any]
    runs: tuple[SeedResult, ...]
    updates: NDArray[np.int64]
    """After how many updates the curves were recorded."""
    values: Floats
    r"""`[records, seeds]`: the exact :math:`\\mathrm{OCE}_u(\\pi^k, \\hat b_k)` of the softmax policies."""
    lower_bounds: Floats
    r"""`[records, seeds]`: their exact :math:`\\mathrm{RLB}(\\pi^k)`."""
    estimated_bounds: Floats
    """`[records, seeds]`: the risk lower bound as the learner itself estimated it."""
    optimum: tuple[float, float]
    """OCE* lies between these two, which agree where rewards have a common lattice."""
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON form."""
        return {
            "model": self.model.name,
            "risk": self.risk.name,
            "horizon": self.model.horizon,
            "discount": self.model.discount,
            "oracle": self.oracle,
            "settings": self.settings,
            "seeds": [
                {
                    "seed": run.seed,
                    "value": run.value,
                    "budget": run.budget,
                    "curve": _curve(self.updates, self.values[:, number]),
                    "lower_bound": _curve(self.updates, self.lower_bounds[:, number]),
                }
                for number, run in enumerate(self.runs)
            ],
            "value_mean": self.value_mean,
            "value_ci": self.value_interval,
            "optimum": self.optimum[0],
            "optimum_upper": self.optimum[1],
            "return": {
                "values": self.best.returns.values.tolist(),
                "probabilities": self.best.returns.probabilities.tolist(),
                "mean": self.best.returns.mean,
            },
            "return_error": self.best.returns.error,
            "seconds": self.seconds,
        }

    def save(self, folder: Path | str) -> None:
        """Write `train.json` and the best seed's policy to a folder."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "train.json").write_text(json.dumps(self.to_dict(), indent=2) + "\n")
        self.best.policy.save(folder / "policy")

    def __str__(self) -> str:
        return (
            f"{self.risk.name} of {self.model.name} by {self.oracle}, {len(self.runs)} seeds: {self.spread()}\n"
            f"optimum {bracket(*self.optimum)}; first budget {self.best.budget:.6g} (best seed)"
        )


def _curve(updates: NDArray[np.int64], values: Floats) -> list[list[float]]:
    return [[int(update), float(value)] for update, value in zip(updates, values, strict=True)]
