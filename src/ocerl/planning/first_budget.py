r"""The best first budget on the lattice, for utilities of two slopes: CVaR, mean-CVaR and the mean.

:math:`\mathrm{OCE}^\star = \max_b \{ b + V^\star_1(s_1, b) \}` (Theorem 2.1). Each policy's objective has its kinks at
returns, so the maximum is at a return on the lattice, and one backward pass values them all.
`ocerl.planning.continuous` finds the best budget of other utilities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocerl.planning.backward import backward
from ocerl.planning.distribution import ReturnDistribution
from ocerl.planning.evaluate import forward
from ocerl.planning.grid import Grid, Progress, Windows
from ocerl.planning.memory import check_memory
from ocerl.planning.policy import BudgetPolicy
from ocerl.planning.tables import TableStore
from ocerl.risk import Risk

MEAN_WEIGHT = 1e-11
"""The weight of the mean that breaks ties: among policies of equal risk, the one with the better mean.

At most this much of the mean return is ever given up in the risk."""


BudgetRange = tuple[float, float]
"""The least and the largest first budget to look at."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A policy with its exact distribution on the lattice, and a bound no policy on the lattice exceeds."""

    policy: BudgetPolicy
    returns: ReturnDistribution
    value: float
    upper: float
    passes: int = 1


@dataclass(frozen=True, eq=False)
class FirstBudgets:
    """Every first budget of the lattice with the value of its best continuation, and the policy for all of them."""

    budgets: NDArray[np.float64]
    values: NDArray[np.float64]
    """:math:`V^\\star_1(s_1, b)`, with `mean_weight` times the mean return above `b` added."""
    policy: BudgetPolicy
    mean_weight: float


def saturating_budgets(
    grid: Grid,
    slope: float,
    outside: NDArray[np.integer],
    *,
    mean_weight: float = MEAN_WEIGHT,
    among: BudgetRange | None = None,
    store: TableStore | None = None,
    dtype: type[np.floating] = np.float64,
    progress: Progress | None = None,
) -> FirstBudgets:
    """Value every first budget on the lattice, or in the range `among`, in one backward pass.

    The utility is the one of slopes 1 and `slope`. A utility of slopes `l` and `r` is `l` times the one of slopes 1
    and `r / l`: the same pass serves every level of CVaR.
    """
    windows = _windows(grid, among)
    store = store or TableStore()
    check_memory(grid, windows, dtype, tables=store.folder is None)
    tables = store.allocate(grid, windows)
    budgets, values = _all_first_budgets(
        grid, windows, (1 + mean_weight, slope + mean_weight), tables=tables, dtype=dtype, progress=progress
    )
    policy = BudgetPolicy(grid.lattice, int(windows.low[0]), float(budgets[0]), tables, windows.low, outside)
    return FirstBudgets(budgets, values, policy, mean_weight)


def best_of(
    found: FirstBudgets, grid: Grid, risk: Risk, *, rounding: float = 0.0, dtype: type[np.floating] = np.float64
) -> Solution:
    """Choose the first budget for a risk whose utility has two slopes, the left one scaling the values.

    `rounding` is how far float arithmetic can have moved a value: the bound is raised by it, and in single precision
    (`dtype`) the policy's own value is lowered by it.
    """
    assert risk.slopes is not None
    weight = risk.slopes[0]
    mean_weight = weight * found.mean_weight
    objective = found.budgets * (1 + mean_weight) + weight * found.values
    best = int(np.argmax(objective))
    position = found.policy.first_position + best
    policy = found.policy.from_budget(position, float(found.budgets[best]))
    returns = forward(grid, position, policy.tables, policy.low, policy.outside, dtype)
    value = returns.certainty_equivalent(risk) - rounding
    # The mean's part of the objective is at least its weight times the least return.
    upper = float(objective[best]) - mean_weight * grid.return_range[0] + rounding
    return Solution(policy, returns, value, max(upper, value))


def upper_bounds(
    grid: Grid, risk: Risk, among: BudgetRange | None = None, progress: Progress | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Budgets, and what no policy that begins with them can exceed; no policy is kept."""
    assert risk.slopes is not None
    windows = _windows(grid, among)
    check_memory(grid, windows, tables=False)
    budgets, values = _all_first_budgets(grid, windows, risk.slopes, progress=progress)
    return budgets, budgets + values


def worthwhile(budgets: NDArray[np.float64], bounds: NDArray[np.float64], lower: float) -> BudgetRange:
    """The range outside of which no first budget can reach `lower`, from upper bounds on a lattice of budgets.

    Between two budgets the objective is at most the bound at the smaller one plus their distance, since values
    fall with the budget.
    """
    spacing = abs(float(budgets[0] - budgets[-1])) / max(1, budgets.size - 1)
    kept = budgets[bounds + spacing >= lower]
    return float(kept.min()) - spacing, float(kept.max()) + spacing


def work_of(grid: Grid, among: BudgetRange | None) -> float:
    """The multiplications of one pass over a range of first budgets."""
    return work_in(grid, _windows(grid, among))


def work_in(grid: Grid, windows: Windows) -> float:
    """The multiplications of one pass over some windows."""
    widths = windows.widths
    return float(sum(grid.transitions(h).probability.size * int(widths[h]) for h in range(grid.length)))


def _windows(grid: Grid, among: BudgetRange | None) -> Windows:
    if among is None:
        return grid.saturating_windows()
    low, high = grid.return_range
    first = (grid.position(min(among[1], high)), grid.position(max(among[0], low)))
    return grid.saturating_windows((math.floor(first[0] + 1e-9), math.ceil(first[1] - 1e-9)))


def _all_first_budgets(
    grid: Grid,
    windows: Windows,
    slopes: tuple[float, float],
    *,
    tables: list[NDArray[np.unsignedinteger]] | None = None,
    dtype: type[np.floating] = np.float64,
    progress: Progress | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The budgets in the first window and their values."""
    left, right = (slope * grid.lattice.unit for slope in slopes)
    values = backward(
        grid,
        windows,
        lambda y: np.where(y < 0, left * y, right * y),
        (left, right),
        tables=tables,
        dtype=dtype,
        progress=progress,
    )
    positions = np.arange(windows.low[0], windows.high[0] + 1)
    return grid.lattice.floor - grid.lattice.unit * positions, values
