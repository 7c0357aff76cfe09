"""Where a policy's tables live: in memory, or streamed to a folder while the solve runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ocerl.planning.grid import Grid, Windows
from ocerl.planning.memory import table_type


@dataclass(frozen=True)
class TableStore:
    """Arrays `[states, width]` of slots, one a step; with a folder, each is a file mapped into memory."""

    folder: Path | None = None

    def allocate(self, grid: Grid, windows: Windows) -> list[NDArray[np.unsignedinteger]]:
        shapes = [(grid.n_states, int(width)) for width in windows.widths[:-1]]
        kind = table_type(grid)
        if self.folder is None:
            return [np.zeros(shape, dtype=kind) for shape in shapes]
        self.folder.mkdir(parents=True, exist_ok=True)
        return [
            np.lib.format.open_memmap(self.folder / f"slots-{step:04d}.npy", "w+", dtype=kind, shape=shape)
            for step, shape in enumerate(shapes)
        ]
