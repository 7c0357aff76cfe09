"""What a model must fulfil, as errors that name the state, the action and the number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import numpy as np
from numpy.typing import ArrayLike

from ocerl.errors import OcerlError
from ocerl.mdp.transitions import SUM_TOLERANCE


def check_names(kind: str, names: tuple[Hashable, ...]) -> None:
    """Refuse a model without states or actions, or with two of one name."""
    if not names:
        raise OcerlError(f"a model needs at least one {kind}, got none")
    if len(set(names)) < len(names):
        name, times = Counter(names).most_common(1)[0]
        raise OcerlError(f"the {kind} {name!r} is named {times} times, every {kind} needs a name of its own")


def check_sums(
    state: ArrayLike,
    action: ArrayLike,
    probability: ArrayLike,
    states: tuple[Hashable, ...],
    actions: tuple[Hashable, ...],
    where: str = "",
) -> None:
    """Refuse a state and action whose probabilities do not sum to 1, naming it and the sum."""
    key = np.asarray(state, dtype=np.int64) * len(actions) + np.asarray(action, dtype=np.int64)
    pairs, inverse = np.unique(key, return_inverse=True)
    sums = np.bincount(inverse, weights=np.asarray(probability, dtype=np.float64))
    off = np.abs(sums - 1.0)
    if pairs.size and not (off <= SUM_TOLERANCE).all():
        worst = int(np.argmax(np.where(np.isfinite(off), off, np.inf)))
        owner, choice = divmod(int(pairs[worst]), len(actions))
        raise OcerlError(
            f"the probabilities of state {states[owner]}, action {actions[choice]}{where} "
            f"sum to {sums[worst]:.9g}, they must sum to 1"
        )


def check_horizon(horizon: int) -> None:
    """Refuse a horizon that is not a whole number of at least 1."""
    check_whole("the horizon", horizon)


def check_whole(name: str, value: int, least: int = 1) -> None:
    """Refuse what is not a whole number, or too small a one."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise OcerlError(f"{name} must be a whole number of at least {least}, got {value}")


def check_probability(name: str, value: float) -> None:
    """Refuse what is no number between 0 and 1."""
    if not 0 <= value <= 1:
        raise OcerlError(f"{name} must be between 0 and 1, got {value}")


def check_number(name: str, value: float, above: float | None = None) -> None:
    """Refuse what is not finite, or not above a number."""
    if not np.isfinite(value) or (above is not None and value <= above):
        rule = "" if above is None else f" above {above:g}"
        raise OcerlError(f"{name} must be a finite number{rule}, got {value}")
