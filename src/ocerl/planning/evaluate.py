"""Exact evaluation: the return distribution of any policy on a known model, by moving its probability forward."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import singledispatch

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.lattice import Lattice, counted_range, exact_lattice, rounded_lattice
from ocerl.mdp.tabular import TabularMDP
from ocerl.planning import _kernels
from ocerl.planning.distribution import ReturnDistribution
from ocerl.planning.grid import Grid, Windows
from ocerl.planning.memory import check_memory, check_resolution
from ocerl.planning.policy import BudgetPolicy, MarkovPolicy, Policy

ROUNDED_POINTS = 100_000
"""Without a common lattice, returns are counted on this many steps of their range unless a resolution is given."""


def evaluate(model: TabularMDP, policy: Policy | ArrayLike, *, resolution: float | None = None) -> ReturnDistribution:
    r"""The distribution of the return :math:`Z(\pi)` of a policy.

    `policy` is a policy object, or a Markov table: slots `[horizon, states]`, or probabilities
    `[horizon, states, slots]`. Exact where the rewards have a common lattice. Otherwise rewards are rounded down
    to `resolution`, and the distribution's `error` says how much more the true return can be.

    >>> from ocerl.mdp import zoo
    >>> always_first = evaluate(zoo.make("paper"), np.zeros((2, 3), dtype=int))
    >>> always_first.values.tolist(), always_first.probabilities.tolist()
    ([0.0, 1.0, 1.5, 2.5], [0.125, 0.125, 0.375, 0.375])
    """
    if not isinstance(policy, Policy):
        policy = MarkovPolicy.from_table(model, policy)
    return _evaluate(policy, model, resolution)


@singledispatch
def _evaluate(policy: object, model: TabularMDP, resolution: float | None) -> ReturnDistribution:
    raise OcerlError(f"cannot evaluate a {type(policy).__name__}: give a policy of ocerl or a Markov table")


@_evaluate.register
def _(policy: BudgetPolicy, model: TabularMDP, resolution: float | None) -> ReturnDistribution:
    grid = Grid.of(policy.lattice.on(model))
    return forward(grid, policy.first_position, policy.tables, policy.low, policy.outside)


@_evaluate.register
def _(policy: MarkovPolicy, model: TabularMDP, resolution: float | None) -> ReturnDistribution:
    return forward_markov(Grid.of(evaluation_lattice(model, resolution)), policy)


def evaluation_lattice(model: TabularMDP, resolution: float | None = None) -> Lattice:
    """The lattice on which returns are counted."""
    check_resolution(model, resolution)
    exact = exact_lattice(model)
    if exact is not None and (resolution is None or resolution <= exact.unit):
        return exact
    if resolution is None:
        resolution = counted_range(model) / ROUNDED_POINTS
    return rounded_lattice(model, resolution, "down")


def forward_markov(grid: Grid, policy: MarkovPolicy) -> ReturnDistribution:
    """The return distribution of a Markov policy on a lattice."""
    return _distribution(grid, 0, _last(_markov_flow(grid, policy)))


def markov_masses(grid: Grid, policy: MarkovPolicy) -> list[NDArray[np.floating]]:
    """For each step, and at the end, the mass on every state and position under a Markov policy."""
    return [mass.copy() for mass in _markov_flow(grid, policy)]


def _markov_flow(grid: Grid, policy: MarkovPolicy) -> Iterator[NDArray[np.floating]]:
    low = np.zeros(grid.length, dtype=np.int64)
    if policy.choice is not None:
        return flow(grid, 0, mixed_moves(grid, 0, [choice[:, None] for choice in policy.choice], low))
    nothing = [np.empty((0, 0), dtype=np.uint8)] * grid.length
    return flow(grid, 0, fixed_moves(grid, 0, nothing, low, policy.slots))


def forward(
    grid: Grid,
    first_position: int,
    tables: Sequence[NDArray[np.integer]],
    low: NDArray[np.int64],
    outside: NDArray[np.integer],
    dtype: type[np.floating] = np.float64,
) -> ReturnDistribution:
    """Move the mass from the start through the tables of slots; `outside` serves where a table does not reach."""
    moves = fixed_moves(grid, first_position, tables, low, outside)
    return _distribution(grid, first_position, _last(flow(grid, first_position, moves, dtype)))


def forward_mixed(
    grid: Grid, first_position: int, choice: Sequence[NDArray[np.float64]], low: NDArray[np.int64]
) -> ReturnDistribution:
    """As `forward`, for a policy that draws: `choice[step][pair, y - low[step]]` are probabilities."""
    moves = mixed_moves(grid, first_position, choice, low)
    return _distribution(grid, first_position, _last(flow(grid, first_position, moves)))


Move = Callable[[int, NDArray[np.floating], NDArray[np.floating]], None]
"""Adds the mass of a step, moved on, to an array for the next; columns are those of the padded windows."""


def fixed_moves(
    grid: Grid,
    first_position: int,
    tables: Sequence[NDArray[np.integer]],
    low: NDArray[np.int64],
    outside: NDArray[np.integer],
) -> Move:
    windows = grid.earned_windows(first_position, first_position)

    def move(step: int, mass: NDArray[np.floating], out: NDArray[np.floating]) -> None:
        columns, out_low = _columns(windows, step), int(windows.pad_low[step + 1])
        policy = tables[step], int(low[step]), outside[step]
        _kernels.forward(*_fields(grid, step), mass, *columns, out, out_low, *policy)

    return move


def mixed_moves(grid: Grid, first_position: int, choice: Sequence[NDArray[np.float64]], low: NDArray[np.int64]) -> Move:
    windows = grid.earned_windows(first_position, first_position)

    def move(step: int, mass: NDArray[np.floating], out: NDArray[np.floating]) -> None:
        columns, out_low = _columns(windows, step), int(windows.pad_low[step + 1])
        _kernels.forward_mixed(*_fields(grid, step), mass, *columns, out, out_low, choice[step], int(low[step]))

    return move


_Array = NDArray[np.generic]


def _fields(grid: Grid, step: int) -> tuple[_Array, _Array, _Array, _Array, _Array, _Array]:
    t = grid.transitions(step)
    shift = grid.lattice.shifts(step)
    return grid.states[step], t.pair_start, t.outcome_start, t.probability, t.next_state, shift


def _columns(windows: Windows, step: int) -> tuple[int, int, int]:
    """The position of column 0, and the columns from and before which there is mass."""
    first = int(windows.low[step] - windows.pad_low[step])
    return int(windows.pad_low[step]), first, first + int(windows.widths[step])


def flow(
    grid: Grid, first_position: int, move: Move, dtype: type[np.floating] = np.float64
) -> Iterator[NDArray[np.floating]]:
    """The mass at each step and at the end, as views of two buffers that take turns.

    Fresh arrays for every step would cost more in page faults than the arithmetic does.
    """
    windows = grid.earned_windows(first_position, first_position)
    check_memory(grid, windows, dtype, tables=False)
    mass, out = np.zeros((2, grid.n_states, int(windows.padded_widths.max())), dtype=dtype)
    _, first, last = _columns(windows, 0)
    mass[:, first] = grid.lattice.model.start
    yield mass[:, first:last]
    for step in range(grid.length):
        out[:, : int(windows.padded_widths[step + 1])] = 0.0
        move(step, mass, out)
        mass, out = out, mass
        _, first, last = _columns(windows, step + 1)
        yield mass[:, first:last]


def _last(masses: Iterator[NDArray[np.floating]]) -> NDArray[np.floating]:
    return deque(masses, maxlen=1)[0]


def _distribution(grid: Grid, first_position: int, mass: NDArray[np.floating]) -> ReturnDistribution:
    total = mass.sum(axis=0, dtype=np.float64)
    met = np.flatnonzero(total > 0)
    windows = grid.earned_windows(first_position, first_position)
    earned = met + int(windows.low[-1]) - first_position
    values = np.asarray(grid.lattice.floor + grid.lattice.unit * earned, dtype=np.float64)
    return ReturnDistribution(values, total[met] / total.sum(), grid.lattice.error)
