"""What every risk offers: a utility `u` and the optimized certainty equivalent it defines (Appendix B)."""

import abc
import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ocerl.errors import OcerlError
from ocerl.risk._distribution import FloatArray, sorted_distribution
from ocerl.risk._search import maximise_concave

Numbers: TypeAlias = Any
"""A float, a NumPy array or a JAX array (tracers inside `jit`, `grad` and `vmap` included)."""


@dataclass(frozen=True)
class CertaintyEquivalent:
    """`OCE_u(X) = max_b { b + E u(X - b) }`, with the maximiser."""

    value: float
    """The certainty equivalent."""
    budget: float
    """A maximising b; for CVaR and mean-CVaR the lower quantile `F†(τ) = inf{x : F(x) >= τ}`."""
    tolerance: float
    """The true value is within this of `value`; 0.0 where a closed form or a quantile gives it."""


class Risk(abc.ABC):
    """An immutable risk measure; its subclasses are final frozen dataclasses.

    >>> from ocerl.risk import CVaR
    >>> risk = CVaR(0.25)
    >>> risk.name, risk.monotone, risk.slopes, risk.v_max(-1, 1)
    ('cvar:0.25', True, (4.0, 0.0), 4.0)
    """

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The text form; `parse_risk(risk.name) == risk` for every named risk."""

    @property
    @abc.abstractmethod
    def monotone(self) -> bool:
        """Whether `u` is non-decreasing (R4), so that a larger reward is never worse (P2)."""

    @property
    @abc.abstractmethod
    def slopes(self) -> tuple[float, float] | None:
        """The slopes (κ₂ on t < 0, κ₁ on t > 0) if `u` is linear on either side of 0, otherwise None."""

    @property
    def tail(self) -> float | None:
        """The mass τ of the worst tail a piecewise linear risk looks at, otherwise None.

        `τ = (1 - κ₁) / (κ₂ - κ₁)`, by the last theorem of Appendix B; the mean, without a kink, has none.
        """
        if self.slopes is None or self.slopes[0] == self.slopes[1]:
            return None
        below, above = self.slopes
        return (1 - above) / (below - above)

    @abc.abstractmethod
    def utility(self, t: Numbers) -> Numbers:
        """`u(t)`, elementwise: NumPy arrays give NumPy arrays, JAX arrays JAX arrays, floats floats."""

    @abc.abstractmethod
    def v_max(self, low: float, high: float) -> float:
        """`V_u^max = max { |u(t)| : low <= t <= high }`; the paper, with returns in [0, 1], has [-1, 1]."""

    def certainty_equivalent(
        self, values: npt.ArrayLike, probabilities: npt.ArrayLike | None = None
    ) -> CertaintyEquivalent:
        """`OCE_u` of a discrete distribution, or of weighted samples, which are the same thing.

        Args:
            values: the values of X, in any order; a value may occur more than once.
            probabilities: one weight for each value, normalised to sum to 1; equal weights if not given.
        """
        return self._solve(*sorted_distribution(values, probabilities))

    @abc.abstractmethod
    def _solve(self, support: FloatArray, probabilities: FloatArray) -> CertaintyEquivalent:
        """The certainty equivalent of an increasing support with positive probabilities that sum to 1."""


def array_module(t: Numbers) -> tuple[Any, Numbers]:
    """The array library of `t`, and `t` as something that library computes with."""
    if hasattr(t, "__array_namespace__"):
        return t.__array_namespace__(), t
    return np, np.asarray(t, dtype=float)[()]


def attained(risk: Risk, budget: float, support: FloatArray, probabilities: FloatArray) -> float:
    """`b + E u(X - b)`: what a budget earns (the braces of Equation 1)."""
    return budget + float(probabilities @ risk.utility(support - budget))


def largest_magnitude(risk: Risk, low: float, high: float) -> float:
    """`max |u|` over [low, high] for a concave u: at an end, or at the top."""
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise OcerlError(f"v_max needs a finite range with low <= high, got [{low}, {high}]")
    ends = max(abs(float(risk.utility(low))), abs(float(risk.utility(high))))
    if math.isinf(ends):
        return ends
    return max(ends, maximise_concave(lambda t: float(risk.utility(t)), low, high).value)
