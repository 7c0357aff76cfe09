"""The columns of a CSV file as arrays, and errors that name the file and the line."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NoReturn, TextIO

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.transitions import SUM_TOLERANCE

COLUMNS = ("idstatefrom", "idaction", "idstateto", "probability", "reward")
NAMES = COLUMNS[:3]
STEP = "step"
WHOLE_NUMBER = re.compile("[+-]?[0-9]{1,18}")
CHUNK = 1_000
"""Lines read at a time: enough to be fast, few enough that their text never fills the memory."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Column:
    """A column of names: the different names in it, and for each row which of them."""

    names: list[int | str]
    position: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of a file."""

    source: Column
    action: Column
    target: Column
    probability: Floats
    reward: Floats
    step: Floats | None


def read_table(path: Path) -> Table:
    """Read all columns of a file and check each value for itself."""
    with file_problems(path), path.open(encoding="utf-8-sig", newline="") as file:
        header = _header(path, next(filter(None, csv.reader(file, skipinitialspace=True)), None))
        names, numbers = _read_whole_numbers(file, header) or _read_records(path, header)
        if not numbers["reward"].size:
            raise OcerlError(f"{path}: there is no outcome below the first line, a model needs one")
        _check_values(path, names, numbers)
    source, action, target = (names[column] for column in NAMES)
    return Table(source, action, target, numbers["probability"], numbers["reward"], numbers.get(STEP))


def read_name(text: str) -> int | str:
    """A name as it stands in a file: a whole number, or text.

    >>> [read_name(text) for text in ("7", " -7", "low", "1.0")]
    [7, -7, 'low', '1.0']
    """
    text = text.strip()
    return int(text) if WHOLE_NUMBER.fullmatch(text) else text


@contextmanager
def file_problems(path: Path) -> Generator[None]:
    """Put what the operating system and the decoder say into one line."""
    try:
        yield
    except FileNotFoundError:
        raise OcerlError(f"{path}: there is no such file or folder") from None
    except IsADirectoryError:
        raise OcerlError(f"{path} is a folder, a model is a CSV file") from None
    except OSError as error:
        raise OcerlError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        line = _first_line_not_text(path.read_bytes())
        raise OcerlError(f"{path}, line {line}: not UTF-8 text, save the file in that encoding") from None
    except csv.Error as error:
        raise OcerlError(f"{path}: not a CSV file, {error}") from None


def _header(path: Path, record: list[str] | None) -> list[str]:
    expected = f"the first line must be {','.join(COLUMNS)} (a column {STEP} may be added)"
    if record is None:
        raise OcerlError(f"{path}: the file is empty; {expected}")
    header = [column.strip() for column in record]
    missing = [column for column in COLUMNS if column not in header]
    if missing:
        got = ",".join(header)[:100]
        raise OcerlError(f"{path}, line 1: there is no column {', '.join(missing)}; {expected}, got {got}")
    for column in header:
        if column not in (*COLUMNS, STEP):
            raise OcerlError(f"{path}, line 1: unknown column {column!r}; {expected}")
        if header.count(column) > 1:
            raise OcerlError(f"{path}, line 1: there are two columns {column}; {expected}")
    return header


def _read_whole_numbers(file: TextIO, header: list[str]) -> tuple[dict[str, Column], dict[str, Floats]] | None:
    """The rest of a file whose names are all whole numbers, in one go; None if it is not such a file."""
    kinds = [(column, np.int64 if column in NAMES else np.float64) for column in header]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # "no data" is for the caller to say
            rows = np.loadtxt(file, delimiter=",", comments=None, ndmin=1, dtype=kinds)
    except ValueError:
        return None
    names: dict[str, Column] = {}
    for column in NAMES:
        different, position = np.unique(rows[column], return_inverse=True)
        names[column] = Column(different.tolist(), position)
    return names, {column: rows[column] for column in header if column not in NAMES}


class _Names(dict[str, int]):
    """Numbers the names in a column by first appearance; maps each text to the number of its name."""

    def __init__(self) -> None:
        super().__init__()
        self.position: dict[int | str, int] = {}

    def __missing__(self, text: str) -> int:
        self[text] = self.position.setdefault(read_name(text), len(self.position))
        return self[text]


def _read_records(path: Path, header: list[str]) -> tuple[dict[str, Column], dict[str, Floats]]:
    """The rest of any file, text by text; here the first line that is wrong is found."""
    known = {column: _Names() for column in NAMES}
    parts: dict[str, list[Floats]] = {column: [np.zeros(0)] for column in header}
    rows_before = 0
    with path.open(encoding="utf-8-sig", newline="") as file:
        records = filter(None, csv.reader(file, skipinitialspace=True))
        next(records)
        while rows := list(islice(records, CHUNK)):
            _check_widths(path, rows_before, rows, len(header))
            for column, texts in zip(header, zip(*rows, strict=True), strict=True):
                read = known[column].__getitem__ if column in known else float
                parts[column].append(_numbers(path, rows_before, column, texts, read))
            rows_before += len(rows)
    numbers = {column: np.concatenate(arrays) for column, arrays in parts.items()}
    names = {
        column: Column(list(names.position), numbers.pop(column).astype(np.int64)) for column, names in known.items()
    }
    return names, numbers


def _check_widths(path: Path, rows_before: int, rows: list[list[str]], width: int) -> None:
    if set(map(len, rows)) != {width}:
        index, row = next((index, row) for index, row in enumerate(rows) if len(row) != width)
        _refuse(path, rows_before + index, f"got {len(row)} fields, the first line has {width}")


def _numbers(path: Path, rows_before: int, column: str, texts: Iterable[str], read: Callable[[str], float]) -> Floats:
    try:
        return np.fromiter(map(read, texts), np.float64)
    except ValueError:
        index, text = next((index, text) for index, text in enumerate(texts) if not _is_number(text))
        _refuse(path, rows_before + index, f"the {column} is {text!r}, it must be a number")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_values(path: Path, names: dict[str, Column], numbers: dict[str, Floats]) -> None:
    """Refuse the first name or number that cannot be meant, with its line."""
    for kind, column in names.items():
        if "" in column.names:
            row = int(np.argmax(column.position == column.names.index("")))
            _refuse(path, row, f"the {kind} is empty, it must be a name or a number")
    rules: list[tuple[str, str, Callable[[Floats], NDArray[np.bool_]]]] = [
        ("probability", "a finite number", np.isfinite),
        ("reward", "a finite number", np.isfinite),
        ("probability", "between 0 and 1", lambda p: (p >= 0) & (p <= 1 + SUM_TOLERANCE)),
        (STEP, "a whole number of at least 1", lambda h: (h >= 1) & (h == np.floor(h)) & (h < 1e9)),
    ]
    for column, rule, holds in rules:
        if column in numbers and not (right := holds(numbers[column])).all():
            row = int(np.argmin(right))
            _refuse(path, row, f"the {column} is {numbers[column][row]:g}, it must be {rule}")


def _refuse(path: Path, row: int, problem: str) -> NoReturn:
    """Raise for a row below the header, counted from 0; only now is its line looked up."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, skipinitialspace=True)
        next(islice(filter(None, reader), row + 1, None))
        raise OcerlError(f"{path}, line {reader.line_num}: {problem}")


def _first_line_not_text(content: bytes) -> int:
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return content.count(b"\n", 0, error.start) + 1
    return 0
