"""How fast and how large: the planner against a product MDP in a general sparse solver, and against the machine.

    python benchmarks/planning.py            # the comparison, the scale and the dense model (a few minutes)
    python benchmarks/planning.py --huge     # and a million states with a thousand budgets, policy on disk

Every contender runs in a process of its own, from the same arrays of outcomes, building included; memory is what its
peak adds to the process before the model is there. Times are the median of three, with compiled code warm; what
compiling costs is said apart.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

LEVEL = 0.25
REWARDS = (0.0, 12.0, 25.0)
"""Over 20 steps: 501 returns."""


def rows(states: int, actions: int, successors: int, rewards: tuple[float, ...] = REWARDS) -> tuple[np.ndarray, ...]:
    """A random sparse model as columns: state, action, next state, probability, reward."""
    random = np.random.default_rng(0)
    pairs = states * actions
    state = np.repeat(np.arange(states), actions * successors)
    action = np.tile(np.repeat(np.arange(actions), successors), states)
    next_state = random.integers(0, states, pairs * successors)
    probability = random.random((pairs, successors)) + 0.1
    probability /= probability.sum(axis=1, keepdims=True)
    reward = random.choice(rewards, pairs * successors)
    return state, action, next_state, probability.ravel(), reward


def peer(states: int, actions: int, successors: int, horizon: int) -> dict[str, Any]:
    """The general way: every (state, budget) is a state, and SciPy multiplies its sparse matrix by the values."""
    import scipy.sparse

    columns = rows(states, actions, successors)
    baseline = _resident()
    began = time.perf_counter()
    state, action, next_state, probability, reward = columns
    budgets = round(horizon * max(REWARDS)) + 1
    budget = np.arange(budgets)
    # Budgets below 0 pay the same as 0.
    after = np.maximum(budget[None, :] - reward.astype(np.int64)[:, None], 0)
    row = ((state * actions + action)[:, None] * budgets + budget[None, :]).ravel()
    column = (next_state[:, None] * budgets + after).ravel()
    matrix = scipy.sparse.csr_matrix(
        (np.repeat(probability, budgets), (row, column)), shape=(states * actions * budgets, states * budgets)
    )
    built = time.perf_counter() - began
    value = np.tile(-budget / LEVEL, states)
    policy = np.empty((horizon, states, budgets), dtype=np.uint8)
    for step in reversed(range(horizon)):
        worth = (matrix @ value).reshape(states, actions, budgets)
        policy[step] = worth.argmax(axis=1)
        value = worth.max(axis=1).ravel()
    best = float((budget + value[:budgets]).max())
    seconds = time.perf_counter() - began
    return {"value": best, "seconds": seconds, "built": built, "bytes": _resident() - baseline}


def ours(
    states: int,
    actions: int,
    successors: int,
    horizon: int,
    precision: str = "float64",
    returns: int = 501,
    store: str | None = None,
    everywhere: bool = False,
) -> dict[str, Any]:
    """From the same columns: the model, the lattice, the plan and its policy's exact distribution.

    `everywhere` starts in any state with equal probability, so that no row of any step is left out.
    """
    from ocerl.mdp import TabularMDP, Transitions
    from ocerl.planning import plan

    most = (returns - 1) // horizon
    columns = rows(states, actions, successors, (0.0, float(most // 2 + (most + 1) % 2), float(most)))
    plan(_tiny(), f"cvar:{LEVEL}", precision=precision)  # type: ignore[arg-type]  # loads the compiled code
    baseline = _resident()
    began = time.perf_counter()
    model = TabularMDP(
        steps=(Transitions.from_rows(states, *columns),),
        states=tuple(range(states)),
        actions=tuple(range(actions)),
        start=np.full(states, 1 / states) if everywhere else np.eye(1, states)[0],
        horizon=horizon,
    )
    built = time.perf_counter() - began
    clock = Clock()
    found = plan(model, f"cvar:{LEVEL}", precision=precision, store=store, progress=clock)  # type: ignore[arg-type]
    assert found.resolution == 1.0, "the rewards were meant to have the unit 1"
    seconds = time.perf_counter() - began
    width = sum((horizon - step) * most + 1 for step in range(1, horizon))
    read = 8 if precision == "float64" else 4
    return {
        "value": found.value,
        "upper": found.upper,
        "seconds": seconds,
        "built": built,
        "bytes": _resident() - baseline,
        "bandwidth": states * actions * successors * width * read / clock.seconds,
    }


def dense(states: int, actions: int, horizon: int, precision: str = "float64") -> dict[str, Any]:
    """A model in which every state follows every other: the matrix product does the work."""
    from ocerl.mdp import from_arrays
    from ocerl.planning import plan

    random = np.random.default_rng(0)
    transition = random.random((states, actions, states))
    transition /= transition.sum(axis=2, keepdims=True)
    model = from_arrays(transition, random.choice(REWARDS, (states, actions)), horizon=horizon)
    plan(model.with_(horizon=1), f"cvar:{LEVEL}", precision=precision)  # type: ignore[arg-type]
    began = time.perf_counter()
    clock = Clock()
    found = plan(model, f"cvar:{LEVEL}", precision=precision, progress=clock)  # type: ignore[arg-type]
    seconds = time.perf_counter() - began
    most = int(max(REWARDS))
    # Steps 2 to 20 are dense; the first backs up the start only.
    widths = (min((horizon - step - 1) * most + 1 + most, horizon * most + 1) for step in range(1, horizon))
    products = 2 * states * actions * states * sum(widths)
    return {"value": found.value, "seconds": seconds, "flops": products / clock.seconds}


class Clock:
    """The time of the backward pass, from its first step to its last."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def __call__(self, done: int, total: int) -> None:
        self.times.append(time.perf_counter())

    @property
    def seconds(self) -> float:
        # The last step backs up the start only: it is left out, and the first one is not seen.
        return (self.times[-2] - self.times[0]) * (len(self.times) - 1) / (len(self.times) - 2)


