r"""Where the networks see a budget, and how first budgets are spread: dense near zero, over the whole range.

A utility has its kink at 0, that is where the budget is spent exactly, and a small first budget asks for decisions
that are fine compared with it, whatever the largest return. So knots have the density

.. math:: \rho(b) \propto \frac{1}{2 (b_+ - b_-)} + \frac{1}{2 c \sqrt{b^2 + s^2}}, \qquad s = (b_+ - b_-) / 100,

on a range :math:`[b_-, b_+]` with 0 in it (:math:`c` makes the second term a density too): half of them even, half as
on a logarithmic scale away from 0. First budgets are drawn even between knots, so from the same density: the whole
range has at least half of its uniform weight.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FINEST = 0.01
"""The part of the range around zero that is not resolved further."""


def knots_over(budgets: tuple[float, float], number: int) -> NDArray[np.float64]:
    """So many knots over a range and zero, one of which is zero (unless they are two, the ends).

    >>> knots_over((0.0, 1.0), 5).round(3).tolist()
    [0.0, 0.053, 0.257, 0.597, 1.0]
    """
    low, high = min(budgets[0], 0.0), max(budgets[1], 0.0)
    high = high if high > low else 1.0
    scale = FINEST * (high - low)
    grid = np.unique(np.concatenate([np.linspace(low, high, 1001), scale * np.sinh(_even(low, high, scale, 1001))]))
    even, logarithmic = (grid - low) / (high - low), np.arcsinh(grid / scale)
    logarithmic = (logarithmic - logarithmic[0]) / (logarithmic[-1] - logarithmic[0])
    knots = np.interp(np.linspace(0, 1, number), (even + logarithmic) / 2, grid)
    knots[0], knots[-1] = low, high
    if low < 0.0 < high and number > 2:
        knots[1 + np.abs(knots[1:-1]).argmin()] = 0.0
    return knots


def spread(
    knots: NDArray[np.floating], budgets: tuple[float, float], uniform: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Budgets in a range that are even between knots, from numbers even between 0 and 1.

    >>> spread(np.array([0.0, 1.0, 4.0]), (0.0, 4.0), np.array([0.25, 0.75])).tolist()
    [0.5, 2.5]
    """
    place = np.arange(knots.size)
    low, high = np.interp(budgets, knots, place)
    return np.interp(low + uniform * (high - low), place, knots)


def _even(low: float, high: float, scale: float, number: int) -> NDArray[np.float64]:
    return np.linspace(np.arcsinh(low / scale), np.arcsinh(high / scale), number)
