"""The conditions R1-R5 on a utility, judged numerically, and what they mean for its OCE (Appendix B)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, SupportsFloat

import numpy as np
import numpy.typing as npt

from ocerl.errors import OcerlError
from ocerl.risk._base import Numbers
from ocerl.risk._distribution import FloatArray

_FEWEST_CELLS = 1000
_STRIDES = (1, 7, 50, 350)  # chords over this many cells on either side: from local kinks to weak curvature
_NEAR_ZERO = np.array(
    [1e-4, 1e-5, 1e-6, 1e-7, 1e-8]
)  # where a slope at 0 other than 1 shows, as a fraction of the range


@dataclass(frozen=True)
class Condition:
    """One of R1-R5 or P1-P4, whether it holds, and why not."""

    name: str
    meaning: str
    holds: bool
    reason: str
    """Where it fails, or what it follows from."""


@dataclass(frozen=True)
class UtilityReport:
    """Which of R1-R5 a utility meets on [low, high], and which of P1-P4 its OCE therefore has there."""

    low: float
    high: float
    conditions: tuple[Condition, ...]
    """R1 proper, R2 closed, R3 concave, R4 non-decreasing, R5 u(0) = 0 with 1 in the subgradient at 0."""

    @property
    def properties(self) -> tuple[Condition, ...]:
        """P1-P4; a property that does not follow is reported as not holding, though it may by accident."""
        meets = {condition.name: condition.holds for condition in self.conditions}

        def follows(name: str, meaning: str, premise: str) -> Condition:
            reason = f"from {premise}" if meets[premise] else f"needs {premise}"
            return Condition(name, meaning, meets[premise], reason)

        return (
            Condition("P1", "translation invariance", True, "always"),
            follows("P2", "monotonicity: more reward is never worse", "R4"),
            follows("P3", "concavity: diversifying is never worse", "R3"),
            follows("P4", "consistency: a sure 0 is worth 0", "R5"),
        )

    def holds(self, name: str) -> bool:
        """Whether the condition or property called `name` (`"R3"`, `"P2"`) holds."""
        return {entry.name: entry.holds for entry in (*self.conditions, *self.properties)}[name]

    def __str__(self) -> str:
        rows = [f"utility on [{self.low:g}, {self.high:g}]"]
        for entry in (*self.conditions, *self.properties):
            verdict = "holds" if entry.holds else "fails"
            rows.append(f"  {entry.name}  {entry.meaning:<42}  {verdict}  {entry.reason}".rstrip())
        return "\n".join(rows)


def check_utility(function: Callable[[Numbers], Numbers], low: float = -1.0, high: float = 1.0) -> UtilityReport:
    """Judge R1-R5 of a utility on a range [low, high] of X - b, numerically, with a witness for each failure.

    The judgement rests on a thousand to ten thousand round numbers (-0.5, 0.012): violations between them, or
    smaller than about 1e-9 of the utility's size, are not seen. R2 is tested at just those numbers. Returns
    in [z_lo, z_hi] have X - b in [z_lo - z_hi, z_hi - z_lo]; the default is the paper's range.

    Deviation: the paper prints `∂u(x) = {g : g <= (u(z) - u(x)) / (z - x) for all z}`, which for z > x has
    the wrong sign for a concave u; `1 ∈ ∂u(0)` is taken as the supergradient, `u(t) <= u(0) + t` for all t.

    >>> print(check_utility(lambda t: t - t * t))
    utility on [-1, 1]
      R1  proper                                      holds
      R2  closed                                      holds
      R3  concave                                     holds
      R4  non-decreasing                              fails  u falls from u(0.5) = 0.25 to u(0.501) = 0.249999
      R5  u(0) = 0, and the line t touches u there    holds
      P1  translation invariance                      holds  always
      P2  monotonicity: more reward is never worse    fails  needs R4
      P3  concavity: diversifying is never worse      holds  from R3
      P4  consistency: a sure 0 is worth 0            holds  from R5
    """
    if not (-math.inf < low <= 0 <= high < math.inf and low < high):
        raise OcerlError(f"a utility is judged on a finite range with low <= 0 <= high, got [{low}, {high}]")
    with np.errstate(all="ignore"):  # infinities are meant, and their differences
        probe = _Probe(function, _round_grid(low, high), rounding(function))
        witnesses = (
            ("R1", "proper", _not_proper(probe)),
            ("R2", "closed", _not_closed(probe)),
            ("R3", "concave", _not_concave(probe)),
            ("R4", "non-decreasing", _not_increasing(probe)),
            ("R5", "u(0) = 0, and the line t touches u there", _not_normalised(probe)),
        )
    return UtilityReport(low, high, tuple(Condition(name, text, not why, why) for name, text, why in witnesses))


def evaluate(function: Callable[[Numbers], Numbers], points: FloatArray) -> FloatArray:
    """`u` at many points, as float64."""
    return _elementwise(function, points).astype(float)


def rounding(function: Callable[[Numbers], Numbers]) -> float:
    """The relative rounding error of the function's results: 2e-16, or 1e-7 where it computes in float32."""
    dtype = _elementwise(function, np.zeros(1)).dtype
    return float(np.finfo(dtype if dtype.kind == "f" else float).eps)


