"""How much memory a solve needs, said before any is taken."""

from __future__ import annotations

import os

import numpy as np

from ocerl.errors import OcerlError
from ocerl.mdp.lattice import MOST_SHIFT, counted_range, exact_lattice
from ocerl.mdp.tabular import TabularMDP
from ocerl.planning.grid import Grid, Windows


def available_memory() -> int:
    """Bytes that can be had without swapping: what the system calls available, or all physical memory."""
    try:
        with open("/proc/meminfo") as lines:
            fields = dict(line.split(":", 1) for line in lines)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def table_type(grid: Grid) -> type[np.unsignedinteger]:
    """The smallest type that holds a slot."""
    most = max(step.max_slots for step in grid.lattice.model.steps)
    return np.uint8 if most <= 256 else np.uint16


def bytes_needed(grid: Grid, windows: Windows, dtype: type[np.floating], *, tables: bool) -> int:
    """Two rows of values for every state, and the policy's tables where they are kept in memory."""
    values = 2 * grid.n_states * int(windows.padded_widths.max()) * np.dtype(dtype).itemsize
    policy = grid.n_states * int(windows.widths[:-1].sum()) * np.dtype(table_type(grid)).itemsize
    return values + (policy if tables else 0)


def check_memory(grid: Grid, windows: Windows, dtype: type[np.floating] = np.float64, *, tables: bool = True) -> None:
    """Refuse a solve that would not fit, and say which resolution would."""
    needed, free = bytes_needed(grid, windows, dtype, tables=tables), available_memory()
    if needed > free:
        raise _too_much(grid.lattice.model, grid.lattice.unit, grid.points, needed, free)


def check_resolution(model: TabularMDP, resolution: float | None) -> None:
    """Refuse a resolution that is none, or so fine that even two rows of values would not fit."""
    if resolution is None:
        return
    if not (np.isfinite(resolution) and resolution > 0):
        raise OcerlError(f"the resolution must be a positive number (a step in units of the return), got {resolution}")
    exact = exact_lattice(model)
    if exact is not None and resolution <= exact.unit:
        return
    counted = counted_range(model)
    points = counted / resolution + 1
    needed, free = 16 * model.n_states * points, available_memory()
    if needed > free:
        # What fits must hold padding and the policy's tables as well.
        ample = (32 + model.require_horizon()) * model.n_states * points
        raise _too_much(model, resolution, points, needed, free, ample)
    if points > MOST_SHIFT:
        finest = counted / MOST_SHIFT
        raise OcerlError(f"a resolution of {resolution:g} makes {points:.3g} returns: the finest is {finest:.3g}")


def _too_much(
    model: TabularMDP, unit: float, points: float, needed: float, free: float, ample: float | None = None
) -> OcerlError:
    # Rows shrink in proportion to the resolution; a tenth is left for everything else.
    fits = float(f"{1.05 * unit * (ample or needed) / (0.9 * free):.1e}")
    steps = model.require_horizon()
    return OcerlError(
        f"{points:,.0f} returns of unit {unit:g} over {model.n_states:,} states and {steps} steps need "
        f"{needed / 2**30:.1f} GiB, {free / 2**30:.1f} GiB are free: a resolution of {fits:.3g} would fit"
    )
