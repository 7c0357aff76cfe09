"""What the command line's MODEL means: a name from the zoo, a CSV file, or a Gymnasium id."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from ocerl.errors import OcerlError
from ocerl.mdp import zoo
from ocerl.mdp.files import read_csv
from ocerl.mdp.gymnasium_table import from_gymnasium
from ocerl.mdp.tabular import Label, TabularMDP

GYMNASIUM_ID = re.compile(r"([\w.:-]+/|[\w.]+:)?[\w.-]+-v\d+")


def load_model(
    text: str,
    *,
    horizon: int | None = None,
    discount: float | None = None,
    start: Label | Mapping[Label, float] | None = None,
) -> TabularMDP:
    """The model that a text names; a horizon, a discount and a start replace the model's own.

    The zoo is asked first, then the disk, then Gymnasium. A start that is text is compared with the names of
    states as they are written, so `"1"` is state 1 of a file whose states are numbers.

    >>> load_model("chow", start="choice").return_range()
    (-300.0, 300.0)
    """
    model = _find(text, horizon)
    if isinstance(start, str):
        start = {str(state): state for state in model.states}.get(start, start)
    return model.with_(horizon=horizon, discount=discount, start=start)


def _find(text: str, horizon: int | None) -> TabularMDP:
    if text in zoo.names():
        return zoo.make(text) if horizon is None else zoo.make(text, horizon=horizon)
    if text.lower().endswith(".csv") or os.path.exists(text):
        return read_csv(text)
    if GYMNASIUM_ID.fullmatch(text):
        return from_gymnasium(text, horizon=horizon)
    raise OcerlError(
        f"there is no model {text!r}{zoo.guess(text)}: give a name from the zoo ({', '.join(zoo.names())}), "
        f"a CSV file (model.csv), or a Gymnasium id with a table (FrozenLake-v1)"
    )
