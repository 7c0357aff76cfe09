"""A small version of both studies: GOLF and Rep-UCB stay, UCB-VI grows; and the sums behind the figures by hand."""

from __future__ import annotations

import pytest

from ocerl.experiments.rich import Run, Series, exogenous_study, rank_study
from ocerl.report.rich import plot_rich


def test_exogenous_bits_cost_ucbvi_but_not_golf() -> None:
    """Horizon 3, one risk, two seeds."""
    study = exogenous_study(bits=(1, 8), risks=("cvar:0.25",), seeds=2, limit=3000, horizon=3, workers=1)
    golf, ucbvi = study.series
    assert golf.spread is not None
    assert golf.spread < 2
    few, many = ucbvi.means()
    assert few is not None
    assert many is None or many > 4 * few
    assert "GOLF" in [text.get_text() for text in plot_rich(study).axes[0].get_legend().get_texts()]  # type: ignore[union-attr]


def test_states_cost_ucbvi_but_not_repucb() -> None:
    study = rank_study(states=(20, 200), risks=("cvar:0.25",), seeds=2, limit=4000, workers=1)
    repucb, *_, ucbvi = study.series
    assert repucb.spread is not None
    assert repucb.spread < 2
    few, many = ucbvi.means()
    assert few is not None
    assert many is None or many > 4 * few
    assert study.to_dict()["series"][0]["oracle"] == "repucb"


def test_a_mean_needs_all_seeds() -> None:
    done, never = Run(200, 200, 0.96, 1.0), Run(None, 1000, 0.5, 0.5)
    series = Series(
        "golf", "mean", "m", (1, 2, 4), ((done, Run(400, 400, 1.0, 1.0)), (done, never), (done, done)), 1000
    )
    assert series.means() == [300.0, None, 200.0]
    assert series.spread is None
    low, high = series.intervals()[0] or (0.0, 0.0)
    # Student with one degree of freedom: 12.706 · 100.
    assert (low, high) == pytest.approx((300 - 1270.6, 300 + 1270.6), abs=0.1)
    assert "m=2: 1 of 2 within 1000" in str(series)
    assert Series("golf", "mean", "m", (1, 2), ((done,), (Run(300, 300, 1.0, 1.0),)), 1000).spread == 1.5
