r"""The budget lattice: the evenly spaced returns on which the augmented MDP is finite.

In step `h` a reward contributes :math:`\gamma^{h} r` (time-0 units) to the return. If for every step these
contributions lie on :math:`o_h + u\,\mathbb{N}` for one *unit* `u`, every return is
:math:`\sum_h o_h + u\,n`, and from a first budget only multiples of `u` are ever reached: planning on the
lattice is exact. `find_unit` looks for the coarsest such unit in rational arithmetic.

Otherwise rewards are rounded to a chosen unit, down, up or to the nearest, and the lattice knows how far
the true return can be from the rounded one (`error`). With a discount the last steps may all be worth less
than a unit; they are left out (`length` < horizon) and their range enters `error`.

The paper (Section 4, "Computational Complexity") rounds to a grid of spacing 1/K; here the unit is found.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.tabular import TabularMDP

Rounding = Literal["exact", "down", "up", "nearest"]

LARGEST_DENOMINATOR = 100_000
"""A reward is read as a fraction with at most this denominator …"""
RATIONAL_TOLERANCE = 1e-13
"""… if one lies within this of it, relative to the largest reward: 0.1 + 0.2 counts as 3/10."""
MOST_POINTS = 1 << 24
"""Beyond this many returns a common lattice is of no use, and rewards are rounded instead."""
MOST_SHIFT = 1 << 30
"""Units are counted in 32 bits."""
_SNAP = 1e-9


@dataclass(frozen=True, eq=False)
class Lattice:
    """Rewards of a model as whole numbers of units above an origin, step by step."""

    model: TabularMDP
    unit: float
    rounding: Rounding
    length: int
    """How many steps are modelled; the rest of a discounted horizon is worth `tail`."""
    tail: float = 0.0
    tail_error: tuple[float, float] = (0.0, 0.0)

    @cached_property
    def origins(self) -> NDArray[np.float64]:
        """The least contribution of each step, in time-0 units."""
        return np.array([self._weight(step) * self.model.transitions(step).reward.min() for step in range(self.length)])

    @cached_property
    def floor(self) -> float:
        """The return if every step paid its origin: returns are `floor + unit * n`."""
        return float(self.origins.sum()) + self.tail

    def round_reward(self, step: int, reward: ArrayLike) -> NDArray[np.int64]:
        """How many units above the origin a reward of this step is."""
        height = (self._weight(step) * np.asarray(reward, dtype=np.float64) - self.origins[step]) / self.unit
        match self.rounding:
            case "down":
                rounded = np.floor(height + _SNAP)
            case "up":
                rounded = np.ceil(height - _SNAP)
            case "exact" | "nearest":
                rounded = np.rint(height)
        return rounded.astype(np.int64)

    def shifts(self, step: int) -> NDArray[np.int32]:
        """`round_reward` of every outcome of a step."""
        if self._same_every_step:
            return self._first_shifts
        return self._shifts(step)

    @cached_property
    def error(self) -> tuple[float, float]:
        """The least and the largest difference, true return minus lattice return, that any path can have."""
        low, high = self.tail_error
        if self.rounding == "exact":
            return low, high
        steps = 1 if self._same_every_step else self.length
        repeat = self.length // steps
        for step in range(steps):
            contribution = self._weight(step) * self.model.transitions(step).reward
            off = contribution - self.origins[step] - self.unit * self.shifts(step)
            low, high = low + repeat * float(off.min()), high + repeat * float(off.max())
        return low, high

    def on(self, model: TabularMDP) -> Lattice:
        """The same lattice for a model with the same rewards, say from another start or read from a file again."""
        if model is self.model:
            return self
        moved = replace(self, model=model)
        same = (model.n_states, model.horizon) == (self.model.n_states, self.model.horizon)
        if not (same and np.array_equal(moved.origins, self.origins)):
            raise OcerlError(
                "the policy belongs to another model: its states, horizon or rewards differ from this one's"
            )
        return moved

    def _weight(self, step: int) -> float:
        return self.model.discount**step

    @cached_property
    def _same_every_step(self) -> bool:
        return self.model.stationary and self.model.discount == 1.0

    @cached_property
    def _first_shifts(self) -> NDArray[np.int32]:
        return self._shifts(0)

    def _shifts(self, step: int) -> NDArray[np.int32]:
        units = self.round_reward(step, self.model.transitions(step).reward)
        if units.max(initial=0) > MOST_SHIFT:
            apart = float(units.max()) * self.unit
            raise OcerlError(
                f"rewards {apart:g} apart cannot be counted in units of {self.unit:g}: "
                f"give a resolution of at least {1.01 * apart / MOST_SHIFT:.2g}"
            )
        return units.astype(np.int32)


def exact_lattice(model: TabularMDP) -> Lattice | None:
    """The coarsest lattice that holds every return of the model, or None where there is no useful one.

    >>> from ocerl.mdp.tabular import TabularMDP
    >>> thirds = TabularMDP.from_outcomes({0: {0: [(0.5, 0, 1 / 3), (0.5, 0, 1.0)]}}, horizon=2)
    >>> round(exact_lattice(thirds).unit, 12)
    0.666666666667
    """
    horizon = model.require_horizon()
    weight = _as_fraction(model.discount, 1.0)
    if weight is None:
        return None
    unit = Fraction(0)
    for step in range(1 if model.stationary and model.discount == 1.0 else horizon):
        spacing = find_unit(np.unique(model.transitions(step).reward))
        if spacing is None:
            return None
        unit = _common(unit, spacing * weight**step)
        if unit.denominator > 10**15:
            return None
    spacing = float(unit) or 1.0
    # What all steps could add up to is quickly known, and mostly settles it.
    most = horizon * max(float(np.ptp(step.reward)) for step in model.steps)
    if most / spacing > MOST_POINTS and counted_range(model) / spacing > MOST_POINTS:
        return None
    return Lattice(model, spacing, "exact", horizon)


def rounded_lattice(model: TabularMDP, unit: float, rounding: Rounding) -> Lattice:
    """A lattice of a given unit to which rewards are rounded; discounted steps too small to matter are left out."""
    if not (np.isfinite(unit) and unit > 0):
        raise OcerlError(f"the resolution must be a positive number (a step in units of the return), got {unit}")
    horizon = model.require_horizon()
    length, low, high = horizon, 0.0, 0.0
    if model.discount < 1.0:
        remaining = model.remaining_range()
        reachable = model.reachable()
        lows = np.array([values[mask].min() for values, mask in zip(remaining[0], reachable, strict=True)])
        highs = np.array([values[mask].max() for values, mask in zip(remaining[1], reachable, strict=True)])
        length = max(1, int(np.argmin(unit * np.arange(horizon + 1) + (highs - lows))))
        low, high = float(lows[length]), float(highs[length])
    tail = {"down": low, "up": high}.get(rounding, (low + high) / 2)
    return Lattice(model, unit, rounding, length, tail, (low - tail, high - tail))


def counted_range(model: TabularMDP) -> float:
    """What a lattice must be able to count: the range of the return, or a step's rewards if they differ by more."""
    low, high = model.return_range()
    steps = range(1 if model.stationary else model.require_horizon())
    spreads = (np.ptp(model.transitions(step).reward) * model.discount**step for step in steps)
    return max(high - low, *(float(spread) for spread in spreads))


