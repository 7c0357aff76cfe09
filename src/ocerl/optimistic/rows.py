r"""The rows of budgets that are planned for, with the pay-off at their end and what can be reached from each.

For a utility with one kink at 0 all first budgets on the lattice are planned for at once; beyond the positions
where the remaining rewards can still cross the kink, values are linear. For the mean a single position is left.

For another utility the first budgets form a grid finer than the lattice (`refine` to a unit). Its spacing
:math:`\iota` costs at most :math:`\iota^2 \max|u''| / 8` of the OCE, since the best budget is a maximum; the
paper (Section 3, "Computational Complexity") has a grid of spacing O(1/K) for all utilities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.optimistic._kernels import Rows, Values
from ocerl.optimistic.problem import Problem
from ocerl.planning.memory import available_memory
from ocerl.risk import Risk

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BudgetRows:
    """Which positions are planned for, in each step; `arrays` is the form the compiled loops take."""

    problem: Problem
    risk: Risk
    origin: float
    """The lattice position of fine position 0."""
    arrays: Rows

    def positions(self, step: int, *, padded: bool = False) -> Floats:
        """The lattice positions of a step's row; `unit` times a position is minus its budget."""
        rows = self.arrays
        low, width = (rows.pad_low, rows.pad_width) if padded else (rows.low, rows.width)
        return self.origin + (low[step] + np.arange(width[step])) / rows.refine

    def extended(self, step: int, values: Floats) -> Floats:
        """Values over a step's row, continued over its padded one; the row is the last axis."""
        rows = self.arrays
        begin = int(rows.low[step] - rows.pad_low[step])
        last = begin + int(rows.width[step]) - 1
        beyond = np.arange(int(rows.pad_width[step]))
        inside = values[..., np.clip(beyond, begin, last) - begin]
        return (
            inside - rows.slope_left * np.maximum(begin - beyond, 0) + rows.slope_right * np.maximum(beyond - last, 0)
        )

    def column(self, step: int, y: int) -> int:
        """Where a position is in a step's row; the edges stand for what is beyond, where values are linear."""
        return min(max(y - int(self.arrays.low[step]), 0), int(self.arrays.width[step]) - 1)

    def after(self, step: int, column: int, shift: int) -> int:
        """Where in the next step's padded row a reward of so many units leads to."""
        rows = self.arrays
        return int(rows.low[step]) + column + rows.refine * shift - int(rows.pad_low[step + 1])

    def first_position(self, budget: float) -> int:
        """The number of one of the first budgets."""
        return int(np.flatnonzero(self.arrays.budgets == budget)[0])

    def empty_values(self, *, pessimistic: bool) -> Values:
        """Values to plan into, with the pay-off at the end and in the states that end the episode."""
        problem, rows = self.problem, self.arrays
        shape = (problem.horizon + 1, problem.n_states)
        needed = shape[0] * shape[1] * int(8 * (1 + pessimistic) * rows.pad_width.max() + 2 * rows.width.max())
        if needed > (free := available_memory()):
            raise OcerlError(
                f"{int(rows.width.max()):,} budgets of unit {problem.unit:g} over {problem.n_states:,} states and "
                f"{problem.horizon} steps need {needed / 2**30:.1f} GiB, {free / 2**30:.1f} GiB are free: give a "
                "coarser resolution or a shorter horizon"
            )
        upper = np.zeros((*shape, int(rows.pad_width.max())))
        for step in range(problem.horizon + 1):
            ends = problem.terminal if step < problem.horizon else np.ones(problem.n_states, dtype=np.bool_)
            at_end = self.positions(step, padded=True) + float(problem.nothing[step])
            upper[step, ends, : at_end.size] = utility_at(self.risk, problem, at_end)
        return Values(
            upper=upper,
            lower=upper.copy() if pessimistic else np.empty((0, 0, 0)),
            slots=np.zeros((*shape, int(rows.width.max())), dtype=np.uint16)[:-1],
            changed=np.zeros(shape, dtype=np.bool_),
            scratch=np.zeros((8, int(rows.width.max()))),
        )


