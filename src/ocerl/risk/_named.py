"""The named risks of the paper's table of examples (Appendix B), and the one list of them all."""

import math
from dataclasses import dataclass, field
from typing import final

import numpy as np

from ocerl.errors import OcerlError
from ocerl.risk._base import CertaintyEquivalent, Numbers, array_module, attained
from ocerl.risk._distribution import FloatArray, lower_quantile
from ocerl.risk._parameters import Interval, NamedRisk

_LEVEL = {"interval": Interval(0.0, 1.0, closed_high=True)}
_WEIGHT = {"interval": Interval(0.0, 1.0, closed_low=True)}
_POSITIVE = {"interval": Interval(0.0, math.inf)}
_NEGATIVE = {"interval": Interval(-math.inf, 0.0)}


@final
@dataclass(frozen=True)
class Mean(NamedRisk):
    """Risk-neutral: `u(t) = t`, `OCE_u(X) = E X`. Every budget is a maximiser; the mean is returned.

    >>> Mean().certainty_equivalent([0.0, 1.0]).value
    0.5
    """

    keyword = "mean"

    @property
    def monotone(self) -> bool:
        return True

    @property
    def slopes(self) -> tuple[float, float]:
        return 1.0, 1.0

    def utility(self, t: Numbers) -> Numbers:
        _, t = array_module(t)
        return t * 1.0  # integers become floats

    def _solve(self, support: FloatArray, probabilities: FloatArray) -> CertaintyEquivalent:
        mean = float(probabilities @ support)
        return CertaintyEquivalent(mean, mean, 0.0)


@final
@dataclass(frozen=True)
class CVaR(NamedRisk):
    """Conditional value-at-risk, the mean of the worst τ-fraction: `u(t) = -(-t)₊ / τ`, 0 < τ <= 1.

    `CVaR_τ(X) = max_b { b - E(b - X)₊ / τ }`, attained at the lower τ-quantile; `CVaR(1)` is the mean.

    >>> CVaR(0.25).certainty_equivalent([0.5, 1.5])
    CertaintyEquivalent(value=0.5, budget=0.5, tolerance=0.0)
    """

    tau: float = field(metadata=_LEVEL)
    """The mass τ of the worst tail."""

    keyword = "cvar"

    @property
    def monotone(self) -> bool:
        return True

    @property
    def slopes(self) -> tuple[float, float]:
        return 1.0 / self.tau, 0.0

    def utility(self, t: Numbers) -> Numbers:
        xp, t = array_module(t)
        return xp.minimum(t, 0.0) / self.tau

    def _solve(self, support: FloatArray, probabilities: FloatArray) -> CertaintyEquivalent:
        budget = lower_quantile(support, probabilities, self.tau)
        return CertaintyEquivalent(attained(self, budget, support, probabilities), budget, 0.0)


@final
@dataclass(frozen=True)
class Entropic(NamedRisk):
    """Entropic risk `(1/β) log E exp(βX)`, β < 0: `u(t) = (exp(βt) - 1) / β`. The budget is the value itself.

    The exponentials are taken relative to the worst value, so no |β|·return overflows.

    >>> Entropic(-5.0).certainty_equivalent([-1e4, 1e4]).value == -1e4 + math.log(2) / 5
    True
    """

    beta: float = field(metadata=_NEGATIVE)
    """The risk parameter β; nearer to 0 is nearer to the mean."""

    keyword = "entropic"

    @property
    def monotone(self) -> bool:
        return True

    @property
    def slopes(self) -> None:
        return None

    def utility(self, t: Numbers) -> Numbers:
        xp, t = array_module(t)
        with np.errstate(over="ignore"):  # far below the budget, -inf is the right floating-point number
            return xp.expm1(self.beta * t) / self.beta

    def _solve(self, support: FloatArray, probabilities: FloatArray) -> CertaintyEquivalent:
        with np.errstate(over="ignore"):
            exponents = self.beta * (support - support[0])
        shift = float(probabilities @ np.expm1(exponents))
        # log E exp = log1p(shift) is exact for small |β|; for large |β| the shift nears -1 and cancels.
        log_mean = math.log1p(shift) if shift > -0.5 else math.log(float(probabilities @ np.exp(exponents)))
        value = float(support[0]) + log_mean / self.beta
        return CertaintyEquivalent(value, value, 0.0)


@final
@dataclass(frozen=True)
class MeanVariance(NamedRisk):
    """Plain mean-variance `E X - c Var X`, c > 0: `u(t) = t - ct²`, with the mean as budget. *Not monotone.*

    Deviation: the paper's table of examples truncates u and names this row's OCE, but the OCE of the
    truncated u is `MonotoneMeanVariance`; the paper's experiments report this one. More reward can be worse
    here (P2 fails):

    >>> MeanVariance(1.0).certainty_equivalent([0.0, 10.0]).value
    -20.0
    """

    c: float = field(metadata=_POSITIVE)
    """The weight c of the variance."""

    keyword = "mean-variance"

    @property
    def monotone(self) -> bool:
        return False

    @property
    def slopes(self) -> None:
        return None

    def utility(self, t: Numbers) -> Numbers:
        _, t = array_module(t)
        return t * (1.0 - self.c * t)

    def _solve(self, support: FloatArray, probabilities: FloatArray) -> CertaintyEquivalent:
        mean = float(probabilities @ support)
        return CertaintyEquivalent(attained(self, mean, support, probabilities), mean, 0.0)


