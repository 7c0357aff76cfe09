"""A run on disk: what has been counted, the random numbers' state and the curve so far.

The plan is not stored: planning again from the same counts gives the same bits. Nothing is executed on loading.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.optimistic._kernels import Counts


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What a run needs to go on."""

    settings: dict[str, Any]
    """What was asked for; a run goes on only with the same."""
    played: int
    counts: Counts
    atoms: NDArray[np.float64]
    random: dict[str, Any]
    rounds: list[int]
    values: list[float]
    returns: list[float]

    def save(self, path: Path) -> None:
        """Write to a file that is there whole or not at all."""
        about = {"settings": self.settings, "played": self.played, "random": self.random}
        arrays = {
            **self.counts._asdict(),
            "atoms": self.atoms,
            "curve_rounds": np.array(self.rounds, dtype=np.int64),
            "curve_values": np.array(self.values, dtype=np.float64),
            "returns": np.array(self.returns, dtype=np.float64),
            "about": np.array(json.dumps(about)),
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        with partial.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
        os.replace(partial, path)


def load_checkpoint(path: Path, settings: dict[str, Any]) -> Checkpoint | None:
    """The checkpoint in a file, if there is one; it must belong to the same settings."""
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        about = json.loads(str(arrays["about"]))
        counts = Counts(**{name: arrays[name] for name in Counts._fields})
    except (OSError, KeyError, ValueError) as error:
        raise OcerlError(f"{path} is not a checkpoint of explore ({type(error).__name__}: {error})") from error
    for name, value in settings.items():
        if about["settings"].get(name) != value:
            raise OcerlError(
                f"{path} was written with {name} {about['settings'].get(name)}, this run has {value}: "
                "resume with the same settings, or use another folder"
            )
    return Checkpoint(
        settings=settings,
        played=about["played"],
        counts=counts,
        atoms=arrays["atoms"],
        random=about["random"],
        rounds=arrays["curve_rounds"].tolist(),
        values=arrays["curve_values"].tolist(),
        returns=arrays["returns"].tolist(),
    )
