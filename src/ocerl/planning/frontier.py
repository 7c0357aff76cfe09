"""The risk frontier: every level of CVaR from one solve (one policy, every level)."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.lattice import exact_lattice, rounded_lattice
from ocerl.mdp.tabular import TabularMDP
from ocerl.planning.certificate import guaranteed
from ocerl.planning.distribution import ReturnDistribution
from ocerl.planning.first_budget import MEAN_WEIGHT, best_of, saturating_budgets, upper_bounds
from ocerl.planning.grid import Grid, Progress
from ocerl.planning.memory import check_resolution
from ocerl.planning.neutral import risk_neutral
from ocerl.planning.plan import plan
from ocerl.planning.policy import BudgetPolicy
from ocerl.risk import CVaR


@dataclass(frozen=True, eq=False, kw_only=True)
class Frontier:
    """The best CVaR at each level, the mean that the same policy has, and bounds on what any policy can have."""

    model: TabularMDP
    levels: NDArray[np.float64]
    values: NDArray[np.float64]
    uppers: NDArray[np.float64]
    means: NDArray[np.float64]
    budgets: NDArray[np.float64]
    returns: list[ReturnDistribution]
    policy: BudgetPolicy
    """One policy for all levels: `at` sets its first budget."""
    exact: bool
    seconds: float

    def at(self, level: float) -> BudgetPolicy:
        """The policy for one of the levels."""
        match = np.flatnonzero(np.isclose(self.levels, level))
        if not match.size:
            raise OcerlError(f"the frontier has no level {level}: it has {', '.join(f'{x:g}' for x in self.levels)}")
        budget = float(self.budgets[match[0]])
        lattice = self.policy.lattice
        return self.policy.from_budget(round((lattice.floor - budget) / lattice.unit), budget)

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON form."""
        return {
            "model": self.model.name,
            "risk": "cvar",
            "horizon": self.model.horizon,
            "discount": self.model.discount,
            "exact": self.exact,
            "points": [
                {
                    "level": float(level),
                    "value": float(value),
                    "lower": float(value),
                    "upper": float(upper),
                    "budget": float(budget),
                    "mean": float(mean),
                }
                for level, value, upper, budget, mean in zip(
                    self.levels, self.values, self.uppers, self.budgets, self.means, strict=True
                )
            ],
            "seconds": self.seconds,
        }


def frontier(
    model: TabularMDP,
    levels: Iterable[float],
    *,
    resolution: float | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Frontier:
    r"""Solve CVaR for many levels at once.

    The pay-off :math:`u(t) = -\tau^{-1}(-t)_+` depends on τ by a factor only, so the optimal policy for each
    *first budget* is the same for all τ: one backward pass values every budget, and each level picks its own,
    :math:`\max_b \{ b + \tau^{-1} V^\star(s_1, b) \}`.

    >>> from ocerl.mdp import zoo
    >>> frontier(zoo.make("paper"), [0.25, 0.5, 1.0]).values.tolist()
    [0.75, 1.125, 1.625]
    """
    began = time.perf_counter()
    chosen = np.array([CVaR(float(level)).tau for level in levels])
    if not chosen.size:
        raise OcerlError("the frontier needs at least one level in (0, 1]")
    check_resolution(model, resolution)
    _, neutral = risk_neutral(model)
    lattice = exact_lattice(model)
    exact = lattice is not None and (resolution is None or resolution <= lattice.unit)
    if not exact:
        unit = resolution or plan(model, CVaR(float(chosen.min())), threads=threads, progress=progress).resolution
        lattice = rounded_lattice(model, unit, "down")
    assert lattice is not None
    grid = Grid.of(lattice, threads)
    weight = MEAN_WEIGHT * float(chosen.min())
    found = saturating_budgets(grid, 0.0, neutral.slots, mean_weight=weight, progress=progress)
    solutions = [best_of(found, grid, CVaR(float(tau))) for tau in chosen]
    values = np.array(
        [guaranteed(s.returns, CVaR(float(tau)), s.policy.budget) for s, tau in zip(solutions, chosen, strict=True)]
    )
    if exact:
        uppers = values
    else:
        up = rounded_lattice(model, lattice.unit, "up")
        budgets, bounds = upper_bounds(Grid.of(up, threads), CVaR(1.0), progress=progress)
        uppers = np.array([(budgets + (bounds - budgets) / tau).max() for tau in chosen]) + up.error[1]
    return Frontier(
        model=model,
        levels=chosen,
        values=values,
        uppers=np.maximum(uppers, values),
        means=np.array([solution.returns.mean for solution in solutions]),
        budgets=np.array([solution.policy.budget for solution in solutions]),
        returns=[solution.returns for solution in solutions],
        policy=found.policy,
        exact=exact,
        seconds=time.perf_counter() - began,
    )
