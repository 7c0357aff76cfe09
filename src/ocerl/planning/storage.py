"""Policies on disk: a folder with `policy.json` and plain arrays; nothing in it is executed on loading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.lattice import Lattice
from ocerl.mdp.tabular import TabularMDP
from ocerl.mdp.transitions import Transitions
from ocerl.planning.policy import BudgetPolicy, MarkovPolicy

FORMAT = 1


def save_policy(policy: BudgetPolicy | MarkovPolicy, folder: Path | str) -> None:
    """Write a policy, with the model it belongs to, into a folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(policy, BudgetPolicy):
        lattice = policy.lattice
        about: dict[str, Any] = {
            "kind": "budget",
            "budget": policy.budget,
            "first_position": policy.first_position,
            "low": policy.low.tolist(),
            "lattice": {
                "unit": lattice.unit,
                "rounding": lattice.rounding,
                "length": lattice.length,
                "tail": lattice.tail,
                "tail_error": list(lattice.tail_error),
            },
        }
        arrays = {"outside": policy.outside}
        for step, table in enumerate(policy.tables):
            path = folder / f"slots-{step:04d}.npy"
            if not (isinstance(table, np.memmap) and Path(str(table.filename)) == path.resolve()):
                np.save(path, table)
        model = lattice.model
    else:
        about = {"kind": "markov", "seed": policy.seed, "mixed": policy.choice is not None}
        arrays = {"slots": policy.slots}
        for step, choice in enumerate(policy.choice or []):
            arrays[f"choice-{step}"] = choice
        model = policy.model
    about = {"format": FORMAT, **about, "model": _describe(model)}
    np.savez_compressed(folder / "policy.npz", **arrays)  # pyright: ignore[reportArgumentType]
    np.savez_compressed(folder / "model.npz", **_arrays(model))  # pyright: ignore[reportArgumentType]
    (folder / "policy.json").write_text(json.dumps(about, indent=2) + "\n")


def load_policy(folder: Path | str) -> BudgetPolicy | MarkovPolicy:
    """Read a policy back from a folder that `Plan.save` or `save_policy` wrote.

    >>> import tempfile
    >>> from ocerl.mdp import zoo
    >>> from ocerl.planning import plan
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plan(zoo.make("paper"), "cvar:0.25").save(folder)
    ...     load_policy(folder).budget
    1.5
    """
    folder = Path(folder)
    try:
        about = json.loads((folder / "policy.json").read_text())
        with np.load(folder / "policy.npz", allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        model = _read_model(about["model"], folder)
    except (OSError, KeyError, ValueError) as error:
        raise OcerlError(
            f"{folder} does not hold a saved policy ({type(error).__name__}: {error})"
        ) from error
    if about["format"] != FORMAT:
        raise OcerlError(
            f"{folder} was written in format {about['format']}, this version reads format {FORMAT}"
        )
    if about["kind"] == "markov":
        choice = [arrays[f"choice-{h}"] for h in range(model.require_horizon())] if about["mixed"] else None
        return MarkovPolicy(model, arrays["slots"], choice, about["seed"])
    grid = about["lattice"]
    low, high = grid["tail_error"]
    lattice = Lattice(model, grid["unit"], grid["rounding"], grid["length"], grid["tail"], (low, high))
    tables = [
        np.load(folder / f"slots-{step:04d}.npy", mmap_mode="r", allow_pickle=False)
        for step in range(lattice.length)
    ]
    return BudgetPolicy(
        lattice, about["first_position"], about["budget"], tables, np.array(about["low"]), arrays["outside"]
    )


def _describe(model: TabularMDP) -> dict[str, Any]:
    return {
        "name": model.name,
        "horizon": model.horizon,
        "discount": model.discount,
        "states": list(model.states),
        "actions": list(model.actions),
        "steps": len(model.steps),
    }


def _arrays(model: TabularMDP) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {"start": model.start}
    for number, step in enumerate(model.steps):
        for name in _COLUMNS:
            arrays[f"{name}-{number}"] = getattr(step, name)
    return arrays


_COLUMNS = ("pair_start", "action", "outcome_start", "probability", "next_state", "reward")


def _read_model(about: dict[str, Any], folder: Path) -> TabularMDP:
    with np.load(folder / "model.npz", allow_pickle=False) as stored:
        steps = tuple(
            Transitions(**{name: stored[f"{name}-{number}"] for name in _COLUMNS})
            for number in range(about["steps"])
        )
        start = stored["start"]
    return TabularMDP(
        steps=steps,
        states=tuple(about["states"]),
        actions=tuple(about["actions"]),
        start=start,
        horizon=about["horizon"],
        discount=about["discount"],
        name=about["name"],
    )
