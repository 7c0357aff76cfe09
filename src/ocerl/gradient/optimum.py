"""The optimum that stands beside what a learner found."""

from __future__ import annotations

from ocerl.mdp.lattice import exact_lattice
from ocerl.mdp.tabular import TabularMDP
from ocerl.planning.plan import plan
from ocerl.risk import Risk

OPTIMUM_POINTS = 1000
"""Where rewards have no common lattice, the optimum is bracketed on so many returns."""


def optimum(model: TabularMDP, risk: Risk) -> tuple[float, float]:
    """The planner's bounds on OCE*."""
    low, high = model.return_range()
    exact = exact_lattice(model) is not None
    best = plan(model, risk, resolution=None if exact else (high - low) / OPTIMUM_POINTS)
    return best.lower, best.upper
