"""Models on file, in the column format that the tabular-MDP community shares.

A file has the columns `idstatefrom,idaction,idstateto,probability,reward`, in any order, and a line for each
outcome `(p, s', r)` of a state and action. It may have a column `step` (1, 2, …): then every step has a model
of its own.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import chain
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.csv_table import COLUMNS, STEP, Column, file_problems, read_name, read_table
from ocerl.mdp.tabular import Columns, Label, TabularMDP


def read_csv(
    path: str | PathLike[str],
    *,
    horizon: int | None = None,
    discount: float = 1.0,
    start: Label | None = None,
) -> TabularMDP:
    """Read a model from a CSV file.

    - A name is used as it stands: `7` is the number 7, anything else (`7a`, `1.0`, `low`) is text. Names are
      ordered by number if all are numbers, else as they appear.
    - The start is the `idstatefrom` of the first outcome, unless given.
    - A state without lines is absorbing. A line may repeat with another reward, for rewards that are random.
    - With a column `step` the horizon is its largest value; else the file does not know its horizon.
    - A column that is none of these is refused: a misspelled `step` would change the model.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> text = "idstatefrom,idaction,idstateto,probability,reward\\n1,1,1,0.5,3\\n1,1,2,0.5,0\\n"
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "game.csv"
    ...     _ = path.write_text(text)
    ...     game = read_csv(path, horizon=2)
    >>> game.states, game.return_range()
    ((1, 2), (0.0, 6.0))
    """
    table = read_table(Path(path))
    states, (source_place, target_place) = _ordered(table.source, table.target)
    actions, (action_place,) = _ordered(table.action)
    source, target = source_place[table.source.position], target_place[table.target.position]
    action = action_place[table.action.position]
    try:
        columns: list[Columns] = [
            (source[rows], action[rows], target[rows], table.probability[rows], table.reward[rows])
            for rows in _rows_of_steps(table.step)
        ]
        return TabularMDP.from_indices(
            columns,
            states=states,
            actions=actions,
            start=states[source[0]] if start is None else start,
            horizon=horizon if table.step is None or horizon is not None else len(columns),
            discount=discount,
            name=Path(path).stem,
        )
    except OcerlError as error:
        raise OcerlError(f"{path}: {error}") from None


def write_csv(model: TabularMDP, path: str | PathLike[str]) -> None:
    """Write a model to a CSV file that `read_csv` reads back: the same names, probabilities and rewards.

    The start, the discount and the horizon of a stationary model have no column: give them to `read_csv`.
    A name that is neither a number nor text is written as its text, and a text such as `"7"` comes back as 7.
    """
    states, actions = _texts("state", model.states), _texts("action", model.actions)
    with file_problems(Path(path)), Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS if model.stationary else (STEP, *COLUMNS))
        for number, step in enumerate(model.steps, start=1):
            pair = step.outcome_pair
            rows = zip(
                (states[index] for index in step.pair_state[pair].tolist()),
                (actions[index] for index in step.action[pair].tolist()),
                (states[index] for index in step.next_state.tolist()),
                step.probability.tolist(),
                step.reward.tolist(),
                strict=True,
            )
            writer.writerows(rows if model.stationary else ((number, *row) for row in rows))


def _rows_of_steps(step: NDArray[np.float64] | None) -> Iterator[NDArray[np.int64] | slice]:
    """The rows of each step; all of them, for a model without steps."""
    if step is None:
        yield slice(None)
        return
    steps, counts = np.unique(step, return_counts=True)
    if steps[-1] != steps.size:
        missing = np.setdiff1d(np.arange(1, steps.size + 1), steps)[0]
        raise OcerlError(f"no line for step {missing}, but for step {steps[-1]:g}: every step needs its model")
    yield from np.split(np.argsort(step, kind="stable"), np.cumsum(counts)[:-1])


def _ordered(*columns: Column) -> tuple[tuple[Label, ...], list[NDArray[np.int64]]]:
    """The names in columns that name the same things, and for each column their positions among them."""
    names = list(dict.fromkeys(chain.from_iterable(column.names for column in columns)))
    if all(isinstance(name, int) for name in names):
        names.sort()
    place = {name: index for index, name in enumerate(names)}
    return tuple(names), [np.array([place[name] for name in column.names]) for column in columns]


def _texts(kind: str, labels: tuple[Label, ...]) -> list[str]:
    """The names as written, none empty and no two the same when they are read again."""
    owner: dict[Label, Label] = {}
    for label in labels:
        name = read_name(str(label))
        if name == "":
            raise OcerlError(f"the {kind} {label!r} would have no name in a file: rename it")
        if name in owner:
            raise OcerlError(f"the {kind}s {owner[name]!r} and {label!r} would be one in a file: rename one")
        owner[name] = label
    return [str(label) for label in labels]
