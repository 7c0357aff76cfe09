"""An OCE from independent episodes, with a confidence interval."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ocerl.errors import OcerlError
from ocerl.risk._base import Risk
from ocerl.risk._distribution import FloatArray, sorted_distribution

FEWEST_TAIL_SAMPLES = 10
RESAMPLES = 1000

Method = Literal["delta", "bootstrap"]


@dataclass(frozen=True)
class Estimate:
    """An estimated certainty equivalent and what it rests on."""

    value: float
    low: float
    high: float
    n: int
    """The number of episodes."""
    tail_count: float | None
    """nτ, the number of episodes in the tail, where the risk has a τ."""
    method: Method
    confidence: float


def estimate(
    samples: npt.ArrayLike,
    risk: Risk,
    *,
    confidence: float = 0.95,
    method: Method = "delta",
    seed: int | None = None,
    force: bool = False,
) -> Estimate:
    """Estimate `OCE_u` from the returns of independent episodes, with an interval at the given confidence.

    The plug-in value is `max_b { b + mean u(Z_i - b) }`. By the envelope theorem its influence function is
    `b̂ + u(Z - b̂) - OCE`, so its standard error s is that of the mean of `Y_i = b̂ + u(Z_i - b̂)`.

    - `"delta"`: value ± t·s. The Student quantile has nτ - 1 degrees of freedom where the risk has a τ (only
      the tail tells how Y varies), n - 1 otherwise.
    - `"bootstrap"`: value - q·s with the quantiles q of (value* - value)/s* over 1000 resamples drawn with
      `seed`; corrects skewness and bias, at a thousand times the cost.

    Both assume independent episodes of one policy, chosen without looking at these episodes, and a finite
    variance of u(Z - b); both are asymptotic. For a 95% interval of CVaR of normal, exponential and uniform
    returns, "delta" was seen to cover 90-93% at nτ = 10, and 94% from nτ = 50. The plug-in is biased upwards
    by order 1/(nτ). Losses that no episode has shown are not accounted for.

    >>> import numpy as np
    >>> from ocerl.risk import CVaR
    >>> result = estimate(np.arange(100.0), CVaR(0.2))
    >>> result.value, result.tail_count, result.low < 9.5 < result.high
    (9.5, 20.0, True)
    """
    if not 0 < confidence < 1:
        raise OcerlError(f"confidence must lie strictly between 0 and 1, got {confidence}")
    if method not in ("delta", "bootstrap"):
        raise OcerlError(f"method must be 'delta' or 'bootstrap', got {method!r}")
    ordered, _ = sorted_distribution(samples)
    if ordered.size < 2:
        raise OcerlError("an interval needs at least 2 samples, got 1")
    tail_count = None if risk.tail is None else ordered.size * risk.tail
    if tail_count is not None:
        _require_tail(tail_count, risk, ordered.size, force)
    value, error = _plug_in(risk, ordered, np.ones(ordered.size))
    if method == "delta":
        freedom = (ordered.size if tail_count is None else tail_count) - 1
        below, above = _student(confidence, freedom)
    else:
        below, above = _resampled(risk, ordered, value, confidence, seed)
    low, high = (value, value) if error == 0 else (value - below * error, value - above * error)
    return Estimate(value, low, high, int(ordered.size), tail_count, method, confidence)


def _require_tail(tail_count: float, risk: Risk, n: int, force: bool) -> None:
    if tail_count < FEWEST_TAIL_SAMPLES - 1e-9 and not force:
        needed = math.ceil(FEWEST_TAIL_SAMPLES * n / tail_count - 1e-9)
        raise OcerlError(
            f"{risk.name} from {n} samples rests on a tail of {tail_count:g}, fewer than "
            f"{FEWEST_TAIL_SAMPLES}: give at least {needed} samples, or force=True to see it all the same"
        )


def _plug_in(risk: Risk, ordered: FloatArray, counts: FloatArray) -> tuple[float, float]:
    """The certainty equivalent of counted samples, and its standard error from the influence function."""
    drawn = counts > 0  # an undrawn sample may lie where u is -inf
    samples, weights = ordered[drawn], counts[drawn]
    result = risk.certainty_equivalent(samples, weights)
    earned = result.budget + risk.utility(samples - result.budget)
    n = float(weights.sum())
    variance = float(weights @ (earned - weights @ earned / n) ** 2) / (n - 1)
    return result.value, math.sqrt(variance / n)


def _student(confidence: float, freedom: float) -> tuple[float, float]:
    from scipy.special import stdtrit  # SciPy is loaded only where it is used

    quantile = float(stdtrit(max(freedom, 1.0), (1 + confidence) / 2))
    return quantile, -quantile


def _resampled(
    risk: Risk, ordered: FloatArray, value: float, confidence: float, seed: int | None
) -> tuple[float, float]:
    """The upper and lower quantile of the studentised error over resamples (the bootstrap-t)."""
    if seed is None:
        raise OcerlError("method 'bootstrap' draws at random: give it a seed, such as seed=0")
    generator = np.random.default_rng(seed)
    ratios = np.empty(RESAMPLES)
    for index in range(RESAMPLES):
        drawn = generator.integers(ordered.size, size=ordered.size)
        counts = np.bincount(drawn, minlength=ordered.size).astype(float)
        resampled, error = _plug_in(risk, ordered, counts)
        ratios[index] = _ratio(resampled - value, error)
    # An inverted CDF, not an interpolation, since a resample without any spread has an infinite ratio.
    upper, lower = np.quantile(ratios, [(1 + confidence) / 2, (1 - confidence) / 2], method="inverted_cdf")
    return float(upper), float(lower)


def _ratio(difference: float, error: float) -> float:
    if error > 0:
        return difference / error
    return math.copysign(math.inf, difference) if difference else 0.0


def mean_interval(values: npt.ArrayLike, confidence: float = 0.95) -> tuple[float, float] | None:
    """Student's interval for a mean, say over seeds; None for fewer than two values.

    >>> low, high = mean_interval([0.0, 1.0])  # 0.5 ± 12.706 · 0.5
    >>> round(low, 3), round(high, 3)
    (-5.853, 6.853)
    """
    from scipy.special import stdtrit

    sample = np.asarray(values, dtype=np.float64)
    if sample.size < 2:
        return None
    mean = float(sample.mean())
    half = float(stdtrit(sample.size - 1, (1 + confidence) / 2) * sample.std(ddof=1) / np.sqrt(sample.size))
    return mean - half, mean + half
