"""`ocerl explore` with the oracles for rich observations, and the studies of them, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ocerl.cli import main


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The JSON of a command that succeeds and says nothing else."""
    assert main([*words, "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return json.loads(printed.out)


def test_golf_explores_the_lock(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["explore", "risky-lock", "--bits", "10", "--horizon", "2", "--oracle", "golf", "--risk", "cvar:0.25"]
    found = document(capsys, *words, "--rounds", "600", "--seeds", "2", "--out", str(tmp_path))
    # Advance, then the safe half: 2% fall, so the worst quarter has 0.23 · 0.5 / 0.25.
    assert found["optimum"] == pytest.approx(0.46)
    assert [run["value"] for run in found["seeds"]] == pytest.approx([0.46, 0.46])
    assert json.loads((tmp_path / "explore.json").read_text())["oracle"] == "golf"
    assert (tmp_path / "regret.svg").exists()


def test_repucb_explores_the_low_rank_lock(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["explore", "low-rank", "--states", "60", "--oracle", "repucb", "--risk", "cvar:0.25"]
    found = document(capsys, *words, "--rounds", "150", "--seed", "3")
    assert found["seeds"][0]["value"] == pytest.approx(found["optimum"])
    assert found["settings"]["episodes_per_round"] == 4


def test_ucbvi_sees_the_same_worlds_as_tables(capsys: pytest.CaptureFixture[str]) -> None:
    lock = document(capsys, "explore", "risky-lock", "--bits", "2", "--risk", "mean", "--rounds", "20")
    # The optimum of the small world, whatever the bits: 4 · 0.125 with luck, and 0.5 at the end.
    assert lock["optimum"] == pytest.approx(sum(0.125 * 0.98**k for k in range(1, 5)) + 0.5 * 0.98**4)
    document(capsys, "explore", "low-rank", "--states", "20", "--risk", "mean", "--rounds", "20")


def test_a_study_writes_its_figure(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["reproduce", "exogenous", "--seeds", "1", "--sizes", "1,2", "--limit", "150", "--out", str(tmp_path)]
    assert main(words) == 0
    assert "golf, cvar:0.25: m=1" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} >= {"exogenous.json", "exogenous.svg", "exogenous.png"}
    assert [one["oracle"] for one in json.loads((tmp_path / "exogenous.json").read_text())["series"]][:2] == [
        "golf",
        "ucbvi",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["low-rank", "--states", "20", "--rank", "30", "--oracle", "repucb"], "rank 30 is larger than the number of"),
        (["paper", "--oracle", "repucb", "--rank", "4"], "the rank 4 is larger than the number of states, 3"),
        (["paper", "--rank", "2"], "a rank is for repucb, ucbvi has none"),
        (["paper", "--bits", "2", "--oracle", "golf"], "--bits belongs to the worlds risky-lock, low-rank"),
        (["risky-lock", "--states", "9", "--oracle", "golf"], "risky-lock has no parameter 'states'; it has bits"),
        (["risky-lock", "--bits", "30", "--oracle", "golf"], "exogenous bits must be at most 20, got 30"),
        (["risky-lock", "--bits", "16"], "take fewer bits, or an oracle that decodes observations (golf)"),
        (["risky-lock", "--start", "2", "--oracle", "golf"], "leave --discount and --start out"),
        (["risky-lock", "--oracle", "golf", "--per-step"], "and has no bonus_scale, delta, known_rewards"),
        (["risky-lock", "--oracle", "gulf"], "there is no oracle 'gulf': choose one of ucbvi"),
        (["machine-replacement", "--oracle", "repucb"], "reward depends on the next state"),
    ],
)
def test_errors_are_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["explore", *words, "--risk", "cvar:0.25", "--rounds", "5"])
    printed = capsys.readouterr()
    assert status == 2
    assert printed.out == ""
    assert message in printed.err
    assert printed.err.count("\n") == 1


def test_states_with_fewer_actions_are_no_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(document(capsys, "explore", "chow", "--oracle", "golf", "--risk", "mean", "--rounds", "5")["seeds"]) == 1


def test_wrong_sizes_and_resuming(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["reproduce", "rank", "--sizes", "20,x"]) == 2
    assert "must be whole numbers of at least 1 with commas between, got 20,x" in capsys.readouterr().err
    assert main(["reproduce", "rank", "--sizes", "20", "--limit", "3"]) == 2
    assert "(limit) must be a whole number of at least 100, got 3" in capsys.readouterr().err
    words = ["explore", "risky-lock", "--oracle", "golf", "--risk", "mean", "--rounds", "5", "--out", str(tmp_path)]
    assert main([*words, "--resume"]) == 2
    assert "golf writes no checkpoints" in capsys.readouterr().err
