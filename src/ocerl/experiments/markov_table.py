"""The paper's two exact tables: three policies' CVaR (Table 1), and how far Markov policies fall short (Table 2)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ocerl.mdp import zoo
from ocerl.planning import ReturnDistribution, best_markov, evaluate, plan
from ocerl.risk import parse_risk

RISKS = (
    "mean-variance:1",
    "mean-variance:2",
    "monotone-mean-variance:1",
    "monotone-mean-variance:2",
    "entropic:-1",
    "entropic:-2",
    "cvar:0.25",
    "cvar:0.5",
)
"""The six of the paper, and the monotone form of its mean-variances."""

PAPER_BEST_MARKOV = {
    "mean-variance:1": 0.95,
    "mean-variance:2": 0.5,
    "entropic:-1": 1.25,
    "entropic:-2": 0.91,
    "cvar:0.25": 0.5,
    "cvar:0.5": 1.0,
}
"""The column "Best Markovian" as printed."""


@dataclass(frozen=True)
class Row:
    """One risk: the optimum over all policies, the best Markov policy, and the paper's figure for the latter."""

    risk: str
    optimum: float
    budget: float
    markov: float
    markov_paper: float | None

    @property
    def markov_optimal(self) -> bool:
        return self.optimum - self.markov < 1e-9


@dataclass(frozen=True)
class MarkovTable:
    """Both tables."""

    policies: dict[str, ReturnDistribution]
    rows: list[Row]

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON form."""
        return {
            "model": "paper",
            "policies": [
                {
                    "policy": name,
                    "values": returns.values.tolist(),
                    "probabilities": returns.probabilities.tolist(),
                    "cvar:0.25": returns.certainty_equivalent("cvar:0.25"),
                }
                for name, returns in self.policies.items()
            ],
            "risks": [{**asdict(row), "markov_optimal": row.markov_optimal} for row in self.rows],
        }


def markov_table() -> MarkovTable:
    """Compute both tables exactly.

    >>> table = markov_table()
    >>> [round(row.optimum - row.markov, 4) for row in table.rows if row.risk.startswith("cvar")]
    [0.25, 0.125]
    """
    model = zoo.make("paper")
    second = model.states.index("s2")
    policies: dict[str, ReturnDistribution] = {}
    for number, action in enumerate(("a1", "a2")):
        table = np.zeros((2, model.n_states), dtype=int)
        table[1, second] = number
        policies[f"{action} (Markov)"] = evaluate(model, table)
    policies["a1 if r1 = 0, a2 if r1 = 1"] = plan(model, "cvar:0.25").returns
    rows: list[Row] = []
    for risk in RISKS:
        best = plan(model, parse_risk(risk))
        markov = best_markov(model, risk)
        rows.append(Row(risk, best.value, best.budget, markov.value, PAPER_BEST_MARKOV.get(risk)))
    return MarkovTable(policies, rows)
