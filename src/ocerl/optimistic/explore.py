"""`explore`: learn the best policy for a risk in a world without a model, by optimism (Section 3)."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ocerl.errors import OcerlError
from ocerl.mdp import TabularMDP
from ocerl.mdp.rich import RichWorld
from ocerl.optimistic.explore_rich import explore_rich
from ocerl.optimistic.result import Exploration, SeedRun, schedule
from ocerl.optimistic.rich import RICH_ORACLES
from ocerl.optimistic.runner import Runner, start
from ocerl.optimistic.task import Task, find_task
from ocerl.optimistic.ucbvi import DEFAULT_SCALE, UcbViConfig
from ocerl.planning import plan
from ocerl.planning.grid import Progress
from ocerl.risk import Risk, parse_risk

if TYPE_CHECKING:
    import gymnasium

ORACLES: dict[str, Literal["hoeffding", "bernstein"]] = {"ucbvi": "hoeffding", "ucbvi-bernstein": "bernstein"}


def explore(
    environment: TabularMDP | RichWorld | gymnasium.Env[Any, Any] | str,
    risk: Risk | str,
    *,
    rounds: int,
    oracle: str = "ucbvi",
    rank: int | None = None,
    seeds: int | Sequence[int] = 1,
    bonus_scale: float | Literal["theory"] = DEFAULT_SCALE,
    delta: float = 0.05,
    known_rewards: bool = False,
    per_step: bool | None = None,
    horizon: int | None = None,
    reward_range: tuple[float, float] | None = None,
    resolution: float | None = None,
    first_budgets: int = 64,
    out: Path | str | None = None,
    resume: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Exploration:
    r"""Run Algorithm 1 for a number of rounds, once for every seed; a round of UCB-VI or GOLF is an episode.

    What follows is about UCB-VI. `golf` and `repucb` explore a tabular model or a world of `ocerl.mdp.rich` (by name:
    `risky-lock`, `low-rank`) and take of these parameters `rank`, `seeds` and `horizon`: see
    `ocerl.optimistic.rich.learner` for what they choose from, `golf` and `repucb` for their constants.

    `environment` is a tabular model, which is then simulated, a Gymnasium environment with `Discrete` spaces, or a
    name as on the command line. The learner is told the states and their actions, which states end the
    episode, the horizon, and the range and unit of rewards (of a model: read off it; of an environment without
    a table: `reward_range` and `resolution`); transitions and rewards it learns. `known_rewards` tells it the
    reward distributions too, which is the paper's setting. Counts are shared by all steps if the model is
    stationary, unless `per_step`. `bonus_scale` multiplies the bonus; "theory" is the value 1, with which
    optimism holds with probability `1 - delta`.

    The policy a run ends with is the best on what it has seen, without bonuses, and is judged exactly where a
    model is known. So are the policies played in about a hundred rounds spaced evenly in the logarithm, and in
    200 of the last tenth. `out` is a folder for checkpoints; with `resume` a run goes on from there, to
    the same bits as without the interruption.

    >>> from ocerl.mdp import zoo
    >>> learned = explore(zoo.make("paper"), "cvar:0.25", rounds=3000, seeds=2)
    >>> [run.value for run in learned.runs], learned.optimum
    ([0.75, 0.75], 0.75)
    """
    if oracle not in (*ORACLES, *RICH_ORACLES):
        raise OcerlError(f"there is no oracle {oracle!r}: choose one of {', '.join((*ORACLES, *RICH_ORACLES))}")
    risk = parse_risk(risk)
    numbers = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    if not numbers:
        raise OcerlError(f"seeds must be a number of at least 1 or a list of seeds, got {seeds}")
    if oracle in RICH_ORACLES:
        others = (
            bonus_scale != DEFAULT_SCALE,
            delta != 0.05,
            known_rewards,
            per_step,
            reward_range,
            resolution,
            resume,
        )
        return explore_rich(environment, risk, rounds, oracle, numbers, rank, horizon, any(others), progress)
    if rank is not None:
        raise OcerlError(f"a rank is for repucb, {oracle} has none")
    config = UcbViConfig(
        rounds=rounds, bonus=ORACLES[oracle], bonus_scale=bonus_scale, delta=delta, first_budgets=first_budgets
    )
    task = find_task(environment, horizon=horizon, per_step=per_step, reward_range=reward_range, resolution=resolution)
    folder = None if out is None else Path(out) / "checkpoints"
    return _explore_ucbvi(task, risk, oracle, config, numbers, known_rewards, folder, resume, threads, progress)


def _explore_ucbvi(
    task: Task,
    risk: Risk,
    oracle: str,
    config: UcbViConfig,
    seeds: list[int],
    known_rewards: bool,
    folder: Path | None,
    resume: bool,
    threads: int | None,
    progress: Progress | None,
) -> Exploration:
    began = time.perf_counter()
    settings = _settings(task, risk, oracle, config, known_rewards)
    runners = [
        start(
            task,
            risk,
            config,
            seed,
            learn_rewards=not known_rewards,
            settings=settings,
            path=None if folder is None else folder / f"seed-{seed}.npz",
        )
        for seed in seeds
    ]
    return Exploration(
        model=task.name,
        risk=risk,
        oracle=oracle,
        rounds=config.rounds,
        horizon=task.problem.horizon,
        runs=tuple(_run_all(runners, config, resume, threads, progress)),
        optimum=None if task.lattice is None else plan(task.lattice.model, risk).value,
        exact=task.lattice is not None and task.problem.binning == (0.0, 0.0),
        settings=settings,
        binning=task.problem.binning,
        seconds=time.perf_counter() - began,
    )


def _settings(task: Task, risk: Risk, oracle: str, config: UcbViConfig, known_rewards: bool) -> dict[str, Any]:
    """What a resumed run must have in common with the one before."""
    return {
        "model": task.name,
        "digest": task.digest,
        "risk": risk.name,
        "oracle": oracle,
        "rounds": config.rounds,
        "bonus_scale": config.bonus_scale,
        "delta": config.delta,
        "known_rewards": known_rewards,
        "per_step": task.problem.layers > 1,
        "horizon": task.problem.horizon,
        "discount": task.problem.discount,
        "first_budgets": config.first_budgets,
    }


class _Stopped(Exception):  # noqa: N818 - a signal to other threads, not an error
    """Another seed failed, or the user stopped the program."""


def _run_all(
    runners: list[Runner], config: UcbViConfig, resume: bool, threads: int | None, progress: Progress | None
) -> list[SeedRun]:
    """All seeds, several at a time where nothing is shared between them; when one fails, all are saved and stop."""
    done, lock, stop = 0, threading.Lock(), threading.Event()

    def report(rounds: int) -> None:
        nonlocal done
        if stop.is_set():
            raise _Stopped
        with lock:
            done += rounds
            if progress:
                progress(done, config.rounds * len(runners))

    def one(runner: Runner) -> SeedRun:
        if resume:
            runner.resume()
            report(runner.played)
        return runner.run(schedule(config.rounds), config.rounds, report)

    if runners[0].task.environment is not None:
        return [one(runner) for runner in runners]
    with ThreadPoolExecutor(threads or len(os.sched_getaffinity(0))) as pool:
        futures = [pool.submit(one, runner) for runner in runners]
        try:
            return [future.result() for future in futures]
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
