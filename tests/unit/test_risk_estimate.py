"""Estimates from episodes: the interval's arithmetic, its refusals, and its coverage of a known truth."""

import math
from statistics import NormalDist, mean, stdev

import numpy as np
import pytest

from ocerl.errors import OcerlError
from ocerl.risk import CVaR, Entropic, Mean, MeanCVaR, MeanVariance, Utility, estimate


def test_interval_of_the_mean_is_students() -> None:
    samples = [1.0, 2.0, 4.0, 8.0, 16.0]
    result = estimate(samples, Mean())
    half = 2.776445105 * stdev(samples) / math.sqrt(5)  # the 97.5% quantile of Student's t with 4 degrees
    assert result.value == mean(samples)
    assert (result.low, result.high) == pytest.approx((6.2 - half, 6.2 + half))
    assert (result.n, result.tail_count, result.method, result.confidence) == (5, None, "delta", 0.95)


def test_interval_of_cvar_by_hand() -> None:
    # 0, ..., 99 at τ = 0.2: b̂ = 19, and Y = 19 - 5(19 - z) for z < 19, otherwise 19; t has 20 - 1 degrees.
    earned = [19.0 - 5 * (19 - z) if z < 19 else 19.0 for z in range(100)]
    result = estimate(np.arange(100.0), CVaR(0.2))
    half = 2.093024054 * stdev(earned) / 10
    assert result.value == pytest.approx(9.5)
    assert (result.low, result.high) == pytest.approx((9.5 - half, 9.5 + half))
    assert result.tail_count == pytest.approx(20)


def test_interval_of_the_entropic_risk_is_its_delta_method() -> None:
    samples = np.array([0.0, 0.3, 0.5, 0.9, 1.0, 1.4])
    weights = np.exp(-2 * samples)
    # d(log m / β) = dm / (β m) with m the mean of exp(β Z).
    half = 2.570581836 * weights.std(ddof=1) / (2 * weights.mean()) / math.sqrt(6)
    result = estimate(samples, Entropic(-2.0))
    assert result.value == pytest.approx(-math.log(weights.mean()) / 2)
    assert result.high - result.value == pytest.approx(half)


def test_a_higher_confidence_is_wider_and_equal_samples_leave_no_width() -> None:
    samples = np.arange(50.0)
    ninety, ninety_nine = (estimate(samples, CVaR(0.5), confidence=level) for level in (0.9, 0.99))
    assert ninety_nine.low < ninety.low < ninety.high < ninety_nine.high
    for method in ("delta", "bootstrap"):
        same = estimate([2.0] * 30, CVaR(0.5), method=method, seed=0)
        assert (same.low, same.value, same.high) == (2.0, 2.0, 2.0)


def test_a_thin_tail_is_refused_unless_forced() -> None:
    samples = np.arange(199.0)
    message = r"cvar:0\.05 from 199 samples rests on a tail of 9\.95, fewer than 10: give at least 200 samples"
    with pytest.raises(OcerlError, match=message):
        estimate(samples, CVaR(0.05))
    assert estimate(samples, CVaR(0.05), force=True).tail_count == pytest.approx(9.95)
    assert estimate(np.arange(200.0), CVaR(0.05)).tail_count == pytest.approx(10)
    with pytest.raises(OcerlError, match="rests on a tail"):
        estimate(samples, MeanCVaR(0.5, 0.05))
    assert estimate(samples, Entropic(-0.1)).tail_count is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"confidence": 0.0}, "confidence must lie strictly between 0 and 1, got 0.0"),
        ({"confidence": 95}, "got 95"),
        ({"confidence": math.nan}, "got nan"),
        ({"method": "hope"}, "method must be 'delta' or 'bootstrap', got 'hope'"),
        ({"method": "bootstrap"}, "give it a seed"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message: str) -> None:
    with pytest.raises(OcerlError, match=message):
        estimate(np.arange(100.0), CVaR(0.5), **arguments)


def test_too_few_or_broken_samples_are_refused_even_when_forced() -> None:
    with pytest.raises(OcerlError, match="at least 2 samples"):
        estimate([1.0], CVaR(0.5), force=True)
    with pytest.raises(OcerlError, match=r"values\[1\] is nan"):
        estimate([1.0, math.nan], CVaR(0.5), force=True)


def test_bootstrap_is_repeatable_and_close_to_delta_for_many_samples() -> None:
    samples = np.random.default_rng(0).normal(size=400)
    first, again, other = (estimate(samples, MeanVariance(0.5), method="bootstrap", seed=seed) for seed in (1, 1, 2))
    delta = estimate(samples, MeanVariance(0.5))
    assert first == again
    assert first != other
    assert first.value == delta.value
    assert first.low == pytest.approx(delta.low, abs=0.2 * (delta.high - delta.low))
    assert first.high == pytest.approx(delta.high, abs=0.2 * (delta.high - delta.low))


def test_bootstrap_passes_over_samples_it_did_not_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without the lowest sample the best budget puts it where log is -inf.
    monkeypatch.setattr("ocerl.risk._estimate.RESAMPLES", 50)
    risk = Utility(lambda t: np.log(np.maximum(1 + t, 0.0)))
    result = estimate([0.0, *np.linspace(30.0, 31.0, 9)], risk, method="bootstrap", seed=0)
    assert not math.isnan(result.low)
    assert result.low <= result.value


def covered(method: str, repetitions: int, n: int, seed: int) -> int:
    """How often a 95% interval of CVaR_0.25 of n standard normal returns holds the truth, -φ(Φ⁻¹(τ)) / τ."""
    normal = NormalDist()
    truth = -normal.pdf(normal.inv_cdf(0.25)) / 0.25
    generator = np.random.default_rng(seed)
    count = 0
    for index in range(repetitions):
        result = estimate(generator.standard_normal(n), CVaR(0.25), method=method, seed=index)  # type: ignore[arg-type]
        count += result.low <= truth <= result.high
    return count


def test_coverage_of_the_delta_interval() -> None:
    # If the coverage is between 93% and 97%, the count is outside these bounds with a probability below 1e-3
    # over the choice of the seed (the 0.0005 quantiles of Binomial(2000, 0.93) and (2000, 0.97)).
    assert 1821 <= covered("delta", 2000, 400, seed=3) <= 1963


@pytest.mark.slow
def test_coverage_of_the_bootstrap_interval() -> None:
    # If the coverage is at least 92%, the count is below 83 with a probability below 1e-3, as above.
    assert covered("bootstrap", 100, 80, seed=4) >= 83


def test_negative_control_the_spread_of_the_returns_does_not_cover() -> None:
    # The interval of a mean around CVaR is what one gets without the influence function; it must lose. An
    # interval with a coverage of 90% would stay below 240 of 300 with a probability below 1e-6.
    normal = NormalDist()
    truth = -normal.pdf(normal.inv_cdf(0.05)) / 0.05
    generator = np.random.default_rng(5)
    count = 0
    for _ in range(300):
        samples = generator.standard_normal(400)
        value = CVaR(0.05).certainty_equivalent(samples).value
        count += abs(value - truth) <= 1.96 * samples.std(ddof=1) / 20
    assert count < 240