def peaks() -> dict[str, float]:
    """What the machine can do: reading memory with all cores, and multiplying matrices."""
    from concurrent.futures import ThreadPoolExecutor

    cores = len(os.sched_getaffinity(0))
    parts = [np.ones(40_000_000) for _ in range(cores)]
    with ThreadPoolExecutor(cores) as pool:
        read = _best(lambda: list(pool.map(np.sum, parts)))
    result = {"read": cores * parts[0].nbytes / read}
    for name, kind in (("gemm64", np.float64), ("gemm32", np.float32)):
        a = np.ones((3000, 3000), dtype=kind)
        result[name] = 2 * 3000**3 / _best(lambda a=a: a @ a)
    return result


def _best(work: Callable[[], object], times: int = 5) -> float:
    seconds: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def _tiny() -> Any:
    from ocerl.mdp import random_mdp

    return random_mdp(0, states=5, actions=2, horizon=2, successors=2)


def _resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(task: str, *arguments: object, times: int = 3) -> dict[str, Any]:
    """Run a contender in processes of its own and take the one of median time."""
    command = [sys.executable, __file__, "--task", json.dumps([task, *arguments])]
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    found = [
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)
        for _ in range(times)
    ]
    middle = statistics.median_low(run["seconds"] for run in found) if "seconds" in found[0] else None
    return next(run for run in found if run.get("seconds") == middle)


def compile_seconds() -> float:
    """The first plan with an empty cache of compiled code."""
    with tempfile.TemporaryDirectory() as cache:
        code = "from ocerl.mdp import zoo; from ocerl.planning import plan; plan(zoo.make('paper'), 'cvar:0.25')"
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "NUMBA_CACHE_DIR": cache})
        return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--huge", action="store_true", help="a million states, a thousand budgets")
    options = parser.parse_args()
    if options.task:
        name, *arguments = json.loads(options.task)
        print(json.dumps({"peer": peer, "ours": ours, "dense": dense, "peaks": peaks}[name](*arguments)))
        return
    machine = measure("peaks", times=1)
    print(
        f"machine: {len(os.sched_getaffinity(0))} cores, read {machine['read'] / 1e9:.0f} GB/s, matrix product ", end=""
    )
    print(f"{machine['gemm64'] / 1e9:.0f} / {machine['gemm32'] / 1e9:.0f} GFLOP/s (64 / 32 bits)")
    print(f"first plan with nothing compiled: {compile_seconds():.1f} s")
    a, b = measure("peer", 1000, 10, 5, 20), measure("ours", 1000, 10, 5, 20)
    assert abs(a["value"] - b["value"]) < 1e-6, (a, b)
    print("S=1,000 A=10 H=20, 5 successors, 501 budgets, end to end:")
    for name, run in (("product MDP, SciPy", a), ("ocerl", b)):
        print(f"  {name:20} {run['seconds']:8.3f} s (building {run['built']:.3f} s) {run['bytes'] / 2**20:8.0f} MiB")
    print(f"  {a['seconds'] / b['seconds']:.0f} times faster, {a['bytes'] / b['bytes']:.0f} times smaller")
    for precision in ("float64", "float32"):
        run = measure("ours", 100_000, 10, 5, 20, precision, times=1)
        share = run["bandwidth"] / machine["read"]
        print(f"S=100,000 {precision}: {run['seconds']:.1f} s (building {run['built']:.1f} s), ", end="")
        print(f"{run['bytes'] / 2**30:.1f} GiB, ", end="")
        print(f"the pass reads {run['bandwidth'] / 1e9:.0f} GB/s, {share:.0%} of the machine's")
    for precision, peak in (("float64", "gemm64"), ("float32", "gemm32")):
        run = measure("dense", 1000, 10, 20, precision)
        print(f"S=1,000 A=10 H=20 dense, {precision}: {run['seconds']:.2f} s, ", end="")
        print(f"the pass makes {run['flops'] / 1e9:.0f} GFLOP/s, {run['flops'] / machine[peak]:.0%} of the machine's")
    if options.huge:
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
            run = measure("ours", 1_000_000, 4, 3, 10, "float32", 1001, folder, True, times=1)
        print(
            "S=1,000,000 A=4 H=10, 3 successors, 1,001 budgets, any start, float32, policy on disk:",
            f"{run['seconds']:.0f} s, ",
            end="",
        )
        print(f"{run['bytes'] / 2**30:.1f} GiB, value {run['value']:.6g} <= {run['upper']:.6g}")


if __name__ == "__main__":
    main()
