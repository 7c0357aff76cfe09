r"""The set of first budgets :math:`\mathcal B` (Assumption "discrete returns") and the lattice it lives on.

Where the utility has kinks only (CVaR, mean-CVaR, the mean), the best first budget is a return that can
occur: :math:`\mathcal B` holds the reachable returns. For a smooth utility it can lie between them, so the
lattice is refined until it has `SMOOTH_BUDGETS` points, and all of them are in :math:`\mathcal B`. The last
step between two of them is continuous: the OCE of the policy found is a maximum over every real `b`,
whichever first budget it was begun with.

Deviation from the paper: more than `most` first budgets are thinned, evenly in their order. Rewards without a
common lattice keep their exact sums as long as these are few (`MOST_SUMS`); else they are rounded down to a
resolution, since a finite set is needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.gradient.layers import Ints, Layer, first_layer, next_layer
from ocerl.mdp.lattice import Lattice, exact_lattice, rounded_lattice
from ocerl.mdp.tabular import TabularMDP
from ocerl.risk import Risk

SMOOTH_BUDGETS = 41
"""A lattice for a smooth utility is refined to at least so many returns."""
MOST_BUDGETS = 101
"""Unless told otherwise, at most so many first budgets are trained."""
MOST_SUMS = 100_000
"""Up to so many pairs of a state and a sum of rewards, over all steps, are kept as they are …"""
FINEST = 2.0**-30
"""… on a lattice of this part of the range of rewards and returns, which is exact for all that matters."""
ROUNDED_POINTS = 200
"""Beyond, rewards are rounded to this part of the range of returns unless a resolution is given."""


@dataclass(frozen=True, eq=False)
class FirstBudgets:
    r"""The set :math:`\mathcal B`, in increasing order, and each budget's position on the lattice."""

    lattice: Lattice
    values: NDArray[np.float64]
    positions: Ints


def first_budgets(
    model: TabularMDP, risk: Risk, *, most: int = MOST_BUDGETS, resolution: float | None = None
) -> FirstBudgets:
    """The first budgets to train for a model and a risk.

    >>> from ocerl.mdp import zoo
    >>> from ocerl.risk import parse_risk
    >>> first_budgets(zoo.make("paper"), parse_risk("cvar:0.25")).values.tolist()
    [0.0, 0.5, 1.0, 1.5, 2.5]
    """
    if most < 2:
        raise OcerlError(f"at least 2 first budgets are needed, got {most}")
    lattice, earned = _lattice_and_returns(model, resolution)
    if risk.slopes is None and lattice.unit > _finest(model):
        parts = ceil((SMOOTH_BUDGETS - 1) / max(int(earned[-1] - earned[0]), 1))
        lattice = replace(lattice, unit=lattice.unit / parts)
        earned = np.arange(earned[0] * parts, earned[-1] * parts + 1)
    chosen = np.unique(np.rint(np.linspace(0, earned.size - 1, min(most, earned.size))).astype(np.int64))
    earned = earned[chosen]
    return FirstBudgets(lattice, (lattice.floor + lattice.unit * earned).astype(np.float64), -earned)


def _lattice_and_returns(model: TabularMDP, resolution: float | None) -> tuple[Lattice, Ints]:
    """The lattice to learn on, and the units that some play of actions can have earned by the end."""
    exact = exact_lattice(model)
    if exact is not None and (resolution is None or resolution <= exact.unit):
        return exact, possible_units(exact)
    if resolution is None:
        fine = rounded_lattice(model, _finest(model), "nearest")
        if _few_sums(fine):
            return fine, possible_units(fine)
    coarse = rounded_lattice(model, resolution or _span(model) / ROUNDED_POINTS, "down")
    return coarse, possible_units(coarse)


def _layers(lattice: Lattice) -> Iterator[Layer]:
    """For each step, and at the end, the states with the units that can have been earned."""
    layer = first_layer(lattice, np.zeros(1, dtype=np.int64))
    yield layer
    for step in range(lattice.length):
        layer, _ = next_layer(lattice, step, layer)
        yield layer


def possible_units(lattice: Lattice) -> Ints:
    """The units above the floor that some play of actions can have earned by the end."""
    _, earned = deque(_layers(lattice), maxlen=1)[0]
    return np.unique(earned)


def _few_sums(lattice: Lattice) -> bool:
    total = 0
    for states, _ in _layers(lattice):
        total += states.size
        if total > MOST_SUMS:
            return False
    return True


def _finest(model: TabularMDP) -> float:
    """A power of two, so that binary fractions stay exact."""
    scale = max(_span(model), *(float(np.ptp(step.reward)) for step in model.steps))
    return 2.0 ** ceil(log2(FINEST * scale))


def _span(model: TabularMDP) -> float:
    low, high = model.return_range()
    return max(high - low, 1e-12)
