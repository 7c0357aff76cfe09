"""`explore`: learn the best policy for a risk in a world without a model, by optimism (Section 3)."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp import TabularMDP, load_model, rich
from ocerl.mdp.checks import check_whole
from ocerl.mdp.rich import ExogenousBlockMDP, LowRankMDP, RichWorld
from ocerl.optimistic.result import Exploration, SeedRun
from ocerl.optimistic.rich import RICH_ORACLES, judged_model, learner, run_rich
from ocerl.optimistic.runner import Runner, start
from ocerl.optimistic.task import Task, find_task
from ocerl.optimistic.ucbvi import DEFAULT_SCALE, UcbViConfig
from ocerl.planning import plan
from ocerl.planning.grid import Progress
from ocerl.risk import Risk, parse_risk

if TYPE_CHECKING:
    import gymnasium

ORACLES: dict[str, Literal["hoeffding", "bernstein"]] = {"ucbvi": "hoeffding", "ucbvi-bernstein": "bernstein"}
LATE_ROUNDS = 200


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
    began = time.perf_counter()
    if oracle not in (*ORACLES, *RICH_ORACLES):
        raise OcerlError(f"there is no oracle {oracle!r}: choose one of {', '.join((*ORACLES, *RICH_ORACLES))}")
    risk = parse_risk(risk)
    numbers = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    if not numbers:
        raise OcerlError(f"seeds must be a number of at least 1 or a list of seeds, got {seeds}")
    if isinstance(environment, str) and environment in rich.WORLDS:
        environment = rich.make(environment, **({} if horizon is None else {"horizon": horizon}))
    if oracle in RICH_ORACLES:
        if resume:
            raise OcerlError(f"{oracle} writes no checkpoints: runs are resumed with ucbvi and ucbvi-bernstein")
        given = (bonus_scale != DEFAULT_SCALE, delta != 0.05, known_rewards, per_step, reward_range, resolution)
        if any(given):
            raise OcerlError(
                f"{oracle} has no bonus_scale, delta, known_rewards, per_step, reward_range or resolution: "
                "leave these out"
            )
        return _explore_rich(environment, risk, rounds, oracle, numbers, rank, horizon, progress)
    if rank is not None:
        raise OcerlError(f"a rank is for repucb, {oracle} has none")
    if isinstance(environment, ExogenousBlockMDP | LowRankMDP):
        environment = environment.model()
    config = UcbViConfig(
        rounds=rounds,
        bonus=ORACLES[oracle],
        bonus_scale=bonus_scale,
        delta=delta,
        first_budgets=first_budgets,
    )
    task = find_task(environment, horizon=horizon, per_step=per_step, reward_range=reward_range, resolution=resolution)
    settings = _settings(task, risk, oracle, config, known_rewards)
    runners = [
        start(
            task,
            risk,
            config,
            number,
            learn_rewards=not known_rewards,
            settings=settings,
            path=None if out is None else Path(out) / "checkpoints" / f"seed-{number}.npz",
        )
        for number in numbers
    ]
    return Exploration(
        model=task.name,
        risk=risk,
        oracle=oracle,
        rounds=rounds,
        horizon=task.problem.horizon,
        runs=tuple(_run_all(runners, config, resume, threads, progress)),
        optimum=None if task.lattice is None else plan(task.lattice.model, risk).value,
        exact=task.lattice is not None and task.problem.binning == (0.0, 0.0),
        settings=settings,
        binning=task.problem.binning,
        seconds=time.perf_counter() - began,
    )


def _explore_rich(
    environment: TabularMDP | RichWorld | gymnasium.Env[Any, Any] | str,
    risk: Risk,
    rounds: int,
    oracle: str,
    seeds: list[int],
    rank: int | None,
    horizon: int | None,
    progress: Progress | None,
) -> Exploration:
    """`explore` with GOLF or Rep-UCB: on a known model, or a world of rich observations."""
    began = time.perf_counter()
    check_whole("rounds", rounds)
    world = load_model(environment, horizon=horizon) if isinstance(environment, str) else environment
    if not isinstance(world, TabularMDP | ExogenousBlockMDP | LowRankMDP):
        raise OcerlError(f"{oracle} explores tabular models and worlds of ocerl.mdp.rich, got {type(world).__name__}")
    world = world.with_(horizon=horizon) if isinstance(world, TabularMDP) else world
    model = judged_model(world)
    done = 0

    def report(played: int) -> None:
        nonlocal done
        done += played
        if progress:
            progress(done, rounds * len(seeds))

    learners = [learner(world, oracle, risk, seed, rank=rank) for seed in seeds]
    return Exploration(
        model=world.name,
        risk=risk,
        oracle=oracle,
        rounds=rounds,
        horizon=learners[0].oracle.rows.problem.horizon,
        runs=tuple(
            run_rich(one, seed, rounds, schedule(rounds), report) for one, seed in zip(learners, seeds, strict=True)
        ),
        optimum=plan(model, risk).value,
        exact=learners[0].oracle.rows.problem.binning == (0.0, 0.0),
        settings={
            "model": world.name,
            "risk": risk.name,
            "oracle": oracle,
            "rounds": rounds,
            "rank": rank,
            "episodes_per_round": learners[0].episodes_per_round,
            **asdict(learners[0].oracle.config),
        },
        binning=learners[0].oracle.rows.problem.binning,
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


def schedule(rounds: int) -> NDArray[np.int64]:
    """The rounds, from 1, whose policies are judged: evenly spaced in the logarithm, and in the last tenth.

    >>> schedule(10).tolist()
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    """
    early = np.geomspace(1, rounds, 100)
    late = np.linspace(0.9 * rounds + 1, rounds, LATE_ROUNDS)
    return np.unique(np.round(np.concatenate([early, late])).astype(np.int64))


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
