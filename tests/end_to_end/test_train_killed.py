"""A run of `train` that is killed, with no time to say goodbye, goes on to the same bits."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
import sys
from ocerl.gradient.deep import running, train

running.CHECKPOINT_SECONDS = 0.2
small = dict(environments=8, rollout=4, epochs=1, minibatches=1, hidden=(8,), episodes=40, seeds=2)
run = train("paper", "cvar:0.25", steps=32 * 5000, folder=sys.argv[1], resume=sys.argv[2] == "resume", **small)
run.save(sys.argv[1])
print(run.updates.tolist(), run.values.tobytes().hex(), [(one.value, one.estimate) for one in run.runs])
"""


def command(folder: Path, how: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM, str(folder), how]


def told(folder: Path, how: str) -> str:
    ran = subprocess.run(command(folder, how), capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.slow
def test_killed_and_resumed(tmp_path: Path) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    with subprocess.Popen(command(killed, "begin"), stdout=subprocess.DEVNULL) as running:
        deadline = time.monotonic() + 200
        while not (killed / "checkpoint.npz").exists() and running.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        running.send_signal(signal.SIGKILL)
    assert running.returncode == -9, "it was killed before it was done"
    assert not (killed / "train.json").exists()
    assert told(killed, "resume") == told(whole, "begin")
    for seed in (0, 1):
        mine, theirs = (folder / f"seed-{seed}/policy.npz" for folder in (killed, whole))
        assert mine.read_bytes() == theirs.read_bytes()
