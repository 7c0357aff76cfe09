"""The command line: what it prints, what it writes, and what it says when something is wrong."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ocerl.cli import _shared, main
from ocerl.planning import evaluate, load_policy

COMMAND = [sys.executable, "-m", "ocerl.cli"]

HEADER = "idstatefrom,idaction,idstateto,probability,reward\n"
IRRATIONAL = f"{HEADER}1,1,1,1,{2**0.5!r}\n1,2,1,1,{3**0.5 / 2!r}\n"
"""Action 1 pays sqrt(2) and action 2 pays less, in every step; no lattice holds both."""
LOTTERY = HEADER + "12,1,12,1,0\n37,1,12,0.5,0\n37,1,12,0.5,8\n37,2,12,1,3\n"
"""State 12 is the end. In state 37, action 1 pays 0 or 8, and action 2 pays 3."""


@pytest.fixture
def lottery(tmp_path: Path) -> str:
    path = tmp_path / "lottery.csv"
    path.write_text(LOTTERY)
    return str(path)


@pytest.fixture
def irrational(tmp_path: Path) -> str:
    path = tmp_path / "irrational.csv"
    path.write_text(IRRATIONAL)
    return str(path)


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The JSON of a command that succeeds and says nothing else."""
    assert main([*words, "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""

    def refuse(constant: str) -> float:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(printed.out, parse_constant=refuse)


def refused(capsys: pytest.CaptureFixture[str], words: Sequence[str], out: Path) -> str:
    """The one line of a command that is refused and leaves nothing behind."""
    assert main([*words, "--out", str(out)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("ocerl: ")
    assert printed.err.count("\n") == 1
    assert printed.err.endswith("\n")
    assert "Traceback" not in printed.err
    assert not out.exists()
    return printed.err


def assert_pictures(folder: Path, name: str) -> None:
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert ElementTree.parse(folder / f"{name}.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_plan(capsys: pytest.CaptureFixture[str]) -> None:
    """The optimum of the paper's MDP: 0 with probability 1/8 and 1.5 with 7/8, so CVaR_0.25 = 1.5 / 2."""
    found = document(capsys, "plan", "paper", "--risk", "cvar:0.25")
    assert found.pop("seconds") > 0
    assert found == {
        "model": "paper",
        "risk": "cvar:0.25",
        "horizon": 2,
        "discount": 1.0,
        "value": 0.75,
        "lower": 0.75,
        "upper": 0.75,
        "exact": True,
        "budget": 1.5,
        "resolution": 0.5,
        "return": {"values": [0.0, 1.5], "probabilities": [0.125, 0.875], "mean": 1.3125},
        "risk_neutral": {"value": 1.625, "oce": 0.5},
    }


def test_the_best_markov_policy(capsys: pytest.CaptureFixture[str]) -> None:
    """Both Markov policies have CVaR_0.25 = 0.5: of 0, 1, 1.5, 2.5 at the budget 1, of 0.5, 1.5 at 0.5."""
    found = document(capsys, "plan", "paper", "--risk", "cvar:0.25", "--policy", "markov")
    assert found["policy"] == "markov"
    assert (found["value"], found["lower"], found["upper"], found["exact"]) == (0.5, 0.5, 0.5, True)
    assert (found["return"]["mean"], found["budget"]) in {(1.625, 1.0), (1.0, 0.5)}
    assert found["risk_neutral"] == {"value": 1.625, "oce": 0.5}
    assert found["risk"] == "cvar:0.25"
    assert (found["horizon"], found["discount"]) == (2, 1.0)
    assert found["seconds"] > 0


def test_rewards_without_a_lattice_are_bracketed(capsys: pytest.CaptureFixture[str], irrational: str) -> None:
    found = document(capsys, "plan", irrational, "--risk", "cvar:0.5", "--horizon", "3", "--resolution", "0.01")
    assert not found["exact"]
    assert found["lower"] <= 3 * 2**0.5 <= found["upper"]
    assert found["upper"] - found["lower"] <= 2 * 3 * 0.01, "rounded down and up, by at most a unit a step"


def test_a_discount(capsys: pytest.CaptureFixture[str], lottery: str) -> None:
    found = document(capsys, "plan", lottery, "--risk", "mean", "--horizon", "2", "--start", "37", "--discount", "0.5")
    assert (found["value"], found["discount"]) == (4.0, 0.5), "all is paid in the first step"


def test_frontier(capsys: pytest.CaptureFixture[str]) -> None:
    """Up to the level at which 2.5 is worth more than 1.5 is safe, (a1, a2) is best: 1.5 - 1.5 / (8 tau)."""
    found = document(capsys, "frontier", "paper", "--risk", "cvar", "--levels", "0.25,0.5,1")
    assert found.pop("seconds") > 0
    points = [(0.25, 0.75, 1.5, 1.3125), (0.5, 1.125, 1.5, 1.3125), (1.0, 1.625, 2.5, 1.625)]
    assert found == {
        "model": "paper",
        "risk": "cvar",
        "horizon": 2,
        "discount": 1.0,
        "exact": True,
        "points": [
            {"level": level, "value": value, "lower": value, "upper": value, "budget": budget, "mean": mean}
            for level, value, budget, mean in points
        ],
    }


def test_levels_from_low_to_high(capsys: pytest.CaptureFixture[str]) -> None:
    points = document(capsys, "frontier", "paper", "--levels", "0.05:1:0.05")["points"]
    assert [point["level"] for point in points] == pytest.approx([k / 20 for k in range(1, 21)])


def test_the_markov_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Table 1 and the exact columns of Table 2, worked out by hand in the tests of the planner."""
    found = document(capsys, "reproduce", "markov-table")
    assert [(row["values"], row["probabilities"], row["cvar:0.25"]) for row in found["policies"]] == [
        ([0.0, 1.0, 1.5, 2.5], [0.125, 0.125, 0.375, 0.375], 0.5),
        ([0.5, 1.5], [0.5, 0.5], 0.5),
        ([0.0, 1.5], [0.125, 0.875], 0.75),
    ]
    rows = {row["risk"]: (row["optimum"], row["markov"], row["markov_optimal"]) for row in found["risks"]}
    assert rows["cvar:0.25"] == (0.75, 0.5, False)
    assert rows["cvar:0.5"] == (1.125, 1.0, False)
    assert rows["mean-variance:1"] == pytest.approx((273 / 256, 61 / 64, False))
    assert rows["monotone-mean-variance:2"] == pytest.approx((105 / 128, 3 / 4, False))
    assert rows["entropic:-1"][2]


def test_states_are_named_as_in_the_file(capsys: pytest.CaptureFixture[str], lottery: str) -> None:
    """From 37, CVaR_0.5 of the bet is 0 and 3 is sure; 12, the file's first state, is the end."""
    words = ["plan", lottery, "--risk", "cvar:0.5", "--horizon", "1"]
    assert document(capsys, *words, "--start", "37")["value"] == 3.0
    assert document(capsys, *words)["value"] == 0.0
    assert main([*words, "--start", "37"]) == 0
    assert "37" in capsys.readouterr().out


def test_a_gymnasium_table(capsys: pytest.CaptureFixture[str]) -> None:
    """On the slippery lake a move goes as meant, or to either side, with 1/3 each; the goal is six moves away.

    Backwards along the ways of six moves, p(14) = 1/3, p(10) = p(13) = 1/9, p(9) = 2/27, p(8) = 2/81,
    p(4) = 2/243; p(6) = 1/27, p(2) = 1/81, p(1) = 1/243; p(0) = (p(1) + p(4)) / 3 = 1/243.
    """
    words = ["plan", "FrozenLake-v1", "--risk", "cvar:0.999"]
    found = document(capsys, *words, "--horizon", "6")
    assert found["horizon"] == 6
    assert found["value"] == pytest.approx((1 / 243 - 0.001) / 0.999, abs=1e-12)
    assert found["risk_neutral"]["value"] == pytest.approx(1 / 243, abs=1e-12)
    assert document(capsys, *words, "--horizon", "5")["return"] == {
        "values": [0.0],
        "probabilities": [1.0],
        "mean": 0.0,
    }


def test_what_plan_writes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    found = document(capsys, "plan", "paper", "--risk", "cvar:0.25", "--out", str(out))
    assert json.loads((out / "plan.json").read_text()) == found
    assert_pictures(out, "plan")
    policy = load_policy(out)
    assert evaluate(policy.lattice.model, policy).certainty_equivalent("cvar:0.25") == 0.75


def test_what_plan_writes_of_a_markov_policy(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["plan", "paper", "--risk", "entropic:-1", "--policy", "markov", "--out", str(tmp_path)]
    found = document(capsys, *words)
    assert json.loads((tmp_path / "plan.json").read_text()) == found
    assert_pictures(tmp_path, "plan")
    policy = load_policy(tmp_path)
    assert evaluate(policy.model, policy).certainty_equivalent("entropic:-1") == pytest.approx(found["value"])


def test_what_frontier_writes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = document(capsys, "frontier", "paper", "--levels", "0.5,1", "--out", str(tmp_path))
    assert json.loads((tmp_path / "frontier.json").read_text()) == found
    assert_pictures(tmp_path, "frontier")
    assert load_policy(tmp_path)


def test_what_reproduce_writes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = document(capsys, "reproduce", "markov-table", "--out", str(tmp_path))
    assert json.loads((tmp_path / "markov-table.json").read_text()) == found
    assert_pictures(tmp_path, "markov-table")


def test_the_same_call_writes_the_same_bytes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in ("first", "second"):
        assert main(["frontier", "paper", "--levels", "0.5,1", "--out", str(tmp_path / name)]) == 0
    for suffix in ("png", "svg"):
        first, second = ((tmp_path / name / f"frontier.{suffix}").read_bytes() for name in ("first", "second"))
        assert first == second


def test_without_json_a_person_reads_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["plan", "paper", "--risk", "cvar:0.25", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    for part in ("cvar:0.25", "0.75 (exact)", "first budget 1.5", "1.625", "s2", "a2", str(tmp_path)):
        assert part in printed.out


def test_names_are_printed_as_they_are(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Brackets, colons and length do not matter."""
    names = ["[red]low[/red]", ":smile:", "[/]", "a" * 200]
    path = tmp_path / "model.csv"
    path.write_text(HEADER + "".join(f"{name},{action},end,1,0\n" for name in names for action in (1, 2)))
    for name in names:
        assert main(["plan", str(path), "--risk", "mean", "--horizon", "1", "--start", name]) == 0
        assert name in capsys.readouterr().out


CERTAIN = ["--risk", "cvar:0.5", "--horizon", "2"]


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("plan nowhere.csv --risk cvar:0.5 --horizon 2", ["nowhere.csv", "no such file"]),
        ("plan papr --risk cvar:0.5 --horizon 2", ["'papr'", "did you mean paper?", "CSV", "FrozenLake-v1"]),
        ("plan NoSuchLake-v1 --risk cvar:0.5 --horizon 2", ["NoSuchLake"]),
        ("plan CartPole-v1 --risk cvar:0.5 --horizon 2", ["CartPole-v1", "table"]),
        ("plan paper --risk cvar:0.5 --horizon 2 --start s9", ["'s9'", "s1"]),
        ("plan paper --risk cvar:0", ["0 < tau <= 1", "got 0"]),
        ("plan paper --risk cvar:1.5", ["0 < tau <= 1", "got 1.5"]),
        ("plan paper --risk cvar:nan", ["0 < tau <= 1", "nan"]),
        ("plan paper --risk entropic:1", ["beta < 0", "got 1"]),
        ("plan paper --risk entropic:0", ["beta < 0", "got 0"]),
        ("plan paper --risk mean-variance:0", ["0 < c", "got 0"]),
        ("plan paper --risk monotone-mean-variance:-1", ["0 < c", "got -1"]),
        ("plan paper --risk varc:0.1", ["'varc:0.1'", "cvar:tau"]),
        ("plan paper", ["--risk"]),
        ("plan --risk cvar:0.5 --horizon 2", ["MODEL"]),
        ("plan paper --risk mean --horizon 0", ["horizon", "at least 1", "got 0"]),
        ("plan paper --risk mean --horizon two", ["--horizon", "'two'"]),
        ("plan paper --risk mean --discount 0", ["(0, 1]", "got 0"]),
        ("plan paper --risk mean --discount 1.1", ["(0, 1]", "got 1.1"]),
        ("plan paper --risk mean --resolution 0", ["--resolution", "positive", "got 0"]),
        ("plan paper --risk mean --resolution nan", ["--resolution", "positive", "got nan"]),
        ("frontier paper --resolution -0.1", ["--resolution", "positive", "got -0.1"]),
        ("plan paper --risk mean --seed -1", ["--seed", "at least 0", "got -1"]),
        ("plan paper --risk mean --policy best", ["--policy", "'best'", "history", "markov"]),
        ("plan paper --risk mean --colour red", ["--colour"]),
        ("frontier paper --levels 1:0:0.1", ["low:high:step", "got 1:0:0.1"]),
        ("frontier paper --levels 0.1:1:0", ["low:high:step", "got 0.1:1:0"]),
        ("frontier paper --levels a,b", ["low:high:step", "got a,b"]),
        ("frontier paper --levels ''", ["low:high:step"]),
        ("frontier paper --levels 0,0.5", ["0 < tau <= 1", "got 0"]),
        ("frontier paper --levels 0.5,2", ["0 < tau <= 1", "got 2"]),
        ("frontier paper --risk mean", ["--risk", "'mean'", "cvar"]),
        ("reproduce table-9", ["'table-9'", "markov-table"]),
        ("pln paper", ["'pln'", "plan"]),
    ],
)
def test_nonsense(capsys: pytest.CaptureFixture[str], tmp_path: Path, words: str, parts: list[str]) -> None:
    line = refused(capsys, shlex.split(words), tmp_path / "out")
    for part in parts:
        assert part in line


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("", ["empty", "idstatefrom"]),
        (HEADER, ["no outcome"]),
        ("idstatefrom,idaction,probability\n1,1,1\n", ["line 1", "idstateto, reward"]),
        (HEADER + "1,1,1,nan,0\n", ["line 2", "probability", "nan"]),
        (HEADER + "1,1,1,1,0\n1,2,1,1,inf\n", ["line 3", "reward", "inf"]),
        (HEADER + "1,1,1,1,much\n", ["line 2", "reward", "'much'"]),
        (HEADER + "1,1,1,1.5,0\n1,1,2,-0.5,0\n", ["line 2", "1.5", "between 0 and 1"]),
        (HEADER + "1,1,1,0.5,0\n1,1,2,-0.5,0\n", ["line 3", "-0.5", "between 0 and 1"]),
        (HEADER + "1,1,1,1,0\n7,3,1,0.5,0\n7,3,7,0.4,0\n", ["state 7, action 3", "0.9", "sum to 1"]),
        (HEADER + "1,1,1,1\n", ["line 2", "4 fields", "5"]),
        ("\udcff", ["line 1", "UTF-8"]),
    ],
    ids=[
        "empty",
        "no outcome",
        "no column",
        "nan",
        "inf",
        "no number",
        "above 1",
        "negative",
        "sum",
        "fields",
        "bytes",
    ],
)
def test_a_file_that_is_no_model(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str, parts: list[str]
) -> None:
    path = tmp_path / "model.csv"
    path.write_bytes(content.encode(errors="surrogateescape"))
    line = refused(capsys, ["plan", str(path), *CERTAIN], tmp_path / "out")
    for part in (str(path), *parts):
        assert part in line


def test_a_file_does_not_know_its_horizon(capsys: pytest.CaptureFixture[str], tmp_path: Path, lottery: str) -> None:
    assert "--horizon" in refused(capsys, ["plan", lottery, "--risk", "mean"], tmp_path / "out")


def test_a_folder_is_no_model(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "is a folder" in refused(capsys, ["plan", str(tmp_path), *CERTAIN], tmp_path / "out")


@pytest.mark.parametrize("risk", ["cvar:0.5", "entropic:-1", "mean-variance:1"])
def test_more_memory_than_there_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, irrational: str, risk: str
) -> None:
    words = ["plan", irrational, "--risk", risk, "--horizon", "5", "--resolution", "1e-14"]
    line = refused(capsys, words, tmp_path / "out")
    assert "GiB" in line
    assert "a resolution of" in line


@pytest.mark.parametrize("inside", ["", "deeper/still"])
def test_out_that_cannot_be_written(capsys: pytest.CaptureFixture[str], tmp_path: Path, inside: str) -> None:
    """Known before anything is computed."""
    path = tmp_path / "file"
    path.write_text("mine")
    assert main(["plan", "paper", "--risk", "mean", "--out", str(path / inside)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert (
        printed.err == f"ocerl: argument --out: {path} is not a folder that can be written to (see ocerl plan --help)\n"
    )
    assert path.read_text() == "mine"


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "paper", "--risk", "cvar:2", "--debug"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("Traceback (most recent call last):\n")
    assert "ocerl: 'cvar:2'" in printed.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("error", "status", "parts"),
    [
        (KeyboardInterrupt(), 130, ["stopped"]),
        (MemoryError(), 2, ["memory", "coarser resolution"]),
        (OSError(28, "No space left on device", "there/plan.json"), 2, ["there/plan.json: No space left"]),
        (ZeroDivisionError("division by zero"), 1, ["ZeroDivisionError", "division by zero", "--debug"]),
    ],
)
def test_what_goes_wrong_inside(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    status: int,
    parts: list[str],
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("ocerl.planning.plan", fail)
    assert main(["plan", "paper", "--risk", "mean"]) == status
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("ocerl: ")
    assert printed.err.count("\n") == 1
    for part in parts:
        assert part in printed.err


def test_progress_is_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    with _shared.progress_bar("planning") as progress:
        assert progress is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with _shared.progress_bar("planning") as progress:
        assert progress is not None
        progress(1, 2)


def test_a_process_of_its_own(tmp_path: Path) -> None:
    ran = subprocess.run([*COMMAND, "plan", "paper", "--risk", "cvar:0.25", "--json"], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout)["value"] == 0.75
    ran = subprocess.run([*COMMAND, "plan", "paper", "--risk", "cvar:2"], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("ocerl: ")
    assert ran.stderr.count("\n") == 1


def test_the_installed_command() -> None:
    command = Path(sys.executable).with_name("ocerl")
    ran = subprocess.run([command, "--version"], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("ocerl ")


def test_an_interrupt_is_one_line(tmp_path: Path) -> None:
    """A pipe as the model: once both ends are open, the command is at work, waiting for the first line."""
    pipe = tmp_path / "model.csv"
    os.mkfifo(pipe)
    command = [*COMMAND, "plan", str(pipe), *CERTAIN, "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process, pipe.open("w"):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "ocerl: stopped\n")


def test_a_reader_that_has_seen_enough() -> None:
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run(
        [*COMMAND, "plan", "paper", "--risk", "mean", "--json"], stdout=write, stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    assert (ran.returncode, ran.stderr) == (1, "")
