r"""The best first budget of a smooth or any other concave utility: continuous, global, and proven.

The objective :math:`g(b) = b + V^\star_1(s_1, b)` has several local maxima, one for every policy that is best
somewhere, but each policy's own objective is concave. So between two budgets at distance d,

.. math::  g(b) \le \max(g_l, g_r) + \kappa, \qquad
           \kappa = \tfrac14 \max_t \{ u(t) - u(t-d) - u(t+2d) + u(t+d) \},

where `t` runs over the lattice returns minus the right end (the triangle between a concave function's chord and its
end tangents), and :math:`g(b) \le g_l + d` if `u` is monotone. Where that is not enough, an objective lies below its
secants, and the largest end of the secants is the value of one more pass with another pay-off (`_secant_bound`).
Intervals that cannot beat the best policy found are dropped, the others halved: branch and bound.

The paper (Section 3, "Computational Complexity") projects to a grid instead, at a cost of the grid's spacing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ocerl.planning.backward import backward
from ocerl.planning.distribution import ReturnDistribution
from ocerl.planning.evaluate import forward
from ocerl.planning.first_budget import Solution
from ocerl.planning.grid import Grid, Progress
from ocerl.planning.memory import check_memory
from ocerl.planning.policy import BudgetPolicy
from ocerl.planning.tables import TableStore
from ocerl.risk import Risk

MOST_PASSES = 1000
FEW_INTERVALS = 16
"""With so few intervals left, the sharper bound of each is worth two passes."""


class _Objective:
    """`g(b) = b + V*(b)` on positions of the lattice and between them, counting passes."""

    def __init__(self, grid: Grid, risk: Risk) -> None:
        self.grid, self.risk, self.passes = grid, risk, 0
        self.monotone = risk.monotone

    def utility(self, positions: NDArray[np.floating]) -> NDArray[np.float64]:
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
            values = backward(self.grid, windows, lambda position, o=offset: self.utility(position + o))
            result[chosen] = values[y - y.min()]
            self.passes += 1
        return self.grid.lattice.floor - self.grid.lattice.unit * positions + result

    def expected(self, payoff: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> float:
        """The largest expectation any policy gives a pay-off of the units earned."""
        self.passes += 1
        windows = self.grid.earned_windows(0, 0)
        return float(backward(self.grid, windows, lambda earned: payoff(earned.astype(np.float64)))[0])

    def best_policy(self, position: float, outside: NDArray[np.integer]) -> tuple[BudgetPolicy, ReturnDistribution]:
        """The best policy from one first budget, and its distribution."""
        windows = self.grid.earned_windows(0, 0)
        check_memory(self.grid, windows)
        tables = TableStore().allocate(self.grid, windows)
        backward(self.grid, windows, lambda earned: self.utility(position + earned.astype(np.float64)), tables=tables)
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
    intervals = _Intervals.between(positions, values, _first_bounds(objective, positions, values))
    while True:
        intervals = intervals.above(best.value + tolerance)
        if intervals.count <= FEW_INTERVALS:
            intervals = _sharpen(objective, intervals, best, tolerance).above(best.value + tolerance)
        if not intervals.count or objective.passes >= MOST_PASSES:
            break
        middle = (intervals.left + intervals.right) / 2
        values = objective.at(middle)
        if values.max() > best.value:
            best = _polish(objective, float(middle[np.argmax(values)]), outside, tolerance, best)
        intervals = intervals.halves(objective, middle, values)
        if progress:
            progress(objective.passes, MOST_PASSES)
    upper = max(float(intervals.bound.max(initial=-np.inf)), best.value)
    return Solution(best.policy, best.returns, best.value, upper, objective.passes)


@dataclass(frozen=True, eq=False)
class _Intervals:
    """Intervals of first budgets: their ends as positions (which run against the budget), values there, a bound."""

    left: NDArray[np.float64]
    right: NDArray[np.float64]
    value_left: NDArray[np.float64]
    value_right: NDArray[np.float64]
    bound: NDArray[np.float64]

    @classmethod
    def between(
        cls, positions: NDArray[np.float64], values: NDArray[np.float64], bound: NDArray[np.float64]
    ) -> _Intervals:
        return cls(positions[1:], positions[:-1], values[1:], values[:-1], bound)

    @property
    def count(self) -> int:
        return self.bound.size

    def above(self, value: float) -> _Intervals:
        keep = self.bound > value
        return _Intervals(
            self.left[keep], self.right[keep], self.value_left[keep], self.value_right[keep], self.bound[keep]
        )

    def halves(self, objective: _Objective, middle: NDArray[np.float64], values: NDArray[np.float64]) -> _Intervals:
        left, right = np.concatenate((self.left, middle)), np.concatenate((middle, self.right))
        value_left, value_right = np.concatenate((self.value_left, values)), np.concatenate((values, self.value_right))
        parents = np.concatenate((self.bound, self.bound))
        bounds = [
            min(parent, _chord_bound(objective, a, b, value_a, value_b))
            for a, b, value_a, value_b, parent in zip(left, right, value_left, value_right, parents, strict=True)
        ]
        return _Intervals(left, right, value_left, value_right, np.array(bounds))


def _sharpen(objective: _Objective, intervals: _Intervals, best: Solution, tolerance: float) -> _Intervals:
    """Bound the intervals by secants: at the best budget found where it lies inside, else from the middle."""
    incumbent = objective.grid.position(best.policy.budget)
    bounds: list[float] = []
    for left, right, bound in zip(intervals.left, intervals.right, intervals.bound, strict=True):
        if right <= incumbent <= left:
            bound = min(bound, _secant_bound(objective, left, right, incumbent))
        if bound > best.value + tolerance:
            bound = min(bound, _secant_bound(objective, left, right, (left + right) / 2))
        bounds.append(bound)
    return replace(intervals, bound=np.array(bounds))


def _secant_bound(objective: _Objective, left: float, right: float, at: float) -> float:
    r"""Bound all objectives on an interval from a point inside.

    Each is concave in `b`, so beyond the point it lies below the secant through the point and one a little
    to the other side. The secant's height at the interval's end is the expectation of a combination of pay-offs,
    and the largest over all policies is one backward pass.
    """
    unit, step = objective.grid.lattice.unit, (left - right) * 1e-4
    points = objective.grid.points
    worst = float(objective.at(np.array([at]))[0])
    for end, towards in ((left, 1.0), (right, -1.0)):
        times = abs(end - at) / step
        if not times:
            continue

        def height(earned: NDArray[np.float64], end: float = end, towards: float = towards, times: float = times):
            here, behind = objective.utility(earned + at), objective.utility(earned + at - towards * step)
            with np.errstate(invalid="ignore"):
                line = here + times * (here - behind - towards * unit * step)
            # Where the utility is minus infinity here, it matters whether it still is at the end.
            gone = np.isneginf(objective.utility(earned + end))
            return np.where(np.isnan(line), np.where(gone, -np.inf, np.inf), line)

        if np.isposinf(height(np.arange(points, dtype=np.float64))).any():
            return np.inf
        worst = max(worst, objective.grid.budget(at) + objective.expected(height))
    return worst


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
    """`kappa` for values of a concave function at t - d, t, t + d, t + 2d (along the last axis).

    Where the function is minus infinity even at t + d, the objective is so on the whole interval: no error.
    """
    with np.errstate(invalid="ignore"):
        error = (utility[..., 1] - utility[..., 0] - utility[..., 3] + utility[..., 2]) / 4
    return np.where(np.isneginf(utility[..., 2]), -np.inf, np.where(np.isnan(error), np.inf, error))


def _first_bounds(
    objective: _Objective, positions: NDArray[np.float64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Bounds of all intervals between neighbouring lattice budgets."""
    n = positions.size
    if n < 2:
        return np.empty(0)
    utility = objective.utility(np.arange(-n - 1, n + 2, dtype=np.float64))
    stacked = np.stack([utility[i : i + 2 * n] for i in range(4)], axis=-1)
    # t of stacked[m] is steps[m + 1] = m - n. Interval i has its right end at budget index n - 1 - i, where
    # t runs over -(n - 1 - i) ... i; the largest error from the least t on is a bound.
    worst_from = np.maximum.accumulate(_chord_error(stacked)[::-1])[::-1]
    least = -(n - 1 - np.arange(n - 1))
    with np.errstate(invalid="ignore"):
        chord = np.maximum(values[1:], values[:-1]) + worst_from[least + n]
    bound = np.where(np.isnan(chord), np.inf, chord)
    if objective.monotone:
        bound = np.minimum(bound, values[1:] + objective.grid.lattice.unit)
    return bound


def _chord_bound(objective: _Objective, left: float, right: float, value_left: float, value_right: float) -> float:
    """The bound of one interval from the values at its ends."""
    grid, width = objective.grid, left - right
    t = np.asarray(right + np.arange(grid.points))  # each return, in units above the right end's budget
    stacked = np.stack([objective.utility(np.asarray(t + i * width)) for i in (-1, 0, 1, 2)], axis=-1)
    bound = max(value_left, value_right) + float(_chord_error(stacked).max())
    bound = np.inf if np.isnan(bound) else bound
    return min(bound, value_left + width * grid.lattice.unit) if objective.monotone else bound
