"""Utilities, parameters and facts of the named risks, against numbers worked out by hand from Appendix B."""

import math
from dataclasses import FrozenInstanceError

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ocerl.errors import OcerlError
from ocerl.risk import CVaR, Entropic, Mean, MeanCVaR, MeanVariance, MonotoneMeanVariance, Risk

POINTS = [-1.0, 0.0, 0.25, 2.0]
# u at POINTS, by hand. MeanCVaR(0.5, 0.25): κ₂ = 0.5 / 0.25 + 0.5 = 2.5.
UTILITIES = [
    (Mean(), [-1.0, 0.0, 0.25, 2.0]),
    (CVaR(0.25), [-4.0, 0.0, 0.0, 0.0]),
    (Entropic(-2.0), [-(math.e**2 - 1) / 2, 0.0, (1 - math.e**-0.5) / 2, (1 - math.e**-4) / 2]),
    (MeanVariance(1.0), [-2.0, 0.0, 0.1875, -2.0]),
    (MonotoneMeanVariance(1.0), [-2.0, 0.0, 0.1875, 0.25]),
    (MeanCVaR(0.5, 0.25), [-2.5, 0.0, 0.125, 1.0]),
]
RISKS = [risk for risk, _ in UTILITIES]


def by_name(risk: object) -> str:
    return risk.name if isinstance(risk, Risk) else ""


@pytest.mark.parametrize(("risk", "expected"), UTILITIES, ids=by_name)
def test_utility_of_floats_arrays_and_integers(risk: Risk, expected: list[float]) -> None:
    for t, u in zip(POINTS, expected, strict=True):
        value = risk.utility(t)
        assert isinstance(value, float)
        assert value == pytest.approx(u, abs=1e-12)
    grid = np.array(POINTS).reshape(2, 2)
    np.testing.assert_allclose(risk.utility(grid), np.reshape(expected, (2, 2)), atol=1e-12)
    assert risk.utility(2) == pytest.approx(expected[-1])
    np.testing.assert_allclose(risk.utility(np.array([-1, 2])), [expected[0], expected[-1]])


@pytest.mark.parametrize("risk", RISKS, ids=by_name)
def test_utility_keeps_single_precision(risk: Risk) -> None:
    assert risk.utility(np.zeros(3, dtype=np.float32)).dtype == np.float32


def test_a_numpy_parameter_does_not_set_the_precision_of_the_result() -> None:
    assert CVaR(np.float64(0.25)).utility(np.zeros(3, dtype=np.float32)).dtype == np.float32
    assert type(CVaR(np.float32(0.25)).tau) is float


@pytest.mark.parametrize(("risk", "expected"), UTILITIES, ids=by_name)
def test_utility_inside_jit_and_vmap(risk: Risk, expected: list[float]) -> None:
    points = jnp.array(POINTS)
    np.testing.assert_allclose(jax.jit(risk.utility)(points), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(jax.vmap(risk.utility)(points), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("risk", "below", "above"),
    [  # u'(-1) and u'(1/4)
        (Mean(), 1.0, 1.0),
        (CVaR(0.25), 4.0, 0.0),
        (Entropic(-2.0), math.e**2, math.e**-0.5),
        (MeanVariance(1.0), 3.0, 0.5),
        (MonotoneMeanVariance(1.0), 3.0, 0.5),
        (MeanCVaR(0.5, 0.25), 2.5, 0.5),
    ],
    ids=by_name,
)
def test_gradient_inside_jit(risk: Risk, below: float, above: float) -> None:
    slope = jax.jit(jax.grad(risk.utility))
    assert float(slope(-1.0)) == pytest.approx(below, rel=1e-6)
    assert float(slope(0.25)) == pytest.approx(above, rel=1e-6)


def test_monotone_mean_variance_is_flat_beyond_its_top_and_plain_falls() -> None:
    assert float(jax.grad(MonotoneMeanVariance(1.0).utility)(2.0)) == 0.0
    assert float(jax.grad(MeanVariance(1.0).utility)(2.0)) == -3.0


def test_risks_are_static_arguments_and_equal_ones_share_a_trace() -> None:
    traces = []

    def pay_off(risk: Risk, budget: jax.Array) -> jax.Array:
        traces.append(risk)
        return risk.utility(-budget)

    compiled = jax.jit(pay_off, static_argnums=0)
    assert float(compiled(CVaR(0.25), 1.0)) == -4.0
    assert float(compiled(CVaR(0.25), 2.0)) == -8.0
    assert len(traces) == 1


def test_entropic_utility_is_exact_near_zero_and_minus_infinity_far_below() -> None:
    assert Entropic(-1e-9).utility(1e-6) == pytest.approx(1e-6, rel=1e-12)
    assert Entropic(-5.0).utility(-1e4) == -math.inf  # a warning would fail this test
    assert Entropic(-5.0).utility(1e4) == 0.2


@pytest.mark.parametrize(
    ("risk", "low", "high", "expected"),
    [
        # The V_max column of the paper's table, on [-1, 1].
        (Mean(), -1, 1, 1.0),
        (CVaR(0.25), -1, 1, 4.0),
        (Entropic(-2.0), -1, 1, (math.e**2 - 1) / 2),
        (MeanVariance(2.0), -1, 1, 3.0),
        (MonotoneMeanVariance(2.0), -1, 1, 3.0),
        (MeanCVaR(0.5, 0.25), -1, 1, 2.5),
        # Other ranges: the largest |u| may be at the upper end, or at the top in between.
        (CVaR(0.25), -2.5, 2.5, 10.0),
        (Mean(), -1, 3, 3.0),
        (MeanVariance(1.0), 0, 1, 0.25),
        (MeanVariance(1.0), 0, 3, 6.0),
        (MonotoneMeanVariance(1.0), 0, 3, 0.25),
        (Mean(), 0, 0, 0.0),
    ],
    ids=by_name,
)
def test_v_max(risk: Risk, low: float, high: float, expected: float) -> None:
    assert risk.v_max(low, high) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("low", "high"), [(1, -1), (-math.inf, 1), (0, math.nan)])
