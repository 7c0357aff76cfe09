r"""Two studies of rich observations: how many episodes an oracle needs until what it plays is good.

1. *Exogenous size does not matter*: the risky lock behind `m` exogenous bits. GOLF has 20 candidate decoders; UCB-VI
   sees raw observations.
2. *Rank matters, states don't*: the lock of rank 3 with S states. Rep-UCB chooses from 20 feature maps and 20 emission
   measures; from 20 feature maps with any measures; or fits a factorisation from nothing. UCB-VI sees states.

An oracle *has reached the target* in the first episode at which the mean exact OCE of the policies of the last 100
episodes is at least 95% of OCE*. UCB-VI has the bonus of GOLF's cells, :math:`\sqrt{\beta/N}\,D_h(b)`,
in both studies; with Rep-UCB's smaller :math:`\alpha` some of its seeds stay just below the target for long.
"""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from os import sched_getaffinity
from typing import Any

import numpy as np

from ocerl.mdp.checks import check_whole
from ocerl.mdp.rich import exogenous_lock, low_rank_lock
from ocerl.optimistic.blocks import BlockWorld
from ocerl.optimistic.golf import GolfConfig
from ocerl.optimistic.lazy import LazyUcbVi, RawJudge, RawWorld, most_states, raw_problem
from ocerl.optimistic.low_rank import LowRankJudge, LowRankWorld, low_rank_problem
from ocerl.optimistic.model_class import FeatureClass
from ocerl.optimistic.problem import Problem
from ocerl.optimistic.repucb import RepUcbConfig
from ocerl.optimistic.rich import Learner, learner
from ocerl.optimistic.rows import rows_of
from ocerl.optimistic.worlds import World, collect
from ocerl.planning import plan
from ocerl.planning.grid import Progress
from ocerl.risk import Risk, mean_interval, parse_risk

TARGET, WINDOW = 0.95, 100
RISKS = ("cvar:0.25", "entropic:-1")
REP_UCB = ("repucb", "repucb-free-measures", "repucb-from-nothing")
FREE_ALPHA = 1.0
"""α where measures are free: with the default optimism is lost as states become many."""
FIRST_SEED = 100
"""The defaults were chosen on seeds below this, so the studies count their seeds from here."""


@dataclass(frozen=True)
class Run:
    """One seed: when it reached the target, and what it claimed."""

    reached: int | None
    """The episode, None if never."""
    played: int
    last: float
    """The mean OCE of the last episodes, in parts of OCE*."""
    optimistic: float
    """The share of plans whose claim, `max_b b + V̂(b)`, is at least OCE*."""


@dataclass(frozen=True)
class Series:
    """One oracle along an axis."""

    oracle: str
    risk: str
    axis: str
    x: tuple[int, ...]
    runs: tuple[tuple[Run, ...], ...]
    """`[x][seed]`."""
    limit: int
    """The most episodes that were played."""

    def means(self) -> list[float | None]:
        """The mean over seeds of the episodes, None where a seed did not reach the target."""
        reached = [[run.reached for run in runs] for runs in self.runs]
        return [None if None in row else float(np.mean([n for n in row if n is not None])) for row in reached]

    def intervals(self) -> list[tuple[float, float] | None]:
        """The 95% Student intervals of these means."""
        return [
            None if mean is None else mean_interval([float(run.reached or 0) for run in runs])
            for mean, runs in zip(self.means(), self.runs, strict=True)
        ]

    @property
    def spread(self) -> float | None:
        """The largest mean over the smallest: 1 is flat; None if some seed never reached the target."""
        means = [mean for mean in self.means() if mean is not None]
        return max(means) / min(means) if len(means) == len(self.x) else None

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON form."""
        return {**asdict(self), "means": self.means(), "intervals": self.intervals(), "spread": self.spread}

    def __str__(self) -> str:
        cells: list[str] = []
        for x, mean, ci, runs in zip(self.x, self.means(), self.intervals(), self.runs, strict=True):
            done = sum(run.reached is not None for run in runs)
            text = f"{done} of {len(runs)} within {self.limit}" if mean is None else f"{mean:.0f}"
            cells.append(f"{self.axis}={x}: {text}" + (f" ({ci[0]:.0f} … {ci[1]:.0f})" if ci else ""))
        flat = "" if self.spread is None else f"; largest / smallest {self.spread:.2f}"
        share = np.mean([run.optimistic for runs in self.runs for run in runs])
        return f"{self.oracle}, {self.risk}: " + ", ".join(cells) + f"{flat}; optimistic in {share:.1%} of plans"


@dataclass(frozen=True)
class Study:
    """The series of one figure."""

    title: str
    series: tuple[Series, ...]

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON form."""
        return {"title": self.title, "series": [one.to_dict() for one in self.series]}

    def __str__(self) -> str:
        return "\n".join([self.title, *map(str, self.series)])


