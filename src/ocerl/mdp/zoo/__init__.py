"""Known models by name: `zoo.make("paper")`, and `zoo.names()` for all of them.

Each is written from its published description; its docstring says where from, and which values are known.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from ocerl.errors import OcerlError
from ocerl.mdp.tabular import TabularMDP
from ocerl.mdp.zoo.betting import betting_chain, betting_game, gambler
from ocerl.mdp.zoo.counterexamples import chow, paper
from ocerl.mdp.zoo.finance import american_put
from ocerl.mdp.zoo.operations import inventory, machine_replacement
from ocerl.mdp.zoo.worlds import cliff, riverswim

_MODELS: dict[str, Callable[..., TabularMDP]] = {
    "paper": paper,
    "chow": chow,
    "betting-chain": betting_chain,
    "betting-game": betting_game,
    "gambler": gambler,
    "american-put": american_put,
    "machine-replacement": machine_replacement,
    "inventory": inventory,
    "riverswim": riverswim,
    "cliff": cliff,
}

__all__ = ["guess", "make", "names"]


def names() -> tuple[str, ...]:
    """The names of all models."""
    return tuple(_MODELS)


def make(name: str, **parameters: Any) -> TabularMDP:
    """The model of that name; parameters are those of its function, and every model takes a `horizon`.

    >>> make("paper").return_range()
    (0.0, 2.5)
    >>> make("riverswim", states=4, horizon=7).horizon
    7
    """
    if name not in _MODELS:
        raise OcerlError(f"there is no model {name!r}{guess(name)}; the zoo has {', '.join(names())}")
    function = _MODELS[name]
    known = list(inspect.signature(function).parameters)
    for parameter in parameters:
        if parameter not in known:
            raise OcerlError(f"the model {name} has no parameter {parameter!r}; it has {', '.join(known)}")
    return function(**parameters)


def guess(name: str) -> str:
    """A question after the name that may have been meant, or nothing."""
    close = get_close_matches(name.lower().replace("_", "-"), names(), n=1)
    return f" (did you mean {close[0]}?)" if close else ""