def test_v_max_refuses_what_is_no_range(low: float, high: float) -> None:
    with pytest.raises(OcerlError, match="finite range with low <= high"):
        CVaR(0.5).v_max(low, high)


def test_slopes_tail_and_monotonicity() -> None:
    assert [risk.slopes for risk in RISKS] == [(1, 1), (4, 0), None, None, None, (2.5, 0.5)]
    assert [risk.tail for risk in RISKS] == [None, 0.25, None, None, None, 0.25]
    assert [risk.monotone for risk in RISKS] == [True, True, True, False, True, True]


def test_mean_cvar_slopes_and_levels_say_the_same() -> None:
    # κ₁ = 0.2, κ₂ = 3.4: τ = 0.8 / 3.2 = 0.25.
    risk = MeanCVaR.from_slopes(0.2, 3.4)
    assert (risk.kappa, risk.tau) == (0.2, pytest.approx(0.25))
    assert risk.kappa2 == pytest.approx(3.4)
    assert MeanCVaR.from_slopes(0.0, 1.0) == MeanCVaR(0.0, 1.0)


@pytest.mark.parametrize(
    ("kappa1", "kappa2"), [(-0.1, 2), (1, 2), (0.5, 0.9), (0, math.inf), (math.nan, 2), (0, math.nan)]
)
def test_impossible_slopes_are_refused(kappa1: float, kappa2: float) -> None:
    with pytest.raises(OcerlError, match="0 <= kappa1 < 1 <= kappa2"):
        MeanCVaR.from_slopes(kappa1, kappa2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CVaR(0.0), "cvar: tau must be a number with 0 < tau <= 1, got 0.0"),
        (lambda: CVaR(1.5), "0 < tau <= 1, got 1.5"),
        (lambda: CVaR(math.nan), "got nan"),
        (lambda: CVaR("0.25"), "got '0.25'"),  # type: ignore[arg-type]
        (lambda: Entropic(0.0), "entropic: beta must be a number with beta < 0, got 0.0"),
        (lambda: Entropic(1.0), "beta < 0, got 1.0"),
        (lambda: Entropic(-math.inf), "beta < 0, got -inf"),
        (lambda: MeanVariance(0.0), "mean-variance: c must be a number with 0 < c, got 0.0"),
        (lambda: MeanVariance(math.inf), "0 < c, got inf"),
        (
            lambda: MonotoneMeanVariance(-1.0),
            "monotone-mean-variance: c must be a number with 0 < c, got -1.0",
        ),
        (lambda: MeanCVaR(1.0, 0.5), "mean-cvar: kappa must be a number with 0 <= kappa < 1, got 1.0"),
        (lambda: MeanCVaR(0.5, 0.0), "tau must be a number with 0 < tau <= 1, got 0.0"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(make, message: str) -> None:
    with pytest.raises(OcerlError) as error:
        make()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_risks_are_immutable_values() -> None:
    risk = CVaR(1)
    assert risk == CVaR(1.0)
    assert hash(risk) == hash(CVaR(1.0))
    assert risk != Mean()
    with pytest.raises(FrozenInstanceError):
        risk.tau = 0.5  # type: ignore[misc]
