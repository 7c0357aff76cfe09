"""`ocerl train`, `ocerl reproduce oce-table` and `ocerl reproduce learning-curves` as a user runs them."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ocerl.cli import main
from ocerl.gradient import StochasticBudgetPolicy
from ocerl.gradient.deep.config import DeepConfig
from ocerl.planning import evaluate

COMMAND = [sys.executable, "-m", "ocerl.cli"]


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The JSON of a command that succeeds and says nothing else."""
    assert main([*words, "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return json.loads(printed.out)


def test_train_prints_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "train", "paper", "--risk", "cvar:0.25", "--updates", "300", "--seeds", "3")
    assert {"risk", "oracle", "seeds", "value_mean", "value_ci", "optimum", "seconds"} <= set(found)
    assert [set(run) >= {"seed", "value", "budget", "curve"} for run in found["seeds"]] == [True] * 3
    assert [run["value"] for run in found["seeds"]] == [0.75] * 3
    assert found["optimum"] == 0.75


def test_train_writes_what_reads_back(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["train", "paper", "--risk", "mean-variance:2", "--updates", "300", "--out", str(tmp_path)]
    assert main(words) == 0
    assert "0.820312" in capsys.readouterr().out
    policy = StochasticBudgetPolicy.load(tmp_path / "policy")
    assert evaluate(policy.lattice.model, policy).certainty_equivalent("mean-variance:2") == 105 / 128
    assert json.loads((tmp_path / "train.json").read_text())["settings"]["updates"] == 300


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--updates", "0"], "updates must be a whole number of at least 1, got 0"),
        (["--seeds", "0"], "seeds must be a whole number of at least 1, got 0"),
        (["--oracle", "dqn"], "invalid choice: 'dqn'"),
        (["--oracle", "npg-exact", "--episodes", "9"], "npg-exact has no option episodes"),
        (["--step-size", "-1"], "the step size must be a positive number, got -1"),
        (["--exploration", "2"], "exploration must be a probability in [0, 1], got 2"),
        (["--resume"], "has no checkpoint.npz to resume from"),
        (["--risk", "cvar:2"], "tau must be a number with 0 < tau <= 1"),
    ],
)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], message: str
) -> None:
    out = tmp_path / "out"
    assert main(["train", "paper", "--risk", "cvar:0.25", *words, "--out", str(out)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("ocerl: ")
    assert printed.err.count("\n") == 1
    assert message in printed.err
    assert not out.exists()


@pytest.mark.slow
def test_a_killed_command_resumes_to_the_same_bits(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["train", "paper", "--risk", "cvar:0.25", "--updates", "200000", "--seeds", "2"]
    killed = tmp_path / "killed"
    with subprocess.Popen([*COMMAND, *words, "--out", str(killed)], stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 120
        while not (killed / "checkpoint.npz").exists():
            assert time.monotonic() < deadline
            assert process.poll() is None, "it ended before there was a checkpoint"
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    assert not (killed / "train.json").exists()
    resumed = document(capsys, *words, "--out", str(killed), "--resume")
    whole = document(capsys, *words)
    resumed.pop("seconds")
    whole.pop("seconds")
    assert resumed == whole


@pytest.mark.slow
def test_the_table_of_oces(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    began = time.monotonic()
    found = document(capsys, "reproduce", "oce-table", "--out", str(tmp_path))
    assert time.monotonic() - began < 120
    optimum = {
        "mean-variance:1": 273 / 256,
        "mean-variance:2": 105 / 128,
        "entropic:-1": 1.253721,
        "entropic:-2": 0.906654,
        "cvar:0.25": 0.75,
        "cvar:0.5": 1.125,
    }
    markov = dict(zip(optimum, (0.953125, 0.5, 1.253721, 0.906654, 0.5, 1.0), strict=True))
    rows = {row["risk"]: row for row in found["rows"]}
    for risk, best in optimum.items():
        row = rows[risk]
        assert row["optimum"] == pytest.approx(best, abs=1e-6)
        assert row["best_markov"] == pytest.approx(markov[risk], abs=1e-6)
        assert row["markov_optimal"] is risk.startswith("entropic")
        for algorithm in ("optimistic", "policy_optimization"):
            values = row[algorithm]["values"]
            assert len(values) == 10
            assert row[algorithm]["mean"] == pytest.approx(best, abs=0.005)
            assert min(values) >= best - 0.02
            assert max(values) <= row["optimum"] + 1e-9
    # The appendix's truncated form: other best Markov values, the same optima (at most the top is reached).
    assert rows["monotone-mean-variance:1"]["best_markov"] == pytest.approx(1.0375)
    assert rows["monotone-mean-variance:2"]["best_markov"] == pytest.approx(0.75)
    with (tmp_path / "oce-table.csv").open(newline="") as file:
        assert [row["risk"] for row in csv.DictReader(file)] == list(rows)
    assert json.loads((tmp_path / "oce-table.json").read_text())["rows"] == found["rows"]
    assert (tmp_path / "oce-table.png").read_bytes().startswith(b"\x89PNG")


def test_learning_curves_in_small(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is asked of training, and what is done with its answers, which come by hand."""
    asked: list[tuple[str, bool]] = []

    def answer(environment: str, risk: str, *, oracle: str, hide_budget: bool, **rest: Any) -> Any:
        asked.append((oracle, hide_budget))
        assert (environment, risk) == ("paper", "cvar:0.25")
        assert (rest["seeds"], rest["seed"], rest["steps"]) == (2, 1, 30 * 256)
        best = 0.5 if hide_budget else 0.75
        return SimpleNamespace(
            updates=np.array([0, 30]),
            values=np.array([[0.5, 0.25], [best, best]]),
            runs=[SimpleNamespace(value=best)] * 2,
            config=DeepConfig(oracle=oracle, environments=64, rollout=4, group=1, minibatches=1),  # type: ignore[arg-type]
            seconds=1.0,
        )

    monkeypatch.setattr("ocerl.experiments.learning_curves.train", answer)
    words = ("reproduce", "learning-curves", "--seeds", "2", "--updates", "30", "--seed", "1")
    found = document(capsys, *words, "--out", str(tmp_path))
    assert sorted(asked) == [
        ("ppo-backward", False),
        ("ppo-forward", False),
        ("ppo-forward", True),
        ("reinforce", False),
    ]
    assert (found["optimum"], found["best_markov"], found["seeds"]) == (0.75, 0.5, [1, 2])
    assert [curve["oracle"] for curve in found["curves"]] == ["reinforce", "ppo-forward", "ppo-backward"]
    assert [curve["gradient_steps_per_update"] for curve in found["curves"]] == [1, 4, 4]
    assert [curve["reached"] for curve in found["curves"]] == [30, 30, 30]
    assert found["control"]["reached"] is None
    assert found["control"]["final"] == [0.5, 0.5]
    assert json.loads((tmp_path / "learning-curves.json").read_text())["curves"] == found["curves"]
    assert (tmp_path / "learning-curves.png").read_bytes().startswith(b"\x89PNG")
    main([*words])
    lines = capsys.readouterr().out.splitlines()
    assert [next(line for line in lines if name in line).split()[-2] for name in ("reinforce", "hidden")] == [
        "30",
        "never",
    ]


@pytest.mark.slow
def test_learning_curves(capsys: pytest.CaptureFixture[str]) -> None:
    """All 15 runs end at the optimum, each mean is there before 8,000 updates, the control stays where it must."""
    found = document(capsys, "reproduce", "learning-curves")
    assert (found["optimum"], found["best_markov"], found["seeds"]) == (0.75, 0.5, [0, 1, 2, 3, 4])
    assert [curve["oracle"] for curve in found["curves"]] == ["reinforce", "ppo-forward", "ppo-backward"]
    for curve in found["curves"]:
        assert len(curve["final"]) == 5
        assert min(curve["final"]) >= 0.74
        assert curve["reached"] is not None
        assert curve["reached"] < 8000
    # Without sight of the budget the greedy policy is a Markov policy: more would mean that the budget leaks.
    assert np.max(found["control"]["values"]) <= 0.5 + 1e-9
    assert np.max(found["control"]["final"]) <= 0.5 + 1e-9
