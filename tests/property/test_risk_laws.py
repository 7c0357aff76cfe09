"""Laws of optimized certainty equivalents (Appendix B) over random distributions, for every risk.

The utilities, and the maximisation over budgets, are written here once more from the paper's definitions, so
that nothing of the library judges itself.
"""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ocerl.risk import (
    CVaR,
    Entropic,
    Mean,
    MeanCVaR,
    MeanVariance,
    MonotoneMeanVariance,
    Risk,
    Utility,
    parse_risk,
)

Array = npt.NDArray[np.float64]
Distribution = tuple[Array, Array]

levels = st.floats(0.01, 1.0)
weights = st.floats(0.0, 0.95)
aversions = st.floats(0.05, 5.0)

NAMED = {
    "mean": st.just(Mean()),
    "cvar": st.builds(CVaR, levels),
    "entropic": st.builds(Entropic, st.floats(-5.0, -0.05)),
    "mean-variance": st.builds(MeanVariance, aversions),
    "monotone-mean-variance": st.builds(MonotoneMeanVariance, aversions),
    "mean-cvar": st.builds(MeanCVaR, weights, levels),
}
MONOTONE = {name: risks for name, risks in NAMED.items() if name != "mean-variance"}


def log_utility(t: Array) -> Array:
    """log(1 + t): finite above -1 only."""
    return np.log(np.maximum(1 + t, 0.0))


def three_pieces(t: Array) -> Array:
    """min(3t + 1, 1.5t, 0.5t): kinks at -2/3 and 0."""
    return np.minimum(3 * t + 1, np.where(t < 0, 1.5, 0.5) * t)


CUSTOM = {
    "log": st.just(Utility(log_utility, label="log")),
    "three pieces": st.just(Utility(three_pieces, label="pieces")),
}
each_named = pytest.mark.parametrize("risks", NAMED.values(), ids=NAMED)
each_monotone = pytest.mark.parametrize("risks", (MONOTONE | CUSTOM).values(), ids=MONOTONE | CUSTOM)
each_risk = pytest.mark.parametrize("risks", (NAMED | CUSTOM).values(), ids=NAMED | CUSTOM)


def paper_utility(risk: Risk) -> Callable[[Array], Array]:
    """u, as the paper's table of examples has it (and untruncated for the plain mean-variance)."""
    match risk:
        case Mean():
            return lambda t: t
        case CVaR(tau):
            return lambda t: -np.where(t < 0, -t, 0) / tau
        case Entropic(beta):
            return lambda t: (np.exp(beta * t) - 1) / beta
        case MeanVariance(c):
            return lambda t: t - c * t**2
        case MonotoneMeanVariance(c):
            return lambda t: np.where(t <= 1 / (2 * c), t - c * t**2, 1 / (4 * c))
        case MeanCVaR(kappa, tau):
            return lambda t: np.where(t > 0, kappa * t, ((1 - kappa) / tau + kappa) * t)
        case Utility(function):
            return function
    raise AssertionError(risk)


