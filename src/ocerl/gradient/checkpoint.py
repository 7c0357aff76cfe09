"""Runs on disk, to go on from after a kill: one file of plain arrays, replaced as a whole."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.tabular import TabularMDP

NAME = "checkpoint.npz"
UNREADABLE = (OSError, EOFError, KeyError, ValueError, TypeError, AttributeError, BadZipFile, zlib.error)
"""What reading a damaged file of arrays raises, depending on where the damage is."""

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A folder, and the settings that a run has to share to be gone on with."""

    folder: Path
    settings: dict[str, Any]

    def save(self, state: Mapping[str, Any], history: Arrays) -> None:
        """Write the state's arrays and what has been recorded; a kill on the way leaves the last checkpoint."""
        self.folder.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, Any] = {f"state/{name}": values for name, values in state.items()}
        arrays |= {f"history/{name}": values for name, values in history.items()}
        unfinished = self.folder / f"{NAME}.part"
        with unfinished.open("wb") as file:
            np.savez(file, settings=json.dumps(self.settings), **arrays)
        os.replace(unfinished, self.folder / NAME)

    def load(self) -> tuple[Arrays, Arrays]:
        """The state's arrays and what has been recorded of the run in the folder."""
        try:
            with (self.folder / NAME).open("rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            settings = json.loads(str(arrays.pop("settings")))
        except FileNotFoundError:
            raise OcerlError(f"{self.folder} has no {NAME} to resume from") from None
        except UNREADABLE as error:
            raise OcerlError(f"{self.folder / NAME} is not a checkpoint ({error})") from error
        for name, value in self.settings.items():
            if settings.get(name) != value:
                raise OcerlError(
                    f"the run in {self.folder} has {name} {settings.get(name)}, not {value}: resume it as it was begun"
                )
        state = {name[6:]: values for name, values in arrays.items() if name.startswith("state/")}
        history = {name[8:]: values for name, values in arrays.items() if name.startswith("history/")}
        return state, history


def fingerprint(model: TabularMDP) -> str:
    """A short name for exactly this model."""
    digest = hashlib.sha256(f"{model.horizon} {model.discount!r} {model.states!r} {model.actions!r}".encode())
    digest.update(model.start.tobytes())
    for step in model.steps:
        for array in vars(step).values():
            digest.update(np.asarray(array).tobytes())
    return digest.hexdigest()[:16]
