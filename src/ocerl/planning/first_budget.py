r"""The best first budget: :math:`\mathrm{OCE}^\star = \max_b \{ b + V^\star_1(s_1, b) \}` (Theorem 2.1).

For CVaR and mean-CVaR the maximum is at a return on the lattice, and one backward pass values them all
(`solve_saturating`). For other utilities the best budget is continuous and the objective `g` has several local
maxima, one for every policy that is best somewhere. `solve_continuous` finds the global one and proves it: each
policy's objective is concave, so between two budgets at distance d,

.. math::  g(b) \le \max(g_l, g_r) + \kappa, \qquad
           \kappa = \tfrac14 \max_t \{ u(t) - u(t-d) - u(t+2d) + u(t+d) \},

where `t` runs over the lattice returns minus the right end (the triangle between a concave function's chord
and its end tangents), and :math:`g(b) \le g_l + d` if `u` is monotone. Intervals that cannot beat the best
policy found are dropped, the others halved: branch and bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocerl.planning.distribution import ReturnDistribution
from ocerl.planning.evaluate import forward
from ocerl.planning.grid import Grid, Progress, Windows
from ocerl.planning.memory import check_memory
from ocerl.planning.policy import BudgetPolicy
from ocerl.planning.tables import TableStore
from ocerl.risk import Risk

MEAN_WEIGHT = 1e-11
"""The weight of the mean that breaks ties: among policies of equal risk, the one with the better mean."""
MOST_PASSES = 400


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
    """:math:`V^\\star_1(s_1, b)`, with `MEAN_WEIGHT` times the mean return above `b` added."""
    policy: BudgetPolicy


def saturating_budgets(
    grid: Grid,
    slope: float,
    outside: NDArray[np.integer],
    *,
    among: BudgetRange | None = None,
    store: TableStore | None = None,
    dtype: type[np.floating] = np.float64,
    progress: Progress | None = None,
) -> FirstBudgets:
    """Value every first budget on the lattice, or in the range `among`, in one backward pass.

    The utility is the one of slopes 1 and `slope`. A utility of slopes `l` and `r` is `l` times the one of slopes 1 and `r / l`: the same pass serves every
    level of CVaR.
    """
    windows = _windows(grid, among)
    store = store or TableStore()
    check_memory(grid, windows, dtype, tables=store.folder is None)
    tables = store.allocate(grid, windows)
    budgets, values = _all_first_budgets(
        grid, windows, (1 + MEAN_WEIGHT, slope + MEAN_WEIGHT), tables=tables, dtype=dtype, progress=progress
    )
    policy = BudgetPolicy(grid.lattice, int(windows.low[0]), float(budgets[0]), tables, windows.low, outside)
    return FirstBudgets(budgets, values, policy)


def best_of(found: FirstBudgets, grid: Grid, risk: Risk, *, rounding: float = 0.0) -> Solution:
    """Choose the first budget for a risk whose utility has two slopes, the left one scaling the values.

    `rounding` is how far float arithmetic can have moved a value; it is added to the upper bound.
    """
    assert risk.slopes is not None
    weight = risk.slopes[0]
    objective = found.budgets * (1 + MEAN_WEIGHT * weight) + weight * found.values
    best = int(np.argmax(objective))
    position = found.policy.first_position + best
    policy = found.policy.from_budget(position, float(found.budgets[best]))
    returns = forward(grid, position, policy.tables, policy.low, policy.outside)
    value = returns.certainty_equivalent(risk)
    # The mean's part of the objective is at least its weight times the least return.
    upper = float(objective[best]) - MEAN_WEIGHT * weight * grid.return_range[0] + rounding
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
    widths = _windows(grid, among).widths
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
    values = grid.backward(
        windows,
        lambda y: np.where(y < 0, left * y, right * y),
        (left, right),
        tables=tables,
        dtype=dtype,
        progress=progress,
    )
    positions = np.arange(windows.low[0], windows.high[0] + 1)
    return grid.lattice.floor - grid.lattice.unit * positions, values


class _Objective:
    """`g(b) = b + V*(b)` on positions of the lattice and between them, counting passes."""

    def __init__(self, grid: Grid, risk: Risk) -> None:
        self.grid, self.risk, self.passes = grid, risk, 0

    def utility(self, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.risk.utility(self.grid.lattice.unit * positions), dtype=np.float64)

    def at(self, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        """`g` at some positions: one pass for all that share their distance from the lattice."""
        result = np.empty(positions.size)
        whole = np.floor(positions)
        rest = positions - whole
        for offset in np.unique(rest):
            chosen = rest == offset
            y = whole[chosen].astype(np.int64)
            windows = self.grid.earned_windows(int(y.min()), int(y.max()))
            check_memory(self.grid, windows, tables=False)
            values = self.grid.backward(windows, lambda position, o=offset: self.utility(position + o))
            result[chosen] = values[y - y.min()]
            self.passes += 1
        return self.grid.lattice.floor - self.grid.lattice.unit * positions + result

    def best_policy(self, position: float, outside: NDArray[np.integer]) -> tuple[BudgetPolicy, ReturnDistribution]:
        """The best policy from one first budget, and its distribution."""
        windows = self.grid.earned_windows(0, 0)
        check_memory(self.grid, windows)
        tables = TableStore().allocate(self.grid, windows)
        self.grid.backward(windows, lambda earned: self.utility(position + earned.astype(np.float64)), tables=tables)
        self.passes += 1
        policy = BudgetPolicy(self.grid.lattice, 0, self.grid.budget(position), tables, windows.low, outside)
        return policy, forward(self.grid, 0, tables, windows.low, outside)


def solve_continuous(
    grid: Grid,
    risk: Risk,
    outside: NDArray[np.integer],
    *,
    tolerance: float,
    progress: Progress | None = None,
) -> Solution:
    """The globally best first budget, on or off the lattice, to within `tolerance`."""
    objective = _Objective(grid, risk)
    lowest, highest = (grid.position(z) for z in reversed(grid.return_range))
    positions = np.arange(round(lowest), round(highest) + 1, dtype=np.float64)
    values = objective.at(positions)
    best = _polish(objective, float(positions[np.argmax(values)]), outside, tolerance)
    # Left and right in the budget: positions run the other way.
    left, right = positions[1:], positions[:-1]
    g_left, g_right = values[1:], values[:-1]
    width = 1.0
    bound = _first_bounds(objective, positions, values)
    while True:
        active = bound > best.value + tolerance
        left, right, g_left, g_right, bound = (a[active] for a in (left, right, g_left, g_right, bound))
        if not left.size or objective.passes >= MOST_PASSES:
            break
        middle = (left + right) / 2
        g_middle = objective.at(middle)
        if g_middle.max() > best.value:
            best = _polish(objective, float(middle[np.argmax(g_middle)]), outside, tolerance, best)
        left, right = np.concatenate((left, middle)), np.concatenate((middle, right))
        g_left, g_right = np.concatenate((g_left, g_middle)), np.concatenate((g_middle, g_right))
        width /= 2
        bound = np.array([_bound(objective, r, width, a, b) for r, a, b in zip(right, g_left, g_right, strict=True)])
        if progress:
            progress(objective.passes, MOST_PASSES)
    upper = max(float(bound.max(initial=-np.inf)), best.value)
    return Solution(best.policy, best.returns, best.value, upper, objective.passes)


def _polish(
    objective: _Objective,
    position: float,
    outside: NDArray[np.integer],
    tolerance: float,
    best: Solution | None = None,
) -> Solution:
    """Alternate between the best policy for a budget and the best budget for a policy: never worse, ends soon."""
    for _ in range(50):
        policy, returns = objective.best_policy(position, outside)
        found = objective.risk.certainty_equivalent(returns.values, returns.probabilities)
        if best is not None and found.value <= best.value + tolerance / 10:
            return best if found.value < best.value else Solution(policy, returns, found.value, np.inf)
        best = Solution(policy, returns, found.value, np.inf)
        position = objective.grid.position(found.budget)
    assert best is not None
    return best


def _chord_error(utility: NDArray[np.float64]) -> NDArray[np.float64]:
    """`kappa` for values of a concave function at t - d, t, t + d, t + 2d (along the last axis)."""
    with np.errstate(invalid="ignore"):
        error = (utility[..., 1] - utility[..., 0] - utility[..., 3] + utility[..., 2]) / 4
    return np.where(np.isnan(error), np.inf, error)


def _first_bounds(
    objective: _Objective, positions: NDArray[np.float64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Bounds of all intervals between neighbouring lattice budgets."""
    n = positions.size
    if n < 2:
        return np.empty(0)
    steps = np.arange(-n - 1, n + 2, dtype=np.float64)
    utility = objective.utility(steps)
    stacked = np.stack([utility[i : i + 2 * n] for i in range(4)], axis=-1)
    # t of stacked[m] is steps[m + 1] = m - n. Interval i has its right end at budget index n - 1 - i, where
    # t runs over -(n - 1 - i) ... i; the largest error from the least t on is a bound.
    worst_from = np.maximum.accumulate(_chord_error(stacked)[::-1])[::-1]
    least = -(n - 1 - np.arange(n - 1))
    with np.errstate(invalid="ignore"):
        chord = np.maximum(values[1:], values[:-1]) + worst_from[least + n]
    bound = np.where(np.isnan(chord), np.inf, chord)
    if objective.risk.monotone:
        bound = np.minimum(bound, values[1:] + objective.grid.lattice.unit)
    return bound


def _bound(objective: _Objective, right: float, width: float, g_left: float, g_right: float) -> float:
    """The bound of one interval whose right end (the larger budget) is at position `right`."""
    grid = objective.grid
    earned = np.arange(grid.points, dtype=np.float64)
    least = grid.position(grid.return_range[0])
    t = right - least + earned  # position of each return above the right end's budget
    stacked = np.stack([objective.utility(np.asarray(t + i * width)) for i in (-1, 0, 1, 2)], axis=-1)
    bound = max(g_left, g_right) + float(_chord_error(stacked).max())
    if np.isnan(bound):
        bound = np.inf
    return min(bound, g_left + width * grid.lattice.unit) if objective.risk.monotone else bound
