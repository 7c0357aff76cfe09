"""`train_tabular`: its report, its checkpoints and its errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ocerl.errors import OcerlError
from ocerl.gradient import StochasticBudgetPolicy, Training, train_tabular
from ocerl.mdp import random_mdp, zoo
from ocerl.planning import evaluate
from ocerl.risk import mean_interval

PAPER = zoo.make("paper")


class KilledError(Exception):
    """What a kill stands for here."""


def without_time(trained: Training) -> dict[str, Any]:
    return {key: value for key, value in trained.to_dict().items() if key != "seconds"}


def test_the_report() -> None:
    trained = train_tabular(PAPER, "cvar:0.25", seeds=3, updates=150, seed=5)
    report = json.loads(json.dumps(trained.to_dict(), allow_nan=False))
    assert report["risk"] == "cvar:0.25"
    assert report["oracle"] == "npg"
    assert [run["seed"] for run in report["seeds"]] == [5, 6, 7]
    assert report["optimum"] == report["optimum_upper"] == 0.75
    assert report["value_mean"] == pytest.approx(np.mean([run["value"] for run in report["seeds"]]))
    assert report["seconds"] > 0
    for run in report["seeds"]:
        updates = [update for update, _ in run["curve"]]
        assert updates == sorted(set(updates))
        assert (updates[0], updates[-1]) == (0, 150)
        # Uniform play returns 0 and 1 w.p. 1/16, 0.5 w.p. 1/4, 1.5 w.p. 7/16 and 2.5 w.p. 3/16. Then
        # b - 4 E (b - Z)_+ is 0 at 0, 0.5 - 4 · 0.5/16 = 0.375 at 0.5 and 1 - 4 (1/16 + 0.5/4) = 0.25 at 1.
        assert run["lower_bound"][0][1] == pytest.approx(0.375)
        # The bound is one where the first budget was chosen well; early on the estimate can be wrong.
        assert run["lower_bound"][-1][1] <= run["curve"][-1][1] + 1e-12
        assert max(value for _, value in run["curve"]) <= 0.75 + 1e-12
    assert "optimum 0.75" in str(trained)


def test_the_result_is_what_its_policy_has() -> None:
    trained = train_tabular(PAPER, "cvar:0.25", seeds=2, updates=150)
    for run, value in zip(trained.runs, trained.values[-1], strict=True):
        assert evaluate(PAPER, run.policy).certainty_equivalent("cvar:0.25") == run.value
        assert evaluate(PAPER, run.softmax).certainty_equivalent("cvar:0.25") == pytest.approx(value)
        assert run.policy.budget == run.budget


def test_a_killed_run_resumes_to_the_same_bits(tmp_path: Path) -> None:
    def kill(done: int, total: int) -> None:
        if done >= 120:
            raise KilledError

    model = random_mdp(1, states=3, horizon=3)
    for oracle in ("npg", "reinforce-tabular", "npg-exact"):
        folder = tmp_path / oracle
        settings: dict[str, Any] = {"oracle": oracle, "updates": 300, "seeds": 2, "folder": folder}
        with pytest.raises(KilledError):
            train_tabular(model, "cvar:0.3", **settings, progress=kill)
        assert not list(folder.glob("*.part"))
        resumed = train_tabular(model, "cvar:0.3", **settings, resume=True)
        whole = train_tabular(model, "cvar:0.3", oracle=oracle, updates=300, seeds=2)
        assert without_time(resumed) == without_time(whole)
        for a, b in zip(resumed.runs, whole.runs, strict=True):
            assert np.array_equal(a.softmax.probabilities, b.softmax.probabilities)
        again = train_tabular(model, "cvar:0.3", **settings, resume=True)
        assert without_time(again) == without_time(whole), "a finished run resumes to itself"


def test_a_saved_run_reads_back(tmp_path: Path) -> None:
    trained = train_tabular(PAPER, "cvar:0.25", seeds=2, updates=150)
    trained.save(tmp_path)
    loaded = StochasticBudgetPolicy.load(tmp_path / "policy")
    assert evaluate(loaded.lattice.model, loaded).certainty_equivalent("cvar:0.25") == trained.best.value
    assert json.loads((tmp_path / "train.json").read_text())["value_mean"] == trained.value_mean


def test_rounded_rewards_give_a_lower_value() -> None:
    model = random_mdp(3, states=3, horizon=10, continuous=True)
    trained = train_tabular(model, "cvar:0.3", oracle="npg-exact", updates=40)
    low, high = trained.optimum
    assert low < high
    assert trained.runs[0].value <= high
    assert trained.runs[0].value >= low - 0.05 * abs(low)
    assert trained.runs[0].returns.error[0] >= -1e-9


def test_students_interval() -> None:
    # t(0.975, 2) = 4.302653; the deviation of 1, 2, 3 is 1.
    interval = mean_interval(np.array([1.0, 2.0, 3.0]))
    assert interval is not None
    assert interval[1] - 2.0 == pytest.approx(4.302653 / np.sqrt(3))
    assert mean_interval(np.array([1.0])) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"oracle": "ppo"}, "no tabular oracle 'ppo'; there are npg, npg-exact, reinforce-tabular"),
        ({"updates": 0}, "updates must be a whole number of at least 1, got 0"),
        ({"seeds": 0}, "seeds must be a whole number of at least 1, got 0"),
        ({"seeds": 2.5}, "seeds must be a whole number of at least 1, got 2.5"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"oracle": "npg-exact", "episodes": 5}, "npg-exact has no option episodes; it has step_size, growth"),
        ({"episodes": 0}, "at least 1 episode, got 0"),
        ({"budgets": 1}, "at least 2 first budgets are needed, got 1"),
        ({"resume": True}, "to resume, give the folder"),
    ],
)
def test_bad_input_is_one_clear_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(OcerlError, match=message):
        train_tabular(PAPER, "cvar:0.25", **settings)


def test_what_cannot_be_resumed(tmp_path: Path) -> None:
    with pytest.raises(OcerlError, match=r"has no checkpoint\.npz to resume from"):
        train_tabular(PAPER, "cvar:0.25", folder=tmp_path, resume=True)
    train_tabular(PAPER, "cvar:0.25", seeds=1, updates=10, folder=tmp_path)
    with pytest.raises(OcerlError, match=r"has risk cvar:0\.25, not cvar:0\.5: resume it as it was begun"):
        train_tabular(PAPER, "cvar:0.5", seeds=1, updates=10, folder=tmp_path, resume=True)
    with pytest.raises(OcerlError, match="has model"):
        train_tabular(
            PAPER.with_(start="s2"), "cvar:0.25", seeds=1, updates=10, budgets=5, folder=tmp_path, resume=True
        )
    (tmp_path / "checkpoint.npz").write_bytes(b"PK\x03\x04 not one")
    with pytest.raises(OcerlError, match="is not a checkpoint"):
        train_tabular(PAPER, "cvar:0.25", seeds=1, updates=10, folder=tmp_path, resume=True)
