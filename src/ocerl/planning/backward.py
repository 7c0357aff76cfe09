r"""Backward induction over rows of positions: :math:`V_h(s,y) = \max_a \sum p\, V_{h+1}(s', y+k)`.

Two arrays of values take turns. Each step is spread over threads; where the transitions are dense, a matrix product
does most of the work (`ocerl.planning.dense`).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ocerl.mdp.transitions import Transitions
from ocerl.planning import _kernels
from ocerl.planning.dense import Factored, factor
from ocerl.planning.grid import Grid, Progress, Windows

SINGLE_THREAD_WORK = 200_000
"""Below this many multiplications a step is not worth a second thread."""

STARTS_AT_ONCE = 1 << 14

Tables = list[NDArray[np.unsignedinteger]]


def backward(
    grid: Grid,
    windows: Windows,
    payoff: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    slopes: tuple[float, float] = (0.0, 0.0),
    *,
    tables: Tables | None = None,
    dtype: type[np.floating] = np.float64,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    """Solve from the pay-off at the end back to the start, in expectation over the start.

    `slopes` (per unit) continue each row beyond its window. `tables` receives the best slots, step by step (arrays of
    the windows' widths, which may live on disk). Returns the value of every first position in the window.
    """
    end = payoff(np.arange(windows.pad_low[-1], windows.pad_high[-1] + 1)).astype(dtype)
    # A product with an infinite pay-off is no number, even at probability 0.
    dense = bool(np.isfinite(end).all())
    # Zeros, not whatever was there: a matrix product reads the rows of states that are never met.
    following, out = (np.zeros((grid.n_states, int(windows.padded_widths.max())), dtype=dtype) for _ in range(2))
    following[grid.states[-1], : end.size] = end
    with ThreadPoolExecutor(grid.threads) as pool:
        for step in reversed(range(grid.length)):
            t = grid.transitions(step)
            work = _Step(grid, step, windows, slopes, pool)
            slots = np.empty((0, 0), dtype=np.uint8) if tables is None else tables[step]
            work.run(_model(grid, t, dtype, dense), following, out, slots)
            following, out = out, following
            if progress:
                progress(grid.length - step, grid.length)
    started, start = grid.states[0], grid.lattice.model.start
    offset = int(windows.low[0] - windows.pad_low[0])
    columns = slice(offset, offset + int(windows.widths[0]))
    total = np.zeros(columns.stop - columns.start)
    for first in range(0, started.size, STARTS_AT_ONCE):
        # In parts: a copy of all rows could be as large as the rows themselves.
        part = started[first : first + STARTS_AT_ONCE]
        total += start[part] @ following[part, columns].astype(np.float64)
    return total


@dataclass(frozen=True, eq=False)
class _Model:
    """A step's transitions in the form and precision that the pass works in."""

    transitions: Transitions
    probability: NDArray[np.floating]
    factored: Factored | None


def _model(grid: Grid, t: Transitions, dtype: type[np.floating], dense: bool) -> _Model:
    """Prepared once for all passes over a grid whose steps are alike."""
    key = (id(t), dtype, dense)
    if key not in grid.prepared:
        if len(grid.lattice.model.steps) > 1:
            grid.prepared.clear()
        factored = factor(t, dtype) if dense else None
        grid.prepared[key] = _Model(t, t.probability.astype(dtype, copy=False), factored)
    return grid.prepared[key]


@dataclass(frozen=True, eq=False)
class _Step:
    """One step of the pass."""

    grid: Grid
    step: int
    windows: Windows
    slopes: tuple[float, float]
    pool: ThreadPoolExecutor

    def run(
        self, model: _Model, following: NDArray[np.floating], out: NDArray[np.floating], slots: NDArray[np.integer]
    ) -> None:
        t, states = model.transitions, self.grid.states[self.step]
        if model.factored is not None and 2 * states.size > t.n_states:
            self._dense(model.factored, t, following, out, slots)
            return
        shifts = self.grid.lattice.shifts(self.step)
        outcomes = (t.pair_start, t.outcome_start, model.probability, t.next_state, shifts)
        self._sparse(states, outcomes, following, out, slots)

    def _dense(
        self,
        factored: Factored,
        t: Transitions,
        following: NDArray[np.floating],
        out: NDArray[np.floating],
        slots: NDArray[np.integer],
    ) -> None:
        """Blocks of states one after the other: the product uses all cores, and so does the sum over rewards."""
        used = following[:, : int(self.windows.padded_widths[self.step + 1])]
        shifts = self.grid.lattice.round_reward(self.step, factored.reward).astype(np.int32)
        outcomes = (t.pair_start, factored.reward_start, factored.probability, factored.row, shifts)
        largest = max(pairs.stop - pairs.start for _, pairs in factored.blocks)
        space = np.empty(largest * used.shape[1], dtype=following.dtype)
        for states, pairs in factored.blocks:
            rows = pairs.stop - pairs.start
            product = space[: rows * used.shape[1]].reshape(rows, used.shape[1])
            np.matmul(factored.matrix[pairs], used, out=product)
            self._sparse(states, outcomes, product, out, slots)

    def _sparse(
        self,
        states: NDArray[np.int64],
        outcomes: tuple[
            NDArray[np.int64], NDArray[np.int64], NDArray[np.floating], NDArray[np.int32], NDArray[np.int32]
        ],
        following: NDArray[np.floating],
        out: NDArray[np.floating],
        slots: NDArray[np.integer],
    ) -> None:
        """The compiled kernel, on all threads where that pays."""
        windows, step = self.windows, self.step
        width = int(windows.widths[step])
        low, high = int(windows.low[step]), int(windows.high[step])
        into = (out, int(windows.pad_low[step]), int(windows.padded_widths[step]), slots, low, high, *self.slopes)
        fixed = (states, *outcomes, following, int(windows.pad_low[step + 1]), *into)
        tasks = states.size * -(-width // _kernels.BLOCK)
        pairs = outcomes[0]
        work = states.size * (outcomes[2].size / pairs.size) * width
        if work < SINGLE_THREAD_WORK:
            _kernels.backup(*fixed, 0, tasks)
            return
        # More parts than threads, so that a slow core does not hold up the step.
        cuts = np.linspace(0, tasks, min(tasks, 4 * self.grid.threads) + 1).astype(int)
        futures = [self.pool.submit(_kernels.backup, *fixed, a, b) for a, b in pairwise(cuts)]
        for future in futures:
            future.result()
