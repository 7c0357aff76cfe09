"""How much memory a solve needs, said before any is taken."""

from __future__ import annotations

import os

import numpy as np

from ocerl.errors import OcerlError
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
    if needed <= free:
        return
    # Rows shrink in proportion to the resolution; a tenth is left for everything else.
    unit = grid.lattice.unit * needed / (0.9 * free)
    fits = float(f"{unit:.1e}")
    fits = fits if fits >= unit else fits * 1.1
    raise OcerlError(
        f"{grid.points:,} returns of unit {grid.lattice.unit:g} over {grid.n_states:,} states and {grid.length} steps "
        f"need {needed / 2**30:.1f} GiB, {free / 2**30:.1f} GiB are free: a resolution of {fits:.3g} would fit"
    )