def find_unit(rewards: Iterable[float]) -> Fraction | None:
    """The greatest unit of which all differences of the rewards are multiples; 0 for equal rewards, None for none.

    >>> find_unit([0.5, 1.1, -0.1])
    Fraction(3, 5)
    >>> find_unit([0.0, 2**0.5]) is None
    True
    """
    values = np.asarray(list(rewards), dtype=np.float64)
    scale = float(np.abs(values).max())
    unit = Fraction(0)
    for difference in values - values.min():
        fraction = _as_fraction(float(difference), scale)
        if fraction is None:
            return None
        unit = _common(unit, fraction)
        if unit.denominator > LARGEST_DENOMINATOR**2:
            return None
    return unit


def _as_fraction(value: float, scale: float) -> Fraction | None:
    fraction = Fraction(value).limit_denominator(LARGEST_DENOMINATOR)
    return fraction if abs(float(fraction) - value) <= RATIONAL_TOLERANCE * max(scale, 1e-300) else None


def _common(a: Fraction, b: Fraction) -> Fraction:
    """The greatest common divisor of two fractions."""
    if not b:
        return a
    if not a:
        return b
    denominator = lcm(a.denominator, b.denominator)
    numerators = (int(x * denominator) for x in (a, b))
    return Fraction(gcd(*numerators), denominator)
