"""The paper's table of six OCEs: both meta-algorithms against the best Markov policy, and the exact optimum."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ocerl.gradient import train_tabular
from ocerl.mdp import TabularMDP, zoo
from ocerl.optimistic import explore
from ocerl.planning import best_markov, plan
from ocerl.risk import mean_interval

ROUNDS = 20_000
"""Rounds of the optimistic algorithm."""


@dataclass(frozen=True)
class Printed:
    """A row of the table as the paper prints it: mean and half-width of the 95% interval."""

    optimistic: tuple[float, float]
    policy: tuple[float, float]
    markov: float


PAPER = {
    "mean-variance:1": Printed((1.07, 0.01), (1.06, 0.01), 0.95),
    "mean-variance:2": Printed((0.81, 0.01), (0.75, 0.08), 0.5),
    "entropic:-1": Printed((1.25, 0.01), (1.23, 0.03), 1.25),
    "entropic:-2": Printed((0.90, 0.02), (0.90, 0.01), 0.91),
    "cvar:0.25": Printed((0.75, 0.02), (0.71, 0.08), 0.5),
    "cvar:0.5": Printed((1.12, 0.03), (1.12, 0.03), 1.0),
}
MONOTONE = ("monotone-mean-variance:1", "monotone-mean-variance:2")
"""The form that the paper's appendix defines; its table reports the plain one."""

COLUMNS = (
    "risk",
    "optimum",
    "optimistic",
    "optimistic_half_width",
    "policy_optimization",
    "policy_optimization_half_width",
    "best_markov",
    "markov_optimal",
)
"""Of the CSV file."""


@dataclass(frozen=True)
class Learned:
    """The exact OCE of the final policy of every seed."""

    values: tuple[float, ...]
    seconds: float

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def half_width(self) -> float:
        """Of the 95% interval of Student's t; 0 for a single seed."""
        interval = mean_interval(np.array(self.values))
        return (interval[1] - interval[0]) / 2 if interval else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON form."""
        return {
            "values": self.values,
            "mean": self.mean,
            "half_width": self.half_width,
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class OCERow:
    """One risk."""

    risk: str
    optimum: float
    optimistic: Learned
    policy: Learned
    markov: float

    @property
    def markov_optimal(self) -> bool:
        return self.optimum - self.markov < 1e-9

    @property
    def printed(self) -> Printed | None:
        """What the paper prints, where it has this risk."""
        return PAPER.get(self.risk)


@dataclass(frozen=True)
class OCETable:
    """The table, with the settings that made it."""

    rows: tuple[OCERow, ...]
    seeds: int
    rounds: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON form."""
        return {
            "model": "paper",
            "seeds": self.seeds,
            "rounds": self.rounds,
            "rows": [
                {
                    "risk": row.risk,
                    "optimum": row.optimum,
                    "optimistic": row.optimistic.to_dict(),
                    "policy_optimization": row.policy.to_dict(),
                    "best_markov": row.markov,
                    "markov_optimal": row.markov_optimal,
                    "paper": None
                    if row.printed is None
                    else {
                        "optimistic": row.printed.optimistic,
                        "policy_optimization": row.printed.policy,
                        "best_markov": row.printed.markov,
                    },
                }
                for row in self.rows
            ],
            "seconds": self.seconds,
        }

    def save_csv(self, path: Path) -> None:
        """Write a line for each risk."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            for row in self.rows:
                learned = (part for kind in (row.optimistic, row.policy) for part in (kind.mean, kind.half_width))
                writer.writerow((row.risk, row.optimum, *learned, row.markov, row.markov_optimal))


def oce_table(
    *,
    seeds: int = 10,
    seed: int = 0,
    rounds: int = ROUNDS,
    updates: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> OCETable:
    """Compute the table: the six OCEs as printed, then the monotone form of its mean-variances.

    >>> table = oce_table(seeds=2, rounds=2000, updates=200)
    >>> [round(row.policy.mean - row.markov, 4) for row in table.rows if row.risk.startswith("cvar")]
    [0.25, 0.125]
    """
    began = time.perf_counter()
    model, rows = zoo.make("paper"), list[OCERow]()
    risks = (*PAPER, *MONOTONE)
    for number, risk in enumerate(risks):
        rows.append(_row(model, risk, seeds, seed, rounds, updates))
        if progress:
            progress(number + 1, len(risks))
    return OCETable(tuple(rows), seeds, rounds, time.perf_counter() - began)


def _row(model: TabularMDP, risk: str, seeds: int, seed: int, rounds: int, updates: int | None) -> OCERow:
    explored = explore(model, risk, oracle="ucbvi", rounds=rounds, seeds=range(seed, seed + seeds))
    trained = train_tabular(model, risk, seeds=seeds, seed=seed, updates=updates)
    return OCERow(
        risk=risk,
        optimum=plan(model, risk).value,
        optimistic=_learned(explored.to_dict()),
        policy=_learned(trained.to_dict()),
        markov=best_markov(model, risk).value,
    )


def _learned(report: dict[str, Any]) -> Learned:
    return Learned(tuple(run["value"] for run in report["seeds"]), report["seconds"])
