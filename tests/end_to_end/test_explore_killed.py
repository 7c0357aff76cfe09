"""A run of `ocerl explore` that is killed, with no time to say goodbye, goes on to the same document."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

COMMAND = [sys.executable, "-m", "ocerl.cli", "explore", "paper", "--risk", "entropic:-1", "--json"]
SIZE = ["--rounds", "4000000", "--seeds", "2"]


def document(*words: str) -> dict[str, Any]:
    ran = subprocess.run([*COMMAND, *SIZE, *words], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return {**json.loads(ran.stdout), "seconds": None}


@pytest.mark.slow
def test_killed_and_resumed(tmp_path: Path) -> None:
    checkpoints = tmp_path / "checkpoints"
    with subprocess.Popen([*COMMAND, *SIZE, "--out", str(tmp_path)], stdout=subprocess.DEVNULL) as running:
        deadline = time.monotonic() + 120
        while not list(checkpoints.glob("*.npz")) and running.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        running.kill()
    assert running.returncode == -9, "it was killed before it was done"
    assert not (tmp_path / "explore.json").exists()
    assert document("--out", str(tmp_path), "--resume") == document()
