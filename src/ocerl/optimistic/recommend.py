"""The policy that a run of UCB-VI recommends: the best on what was seen, without bonuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ocerl.optimistic.rows import BudgetRows, curved_rows
from ocerl.optimistic.table import TablePolicy
from ocerl.optimistic.ucbvi import UcbVi, plan_everything

HALVINGS = 10


def recommend(oracle: UcbVi) -> TablePolicy:
    """Plan for the empirical model, a pair without a visit being worth the *least* that can be reached.

    For a curved utility the first budget is then polished off the grid: steps of half the grid's spacing are
    tried in both directions and halved ten times; each is a plan for that budget, so it never gets worse.
    """
    best, policy = _best(oracle, oracle.rows)
    if oracle.rows.risk.slopes is not None:
        return policy
    problem, risk = oracle.problem, oracle.rows.risk
    at = (problem.floor - policy.budget) / problem.unit
    step = 0.5 / oracle.rows.arrays.refine
    for _ in range(HALVINGS):
        for position in (at - step, at + step):
            value, found = _best(oracle, curved_rows(problem, risk, position, 1, 1))
            if value > best:
                best, policy, at = value, found, position
        step /= 2
    return policy


def _best(oracle: UcbVi, rows: BudgetRows) -> tuple[float, TablePolicy]:
    """The best of some first budgets on the empirical model: its objective and its policy."""
    # Unseen pairs are given the span as a bonus: twice the span less than the ceiling, they come to the least.
    arrays = rows.arrays._replace(unseen=rows.arrays.ceiling - 2 * rows.arrays.span)
    rows = replace(rows, arrays=arrays)
    plain = replace(oracle, rows=rows, plan=rows.empty_values(pessimistic=False), log_term=0.0)
    plan_everything(plain)
    budgets, values = plain.values()
    position = int(np.argmax(budgets + values))
    return float((budgets + values)[position]), TablePolicy.of_plan(rows, plain.plan, position)
