"""Worlds of rich observations: exogenous block MDPs and low-rank MDPs, with the classes that oracles choose from."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ocerl.errors import OcerlError
from ocerl.mdp.rich.exogenous import ExogenousBlockMDP, exogenous_lock
from ocerl.mdp.rich.lock import risky_lock
from ocerl.mdp.rich.low_rank import LowRankMDP, low_rank_lock, random_low_rank
from ocerl.mdp.rich.vectors import VectorMDP, low_rank_vectors

RichWorld = ExogenousBlockMDP | LowRankMDP | VectorMDP

WORLDS: dict[str, Callable[..., RichWorld]] = {
    "risky-lock": exogenous_lock,
    "low-rank": low_rank_lock,
    "low-rank-vectors": low_rank_vectors,
}

__all__ = [
    "WORLDS",
    "ExogenousBlockMDP",
    "LowRankMDP",
    "RichWorld",
    "VectorMDP",
    "exogenous_lock",
    "low_rank_lock",
    "low_rank_vectors",
    "make",
    "random_low_rank",
    "risky_lock",
]


def make(name: str, **parameters: Any) -> RichWorld:
    """The world of that name: `risky-lock`, `low-rank` or `low-rank-vectors`.

    >>> make("risky-lock", bits=3).n_observations
    32
    """
    if name not in WORLDS:
        raise OcerlError(f"there is no world {name!r} with rich observations; there are {', '.join(WORLDS)}")
    known = list(inspect.signature(WORLDS[name]).parameters)
    for parameter in parameters:
        if parameter not in known:
            raise OcerlError(f"the world {name} has no parameter {parameter!r}; it has {', '.join(known)}")
    return WORLDS[name](**parameters)