def earned(risk: Risk, budgets: Array, values: Array, probabilities: Array) -> Array:
    """b + E u(X - b), for many budgets."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return budgets + paper_utility(risk)(values[None, :] - budgets[:, None]) @ probabilities


def brute_force(risk: Risk, values: Array, probabilities: Array) -> float:
    """max over a grid of budgets and the support, the grid refined twice around its best point."""
    low, high = values.min(), values.max()
    best = -math.inf
    for _ in range(3):
        budgets = np.concatenate((np.linspace(low, high, 401), values))
        results = np.nan_to_num(earned(risk, budgets, values, probabilities), nan=-np.inf)
        best = max(best, float(results.max()))
        cell, centre = (high - low) / 400, budgets[int(results.argmax())]
        low, high = max(values.min(), centre - 2 * cell), min(values.max(), centre + 2 * cell)
    return best


@st.composite
def distributions(draw: st.DrawFn, least: int = 1, coarse: bool = False) -> Distribution:
    """Up to eight values in [-5, 5] (in quarters, so with ties and atoms, if coarse), with probabilities."""
    size = draw(st.integers(least, 8))
    value = st.integers(-20, 20).map(lambda quarters: quarters / 4) if coarse else st.floats(-5, 5)
    values = draw(st.lists(value, min_size=size, max_size=size))
    counts = draw(st.lists(st.integers(0, 20), min_size=size, max_size=size).filter(any))
    return np.array(values), np.array(counts) / sum(counts)


either = st.one_of(distributions(), distributions(coarse=True))


def worth(risk: Risk, distribution: Distribution) -> float:
    return risk.certainty_equivalent(*distribution).value


@each_risk
@settings(max_examples=40)
@given(data=st.data())
def test_value_is_the_maximum_over_budgets(risks: st.SearchStrategy[Risk], data: st.DataObject) -> None:
    risk, (values, probabilities) = data.draw(risks), data.draw(either)
    values, probabilities = values[probabilities > 0], probabilities[probabilities > 0]
    result = risk.certainty_equivalent(values, probabilities)
    scale = 1 + abs(result.value)
    best = brute_force(risk, values, probabilities)
    assert best <= result.value + result.tolerance + 1e-9 * scale
    assert result.value <= best + 1e-6 * scale  # the last grid's cells are 2.5e-6 wide


@each_risk
@settings(max_examples=40)
@given(data=st.data())
def test_budget_attains_the_value_within_the_support(risks: st.SearchStrategy[Risk], data: st.DataObject) -> None:
    risk, (values, probabilities) = data.draw(risks), data.draw(either)
    values, probabilities = values[probabilities > 0], probabilities[probabilities > 0]
    result = risk.certainty_equivalent(values, probabilities)
    (attained,) = earned(risk, np.array([result.budget]), values, probabilities)
    assert attained == pytest.approx(result.value, rel=1e-9, abs=1e-9)
    assert values.min() - 1e-9 <= result.budget <= values.max() + 1e-9


@each_risk
@settings(max_examples=25)
@given(data=st.data(), shift=st.floats(-100, 100))
def test_p1_translation_invariance(risks: st.SearchStrategy[Risk], data: st.DataObject, shift: float) -> None:
    risk, (values, probabilities) = data.draw(risks), data.draw(either)
    expected = worth(risk, (values, probabilities)) + shift
    assert worth(risk, (values + shift, probabilities)) == pytest.approx(expected, abs=1e-9)


@each_monotone
@settings(max_examples=25)
@given(data=st.data())
def test_p2_monotonicity(risks: st.SearchStrategy[Risk], data: st.DataObject) -> None:
    risk, (values, probabilities) = data.draw(risks), data.draw(either)
    assert risk.monotone
    gains = data.draw(st.lists(st.floats(0, 5), min_size=values.size, max_size=values.size))
    assert worth(risk, (values, probabilities)) <= worth(risk, (values + gains, probabilities)) + 1e-9


def test_p2_negative_control_plain_mean_variance_prefers_less() -> None:
    # 0 for sure against 0 or 10: 5 - 25 = -20 < 0, though 0 or 10 is never worse.
    plain, monotone = MeanVariance(1.0), MonotoneMeanVariance(1.0)
    never_worse = (np.array([0.0, 10.0]), np.array([0.5, 0.5]))
    assert not plain.monotone
    assert worth(plain, never_worse) == -20 < worth(plain, (np.zeros(1), np.ones(1))) == 0
    assert worth(monotone, never_worse) > 0


@each_risk
@settings(max_examples=25)
@given(data=st.data(), mix=st.floats(0, 1))
def test_p3_concavity(risks: st.SearchStrategy[Risk], data: st.DataObject, mix: float) -> None:
    risk, (first, probabilities) = data.draw(risks), data.draw(distributions(least=2))
    second = np.array(data.draw(st.lists(st.floats(-5, 5), min_size=first.size, max_size=first.size)))
    mixed = worth(risk, (mix * first + (1 - mix) * second, probabilities))
    apart = mix * worth(risk, (first, probabilities)) + (1 - mix) * worth(risk, (second, probabilities))
    assert mixed >= apart - 1e-9 * (1 + abs(apart))


@each_risk
@settings(max_examples=15)
@given(data=st.data(), reward=st.floats(-1e3, 1e3))
def test_p4_consistency(risks: st.SearchStrategy[Risk], data: st.DataObject, reward: float) -> None:
    result = data.draw(risks).certainty_equivalent([reward, reward], [0.3, 0.7])
    assert result.value == pytest.approx(reward, rel=1e-12, abs=1e-12)
    assert result.budget == pytest.approx(reward, rel=1e-12, abs=1e-12)


@each_risk
@settings(max_examples=25)
@given(data=st.data())
def test_no_risk_is_worth_more_than_the_mean(risks: st.SearchStrategy[Risk], data: st.DataObject) -> None:
    risk, (values, probabilities) = data.draw(risks), data.draw(either)
    assert worth(risk, (values, probabilities)) <= float(values @ probabilities) + 1e-9


@given(distribution=either, levels=st.tuples(levels, levels), kappa=weights)
def test_more_tail_mass_is_worth_more(distribution: Distribution, levels: tuple[float, float], kappa: float) -> None:
    low, high = min(levels), max(levels)
    assert worth(CVaR(low), distribution) <= worth(CVaR(high), distribution) + 1e-9
    assert worth(MeanCVaR(kappa, low), distribution) <= worth(MeanCVaR(kappa, high), distribution) + 1e-9


@given(distribution=either, aversions=st.tuples(aversions, aversions))
def test_more_aversion_is_worth_less(distribution: Distribution, aversions: tuple[float, float]) -> None:
    less, more = min(aversions), max(aversions)
    assert worth(Entropic(-more), distribution) <= worth(Entropic(-less), distribution) + 1e-9
    for kind in (MeanVariance, MonotoneMeanVariance):
        assert worth(kind(more), distribution) <= worth(kind(less), distribution) + 1e-9


@given(distribution=either, kappa=weights, tau=levels)
def test_mean_cvar_is_the_mixture_of_mean_and_cvar(distribution: Distribution, kappa: float, tau: float) -> None:
    risk, tail = MeanCVaR(kappa, tau), CVaR(tau).certainty_equivalent(*distribution)
    result = risk.certainty_equivalent(*distribution)
    assert result.value == pytest.approx(kappa * worth(Mean(), distribution) + (1 - kappa) * tail.value, abs=1e-9)
    assert result.budget == tail.budget
    assert risk.tail == pytest.approx(tau)
    same = MeanCVaR.from_slopes(kappa, risk.kappa2)
    assert (same.kappa, same.tau) == (kappa, pytest.approx(tau, rel=1e-9))


@given(values=st.lists(st.floats(-5, 5), min_size=1, max_size=30), count=st.integers(1, 30))
def test_cvar_is_the_mean_of_the_worst_samples(values: list[float], count: int) -> None:
    assume(count <= len(values))
    expected = math.fsum(sorted(values)[:count]) / count
    assert CVaR(count / len(values)).certainty_equivalent(values).value == pytest.approx(expected, abs=1e-9)
    assert CVaR(count / len(values)).certainty_equivalent(values).budget == sorted(values)[count - 1]


@given(distribution=either, c=aversions)
def test_the_mean_variances_are_ordered_and_agree_when_gains_are_small(distribution: Distribution, c: float) -> None:
    # The truncated u is the larger; they are the same where no X - E X passes the top at 1/(2c).
    plain, monotone = worth(MeanVariance(c), distribution), worth(MonotoneMeanVariance(c), distribution)
    assert plain <= monotone + 1e-9
    values, probabilities = distribution
    if (values[probabilities > 0] - values @ probabilities).max() <= 1 / (2 * c):
        assert monotone == pytest.approx(plain, abs=1e-9)


@each_named
@settings(max_examples=25)
@given(data=st.data())
def test_weighted_samples_are_a_distribution(risks: st.SearchStrategy[Risk], data: st.DataObject) -> None:
    risk, values = data.draw(risks), data.draw(st.lists(st.floats(-5, 5), min_size=1, max_size=6))
    counts = data.draw(st.lists(st.integers(1, 4), min_size=len(values), max_size=len(values)))
    repeated = risk.certainty_equivalent(np.repeat(values, counts))
    weighted = risk.certainty_equivalent(values, counts)
    assert weighted.value == pytest.approx(repeated.value, abs=1e-9)
    assert weighted.budget == pytest.approx(repeated.budget, abs=1e-9)


@each_named
@settings(max_examples=25)
@given(data=st.data())
def test_names_round_trip(risks: st.SearchStrategy[Risk], data: st.DataObject) -> None:
    risk = data.draw(risks)
    assert parse_risk(risk.name) == risk


@each_risk
@settings(max_examples=25)
@given(data=st.data(), ends=st.tuples(st.floats(-0.9, 0), st.floats(0, 5)))
def test_v_max_bounds_the_utility_and_is_reached(
    risks: st.SearchStrategy[Risk], data: st.DataObject, ends: tuple[float, float]
) -> None:
    risk = data.draw(risks)
    sizes = np.abs(paper_utility(risk)(np.linspace(*ends, 2001)))
    bound = risk.v_max(*ends)
    assert sizes.max() <= bound * (1 + 1e-12) + 1e-12
    assert sizes.max() >= bound - 1e-4 * (1 + bound)
