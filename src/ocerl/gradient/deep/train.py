"""`train`: Algorithm 2 with neural networks, on compiled or on Gymnasium's environments."""

from __future__ import annotations

import time
from dataclasses import asdict
from math import ceil
from pathlib import Path
from typing import Any

from ocerl.errors import OcerlError
from ocerl.gradient.checkpoint import fingerprint
from ocerl.gradient.deep.judging import Judge
from ocerl.gradient.deep.result import DeepTraining
from ocerl.gradient.deep.running import Progress, Run
from ocerl.gradient.deep.settings import settings_for
from ocerl.gradient.deep.world import AnyEnvironment, driver_of, open_world
from ocerl.mdp.checks import check_whole
from ocerl.risk import FEWEST_TAIL_SAMPLES, Risk, parse_risk


def train(
    environment: AnyEnvironment,
    risk: Risk | str,
    *,
    seeds: int = 1,
    seed: int = 0,
    horizon: int | None = None,
    discount: float | None = None,
    budget_range: tuple[float, float] | None = None,
    parameters: dict[str, Any] | None = None,
    episodes: int | None = None,
    folder: Path | str | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> DeepTraining:
    r"""Train a network policy for a risk by REINFORCE or PPO in the augmented MDP (Algorithm 2, Appendix C).

    `environment` is what `open_world` takes: a name, a model, an environment written in JAX, a Gymnasium id or a
    function that makes a Gymnasium environment. `settings` are those of `DeepConfig`; what is not given depends on
    the environment (`settings_for`). Runs the seeds `seed, seed + 1, …`.

    The policy that is returned takes the most probable action. Its first budget is chosen from fresh episodes; its
    value is exact on a tabular model, and estimated from `episodes` further ones elsewhere. With a `folder`,
    checkpoints and TensorBoard logs are written, and `resume` goes on from the last one: to the same bits where the
    environment is compiled; with new episodes where it is Gymnasium's, whose environments cannot be saved.

    >>> trained = train("paper", "cvar:0.25", steps=300_000)
    >>> trained.best.value, trained.optimum[0]
    (0.75, 0.75)
    >>> from ocerl.mdp import zoo
    >>> from ocerl.planning import evaluate
    >>> evaluate(zoo.make("paper"), trained.best.policy.at(tau=1.0)).mean  # the same network, risk-neutral: optimal too
    1.625
    """
    began = time.perf_counter()
    risk = parse_risk(risk)
    check_whole("seeds", seeds)
    check_whole("seed", seed, least=0)
    if episodes is not None:
        check_whole("episodes", episodes, least=2)
    seeds, seed = int(seeds), int(seed)
    if resume and folder is None:
        raise OcerlError("to resume, give the folder of the run (folder=…, --out DIR on the command line)")
    parameters = parameters or {}
    for name in ("horizon", "discount", "budget_range"):
        if name in parameters:
            raise OcerlError(f"{name} is not among the environment's own parameters: give it by itself, {name}=…")
    world = open_world(environment, horizon=horizon, discount=discount, budget_range=budget_range, **parameters)
    config = settings_for(world, settings)
    driver = driver_of(world, risk, config)
    judge = Judge(world, driver, risk, episodes)
    _check_tail(risk, judge.episodes)
    run = Run(
        driver=driver,
        config=config,
        judge=judge,
        seeds=range(seed, seed + seeds),
        folder=None if folder is None else Path(folder),
        settings={
            "environment": world.task.name,
            "model": None if world.model is None else fingerprint(world.model),
            "parameters": {name: str(value) for name, value in parameters.items()},
            "horizon": world.task.horizon,
            "discount": world.task.discount,
            "budget_range": None if world.task.guessed else world.task.budget_range,
            "risk": risk.name,
            "seeds": seeds,
            "seed": seed,
            **asdict(config),
        },
        progress=progress,
    )
    state, history = run.play(*(run.resumed() if resume else run.begun()))
    return DeepTraining(
        environment=world.task.name,
        parameters=parameters,
        risk=risk,
        config=config,
        horizon=world.task.horizon,
        discount=world.task.discount,
        budget_range=world.task.budget_range,
        runs=tuple(judge.final(state, number, s) for number, s in enumerate(run.seeds)),
        updates=history["update"],
        values=history["value"],
        optimum=judge.optimum(),
        seconds=time.perf_counter() - began,
    )


def _check_tail(risk: Risk, episodes: int) -> None:
    """Whether `estimate` will accept the final episodes: said before a long run, not after it."""
    if risk.tail is not None and episodes * risk.tail < FEWEST_TAIL_SAMPLES - 1e-9:
        raise OcerlError(
            f"to estimate {risk.name}, its tail has to have {FEWEST_TAIL_SAMPLES} episodes: "
            f"episodes must be at least {ceil(FEWEST_TAIL_SAMPLES / risk.tail - 1e-9)}, got {episodes}"
        )
