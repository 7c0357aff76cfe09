"""`explore` with the oracles for rich observations."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ocerl.errors import OcerlError
from ocerl.mdp import TabularMDP, load_model, rich
from ocerl.mdp.checks import check_whole
from ocerl.mdp.rich import ExogenousBlockMDP, LowRankMDP, RichWorld, VectorMDP
from ocerl.optimistic.result import Exploration, schedule
from ocerl.optimistic.rich import judged_model, learner, run_rich
from ocerl.planning import plan
from ocerl.planning.grid import Progress
from ocerl.risk import Risk

if TYPE_CHECKING:
    import gymnasium


def explore_rich(
    environment: TabularMDP | RichWorld | gymnasium.Env[Any, Any] | str,
    risk: Risk,
    rounds: int,
    oracle: str,
    seeds: list[int],
    rank: int | None,
    horizon: int | None,
    others: bool,
    progress: Progress | None,
) -> Exploration:
    """`explore` with GOLF or Rep-UCB, which have no use for its `others` parameters."""
    began = time.perf_counter()
    check_whole("rounds", rounds)
    if others:
        raise OcerlError(
            f"{oracle} writes no checkpoints to resume from, and has no bonus_scale, delta, known_rewards, per_step, "
            "reward_range or resolution: leave these out"
        )
    world = _world(environment, oracle, horizon)
    model, done = judged_model(world), 0

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


def _world(
    environment: TabularMDP | RichWorld | gymnasium.Env[Any, Any] | str, oracle: str, horizon: int | None
) -> TabularMDP | RichWorld:
    """What was given, or named, with the horizon asked for."""
    if isinstance(environment, str):
        if environment in rich.WORLDS:
            return rich.make(environment, **({} if horizon is None else {"horizon": horizon}))
        return load_model(environment, horizon=horizon)
    if isinstance(environment, TabularMDP):
        return environment.with_(horizon=horizon)
    if not isinstance(environment, ExogenousBlockMDP | LowRankMDP | VectorMDP):
        raise OcerlError(
            f"{oracle} explores tabular models and worlds of ocerl.mdp.rich, got {type(environment).__name__}"
        )
    if horizon is not None:
        raise OcerlError(f"{environment.name} has its horizon already: give it where the world is made")
    return environment
