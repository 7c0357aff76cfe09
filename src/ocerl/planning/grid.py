r"""The augmented MDP on a lattice: which positions exist in each step.

A *position* `y` is a whole number of units. Along an episode it moves up, `y' = y + k`, where `k >= 0` is the
rounded reward above its origin; at the end the pay-off is :math:`u(\mathrm{unit} \cdot y)`. The position that
belongs to a first budget `b` is :math:`y_1 = (\mathrm{floor} - b) / \mathrm{unit}`, so `y` is minus the budget,
with all origins still to come already paid.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocerl.mdp.lattice import Lattice
from ocerl.mdp.transitions import Transitions
from ocerl.planning import _kernels

Progress = Callable[[int, int], None]
"""Called with the steps done and the steps there are."""


@dataclass(frozen=True, eq=False)
class Windows:
    """The positions `low … high` computed in each step, and the padding that the step before may read."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    pad_low: NDArray[np.int64]
    pad_high: NDArray[np.int64]

    @property
    def widths(self) -> NDArray[np.int64]:
        return self.high - self.low + 1

    @property
    def padded_widths(self) -> NDArray[np.int64]:
        return self.pad_high - self.pad_low + 1


@dataclass(frozen=True, eq=False)
class Grid:
    """A model on a lattice, with what every pass over it needs."""

    lattice: Lattice
    threads: int
    prepared: dict[Any, Any] = field(default_factory=dict[Any, Any])
    """What passes over the grid keep for the next one."""

    @classmethod
    def of(cls, lattice: Lattice, threads: int | None = None) -> Grid:
        return cls(lattice, threads or len(os.sched_getaffinity(0)))

    @property
    def length(self) -> int:
        return self.lattice.length

    @property
    def n_states(self) -> int:
        return self.lattice.model.n_states

    def transitions(self, step: int) -> Transitions:
        return self.lattice.model.transitions(step)

    def position(self, budget: float) -> float:
        """The position of a first budget (a whole number if the budget is a return on the lattice)."""
        return (self.lattice.floor - budget) / self.lattice.unit

    def budget(self, position: float) -> float:
        return self.lattice.floor - self.lattice.unit * position

    @cached_property
    def _earned(self) -> tuple[list[NDArray[np.int64]], NDArray[np.int64], NDArray[np.int64]]:
        """States reached in each step (and at the end), and the least and most units earned by then."""
        start = self.lattice.model.start > 0
        low, high = np.zeros((2, self.n_states), dtype=np.int64)
        states = [np.flatnonzero(start)]
        lows, highs = [0], [0]
        for step in range(self.length):
            t = self.transitions(step)
            low_out, high_out = np.zeros((2, self.n_states), dtype=np.int64)
            reached = np.zeros(self.n_states, dtype=np.bool_)
            _kernels.earned_range(
                states[-1],
                t.pair_start,
                t.outcome_start,
                t.next_state,
                self.lattice.shifts(step),
                low,
                high,
                low_out,
                high_out,
                reached,
            )
            low, high = low_out, high_out
            states.append(np.flatnonzero(reached))
            lows.append(int(low[states[-1]].min()))
            highs.append(int(high[states[-1]].max()))
        return states, np.array(lows), np.array(highs)

    @property
    def states(self) -> list[NDArray[np.int64]]:
        """The states that can be met in each step, and at the end."""
        return self._earned[0]

    @cached_property
    def _remaining(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The least and most units that can still be earned, over the states met in each step."""
        low, high = np.zeros((2, self.n_states), dtype=np.int64)
        lows, highs = np.zeros((2, self.length + 1), dtype=np.int64)
        for step in reversed(range(self.length)):
            t = self.transitions(step)
            low_out, high_out = np.empty((2, self.n_states), dtype=np.int64)
            shift = self.lattice.shifts(step)
            _kernels.remaining_range(t.pair_start, t.outcome_start, t.next_state, shift, low, high, low_out, high_out)
            low, high = low_out, high_out
            lows[step], highs[step] = low[self.states[step]].min(), high[self.states[step]].max()
        return lows, highs

    @property
    def points(self) -> int:
        """How many returns the lattice has between the least and the most."""
        return int(self._remaining[1][0] - self._remaining[0][0]) + 1

    @property
    def return_range(self) -> tuple[float, float]:
        """The least and the largest lattice return."""
        low, high = self._remaining
        unit, floor = self.lattice.unit, self.lattice.floor
        return floor + unit * float(low[0]), floor + unit * float(high[0])

    def saturating_windows(self, first: tuple[int, int] | None = None) -> Windows:
        """First positions `first` (all of them unless given), for a utility with one kink at 0.

        Where even the most that can come leaves `y` below 0, or the least brings it above, the value is linear
        in `y`: only the positions between are computed, and rows are continued by the utility's slopes. Neither
        are positions that the given first ones cannot reach.
        """
        least, most = self._remaining
        low, high = (-int(most[0]), -int(least[0])) if first is None else first
        _, earned_least, earned_most = self._earned
        return self._windows(np.clip(low + earned_least, -most, -least), np.clip(high + earned_most, -most, -least))

    def earned_windows(self, low: int, high: int) -> Windows:
        """The positions met from first positions `low … high`: what can have been earned, added to them."""
        _, least, most = self._earned
        return self._windows(low + least, high + most)

    def _windows(self, low: NDArray[np.int64], high: NDArray[np.int64]) -> Windows:
        pad_low, pad_high = low.copy(), high.copy()
        for step in range(self.length):
            shift = self.lattice.shifts(step)
            pad_low[step + 1] = min(low[step + 1], low[step] + int(shift.min()))
            pad_high[step + 1] = max(high[step + 1], high[step] + int(shift.max()))
        return Windows(low, high, pad_low, pad_high)
