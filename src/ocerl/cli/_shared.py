"""What the commands have in common: options, output and progress."""

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ocerl.errors import OcerlError

if TYPE_CHECKING:
    from ocerl.gradient.deep import DeepSeedResult

WIDEST = 1000
"""How wide a table may become in a file."""


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """`--json`, `--out`, `--seed`, `--debug`: every command has them."""
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    parser.add_argument("--out", metavar="DIR", type=output_folder, help="write results and pictures to this folder")
    parser.add_argument("--seed", type=whole_number, default=0, help="seed of everything random (default 0)")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """MODEL, and the horizon, discount and start to use it with."""
    parser.add_argument("model", metavar="MODEL", help="a model of the zoo, a CSV file, or a Gymnasium id with a table")
    parser.add_argument("--horizon", type=int, metavar="H", help="number of steps (default: the model's own)")
    parser.add_argument("--discount", type=float, metavar="G", help="discount in (0, 1] (default: the model's own)")
    parser.add_argument("--start", metavar="S", help="the state to start in, by its id in the model")
    parser.add_argument(
        "--resolution", type=positive, metavar="R", help="unit to which off-lattice rewards are rounded"
    )


def whole_number(text: str) -> int:
    """A seed: a whole number of at least 0."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0, got {text}")
    return value


def positive(text: str) -> float:
    """A finite number above 0."""
    value = float(text)
    if not (0 < value < math.inf):
        raise argparse.ArgumentTypeError(f"must be a positive number, got {text}")
    return value


def output_folder(text: str) -> Path:
    """A folder that can be made or written to: better known before a long computation than after it."""
    path = Path(text)
    nearest = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not (nearest.is_dir() and os.access(nearest, os.W_OK)):
        raise argparse.ArgumentTypeError(f"{nearest} is not a folder that can be written to")
    return path


def parse_levels(text: str) -> list[float]:
    """Levels as `low:high:step` (both ends included) or as a list `0.1,0.5,1`.

    >>> parse_levels("0.25:1:0.25")
    [0.25, 0.5, 0.75, 1.0]
    """
    try:
        if ":" in text:
            low, high, step = (float(part) for part in text.split(":"))
            if not (step > 0 and low <= high and (high - low) / step < 10_000):
                raise ValueError
            return [round(low + i * step, 12) for i in range(int((high - low) / step + 1e-9) + 1)]
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise OcerlError(
            f"levels are low:high:step, such as 0.05:1:0.05, or a list such as 0.1,0.5,1, got {text}"
        ) from None


@contextmanager
def progress_bar(label: str) -> Generator[Callable[..., None] | None, None, None]:
    """A progress bar on standard error, and only on a terminal; called with what is done, all, and maybe a note."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)

        def progress(done: int, total: int, note: str = "") -> None:
            bar.update(task, completed=done, total=total, description=f"{label}: {note}" if note else label)

        yield progress


def print_json(document: Mapping[str, Any]) -> None:
    """The one document of `--json`."""
    print(json.dumps(document, indent=2, allow_nan=False))


def print_table(title: str, columns: list[str], rows: list[list[str]], *, left: int = 1) -> None:
    """A table on the terminal; the first `left` columns are words, the others numbers. Nothing is cut off."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    # A file or a pipe is as wide as it takes. A name in brackets is a name, not a colour.
    width = None if sys.stdout.isatty() else WIDEST
    Console(width=width, markup=False, highlight=False, emoji=False).print(table)


def table_of_runs(runs: Sequence[DeepSeedResult]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows for trained network policies, one row for each seed."""
    rows: list[list[str]] = []
    for run in runs:
        spread = "exact" if run.exact else f"{run.estimate.low:.6g} … {run.estimate.high:.6g}"
        rows.append([str(run.seed), f"{run.value:.6g}", spread, f"{run.mean:.6g}", f"{run.policy.budget:.6g}"])
    return ["seed", runs[0].risk, "95% interval", "mean return", "first budget"], rows


def literal(text: str) -> Any:
    """A number, a word or a tuple as Python writes it; anything else is text.

    >>> literal("0.1"), literal("(64, 64)"), literal("True"), literal("q")
    (0.1, (64, 64), True, 'q')
    """
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """A document on disk, in a folder that is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2, allow_nan=False) + "\n")