@final
@dataclass(frozen=True)
class MonotoneMeanVariance(NamedRisk):
    """Monotone mean-variance, c > 0: `u(t) = t - ct²` up to its top at t = 1/(2c), and 1/(4c) beyond.

    At the budget `E u'(X - b) = E(1 - 2c(X - b))₊ = 1`, that is `E(a - X)₊ = 1/(2c)` with `a = b + 1/(2c)`:
    piecewise linear in a, and solved exactly by one pass over the sorted values. It equals `MeanVariance(c)`
    when no value lies more than 1/(2c) above the mean.

    >>> MonotoneMeanVariance(1.0).certainty_equivalent([0.0, 10.0])
    CertaintyEquivalent(value=0.25, budget=0.5, tolerance=0.0)
    """

    c: float = field(metadata=_POSITIVE)
    """The weight c of the variance."""

    keyword = "monotone-mean-variance"

    @property
    def monotone(self) -> bool:
        return True

    @property
    def slopes(self) -> None:
        return None

    def utility(self, t: Numbers) -> Numbers:
        xp, t = array_module(t)
        t = xp.minimum(t, 0.5 / self.c)
        return t * (1.0 - self.c * t)

    def _solve(self, support: FloatArray, probabilities: FloatArray) -> CertaintyEquivalent:
        gains = support - support[0]
        mass = np.cumsum(probabilities)
        shortfall = np.concatenate(([0.0], np.cumsum(mass[:-1] * np.diff(gains))))  # E(x_k - X)₊ for each k
        last = int(np.searchsorted(shortfall, 0.5 / self.c, side="right")) - 1  # the last value below a
        below, above = probabilities[: last + 1], probabilities[last + 1 :]
        gain = (float(above.sum()) * 0.5 / self.c + float(below @ gains[: last + 1])) / float(below.sum())
        budget = float(support[0]) + gain
        return CertaintyEquivalent(attained(self, budget, support, probabilities), budget, 0.0)


@final
@dataclass(frozen=True)
class MeanCVaR(NamedRisk):
    """Mean and tail, `κ E X + (1 - κ) CVaR_τ(X)`: `u(t) = κ(t)₊ - κ₂(-t)₊` (theorem of Appendix B).

    The kink's slopes are `κ₁ = κ` and `κ₂ = (1 - κ)/τ + κ`; the budget is CVaR's.

    >>> MeanCVaR(0.5, 0.25).certainty_equivalent([0.5, 1.5]).value
    0.75
    >>> MeanCVaR.from_slopes(0.5, 2.5)
    MeanCVaR(kappa=0.5, tau=0.25)
    """

    kappa: float = field(metadata=_WEIGHT)
    """The weight κ of the mean."""
    tau: float = field(metadata=_LEVEL)
    """The mass τ of the worst tail."""

    keyword = "mean-cvar"

    @classmethod
    def from_slopes(cls, kappa1: float, kappa2: float) -> "MeanCVaR":
        """The risk with `u(t) = κ₁(t)₊ - κ₂(-t)₊`, where `0 <= κ₁ < 1 <= κ₂`; `τ = (1 - κ₁) / (κ₂ - κ₁)`."""
        if not 0 <= kappa1 < 1 <= kappa2 < math.inf:
            raise OcerlError(f"mean-cvar: the slopes must satisfy 0 <= kappa1 < 1 <= kappa2, got {kappa1}, {kappa2}")
        return cls(kappa=kappa1, tau=(1 - kappa1) / (kappa2 - kappa1))

    @property
    def kappa2(self) -> float:
        """The slope of u below 0, `κ₂ = (1 - κ)/τ + κ`."""
        return (1 - self.kappa) / self.tau + self.kappa

    @property
    def monotone(self) -> bool:
        return True

    @property
    def slopes(self) -> tuple[float, float]:
        return self.kappa2, self.kappa

    def utility(self, t: Numbers) -> Numbers:
        xp, t = array_module(t)
        return self.kappa * xp.maximum(t, 0.0) + self.kappa2 * xp.minimum(t, 0.0)

    def _solve(self, support: FloatArray, probabilities: FloatArray) -> CertaintyEquivalent:
        budget = lower_quantile(support, probabilities, self.tau)
        return CertaintyEquivalent(attained(self, budget, support, probabilities), budget, 0.0)


NAMED: tuple[type[NamedRisk], ...] = (Mean, CVaR, Entropic, MeanVariance, MonotoneMeanVariance, MeanCVaR)
