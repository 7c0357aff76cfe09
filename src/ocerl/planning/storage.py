"""Policies on disk: a folder with `policy.json` and plain arrays; nothing in it is executed on loading.

What is read is checked before it is used: a folder that was damaged or tampered with is refused, it cannot
send a compiled loop out of its arrays.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.lattice import Lattice, Rounding
from ocerl.mdp.tabular import Columns, Label, TabularMDP
from ocerl.planning.policy import BudgetPolicy, MarkovPolicy

FORMAT = 1

_BROKEN = (OSError, EOFError, LookupError, TypeError, ValueError, zipfile.BadZipFile, zlib.error)
"""What reading a damaged file may end in."""


def save_policy(policy: BudgetPolicy | MarkovPolicy, folder: Path | str) -> None:
    """Write a policy, with the model it belongs to, into a folder.

    The names of states and actions come back as they are if they are numbers, text or tuples of these; another
    kind of name comes back as its text.
    """
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
        arrays: dict[str, NDArray[Any]] = {"outside": policy.outside}
        for step, table in enumerate(policy.tables):
            path = _table_path(folder, step)
            if not (isinstance(table, np.memmap) and Path(str(table.filename)) == path.resolve()):
                np.save(path, table)
        model = lattice.model
    else:
        about = {"kind": "markov", "seed": policy.seed, "mixed": policy.choice is not None}
        arrays = {"slots": policy.slots}
        for step, choice in enumerate(policy.choice or []):
            arrays[f"choice-{step}"] = choice
        model = policy.model
    about = {"format": FORMAT, **about, "model": describe_model(model)}
    np.savez_compressed(folder / "policy.npz", **arrays)  # pyright: ignore[reportArgumentType]
    np.savez_compressed(folder / "model.npz", **model_arrays(model))  # pyright: ignore[reportArgumentType]
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
    with _reading(folder):
        about = json.loads((folder / "policy.json").read_text())
        if about["format"] != FORMAT:
            raise OcerlError(f"it is in format {about['format']}, this version reads format {FORMAT}")
        arrays = _read_arrays(folder / "policy.npz")
        model = read_model(about["model"], folder)
        match about["kind"]:
            case "budget":
                return _read_budget_policy(about, arrays, model, folder)
            case "markov":
                return _read_markov_policy(about, arrays, model)
            case kind:
                raise OcerlError(f"its kind is {kind!r}, this version knows budget and markov")


@contextmanager
def _reading(folder: Path) -> Generator[None, None, None]:
    """Put whatever is wrong with a folder's contents into one line."""
    try:
        yield
    except OcerlError as error:
        raise OcerlError(f"{folder} does not hold a saved policy: {error}") from error
    except _BROKEN as error:
        raise OcerlError(f"{folder} does not hold a saved policy ({type(error).__name__}: {error})") from error


def _read_budget_policy(
    about: dict[str, Any], arrays: dict[str, NDArray[Any]], model: TabularMDP, folder: Path
) -> BudgetPolicy:
    grid, horizon = about["lattice"], model.require_horizon()
    unit, tail, (low_error, high_error) = float(grid["unit"]), float(grid["tail"]), map(float, grid["tail_error"])
    length, low = int(grid["length"]), np.array(about["low"], dtype=np.int64).ravel()
    budget, first = float(about["budget"]), int(about["first_position"])
    if grid["rounding"] not in get_args(Rounding) or not (1 <= length <= horizon and low.size >= length):
        raise OcerlError("its lattice does not fit its model")
    if not (unit > 0 and np.isfinite([unit, tail, low_error, high_error, budget]).all()):
        raise OcerlError("its lattice and budget must be finite numbers, with a unit above 0")
    tables = [np.load(_table_path(folder, step), mmap_mode="r", allow_pickle=False) for step in range(length)]
    for step, table in enumerate(tables):
        counts = np.diff(model.transitions(step).pair_start)[:, None]
        whole = np.issubdtype(table.dtype, np.integer) and table.ndim == 2 and len(table) == model.n_states
        if not (whole and (table >= 0).all() and (table < counts).all()):
            raise OcerlError(f"{_table_path(folder, step).name} must hold a slot of each state's at every position")
    outside = MarkovPolicy.from_table(model, arrays["outside"]).slots
    lattice = Lattice(model, unit, grid["rounding"], length, tail, (low_error, high_error))
    return BudgetPolicy(lattice, first, budget, tables, low, outside)


def _read_markov_policy(about: dict[str, Any], arrays: dict[str, NDArray[Any]], model: TabularMDP) -> MarkovPolicy:
    policy = MarkovPolicy.from_table(model, arrays["slots"])
    if not about["mixed"]:
        return policy
    choice = [arrays[f"choice-{step}"] for step in range(model.require_horizon())]
    for step, probabilities in enumerate(choice):
        t = model.transitions(step)
        right = probabilities.shape == (t.n_pairs,) and (probabilities >= 0).all()
        if not (right and np.allclose(t.over_actions(np.add, probabilities), 1.0, atol=1e-8)):
            raise OcerlError(f"choice-{step} must hold probabilities that sum to 1 over each state's actions")
    return MarkovPolicy(model, policy.slots, choice, int(about["seed"]))


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    # NumPy leaves a file open that it opened itself and that turns out to be no archive.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def _table_path(folder: Path, step: int) -> Path:
    return folder / f"slots-{step:04d}.npy"


def describe_model(model: TabularMDP) -> dict[str, Any]:
    return {
        "name": model.name,
        "horizon": model.horizon,
        "discount": model.discount,
        "states": [_written(label) for label in model.states],
        "actions": [_written(label) for label in model.actions],
        "steps": len(model.steps),
    }


def model_arrays(model: TabularMDP) -> dict[str, NDArray[Any]]:
    """The start, and a step's outcomes as columns."""
    arrays: dict[str, NDArray[Any]] = {"start": model.start}
    for number, t in enumerate(model.steps):
        pair = t.outcome_pair
        columns = t.pair_state[pair], t.action[pair], t.next_state, t.probability, t.reward
        arrays |= {f"{name}-{number}": column for name, column in zip(_COLUMNS, columns, strict=True)}
    return arrays


_COLUMNS = ("state", "action", "next_state", "probability", "reward")


def read_model(about: dict[str, Any], folder: Path) -> TabularMDP:
    states, actions = (tuple(map(_read, about[key])) for key in ("states", "actions"))
    arrays = _read_arrays(folder / "model.npz")
    start = arrays["start"]
    columns = [
        cast(Columns, tuple(arrays[f"{name}-{number}"] for name in _COLUMNS)) for number in range(about["steps"])
    ]
    for _, action, *_ in columns:
        action = np.asarray(action)
        if not (np.issubdtype(action.dtype, np.integer) and (action >= 0).all() and (action < len(actions)).all()):
            raise OcerlError(f"an action of its model is not among its {len(actions)}")
    return TabularMDP.from_indices(
        columns,
        states=states,
        actions=actions,
        start={states[index]: float(start[index]) for index in np.flatnonzero(start)},
        horizon=about["horizon"],
        discount=about["discount"],
        name=about["name"],
    )


def _written(label: Label) -> Any:
    """A name as JSON can hold it."""
    match label:
        case np.generic():
            return label.item()
        case tuple():
            return [_written(part) for part in label]
        case None | bool() | int() | float() | str():
            return label
        case _:
            return str(label)


def _read(label: Any) -> Label:
    return tuple(map(_read, label)) if isinstance(label, list) else label
