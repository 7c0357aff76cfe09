"""What `train`'s ENV means, and the driver that plays it.

| ENV | played by |
|---|---|
| a simulator of `ocerl.envs` or its Gymnasium id | the compiled driver |
| a tabular model: of the zoo, a CSV file, an id with a table, a `TabularMDP` | the compiled driver, judged exactly |
| your own `ocerl.envs.Environment` | the compiled driver |
| any other Gymnasium id, or a function that makes an environment | the Gymnasium driver |
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ocerl.envs import AugmentedEnvironment, Environment, SpreadBudget, TabularEnvironment, UniformBudget, make
from ocerl.envs.augmented import FirstBudget, first_budgets
from ocerl.envs.catalogue import SIMULATORS
from ocerl.envs.registration import IDS
from ocerl.errors import OcerlError
from ocerl.gradient import budgets
from ocerl.gradient.deep.actions import actions_of
from ocerl.gradient.deep.compiled import CompiledDriver, Problem
from ocerl.gradient.deep.config import DeepConfig
from ocerl.gradient.deep.driver import Driver, Task
from ocerl.gradient.deep.inputs import Inputs, even_knots
from ocerl.gradient.deep.knots import knots_over
from ocerl.gradient.deep.sources import Source, gymnasium_task
from ocerl.gradient.deep.vector import GymnasiumDriver, GymnasiumProblem
from ocerl.gradient.layers import first_layer, next_layer
from ocerl.mdp.gymnasium_table import from_gymnasium
from ocerl.mdp.lattice import exact_lattice
from ocerl.mdp.load import GYMNASIUM_ID, load_model
from ocerl.mdp.tabular import TabularMDP
from ocerl.mdp.zoo import names
from ocerl.risk import Risk

AnyEnvironment = str | TabularMDP | Environment[Any] | Callable[[], Any]

LARGEST_PAYOFF = 1e15
"""Beyond, sums and squares of pay-offs leave the range of 32 bits."""
MOST_ONE_HOT = 257
"""Up to so many budgets that an episode can meet, each has a knot of its own: the paper's one-hot encoding."""


@dataclass(frozen=True)
class World:
    """An environment that has been found, with one of `environment` and `source`."""

    task: Task
    model: TabularMDP | None = None
    environment: Environment[Any] | None = None
    source: Source | None = None

    @property
    def compiled(self) -> bool:
        return self.environment is not None


def open_world(
    environment: AnyEnvironment,
    *,
    horizon: int | None = None,
    discount: float | None = None,
    budget_range: tuple[float, float] | None = None,
    **parameters: Any,
) -> World:
    """Find an environment.

    >>> open_world("paper").task.horizon, open_world("american-put", volatility=0.2).task.budget_range
    (2, (0.0, 1.0))
    """
    both = {"horizon": horizon, "discount": discount}
    given: dict[str, Any] = {name: value for name, value in both.items() if value is not None}
    given_name = environment if isinstance(environment, str) else None
    if budget_range is not None:
        budget_range = _checked(budget_range)
    if isinstance(environment, str) and environment in IDS:
        environment = _registered_model(environment, parameters)
    if isinstance(environment, str) and environment in SIMULATORS:
        environment = make(environment, **given, **parameters)
    elif isinstance(environment, TabularMDP):
        _require_known(parameters, ("start",))
        environment = environment.with_(**given, **parameters)
    elif isinstance(environment, str):
        environment = _table(environment, given, parameters) or environment
    elif isinstance(environment, Environment):
        _require_known({**given, **parameters}, ())
    if isinstance(environment, TabularMDP):
        compiled = TabularEnvironment(environment)
        return World(_task(compiled, given_name or environment.name, budget_range), environment, compiled)
    if isinstance(environment, Environment):
        name = given_name or type(environment).__name__
        return World(_task(environment, name, budget_range), environment=environment)
    source = Source.of(environment, **parameters)
    task = gymnasium_task(source, horizon=horizon, discount=discount, budget_range=budget_range)
    return World(task, source=source)


def driver_of(world: World, risk: Risk, config: DeepConfig) -> Driver:
    """The driver for a world, a risk and settings."""
    task, knots = world.task, knots_of(world, config)
    if config.critic == "q" and actions_of(task.action_space).continuous:
        raise OcerlError(f"critic='q' needs finitely many actions, {task.name} has {task.action_space}: leave it out")
    inputs = Inputs.of(
        task.observation_space,
        time_knots=even_knots(0, max(task.horizon - 1, 1), min(max(task.horizon, 2), config.time_knots)),
        knots=knots,
        hide_budget=config.hide_budget,
    )
    low, high = task.budget_range
    unit = payoff_unit(risk, task.budget_range)
    if world.environment is None:
        assert world.source is not None
        return GymnasiumDriver(world.source, task, GymnasiumProblem(risk, inputs, unit, high - low), config)
    chosen = _first_budget(world.environment, task, risk, config)
    augmented = AugmentedEnvironment(world.environment, risk, first_budget=chosen, dense=config.dense)
    return CompiledDriver(task, Problem(augmented, inputs, jnp.float32(unit), jnp.float32(high - low)), config)


def knots_of(world: World, config: DeepConfig) -> NDArray[np.floating]:
    """Where the networks see a budget: all that an episode can meet, where these are few, else `knots_over`."""
    met = None if world.model is None else _met_budgets(world.model)
    if met is not None and 2 <= met.size <= MOST_ONE_HOT:
        return met
    return knots_over(world.task.budget_range, config.budget_knots)


