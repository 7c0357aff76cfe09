"""Environments by name: what the command line's ENV means."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from ocerl.envs._base import Environment
from ocerl.envs.american_put import AmericanPut
from ocerl.envs.betting import BettingGame
from ocerl.envs.guarded_maze import GuardedMaze
from ocerl.envs.rich import low_rank, low_rank_vectors, risky_lock
from ocerl.envs.tabular import TabularEnvironment
from ocerl.errors import OcerlError
from ocerl.mdp import zoo
from ocerl.mdp.load import load_model
from ocerl.mdp.tabular import TabularMDP

SIMULATORS: dict[str, Callable[..., Environment[Any]]] = {
    "american-put": AmericanPut,
    "betting-game": BettingGame,
    "guarded-maze": GuardedMaze,
    "low-rank": low_rank,
    "low-rank-vectors": low_rank_vectors,
    "risky-lock": risky_lock,
}
MODEL_PARAMETERS = ("horizon", "discount", "start")


def make(model: str | TabularMDP, **parameters: Any) -> Environment[Any]:
    """An environment: a simulator by its name and parameters, or a model, or the name of one.

    Simulators are `american-put`, `betting-game`, `guarded-maze`, and the worlds of rich observations `low-rank`,
    `low-rank-vectors` and `risky-lock`. Any other name means what it means to `load_model`: a model of the zoo
    (such as `paper`), a CSV file or a Gymnasium id with a table; models take the parameters `horizon`,
    `discount` and `start`.

    >>> make("guarded-maze", noise=0.1).horizon, make("paper").horizon
    (160, 2)
    """
    if isinstance(model, str) and model in SIMULATORS:
        _check_names(model, parameters, tuple(inspect.signature(SIMULATORS[model]).parameters))
        return SIMULATORS[model](**parameters)
    _check_names("a tabular model", parameters, MODEL_PARAMETERS)
    if isinstance(model, TabularMDP):
        return TabularEnvironment(model.with_(**parameters))
    close = get_close_matches(model.lower().replace("_", "-"), SIMULATORS, n=1)
    if close and model not in zoo.names():
        raise OcerlError(f"there is no environment {model!r}, did you mean {close[0]}?")
    return TabularEnvironment(load_model(model, **parameters))


def _check_names(owner: str, given: dict[str, Any], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            raise OcerlError(f"{owner} has no parameter {name!r}; it has {', '.join(known)}")
