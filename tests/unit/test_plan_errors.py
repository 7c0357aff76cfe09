"""What a planner refuses, each with one line that says what is wrong, what it got and what would be right."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable

import numpy as np
import pytest

from ocerl.errors import OcerlError
from ocerl.mdp.tabular import TabularMDP
from ocerl.planning import best_markov, evaluate, frontier, plan
from ocerl.risk import CVaR, Utility

COIN = TabularMDP.from_outcomes({"s": {"go": [(0.5, "s", 0.0), (0.5, "s", 1.0)], "stay": [(1.0, "s", 0.5)]}})
TWO_STEPS = COIN.with_(horizon=2)
DRIFT = TabularMDP.from_outcomes(
    {"s": {"go": [(0.5, "s", math.sqrt(2)), (0.5, "s", 1.0)], "stay": [(1.0, "s", math.pi - 2)]}}, horizon=3
)
"""Rewards without a common lattice: a resolution is needed, and any is possible."""


def the_line(error: pytest.ExceptionInfo[OcerlError]) -> str:
    """The message, which is one line that ends without a traceback's leftovers."""
    message = str(error.value)
    assert message
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("risk", "got", "right"),
    [
        ("cvar:0", "0", r"0 < tau <= 1"),
        ("cvar:1.5", "1.5", r"0 < tau <= 1"),
        ("cvar:nan", "nan", r"0 < tau <= 1"),
        ("entropic:1", "1", r"beta < 0"),
        ("entropic:0", "0", r"beta < 0"),
        ("mean-variance:0", "0", r"0 < c"),
        ("mean-variance:-1", "-1", r"0 < c"),
        ("monotone-mean-variance:0", "0", r"0 < c"),
        ("mean-cvar:1.5,0.5", "1.5", r"kappa < 1"),
        ("mean-cvar:0.5,0", "0", r"tau <= 1"),
    ],
)
def test_a_risk_outside_its_range(risk: str, got: str, right: str) -> None:
    with pytest.raises(OcerlError) as error:
        plan(TWO_STEPS, risk)
    assert got in the_line(error)
    assert re.search(right, the_line(error))


@pytest.mark.parametrize("risk", ["", "varc:0.1", "cvar", "cvar:0.1,0.2", "cvar:a tenth", "mean:1"])
def test_no_such_risk(risk: str) -> None:
    with pytest.raises(OcerlError) as error:
        plan(TWO_STEPS, risk)
    assert "cvar:" in str(error.value), "the valid forms are shown"


def test_no_horizon() -> None:
    with pytest.raises(OcerlError) as error:
        plan(COIN, "cvar:0.5")
    assert "horizon=" in the_line(error)


@pytest.mark.parametrize("horizon", [0, -3, 2.5, True])
def test_a_horizon_that_is_none(horizon: int) -> None:
    with pytest.raises(OcerlError) as error:
        plan(COIN.with_(horizon=horizon), "cvar:0.5")
    assert "at least 1" in the_line(error)
    assert f"{horizon}" in the_line(error)


@pytest.mark.parametrize("discount", [0.0, -0.5, 1.01, math.nan])
def test_a_discount_that_is_none(discount: float) -> None:
    with pytest.raises(OcerlError) as error:
        plan(TWO_STEPS.with_(discount=discount), "cvar:0.5")
    assert "(0, 1]" in the_line(error)
    assert f"{discount}" in the_line(error)


def test_a_start_that_is_not_there() -> None:
    with pytest.raises(OcerlError) as error:
        plan(TWO_STEPS.with_(start="t"), "cvar:0.5")
    assert "'t'" in the_line(error)
    assert "the model has 1 states: s" in the_line(error)


@pytest.mark.parametrize("start", [{"s": 0.9}, {"s": 1.1}, {"s": math.nan}, {"s": -1.0}])
def test_a_start_that_is_no_distribution(start: dict[str, float]) -> None:
    with pytest.raises(OcerlError) as error:
        plan(TWO_STEPS.with_(start=start), "cvar:0.5")
    assert "start" in the_line(error)


@pytest.mark.parametrize("model", [TWO_STEPS, DRIFT], ids=["lattice", "no lattice"])
@pytest.mark.parametrize("resolution", [0.0, -0.1, math.nan, math.inf])
@pytest.mark.parametrize("risk", ["cvar:0.5", "mean-variance:1", "mean", "entropic:-1"])
def test_a_resolution_that_is_none(model: TabularMDP, resolution: float, risk: str) -> None:
    with pytest.raises(OcerlError) as error:
        plan(model, risk, resolution=resolution)
    assert "resolution must be a positive number" in the_line(error)
    assert f"{resolution}" in the_line(error)


@pytest.mark.parametrize("risk", ["cvar:0.5", "mean-cvar:0.5,0.25", "monotone-mean-variance:1", "mean-variance:1"])
def test_more_memory_than_there_is(risk: str) -> None:
    """Refused at once, before anything is allocated, with a resolution that does fit."""
    began = time.perf_counter()
    with pytest.raises(OcerlError) as error:
        plan(DRIFT, risk, resolution=1e-13)
    assert time.perf_counter() - began < 5.0
    message = the_line(error)
    assert "GiB" in message
    named = re.search(r"resolution of ([0-9.e+-]+)", message)
    assert named, message
    assert float(named[1]) > 1e-13