def payoff_unit(risk: Risk, budget_range: tuple[float, float]) -> float:
    """The pay-off that counts as 1: the spread of :math:`u(z - b) - u(-b)` over returns and first budgets.

    >>> from ocerl.risk import Mean
    >>> round(payoff_unit(Mean(), (0.0, 1.0)), 3)
    0.3
    """
    grid = np.linspace(*budget_range, 33)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.asarray(risk.utility(grid[:, None] - grid) - risk.utility(-grid)).std()
    if not 0 < spread < LARGEST_PAYOFF:
        raise OcerlError(
            f"the pay-offs of {risk.name} spread by {spread:.3g} over returns in [{budget_range[0]:g}, "
            f"{budget_range[1]:g}], which networks in 32 bits cannot learn: scale the rewards, take a milder risk, "
            "or narrow budget_range"
        )
    return float(spread)


def _task(environment: Environment[Any], name: str, budget_range: tuple[float, float] | None) -> Task:
    own = budget_range is None or tuple(budget_range) == environment.budget_range
    return Task(
        name=name,
        observation_space=environment.observation_space,
        action_space=environment.action_space,
        horizon=environment.horizon,
        discount=environment.discount,
        budget_range=environment.budget_range if budget_range is None else budget_range,
        return_support=environment.return_support if own else None,
    )


def _first_budget(environment: Environment[Any], task: Task, risk: Risk, config: DeepConfig) -> FirstBudget:
    """Over all returns where these are few and one of them is optimal; else over the range, dense near zero."""
    if config.first_budget is not None:
        return UniformBudget(*config.first_budget)
    if task.return_support is not None and risk.slopes is not None:
        return first_budgets(environment, risk)
    return SpreadBudget(knots_over(task.budget_range, config.budget_knots), *task.budget_range)


def _met_budgets(model: TabularMDP) -> NDArray[np.float64] | None:
    """Every budget that an episode can meet from a possible return, where rewards have a common lattice."""
    lattice = exact_lattice(model)
    if lattice is None:
        return None
    returns = budgets.possible_units(lattice)
    if returns.size > MOST_ONE_HOT:
        return None
    layer = first_layer(lattice, -returns)
    met: list[NDArray[np.float64]] = []
    for step in range(lattice.length + 1):
        met.append(np.unique(lattice.floor - lattice.origins[:step].sum() - lattice.unit * layer[1]))
        if step < lattice.length:
            layer, _ = next_layer(lattice, step, layer)
    return np.unique(np.round(np.concatenate(met), 9)).astype(np.float64)


def is_table(name: str) -> bool:
    """Whether a text names a tabular model; a Gymnasium id does if its environment carries a table."""
    if name in names() or not GYMNASIUM_ID.fullmatch(name):
        return True
    try:
        environment = Source.of(name).make()
    except OcerlError:
        return False
    found = hasattr(environment.unwrapped, "P")
    environment.close()
    return found


def _table(name: str, given: dict[str, Any], parameters: dict[str, Any]) -> TabularMDP | None:
    """The tabular model that a text names, if it names one; parameters are those of a Gymnasium id."""
    if name in names() or not GYMNASIUM_ID.fullmatch(name):
        if name not in names() and not (name.lower().endswith(".csv") or os.path.exists(name)):
            raise OcerlError(_unknown(name))
        _require_known(parameters, ("start",))
        return load_model(name, **given, **parameters)
    if "start" in parameters:  # only a table has states to start in
        _require_known(parameters, ("start",))
        return load_model(name, **given, **parameters)
    environment: Any = Source.of(name, **parameters).make()
    try:
        return from_gymnasium(environment, **given) if hasattr(environment.unwrapped, "P") else None
    finally:
        environment.close()


def _registered_model(name: str, parameters: dict[str, Any]) -> Any:
    """What an id of this package plays: its own model, or the parameter `model`, which is taken out."""
    own = IDS[name].get("model")
    if own is None and "model" not in parameters:
        raise OcerlError(f"{name} plays any tabular model: say which, model=…")
    return own if own is not None else parameters.pop("model")


def _unknown(name: str) -> str:
    known = (*SIMULATORS, *(model for model in names() if model not in SIMULATORS))
    close = get_close_matches(name.lower().replace("_", "-"), known, n=1)
    return (
        f"there is no environment {name!r}" + (f" (did you mean {close[0]}?)" if close else "") + ": give a simulator "
        f"({', '.join(SIMULATORS)}), a model ({', '.join(known[len(SIMULATORS) :])}), a CSV file (model.csv) "
        "or a Gymnasium id (CartPole-v1)"
    )


def _require_known(parameters: dict[str, Any], known: tuple[str, ...]) -> None:
    for name in parameters:
        if name not in known:
            has = f"; it has horizon, discount, {', '.join(known)}" if known else ": set it where you make it"
            raise OcerlError(f"this environment has no parameter {name!r}{has}")


def _checked(budget_range: Any) -> tuple[float, float]:
    try:
        low, high = map(float, budget_range)
        good = bool(np.isfinite([low, high]).all()) and low < high
    except (TypeError, ValueError):
        low, high, good = 0.0, 0.0, False
    if not good:
        raise OcerlError(f"budget_range must be two finite numbers, low < high, got {budget_range!r}")
    return low, high
