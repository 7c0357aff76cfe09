"""Bracketed maximisation of a concave function, with a bound on what is missed."""

import math
from collections.abc import Callable
from dataclasses import dataclass

_RATIO = (math.sqrt(5) - 1) / 2
_STEPS = 60  # shrinks the bracket by the factor 3e-13


@dataclass(frozen=True)
class Maximum:
    """The best point found, its value, and how much larger the true maximum can be."""

    argument: float
    value: float
    gap: float


def maximise_concave(function: Callable[[float], float], low: float, high: float) -> Maximum:
    """Golden-section search for the maximum of a concave `function` on [low, high].

    The final bracket [l, r] holds a maximiser. A chord that ends at l is at least as steep as the function
    right of l, and a chord that starts at r at least as steep as it is left of r, so neither can be exceeded
    within the bracket: `gap` is the bracket's width times the flatter of the two chords (exact up to
    rounding).

    >>> top = maximise_concave(lambda t: t - t * t, -1.0, 1.0)
    >>> round(top.argument, 6), round(top.value, 12), top.gap < 1e-11
    (0.5, 0.25, True)
    """
    value_low, value_high = function(low), function(high)
    left, value_left, right, value_right = low, value_low, high, value_high
    first, second = right - _RATIO * (right - left), left + _RATIO * (right - left)
    value_first, value_second = function(first), function(second)
    for _ in range(_STEPS):
        if value_first < value_second:
            left, value_left, first, value_first = first, value_first, second, value_second
            second = left + _RATIO * (right - left)
            value_second = function(second)
        else:
            right, value_right, second, value_second = second, value_second, first, value_first
            first = right - _RATIO * (right - left)
            value_first = function(first)
    value, argument = max((value_left, left), (value_first, first), (value_second, second), (value_right, right))
    chords: list[float] = []
    if left > low:
        chords.append((value_left - value_low) / (left - low))
    if right < high:
        chords.append((value_right - value_high) / (high - right))
    return Maximum(argument, value, (right - left) * max(0.0, min(chords, default=0.0)))
