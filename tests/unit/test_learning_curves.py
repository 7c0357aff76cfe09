"""The learning curves' arithmetic and their picture, on curves that are written down."""

from __future__ import annotations

import json

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

from ocerl.experiments.learning_curves import Curve, LearningCurves
from ocerl.gradient.deep.running import record_marks
from ocerl.report.learning_curves import plot_learning_curves


def curve(values: list[list[float]], *, oracle: str = "reinforce", hidden: bool = False) -> Curve:
    """Records after 0, 10, 20, … updates; the last are the results."""
    at = 10 * np.arange(len(values))
    return Curve(oracle, hidden, at, np.array(values), tuple(values[-1]), 256, 1, 1.0)


def study() -> LearningCurves:
    learned = [[0.25, 0.5], [0.5, 0.5], [0.75, 0.75]]
    curves = tuple(curve(learned, oracle=oracle) for oracle in ("reinforce", "ppo-forward", "ppo-backward"))
    control = curve([[0.0, 0.5], [0.5, 0.5], [0.5, 0.5]], oracle="ppo-forward", hidden=True)
    return LearningCurves(curves, control, 0.75, 0.5, (3, 4), 1.0)


def test_means_and_intervals() -> None:
    found = curve([[0.7, 0.75, 0.8], [0.75, 0.75, 0.75]])
    np.testing.assert_allclose(found.mean, [0.75, 0.75])
    # Student's t(0.975, 2) = 4.302653, standard deviation 0.05 over the root of 3.
    half = 4.302653 * 0.05 / 3**0.5
    assert found.interval is not None
    np.testing.assert_allclose(found.interval, [[0.75 - half, 0.75], [0.75 + half, 0.75]], atol=1e-6)
    assert found.final_interval == (0.75, 0.75)


def test_one_seed_has_no_interval() -> None:
    found = curve([[0.5], [0.75]])
    assert found.interval is None
    assert found.to_dict()["mean_ci"] is found.to_dict()["final_ci"] is None


@pytest.mark.parametrize(
    ("means", "reached"),
    [
        ([0.5, 0.75, 0.75], 10),
        ([0.75, 0.5, 0.75], 20),  # it has to stay
        ([0.75, 0.75, 0.739], None),
        ([0.74, 0.74, 0.74], 0),
    ],
)
def test_when_the_mean_arrives(means: list[float], reached: int | None) -> None:
    assert curve([[mean, mean] for mean in means]).reached == reached


def test_one_seed_left_behind_counts() -> None:
    assert curve([[0.5, 0.5], [0.75, 0.5]]).reached is None


def test_the_document_is_by_seed() -> None:
    document = json.loads(json.dumps(study().to_dict(), allow_nan=False))
    assert document["seeds"] == [3, 4]
    assert document["curves"][0]["values"] == [[0.25, 0.5, 0.75], [0.5, 0.5, 0.75]]
    assert document["curves"][0]["reached"] == 20
    assert document["control"]["hide_budget"] is True
    assert document["control"]["reached"] is None


def test_the_picture() -> None:
    axes = plot_learning_curves(study()).axes[0]
    lines = {str(line.get_label()): line for line in axes.lines}
    for name in ("REINFORCE", "PPO, forward KL", "PPO, backward KL"):
        np.testing.assert_allclose(lines[name].get_ydata(), [0.375, 0.5, 0.75])
    np.testing.assert_allclose(lines["PPO, forward KL, budget hidden"].get_ydata(), [0.25, 0.5, 0.5])
    flat = {tuple(line.get_ydata()) for line in axes.lines if list(line.get_xdata()) == [0, 1]}
    assert {(0.75, 0.75), (0.5, 0.5)} <= flat
    assert [8000, 8000] in [list(line.get_xdata()) for line in axes.lines]
    notes = [text.get_text() for text in axes.texts]
    assert {"optimum 0.75", "best Markov policy 0.5"} <= set(notes)


def test_the_picture_has_a_band_for_each_curve() -> None:
    """At 0 updates the seeds are 0.25 and 0.5: 0.375 ± 12.7062 · 0.125."""
    bands = list(plot_learning_curves(study()).axes[0].collections)
    assert len(bands) == 4
    assert all(isinstance(band, PolyCollection) for band in bands)
    corners = bands[0].get_paths()[0].vertices
    assert isinstance(corners, np.ndarray)
    assert corners[:, 1].max() == pytest.approx(0.375 + 12.7062 * 0.125, abs=1e-4)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("updates", [1, 2, 37, 8000])
def test_runs_are_recorded_from_the_first_update_to_the_last(updates: int, exact: bool) -> None:
    marks = record_marks(updates, 20, exact)
    assert (marks[0], marks[-1]) == (0, updates)
    assert (np.diff(marks) > 0).all()
    assert not exact or {1, 2} & set(range(updates + 1)) <= set(marks.tolist())
    assert marks.size <= 111
