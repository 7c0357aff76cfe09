"""`train_tabular`: Algorithm 2 on a tabular model, many seeds at once, judged exactly at every record."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.gradient.budgets import MOST_BUDGETS, first_budgets
from ocerl.gradient.checkpoint import Arrays, Checkpoint, fingerprint
from ocerl.gradient.graph import AugmentedGraph, augmented_graph
from ocerl.gradient.meta import Round, optimise_policies
from ocerl.gradient.npg import ExactNPG, ExactNPGState
from ocerl.gradient.npg_sampled import SampledNPG, SampledNPGState
from ocerl.gradient.optimum import optimum
from ocerl.gradient.policy import StochasticBudgetPolicy
from ocerl.gradient.reinforce import Reinforce, ReinforceState
from ocerl.gradient.tables import ExactJudge, probabilities
from ocerl.gradient.training import SeedResult, Training
from ocerl.mdp.checks import check_whole
from ocerl.mdp.tabular import TabularMDP
from ocerl.planning.evaluate import evaluate
from ocerl.planning.grid import Progress
from ocerl.risk import Risk, parse_risk

RECORDS = 100
"""How often, evenly over a run, its policies are judged and recorded."""
CHECKPOINT_SECONDS = 2.0
"""A checkpoint is written at the first record after an update, and then at most so often."""

TabularState = ExactNPGState | SampledNPGState | ReinforceState


@dataclass(frozen=True)
class Kind:
    """A tabular oracle by its name, and what a run of it does unless told otherwise."""

    build: Callable[..., Any]
    state: type[TabularState]
    updates: int
    seeds: int
    options: tuple[str, ...]


ORACLES = {
    "npg": Kind(SampledNPG, SampledNPGState, 1000, 10, ("step_size", "growth", "episodes", "exploration")),
    "npg-exact": Kind(ExactNPG, ExactNPGState, 100, 1, ("step_size", "growth")),
    "reinforce-tabular": Kind(Reinforce, ReinforceState, 10_000, 10, ("step_size", "episodes", "barrier")),
}
"""`npg` and `reinforce-tabular` need samples only; `npg-exact` knows the model and is not random."""


def train_tabular(
    model: TabularMDP,
    risk: Risk | str,
    *,
    oracle: str = "npg",
    updates: int | None = None,
    seeds: int | None = None,
    seed: int = 0,
    budgets: int = MOST_BUDGETS,
    resolution: float | None = None,
    folder: Path | str | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    **options: float | None,
) -> Training:
    r"""Train a policy for a risk by policy gradients in the augmented MDP (Algorithm 2).

    Runs the seeds `seed, seed + 1, …`. `budgets` and `resolution` say which first budgets are trained (see
    `first_budgets`). With a `folder`, checkpoints are written to it, and `resume` goes on from the last one
    to exactly the result of an uninterrupted run. Other options are the oracle's own: `step_size`,
    `episodes`, ….

    The curves are the exact OCE and risk lower bound of the softmax policies :math:`\pi^k`. The policy that
    is returned takes the most probable action of the last one and is judged exactly as well.

    >>> from ocerl.mdp import zoo
    >>> trained = train_tabular(zoo.make("paper"), "cvar:0.25", seeds=2, updates=200)
    >>> [run.value for run in trained.runs], trained.optimum[0]
    ([0.75, 0.75], 0.75)
    """
    began = time.perf_counter()
    risk = parse_risk(risk)
    kind = _kind(oracle, options)
    updates, seeds = kind.updates if updates is None else updates, kind.seeds if seeds is None else seeds
    check_whole("updates", updates)
    check_whole("seeds", seeds)
    check_whole("seed", seed, least=0)
    if resume and folder is None:
        raise OcerlError("to resume, give the folder of the run (folder=…, --out DIR on the command line)")
    graph = augmented_graph(risk, first_budgets(model, risk, most=budgets, resolution=resolution))
    given = {name: value for name, value in options.items() if value is not None}
    learner = kind.build(graph, **given)
    settings = {
        "oracle": oracle,
        "risk": risk.name,
        "updates": updates,
        "seeds": seeds,
        "seed": seed,
        "budgets": int(graph.budgets.values.size),
        "resolution": graph.budgets.lattice.unit,
        **{name: getattr(learner, name) for name in kind.options},
    }
    checkpoint = Checkpoint(Path(folder), {"model": fingerprint(model), **settings}) if folder else None
    state, history = _run(graph, learner, kind, settings, checkpoint, resume, progress)
    return Training(
        model=model,
        risk=risk,
        oracle=oracle,
        settings=settings,
        runs=_results(graph, state, history, seed),
        updates=history["update"],
        values=history["value"],
        lower_bounds=history["lower_bound"],
        estimated_bounds=history["estimated_bound"],
        optimum=optimum(model, risk),
        seconds=time.perf_counter() - began,
    )


def _kind(oracle: str, options: dict[str, float | None]) -> Kind:
    if oracle not in ORACLES:
        raise OcerlError(f"there is no tabular oracle {oracle!r}; there are {', '.join(ORACLES)}")
    for name, value in options.items():
        if value is not None and name not in ORACLES[oracle].options:
            known = ", ".join(ORACLES[oracle].options)
            raise OcerlError(f"the oracle {oracle} has no option {name}; it has {known}")
    return ORACLES[oracle]


def _run(
    graph: AugmentedGraph,
    learner: Any,
    kind: Kind,
    settings: dict[str, Any],
    checkpoint: Checkpoint | None,
    resume: bool,
    progress: Progress | None,
) -> tuple[TabularState, dict[str, NDArray[Any]]]:
    """Algorithm 2 to its end, with what it recorded."""
    updates, first = settings["updates"], settings["seed"]
    state = learner.init(range(first, first + settings["seeds"]))
    history: dict[str, NDArray[Any]] = {}
    if checkpoint and resume:
        arrays, history = checkpoint.load()
        state = kind.state(**_fields(arrays))
    written = -np.inf
    every = max(1, updates // RECORDS)
    rounds = optimise_policies(learner, state, updates=updates, every=every, judge=ExactJudge(graph))
    for state, found in rounds:
        history = _append(history, found)
        now = time.monotonic()
        due = found.update == updates or (found.update > 0 and now - written > CHECKPOINT_SECONDS)
        if checkpoint and due:
            checkpoint.save({f.name: getattr(state, f.name) for f in fields(state)}, history)
            written = now
        if progress:
            progress(found.update, updates)
    return state, history


def _fields(arrays: Arrays) -> dict[str, Any]:
    return {**arrays, "updates": int(arrays["updates"])}


def _append(history: dict[str, NDArray[Any]], found: Round) -> dict[str, NDArray[Any]]:
    assert found.judgement is not None
    record: dict[str, Any] = {
        "update": found.update,
        "chosen": found.chosen,
        "value": found.judgement.value,
        "lower_bound": found.judgement.lower_bound,
        "estimated_bound": found.estimated_bound,
    }
    if not history:
        return {name: np.array([value]) for name, value in record.items()}
    return {name: np.concatenate((history[name], [value])) for name, value in record.items()}


def _results(
    graph: AugmentedGraph, state: TabularState, history: dict[str, NDArray[Any]], seed: int
) -> tuple[SeedResult, ...]:
    results: list[SeedResult] = []
    for number, (logits, chosen) in enumerate(zip(state.logits, history["chosen"][-1], strict=True)):
        softmax = StochasticBudgetPolicy.of(graph, probabilities(graph, logits), int(chosen))
        policy = softmax.rounded()
        returns = evaluate(graph.budgets.lattice.model, policy)
        results.append(
            SeedResult(
                seed=seed + number,
                value=returns.certainty_equivalent(graph.risk),
                budget=policy.budget,
                policy=policy,
                softmax=softmax,
                returns=returns,
            )
        )
    return tuple(results)