@pytest.mark.parametrize(
    "task",
    [
        lambda: evaluate(DRIFT, np.zeros((3, 1), dtype=int), resolution=1e-13),
        lambda: plan(DRIFT, "mean", resolution=1e-13),
        lambda: plan(DRIFT, "entropic:-1", resolution=1e-13),
        lambda: frontier(DRIFT, [0.5], resolution=1e-13),
        lambda: best_markov(DRIFT, "cvar:0.5", resolution=1e-13),
    ],
    ids=["evaluate", "mean", "entropic", "frontier", "best_markov"],
)
def test_a_distribution_that_needs_more_memory_than_there_is(task: Callable[[], object]) -> None:
    with pytest.raises(OcerlError) as error:
        task()
    assert "GiB" in the_line(error)


@pytest.mark.parametrize("finest", [2.0**32 + 100, 2.0**64, 1e300], ids=["32 bits", "64 bits", "no integer"])
@pytest.mark.parametrize("risk", ["cvar:0.5", "mean-variance:1"])
def test_a_resolution_beyond_what_is_counted_in(risk: str, finest: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rewards this many units apart would look close, or equal, in integers that are too short."""
    apart = TabularMDP.from_outcomes({"s": {"go": [(0.5, "s", 0.0), (0.5, "s", math.sqrt(2))]}}, horizon=2)
    monkeypatch.setattr("ocerl.planning.memory.available_memory", lambda: 10**9)
    with pytest.raises(OcerlError) as error:
        plan(apart, risk, resolution=math.sqrt(2) / finest)
    assert "resolution" in the_line(error)


def test_the_resolution_that_is_named_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine with a megabyte to spare, the resolution of the message is taken without complaint."""
    monkeypatch.setattr("ocerl.planning.memory.available_memory", lambda: 1_000_000)
    with pytest.raises(OcerlError) as error:
        plan(DRIFT, "cvar:0.5", resolution=1e-7)
    named = re.search(r"resolution of ([0-9.e+-]+)", the_line(error))
    assert named
    result = plan(DRIFT, "cvar:0.5", resolution=float(named[1]))
    assert result.lower <= result.upper
    assert result.upper - result.lower <= 3 * 2 * float(named[1]), "three steps, rounded down and up"


@pytest.mark.parametrize(
    ("function", "failing", "advice"),
    [
        (lambda t: t + 1.0, "R5", "normalise"),
        (lambda t: 2.0 * t, "R5", "normalise"),
        (lambda t: np.where(t < 0, 0.5 * t, 2.0 * t), "R3", "concave"),
    ],
    ids=["u(0) = 1", "slope 2", "convex"],
)
def test_a_utility_that_has_no_certainty_equivalent(function: object, failing: str, advice: str) -> None:
    with pytest.raises(OcerlError) as error:
        plan(TWO_STEPS, Utility(function, label="mine"))  # type: ignore[arg-type]
    assert failing in str(error.value)
    assert advice in str(error.value)


@pytest.mark.parametrize(
    "table",
    [
        np.zeros((3, 1), dtype=int),
        np.zeros((2, 2), dtype=int),
        np.zeros(2, dtype=int),
        np.zeros((1, 2, 1, 2)),
        np.full((2, 1), 2),
        np.full((2, 1), -1),
        np.full((2, 1), 0.5),
        np.full((2, 1, 1), 1.0),
        np.full((2, 1, 2), 0.4),
        np.array([[[1.5, -0.5]], [[0.5, 0.5]]]),
        np.full((2, 1, 2), math.nan),
    ],
    ids=lambda table: f"{table.shape}:{table.flat[0]}",
)
def test_a_table_that_is_no_policy(table: np.ndarray) -> None:
    with pytest.raises(OcerlError) as error:
        evaluate(TWO_STEPS, table)
    assert "Markov table" in the_line(error)


def test_a_shape_is_answered_with_the_right_one() -> None:
    with pytest.raises(OcerlError) as error:
        evaluate(TWO_STEPS, np.zeros((3, 1), dtype=int))
    assert "[2, 1]" in the_line(error)
    assert "[3, 1]" in the_line(error)


@pytest.mark.parametrize("levels", [[], [0.0, 0.5], [0.5, 1.5], [math.nan]])
def test_levels_that_are_none(levels: list[float]) -> None:
    with pytest.raises(OcerlError) as error:
        frontier(TWO_STEPS, levels)
    assert "level" in the_line(error) or "tau" in the_line(error)


@pytest.mark.parametrize("episodes", [0, -1])
def test_no_episodes(episodes: int) -> None:
    with pytest.raises(OcerlError) as error:
        plan(TWO_STEPS, CVaR(0.5)).simulate(episodes)
    assert "at least 1" in the_line(error)
