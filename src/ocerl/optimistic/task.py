"""What is explored: a tabular model, simulated, or a Gymnasium environment, played."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ocerl.errors import OcerlError
from ocerl.mdp import TabularMDP, from_gymnasium, load_model, rich
from ocerl.mdp.lattice import Lattice
from ocerl.mdp.rich import ExogenousBlockMDP, LowRankMDP, RichWorld, VectorMDP
from ocerl.optimistic.problem import BINS, Problem, learning_lattice, problem_of_model, problem_of_spaces
from ocerl.optimistic.worlds import GymnasiumWorld, TabularWorld, discrete_size

if TYPE_CHECKING:
    import gymnasium


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """The world to explore, the problem as the learner is told of it, and the model to judge with, if any."""

    name: str
    problem: Problem
    lattice: Lattice | None
    """The model on its lattice, where there is one: learners are judged on it exactly."""
    environment: gymnasium.Env[Any, Any] | None = None

    def world(self, seed: int) -> TabularWorld | GymnasiumWorld:
        """A world of its own for a seed."""
        if self.environment is not None:
            return GymnasiumWorld(self.environment, self.problem.horizon, seed)
        assert self.lattice is not None
        return TabularWorld(self.lattice, self.problem.terminal, np.random.default_rng(seed))

    @property
    def digest(self) -> str:
        """A fingerprint: a run goes on only in the world it began in."""
        sums = hashlib.sha256(self.name.encode())
        if self.lattice is not None:
            for t in self.lattice.model.steps:
                for part in (t.pair_start, t.action, t.outcome_start, t.probability, t.next_state, t.reward):
                    sums.update(np.ascontiguousarray(part).tobytes())
            sums.update(self.lattice.model.start.tobytes())
        return sums.hexdigest()[:16]


def find_task(
    environment: TabularMDP | RichWorld | gymnasium.Env[Any, Any] | str,
    *,
    horizon: int | None,
    per_step: bool | None,
    reward_range: tuple[float, float] | None,
    resolution: float | None,
) -> Task:
    """What `explore` was given, as a task."""
    if resolution is not None and not (np.isfinite(resolution) and resolution > 0):
        raise OcerlError(f"the resolution must be a positive number (a step in units of the return), got {resolution}")
    if isinstance(environment, str) and environment in rich.WORLDS:
        environment = rich.make(environment, **({} if horizon is None else {"horizon": horizon}))
    if isinstance(environment, str):
        environment = _load(environment, horizon)
    if isinstance(environment, VectorMDP):
        raise OcerlError(f"{environment.name} is seen in vectors: explore it with repucb")
    if isinstance(environment, ExogenousBlockMDP | LowRankMDP):
        environment = environment.model()
    if isinstance(environment, TabularMDP):
        model = environment.with_(horizon=horizon)
        model.require_horizon()
        return _task_of_model(model, per_step, resolution)
    return _task_of_environment(environment, horizon, bool(per_step), reward_range, resolution)


def _task_of_model(model: TabularMDP, per_step: bool | None, resolution: float | None) -> Task:
    lattice = learning_lattice(model, resolution)
    layered = not model.stationary if per_step is None else per_step
    return Task(name=model.name, problem=problem_of_model(lattice, per_step=layered), lattice=lattice)


def _load(text: str, horizon: int | None) -> TabularMDP | gymnasium.Env[Any, Any]:
    """A model by name, or, where Gymnasium has the id but no table, the environment."""
    import gymnasium

    if text not in gymnasium.registry:
        return load_model(text, horizon=horizon)
    try:
        environment = gymnasium.make(text)
    except (gymnasium.error.Error, ImportError) as error:
        raise OcerlError(f"Gymnasium cannot make {text!r}: {error}") from None
    return load_model(text, horizon=horizon) if hasattr(environment.unwrapped, "P") else environment


def _task_of_environment(
    environment: gymnasium.Env[Any, Any],
    horizon: int | None,
    per_step: bool,
    reward_range: tuple[float, float] | None,
    resolution: float | None,
) -> Task:
    name = environment.spec.id if environment.spec else type(environment.unwrapped).__name__
    sizes = (
        discrete_size(environment.observation_space, "observation", name),
        discrete_size(environment.action_space, "action", name),
    )
    limit = environment.spec.max_episode_steps if environment.spec else None
    horizon = limit if horizon is None else horizon
    if horizon is None:
        raise OcerlError(f"{name} has no time limit: give a horizon (horizon=…, --horizon on the command line)")
    if horizon < 1:
        raise OcerlError(f"the horizon must be a whole number of at least 1, got {horizon}")
    if reward_range is None and hasattr(environment.unwrapped, "P"):
        known = _task_of_model(from_gymnasium(environment, horizon=horizon), per_step, resolution)
        return Task(name=name, problem=known.problem, lattice=known.lattice, environment=environment)
    if reward_range is None:
        raise OcerlError(f"{name} does not say what it pays: declare a range (reward_range=(low, high))")
    if not (np.isfinite(reward_range).all() and reward_range[0] <= reward_range[1]):
        raise OcerlError(f"reward_range must be two finite numbers with low <= high, got {reward_range}")
    span = max(reward_range[1], 0.0) - min(reward_range[0], 0.0)
    problem = problem_of_spaces(
        *sizes,
        horizon=horizon,
        reward_range=reward_range,
        resolution=max(span * horizon, 1e-12) / BINS if resolution is None else resolution,
        per_step=per_step,
    )
    return Task(name=name, problem=problem, lattice=None, environment=environment)
