"""The paper's figure of learning curves: three deep oracles on its MDP for CVaR 0.25, and one with its budget hidden.

Every policy on a curve is evaluated exactly. The negative control hides the budget from the networks: its greedy
policies are Markov policies, and none of them can be worth more than the best of those.

A *step* is an update here. The paper says that curves first stay at a Markov policy (~2k steps), and are at the
optimum after ~8k steps; it does not say of what.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import sched_getaffinity
from threading import Lock
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ocerl.gradient.deep.config import ORACLES, Oracle
from ocerl.gradient.deep.settings import settings_for
from ocerl.gradient.deep.train import train
from ocerl.gradient.deep.world import open_world
from ocerl.mdp import zoo
from ocerl.planning import best_markov, plan
from ocerl.risk import mean_interval

MODEL, RISK = "paper", "cvar:0.25"
SEEDS = 5
PAPER_STEPS = 8000
"""After about so many steps the paper's curves are at the optimum."""
NEAR = 0.74
"""A mean of at least this counts as the optimum, 0.75."""
CONTROL: Oracle = "ppo-forward"

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curve:
    """One oracle: the exact CVaR of the greedy policies of all its seeds."""

    oracle: str
    hide_budget: bool
    updates: NDArray[np.int64]
    """After how many updates the policies were evaluated."""
    values: Floats
    """`[records, seeds]`"""
    final: tuple[float, ...]
    """Of each seed's result."""
    batch: int
    """Environment steps of an update."""
    gradient_steps: int
    """Steps of the optimiser in an update."""
    seconds: float

    @property
    def label(self) -> str:
        return self.oracle + (", budget hidden" if self.hide_budget else "")

    @property
    def mean(self) -> Floats:
        """The mean over seeds at each record."""
        return self.values.mean(axis=1)

    @property
    def interval(self) -> Floats | None:
        """`[2, records]`: 95% intervals for the means, by Student's t; None for a single seed."""
        found = [mean_interval(row) for row in self.values]
        return None if None in found else np.array(found, dtype=np.float64).T

    @property
    def final_mean(self) -> float:
        return float(np.mean(self.final))

    @property
    def final_interval(self) -> tuple[float, float] | None:
        """A 95% interval for the mean of the results."""
        return mean_interval(self.final)

    @property
    def reached(self) -> int | None:
        """The first update at which the mean is `NEAR` the optimum, and stays there to the end."""
        below = np.flatnonzero(self.mean < NEAR)
        first = 0 if below.size == 0 else int(below[-1]) + 1
        return int(self.updates[first]) if first < self.updates.size else None

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON form."""
        return {
            "oracle": self.oracle,
            "hide_budget": self.hide_budget,
            "updates": self.updates.tolist(),
            "values": self.values.T.tolist(),
            "mean": self.mean.tolist(),
            "mean_ci": None if self.interval is None else self.interval.T.tolist(),
            "final": list(self.final),
            "final_mean": self.final_mean,
            "final_ci": None if self.final_interval is None else list(self.final_interval),
            "reached": self.reached,
            "steps_per_update": self.batch,
            "gradient_steps_per_update": self.gradient_steps,
            "seconds": self.seconds,
        }


@dataclass(frozen=True, eq=False)
class LearningCurves:
    """All curves, with what they are compared to."""

    curves: tuple[Curve, ...]
    control: Curve
    optimum: float
    markov: float
    """The best Markov policy's value."""
    seeds: tuple[int, ...]
    seconds: float

    near: ClassVar[float] = NEAR
    """The mean that counts as the optimum."""

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON form."""
        return {
            "model": MODEL,
            "risk": RISK,
            "seeds": list(self.seeds),
            "optimum": self.optimum,
            "best_markov": self.markov,
            "near": self.near,
            "paper_steps": PAPER_STEPS,
            "curves": [curve.to_dict() for curve in self.curves],
            "control": self.control.to_dict(),
            "seconds": self.seconds,
        }


def learning_curves(
    *,
    seeds: int = SEEDS,
    seed: int = 0,
    updates: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LearningCurves:
    """Train the three oracles and the control with the seeds `seed, seed + 1, …`, for `updates` updates (8,000)."""
    began = time.perf_counter()
    settings = settings_for(open_world(MODEL), {})
    updates = settings.updates if updates is None else updates
    # The control first: what two runs have in common is compiled twice if they begin together.
    runs: list[tuple[Oracle, bool]] = [(CONTROL, True), *((oracle, False) for oracle in ORACLES)]
    made, lock = [0] * len(runs), Lock()

    def trained(number: int) -> Curve:
        def told(done: int, total: int, status: str) -> None:
            with lock:
                made[number] = done
                if progress:
                    progress(sum(made), total * len(runs))

        oracle, hidden = runs[number]
        return _curve(oracle, hidden, seeds=seeds, seed=seed, steps=updates * settings.batch, told=told)

    with ThreadPoolExecutor(len(sched_getaffinity(0))) as pool:
        control, *curves = pool.map(trained, range(len(runs)))
    model = zoo.make(MODEL)
    return LearningCurves(
        curves=tuple(curves),
        control=control,
        optimum=plan(model, RISK).value,
        markov=best_markov(model, RISK).value,
        seeds=tuple(range(seed, seed + seeds)),
        seconds=time.perf_counter() - began,
    )


def _curve(
    oracle: Oracle, hidden: bool, *, seeds: int, seed: int, steps: int, told: Callable[[int, int, str], None]
) -> Curve:
    found = train(MODEL, RISK, oracle=oracle, seeds=seeds, seed=seed, steps=steps, hide_budget=hidden, progress=told)
    return Curve(
        oracle=oracle,
        hide_budget=hidden,
        updates=found.updates,
        values=found.values,
        final=tuple(run.value for run in found.runs),
        batch=found.config.batch,
        gradient_steps=found.config.passes * found.config.pieces,
        seconds=found.seconds,
    )
