"""Runs on disk, looked at again: `evaluate_run` judges their policies on fresh episodes, for any risk."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ocerl.errors import OcerlError
from ocerl.gradient.deep.config import DeepConfig
from ocerl.gradient.deep.judging import Judge
from ocerl.gradient.deep.policy import NetworkPolicy
from ocerl.gradient.deep.result import DeepSeedResult
from ocerl.gradient.deep.world import AnyEnvironment, driver_of, open_world
from ocerl.risk import CVaR, Risk, estimate, parse_risk

RESULT = "train.json"


def evaluate_run(
    folder: Path | str,
    *,
    risk: Risk | str | None = None,
    episodes: int | None = None,
    seed: int = 0,
    environment: AnyEnvironment | None = None,
) -> tuple[DeepSeedResult, ...]:
    """The policies of a run that was saved by `DeepTraining.save`, on fresh episodes.

    For the risk it was trained for, a policy begins with its own first budget; for another one, the first budget is
    chosen anew, from episodes that have no part in the estimate. `environment` is needed where the run was made with
    a function, or to see what the policy is worth elsewhere.

    >>> import tempfile
    >>> from ocerl.gradient.deep.train import train
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     train("paper", "cvar:0.25", steps=300_000).save(folder)
    ...     [run.value for risk in ("cvar:0.25", "mean") for run in evaluate_run(folder, risk=risk)]
    [0.75, 1.625]
    """
    folder = Path(folder)
    about = read_run(folder)
    trained, wanted = parse_risk(about["risk"]), parse_risk(about["risk"] if risk is None else risk)
    judge = _judge(about, wanted, episodes, environment)
    found: list[DeepSeedResult] = []
    for run in about["seeds"]:
        policy = NetworkPolicy.load(folder / f"seed-{run['seed']}")
        if wanted != trained:
            policy = judge.chosen(policy, seed)
        found.append(judge.judged(policy, run["seed"], seed))
    return tuple(found)


class LevelPoint(NamedTuple):
    """What a policy is worth at a level, begun with the first budget that its survey chose for it."""

    seed: int
    risk: str
    value: float
    low: float
    high: float
    mean: float
    budget: float


def evaluate_levels(
    folder: Path | str,
    levels: Sequence[float],
    *,
    episodes: int | None = None,
    seed: int = 0,
    environment: AnyEnvironment | None = None,
) -> list[LevelPoint]:
    """The frontier of each policy of a run: CVaR at many levels, all on the same fresh episodes.

    First budgets are chosen by the survey that was saved with the policy; the values come from new episodes.
    """
    folder, risks = Path(folder), [CVaR(level) for level in levels]
    about = read_run(folder)
    judge = _judge(about, parse_risk(about["risk"]), episodes, environment)
    points: list[LevelPoint] = []
    for run in about["seeds"]:
        policy = NetworkPolicy.load(folder / f"seed-{run['seed']}")
        chosen = [float(policy.survey.budgets[policy.survey.best(risk)]) for risk in risks]
        budgets, place = np.unique(chosen, return_inverse=True)
        returns = judge.driver.returns(policy.network, budgets, judge.episodes, seed)
        for risk, number in zip(risks, place, strict=True):
            found, mean = estimate(returns[number], risk), float(returns[number].mean())
            budget = float(budgets[number])
            points.append(LevelPoint(run["seed"], risk.name, found.value, found.low, found.high, mean, budget))
    return points


def _judge(about: dict[str, Any], risk: Risk, episodes: int | None, environment: AnyEnvironment | None) -> Judge:
    """Who judges the policies of a run for a risk."""
    world = open_world(
        about["environment"] if environment is None else environment,
        horizon=about["horizon"],
        discount=about["discount"],
        budget_range=tuple(about["budget_range"]),
        **about["parameters"],
    )
    # As many episodes side by side as in training: each may be a costly environment.
    config = DeepConfig(oracle="reinforce", environments=about["settings"]["environments"], group=1)
    return Judge(world, driver_of(world, risk, config), risk, episodes)


def read_run(folder: Path) -> dict[str, Any]:
    """What `DeepTraining.save` wrote of a run."""
    try:
        about = json.loads((folder / RESULT).read_text())
    except (OSError, ValueError) as error:
        raise OcerlError(f"{folder} has no {RESULT} of a run ({type(error).__name__})") from error
    if "parameters" not in about:
        raise OcerlError(f"{folder} holds a tabular run: `ocerl train` judged it exactly already")
    return about