def utility_at(risk: Risk, problem: Problem, positions: Floats) -> Floats:
    """The pay-off at lattice positions."""
    return np.asarray(risk.utility(problem.unit * positions), dtype=np.float64)


def rows_of(problem: Problem, risk: Risk, first_budgets: int) -> BudgetRows:
    """The rows for all first budgets: those on the lattice, or at least `first_budgets` for a curved utility."""
    if risk.slopes is None:
        units = int(problem.remaining[0])
        refine = max(1, -(-first_budgets // max(units, 1)))
        return curved_rows(problem, risk, -float(units), units * refine + 1, refine)
    linear = risk.slopes[0] == risk.slopes[1]
    low = np.zeros_like(problem.remaining) if linear else -problem.remaining
    high = np.zeros_like(low)
    pad_low, pad_high = low.copy(), high.copy()
    pad_low[1:] = np.minimum(low[1:], low[:-1])
    pad_high[1:] = np.maximum(high[1:], high[:-1] + problem.most)
    slopes = (risk.slopes[0] * problem.unit, risk.slopes[1] * problem.unit)
    return _rows(problem, risk, 0.0, 1, (low, high, pad_low, pad_high), slopes)


def curved_rows(problem: Problem, risk: Risk, origin: float, points: int, refine: int) -> BudgetRows:
    """The rows for `points` first budgets at lattice positions `origin + j / refine`."""
    low = np.zeros(problem.horizon + 1, dtype=np.int64)
    high = points - 1 + refine * problem.earned
    return _rows(problem, risk, origin, refine, (low, high, low, high), (0.0, 0.0))


Windows = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _rows(
    problem: Problem,
    risk: Risk,
    origin: float,
    refine: int,
    windows: Windows,
    slopes: tuple[float, float],
) -> BudgetRows:
    low, high, pad_low, pad_high = windows
    width = high - low + 1
    ceiling, span = np.zeros((2, problem.horizon + 1, int(width.max())))
    for step in range(problem.horizon + 1):
        y = origin + (low[step] + np.arange(width[step])) / refine
        least, most = reachable_utility(problem, risk, y, int(problem.remaining[step]))
        ceiling[step, : y.size], span[step, : y.size] = most, most - least
    first = origin + (low[0] + np.arange(width[0])) / refine
    arrays = Rows(
        refine=refine,
        low=low,
        width=width,
        pad_low=pad_low,
        pad_width=pad_high - pad_low + 1,
        ceiling=ceiling,
        span=span,
        unseen=ceiling,
        slope_left=slopes[0],
        slope_right=slopes[1],
        budgets=problem.floor - problem.unit * first,
    )
    return BudgetRows(problem, risk, origin, arrays)


def reachable_utility(problem: Problem, risk: Risk, positions: Floats, remaining: int) -> tuple[Floats, Floats]:
    """The least and the largest utility at `0 … remaining` units above each position.

    A concave utility is least at an end; its increments fall, so the top is found by bisection.
    """
    ends = np.stack([utility_at(risk, problem, positions + units) for units in (0, remaining)])
    if not np.isfinite(ends).all():
        where = float(problem.unit * (positions + np.array([[0], [remaining]]))[~np.isfinite(ends)][0])
        raise OcerlError(
            f"{risk.name}: the utility is not finite at {where:g}, which the rewards can reach: "
            "optimism needs a bounded utility"
        )
    if risk.monotone:
        return ends[0], ends[1]
    low, high = np.zeros_like(positions), np.full_like(positions, remaining)
    while (low < high).any():
        middle = np.floor((low + high) / 2)
        rising = utility_at(risk, problem, positions + middle + 1) > utility_at(risk, problem, positions + middle)
        moving = low < high
        low = np.where(moving & rising, middle + 1, low)
        high = np.where(moving & ~rising, middle, high)
    return ends.min(axis=0), utility_at(risk, problem, positions + low)
