"""UCB-VI on a model, as several tests need it."""

from __future__ import annotations

import math

import numpy as np

from ocerl.mdp import TabularMDP
from ocerl.mdp.lattice import Lattice
from ocerl.optimistic.problem import learning_lattice, problem_of_model
from ocerl.optimistic.rewards import known_rewards
from ocerl.optimistic.ucbvi import UcbVi, UcbViConfig, init
from ocerl.optimistic.worlds import TabularWorld
from ocerl.risk import parse_risk


def learner(
    model: TabularMDP,
    risk: str,
    config: UcbViConfig,
    *,
    seed: int = 0,
    per_step: bool | None = None,
    know: bool = False,
    lattice: Lattice | None = None,
) -> tuple[TabularWorld, UcbVi]:
    """A world and an oracle that has seen nothing of it."""
    lattice = learning_lattice(model) if lattice is None else lattice
    layered = not model.stationary if per_step is None else per_step
    problem = problem_of_model(lattice, per_step=layered)
    world = TabularWorld(lattice, problem.terminal, np.random.default_rng(seed))
    known = known_rewards(lattice, world.rewards, problem.layers) if know else None
    room = world.most_outcomes
    return world, init(config, problem, parse_risk(risk), atoms=world.rewards, room=room, known=known)


def scale_for(log_term: float, events: int, visits: int, delta: float = 0.05, sides: int = 1) -> float:
    """The scale with which the bonus has this `L`, if its union is over so many events and visits."""
    return math.sqrt(log_term / math.log(sides * events * visits / delta))