def exogenous_study(
    *,
    bits: Sequence[int] = (1, 4, 8, 12, 16),
    risks: Sequence[str] = RISKS,
    seeds: int = 5,
    seed: int = 0,
    limit: int = 20_000,
    horizon: int = 5,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Study:
    """Episodes to the target on the risky lock, against the number of exogenous bits.

    With several workers (as many as there are cores, unless told) a script calls it under `if __name__ == "__main__"`.
    """
    lines = [(oracle, risk) for risk in risks for oracle in ("golf", "ucbvi")]
    settings = {"horizon": horizon, "limit": limit}
    return Study(
        "exogenous size does not matter",
        _all(lines, bits, range(seed, seed + seeds), settings, "m", "exogenous", workers, progress),
    )


def rank_study(
    *,
    states: Sequence[int] = (20, 100, 500, 2000),
    risks: Sequence[str] = RISKS,
    seeds: int = 5,
    seed: int = 0,
    limit: int = 100_000,
    horizon: int = 5,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Study:
    """Episodes to the target on the lock of rank 3, against the number of states; workers as in `exogenous_study`."""
    lines = [(oracle, risk) for risk in risks for oracle in (*REP_UCB, "ucbvi")]
    settings = {"horizon": horizon, "limit": limit}
    return Study(
        "rank matters, states don't",
        _all(lines, states, range(seed, seed + seeds), settings, "S", "low-rank", workers, progress),
    )


def _all(
    lines: list[tuple[str, str]],
    sizes: Sequence[int],
    seeds: range,
    settings: dict[str, int],
    axis: str,
    world: str,
    workers: int | None,
    progress: Progress | None,
) -> tuple[Series, ...]:
    """Every line at every size with every seed, in processes of their own if there are several workers."""
    check_whole("the most episodes of a run (limit)", settings["limit"], least=WINDOW)
    jobs = [
        (world, oracle, risk, size, FIRST_SEED + seed, settings)
        for oracle, risk in lines
        for size in sizes
        for seed in seeds
    ]
    runs = _counted(jobs, workers or len(sched_getaffinity(0)), progress)
    grouped = [runs[i : i + len(seeds)] for i in range(0, len(runs), len(seeds))]
    return tuple(
        Series(oracle, risk, axis, tuple(sizes), tuple(map(tuple, grouped[i : i + len(sizes)])), settings["limit"])
        for i, (oracle, risk) in zip(range(0, len(grouped), len(sizes)), lines, strict=True)
    )


Job = tuple[str, str, str, int, int, dict[str, int]]


def _counted(jobs: list[Job], workers: int, progress: Progress | None) -> list[Run]:
    def counted(results: Iterable[Run]) -> list[Run]:
        found: list[Run] = []
        for run in results:
            found.append(run)
            if progress:
                progress(len(found), len(jobs))
        return found

    if workers == 1:
        return counted(map(_one, jobs))
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        return counted(pool.map(_one, jobs))


def _one(job: Job) -> Run:
    world, oracle, risk, size, seed, settings = job
    setting = exogenous_setting if world == "exogenous" else low_rank_setting
    found, optimum = setting(oracle, parse_risk(risk), size, seed, settings["horizon"], settings["limit"])
    return episodes_to_target(found, optimum, settings["limit"])


def episodes_to_target(learner: Learner, optimum: float, limit: int) -> Run:
    """Run Algorithm 1 until the target is reached or the episodes are used up."""
    each = learner.episodes_per_round
    rounds, size = limit // each, -(-WINDOW // each)
    values, claims = np.zeros(rounds), list[bool]()
    version, value, mean = -1, 0.0, 0.0
    for number in range(rounds):
        # Between plans neither the policy nor its claim changes.
        if learner.oracle.planned != version:
            version = learner.oracle.planned
            policy, claim = learner.next_policy()
            claims.append(claim >= optimum - 1e-9)
            value = learner.worth(policy)
        values[number] = value
        mean = float(values[max(0, number + 1 - size) : number + 1].mean()) / optimum
        if number + 1 >= size and mean >= TARGET:
            episodes = (number + 1) * each
            return Run(episodes, episodes, mean, float(np.mean(claims)))
        learner.step()
    return Run(None, rounds * each, mean, float(np.mean(claims)))


def exogenous_setting(oracle: str, risk: Risk, bits: int, seed: int, horizon: int, limit: int) -> tuple[Learner, float]:
    """GOLF or UCB-VI on the risky lock with its optimum; the seed is the world's too."""
    lock = exogenous_lock(bits=bits, horizon=horizon, seed=seed)
    optimum = plan(lock.endogenous, risk).value
    if oracle == "golf":
        return learner(lock, oracle, risk, seed), optimum
    raw = RawWorld(BlockWorld(lock, np.random.default_rng(seed)), most_states(lock, limit))
    return _ucbvi(raw_problem(lock, raw.states), risk, math.sqrt(GolfConfig().beta), raw, RawJudge(raw)), optimum


def low_rank_setting(
    oracle: str, risk: Risk, states: int, seed: int, horizon: int, limit: int
) -> tuple[Learner, float]:
    """Rep-UCB with one of its classes, or UCB-VI, on the lock of rank 3; the seed is the world's too."""
    lock = low_rank_lock(states=states, horizon=horizon, seed=seed)
    optimum = plan(lock.expanded, risk).value
    if oracle == "repucb-free-measures":
        config, models = RepUcbConfig(alpha=FREE_ALPHA), FeatureClass(lock.feature_class)
        return learner(lock, "repucb", risk, seed, config=config, models=models), optimum
    if oracle in REP_UCB:
        return learner(lock, "repucb", risk, seed, rank=None if oracle == "repucb" else lock.rank), optimum
    world = LowRankWorld(lock, np.random.default_rng(seed))
    return _ucbvi(low_rank_problem(lock), risk, math.sqrt(GolfConfig().beta), world, LowRankJudge(lock)), optimum


def _ucbvi(problem: Problem, risk: Risk, factor: float, world: World, judge: Any) -> Learner:
    return Learner(
        oracle=LazyUcbVi(rows_of(problem, risk, 1), factor),
        play=lambda policy: collect(world, policy, problem.horizon),
        judge=judge,
        recommend=lambda oracle: oracle.policy(oracle.values()[0][0]),
        risk=risk,
    )
