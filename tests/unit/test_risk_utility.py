"""A user's own utility: the check of R1-R5, and the certainty equivalent by search."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ocerl.errors import OcerlError
from ocerl.risk import CVaR, Entropic, MeanVariance, MonotoneMeanVariance, Utility, check_utility

RISKY = ([0.0, 1.0, 1.5, 2.5], [1 / 8, 1 / 8, 3 / 8, 3 / 8])


ALL = "R1 R2 R3 R4 R5 P1 P2 P3 P4"


def verdicts(function, low: float = -1.0, high: float = 1.0) -> str:
    """The names of the conditions and properties that hold."""
    report = check_utility(function, low, high)
    return " ".join(entry.name for entry in (*report.conditions, *report.properties) if entry.holds)


def log1p(t):
    """log(1 + t), and -inf at and below -1."""
    return np.log(np.maximum(1 + t, 0.0))


def root(t):
    """2√(1 + t) - 2, frozen at -2 below -1."""
    return 2 * np.sqrt(np.maximum(1 + t, 0.0)) - 2


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda t: t, ALL),
        (CVaR(0.01).utility, ALL),
        (Entropic(-5.0).utility, ALL),
        (MonotoneMeanVariance(2.0).utility, ALL),
        (log1p, ALL),  # closed: it tends to -inf
        (lambda t: np.where(t >= -1, root(t), -np.inf), ALL),  # closed, with an infinite slope at the edge
        (lambda t: np.where(t > -1, root(t), -np.inf), "R1 R3 R4 R5 P1 P2 P3 P4"),
        (root, "R1 R2 R4 R5 P1 P2 P4"),  # the frozen part bends up, yet stays below the line t
        (lambda t: 1 - jnp.exp(-t), ALL),  # in single precision
        (MeanVariance(2.0).utility, "R1 R2 R3 R5 P1 P3 P4"),
        (lambda t: np.where(t >= -0.3, t, -np.inf), ALL),
        (lambda t: np.where(t > -0.3, t, -np.inf), "R1 R3 R4 R5 P1 P2 P3 P4"),
        (lambda t: np.expm1(t), "R1 R2 R4 P1 P2"),
        (lambda t: t + 1e-3 * t * t, "R1 R2 R4 P1 P2"),
        (lambda t: t + 1, "R1 R2 R3 R4 P1 P2 P3"),
        (lambda t: t / 2, "R1 R2 R3 R4 P1 P2 P3"),
        (lambda t: 1.001 * t - 10 * t * t, "R1 R2 R3 P1 P3"),  # its slope is wrong only very near 0
        (np.log, "R2 R3 R4 P1 P2 P3"),  # nan below 0
        (lambda t: np.full_like(t, -np.inf), "R2 R3 R4 P1 P2 P3"),
    ],
)
def test_conditions_and_what_follows(function, expected: str) -> None:
    assert verdicts(function, low=-1.9, high=1.9) == expected


@pytest.mark.parametrize("function", [log1p, Entropic(-1.0).utility, CVaR(0.2).utility])
@pytest.mark.parametrize("span", [1e-300, 1e-12, 1e-6, 0.3, 7.0, 100.0])
def test_conditions_hold_on_every_range(function, span: float) -> None:
    assert verdicts(function, -span, span) == ALL


@pytest.mark.parametrize(
    ("function", "name", "reason"),
    [
        (np.log, "R1", "u(-1) = nan; give -inf outside its domain"),
        (lambda t: np.where(t > -0.5, t, -np.inf), "R2", "u(-0.5) = -inf but u tends to -0.5 there"),
        (lambda t: t - 2 * (t > 0.5), "R3", "u(0.501) = -1.499 is below the chord from 0.5 to 0.502"),
        (lambda t: np.maximum(t, 3 * t), "R3", "u(0) = 0 is below the chord from -0.001 to 0.001"),
        (lambda t: t - t * t, "R4", "u falls from u(0.5) = 0.25 to u(0.501) = 0.249999"),
        (lambda t: t - 1, "R5", "u(0) = -1, not 0"),
        (lambda t: t / 2, "R5", "u(-1) = -0.5 is above the line t"),
    ],
)
def test_a_failure_comes_with_a_witness(function, name: str, reason: str) -> None:
    conditions = {condition.name: condition for condition in check_utility(function).conditions}
    assert not conditions[name].holds
    assert conditions[name].reason == reason


def test_report_reads_as_a_table() -> None:
    lines = str(check_utility(MeanVariance(1.0).utility, -2.5, 2.5)).splitlines()
    assert lines[0] == "utility on [-2.5, 2.5]"
    assert [line.split()[0] for line in lines[1:]] == ALL.split()
    assert "R4  non-decreasing" in lines[4]
    assert "fails  u falls from u(0.5) = 0.25" in lines[4]
    assert lines[7].split()[-3:] == ["fails", "needs", "R4"]


@pytest.mark.parametrize(("low", "high"), [(0.5, 1), (-1, -0.5), (0, 0), (-math.inf, 1), (-1, math.nan)])
def test_a_range_must_hold_zero(low: float, high: float) -> None:
    with pytest.raises(OcerlError, match="finite range with low <= 0 <= high"):
        check_utility(lambda t: t, low, high)
    with pytest.raises(OcerlError, match="finite range with low <= 0 <= high"):
        Utility(lambda t: t, low=low, high=high)


@pytest.mark.parametrize(
    "function", [lambda t: 0.0, lambda t: t if t < 0 else 0, lambda t: math.log1p(t), lambda t: "much"]
)
def test_a_function_that_is_not_elementwise_is_refused_with_advice(function) -> None:
    with pytest.raises(OcerlError, match=r"must work elementwise.*numpy\.where"):
        Utility(function)


def test_something_that_is_no_function_is_refused() -> None:
    with pytest.raises(OcerlError, match="function must be callable, got 'log'"):
        Utility("log")  # type: ignore[arg-type]


@pytest.mark.parametrize("named", [CVaR(0.25), CVaR(0.4), Entropic(-2.0), MeanVariance(1.0), MonotoneMeanVariance(1)])
def test_search_finds_the_exact_value_and_budget(named) -> None:
    exact = named.certainty_equivalent(*RISKY)
    found = Utility(named.utility).certainty_equivalent(*RISKY)
    assert 0 < found.tolerance < 1e-11
    assert found.value == pytest.approx(exact.value, abs=1e-12)
    assert abs(found.value - exact.value) <= found.tolerance
    assert found.budget == pytest.approx(exact.budget, abs=1e-6 if named.slopes is None else 1e-11)


def test_search_hits_the_atom_of_a_kink_exactly() -> None:
    assert Utility(CVaR(0.4).utility).certainty_equivalent(*RISKY).budget == 1.5


def test_logarithm_against_its_first_order_condition() -> None:
    # max b + (log(1 - b) + log(1.5 - b)) / 2, at 1 = (1/(1 - b) + 1/(1.5 - b)) / 2: b = (1.5 - √1.25) / 2.
    budget = (1.5 - math.sqrt(1.25)) / 2
    value = budget + (math.log(1 - budget) + math.log(1.5 - budget)) / 2
    found = Utility(np.log1p, label="log").certainty_equivalent([0.0, 0.5])
    assert found.value == pytest.approx(value, abs=1e-12)
    assert found.budget == pytest.approx(budget, abs=1e-7)


def test_budgets_outside_the_domain_are_passed_over() -> None:
    # b < 1 is needed: at b = 1 and beyond, u(0 - b) = -inf. With mass p at 0 and 1 - p at 10:
    # 1 = p/(1 - b) + (1 - p)/(11 - b); for p = 1/2, b² - 11b + 5 = 0, b = (11 - √101) / 2.
    found = Utility(log1p).certainty_equivalent([0.0, 10.0])
    budget = (11 - math.sqrt(101)) / 2
    assert found.budget == pytest.approx(budget, abs=1e-6)
    assert found.value == pytest.approx(budget + (math.log(1 - budget) + math.log(11 - budget)) / 2, abs=1e-11)


def test_a_maximum_at_the_edge_of_the_domain_is_found() -> None:
    # u = min(2t, t/2) from -1 on: b + E u(X - b) on {0, 9} rises by 1 - (2·0.1 + 0.5·0.9) = 0.35 up to b = 1.
    function = lambda t: np.where(t >= -1, np.minimum(2 * t, t / 2), -np.inf)  # noqa: E731
    found = Utility(function).certainty_equivalent([0.0, 9.0], [1, 9])
    assert found.budget == pytest.approx(1.0, abs=1e-12)
    assert found.value == pytest.approx(1 - 0.1 * 2 + 0.9 * 4, abs=1e-11)


def narrow(t):
    """t on [-0.1, 0.1], and -inf elsewhere (not monotone)."""
    return np.where(np.abs(t) <= 0.1, t, -np.inf)


def test_a_domain_too_narrow_for_every_budget_is_said() -> None:
    assert Utility(narrow).certainty_equivalent([0.0, 0.15]).value == pytest.approx(0.075)
    with pytest.raises(OcerlError, match="is -inf for every b: the values from 0 to 1"):
        Utility(narrow).certainty_equivalent([0.0, 1.0])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda t: t**3, r"R3 \(concave\) fails"),
        (lambda t: t / 2, r"R5 .* fails: u\(-0\.5\) = -0\.25 is above the line t; normalise it to"),
        (lambda t: t + 1, r"R5 .* fails: u\(0\) = 1, not 0; normalise it to"),
        (np.sqrt, r"R1 \(proper\) fails: u\(-0\.5\) = nan; give -inf"),
    ],
)
def test_a_utility_that_breaks_a_needed_condition_is_refused_by_name(function, message: str) -> None:
    with pytest.raises(OcerlError, match=message):
        Utility(function, label="mine").certainty_equivalent([0.0, 0.5])


def test_conditions_are_judged_where_the_distribution_reaches() -> None:
    bent = Utility(lambda t: np.where(t < -2, 0.0, t))  # concave on the default range only
    assert bent.certainty_equivalent([0.0, 1.0]).value == pytest.approx(0.5)
    with pytest.raises(OcerlError, match="R3"):
        bent.certainty_equivalent([0.0, 5.0])


def test_a_sure_reward_is_worth_itself() -> None:
    assert Utility(np.log1p).certainty_equivalent([7.0, 7.0]).value == 7.0


def test_monotone_is_judged_on_the_declared_range() -> None:
    plain = MeanVariance(0.1).utility  # rises up to t = 5
    assert Utility(plain).monotone
    assert not Utility(plain, low=-6.0, high=6.0).monotone


def test_v_max_of_a_utility() -> None:
    assert Utility(np.log1p).v_max(-0.5, 1.0) == pytest.approx(math.log(2))
    assert Utility(np.log1p).v_max(-1.0, 1.0) == math.inf
    assert Utility(MeanVariance(1.0).utility).v_max(0.0, 1.0) == pytest.approx(0.25)
    with pytest.raises(OcerlError, match="R3"):
        Utility(lambda t: t**3).v_max(-1.0, 1.0)


def test_utility_passes_jax_arrays_through() -> None:
    risk = Utility(lambda t: 1 - jnp.exp(-t), label="exponential")
    assert float(jax.jit(jax.grad(risk.utility))(0.5)) == pytest.approx(math.exp(-0.5), rel=1e-6)
    result = risk.certainty_equivalent(*RISKY)
    assert abs(result.value - Entropic(-1.0).certainty_equivalent(*RISKY).value) <= result.tolerance < 1e-4


def test_utility_of_a_float_is_a_float() -> None:
    assert Utility(lambda t: np.where(t < 0, 2 * t, 0.0)).utility(-1.5) == -3.0
    assert isinstance(Utility(lambda t: np.where(t < 0, 2 * t, 0.0)).utility(-1.5), float)


def test_utilities_are_named_for_display() -> None:
    assert Utility(np.log1p, label="log").name == "utility:log"