def _elementwise(function: Callable[[Numbers], Numbers], points: FloatArray) -> npt.NDArray[Any]:
    """`u` at many points, as it comes; refuses a function that does not work elementwise on arrays."""
    advice = "write it with numpy.where instead of if, or wrap it in numpy.vectorize(u, otypes=[float])"
    try:
        with np.errstate(all="ignore"):
            values = np.asarray(function(points))
    except (TypeError, ValueError) as error:
        raise OcerlError(f"a utility must work elementwise on arrays; {advice} ({error})") from error
    if values.shape != points.shape or values.dtype.kind not in "fiub":
        got = f"{values.shape} of {values.dtype}"
        raise OcerlError(f"a utility must work elementwise on arrays: {points.shape} gave {got}; {advice}")
    return values


def _round_grid(low: float, high: float) -> FloatArray:
    """The ends and a thousand or more round numbers between, as a utility's own edges are round mostly."""
    digits = min(math.ceil(-math.log10((high - low) / _FEWEST_CELLS)), 300)
    step = 10.0**-digits
    multiples = np.arange(math.ceil(low / step), math.floor(high / step) + 1) * step
    return np.unique(np.concatenate(([low], np.clip(np.round(multiples, digits), low, high), [high])))


@dataclass(frozen=True)
class _Probe:
    """A utility, the points to judge it at, and the rounding error of its results."""

    function: Callable[[Numbers], Numbers]
    grid: FloatArray
    error: float

    @property
    def span(self) -> float:
        return float(self.grid[-1] - self.grid[0])

    def __call__(self, points: FloatArray) -> FloatArray:
        """`u`, with -inf wherever it is no proper value: R1 reports those, the others judge the rest."""
        values = evaluate(self.function, points)
        return np.where(np.isnan(values) | (values == np.inf), -np.inf, values)

    def slack(self, size: FloatArray) -> FloatArray:
        """How large a violation counts as rounding, for finite utilities of this size.

        Next to 1e-9 of the size there is an absolute part: log(1 + t) rounds 1 + t, however small t is.
        """
        relative, absolute = max(1e-9, 8 * self.error), max(1e-12, 8 * self.error)
        return relative * (np.where(np.isfinite(size), size, 0.0) + 0.1 * min(1.0, self.span)) + absolute

    def at(self, point: SupportsFloat) -> str:
        """`u(0.5) = 0.25`, for a witness."""
        t = float(point)
        return f"u({t:.6g}) = {float(evaluate(self.function, np.array([t]))[0]):.6g}"


def _not_proper(probe: _Probe) -> str:
    values = evaluate(probe.function, probe.grid)
    wrong = np.isnan(values) | (values == np.inf)
    if wrong.any():
        return f"{probe.at(probe.grid[wrong.argmax()])}; give -inf outside its domain"
    return "" if np.isfinite(values).any() else "u is -inf everywhere"


def _not_closed(probe: _Probe) -> str:
    """Look for points below the limit of u beside them; a limit of -inf, as of log at 0, is no violation."""
    grid, here = probe.grid, probe(probe.grid)
    beside = np.maximum(np.spacing(np.abs(grid)), 1e-16 * probe.span)
    for side in (-1.0, 1.0):
        limit = probe(np.clip(grid + side * beside, grid[0], grid[-1]))
        before = probe(np.clip(grid + side * 1e-9 * probe.span, grid[0], grid[-1]))
        settled = np.abs(limit - before) <= 1e-3 * (1 + np.abs(limit))
        jumps = settled & (limit - here > 1e-6 * (1 + np.abs(limit)))
        if jumps.any():
            where = int(jumps.argmax())
            return f"{probe.at(grid[where])} but u tends to {limit[where]:.6g} there"
    return ""


def _not_concave(probe: _Probe) -> str:
    """Look for points below the chord between a point on their left and one on their right."""
    grid, values = probe.grid, probe(probe.grid)
    for stride in _STRIDES:
        left, middle, right = (slice(-2 * stride), slice(stride, -stride), slice(2 * stride, None))
        share = (grid[middle] - grid[left]) / (grid[right] - grid[left])
        chord = (1 - share) * values[left] + share * values[right]
        below = chord - values[middle] > probe.slack(np.abs(values[left]) + np.abs(values[right]))
        if below.any():
            where = int(below.argmax()) + stride
            ends = f"{grid[where - stride]:.6g} to {grid[where + stride]:.6g}"
            return f"{probe.at(grid[where])} is below the chord from {ends}"
    return ""


def _not_increasing(probe: _Probe) -> str:
    values = probe(probe.grid)
    falls = np.diff(values) < -probe.slack(np.abs(values[1:]))
    if not falls.any():
        return ""
    where = int(falls.argmax())
    return f"u falls from {probe.at(probe.grid[where])} to {probe.at(probe.grid[where + 1])}"


def _not_normalised(probe: _Probe) -> str:
    """Look for u(0) other than 0, and for points above the line t, which deny that it touches u at 0."""
    zero = probe(np.zeros(1))
    if not (np.abs(zero) <= probe.slack(np.zeros(1))).all():
        return f"{probe.at(0.0)}, not 0"
    points = np.concatenate((probe.grid, probe.span * _NEAR_ZERO, -probe.span * _NEAR_ZERO))
    points = points[(points >= probe.grid[0]) & (points <= probe.grid[-1])]
    above = probe(points) - points > probe.slack(np.abs(points))
    return f"{probe.at(points[above.argmax()])} is above the line t" if above.any() else ""
