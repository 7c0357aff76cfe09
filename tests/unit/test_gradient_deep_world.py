"""What an environment's name means, what is refused, and with which words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ocerl.envs import BettingGame
from ocerl.envs.registration import IDS
from ocerl.errors import OcerlError
from ocerl.gradient.deep.config import DeepConfig
from ocerl.gradient.deep.train import train
from ocerl.gradient.deep.world import driver_of, knots_of, open_world, payoff_unit
from ocerl.mdp import zoo
from ocerl.risk import CVaR, Mean, parse_risk

PARAMETERS: dict[str, dict[str, Any]] = {"ocerl/Tabular-v0": {"model": "paper"}}


@pytest.mark.parametrize("name", IDS)
def test_our_gymnasium_ids_are_played_compiled(name: str) -> None:
    world = open_world(name, **PARAMETERS.get(name, {}))
    assert world.compiled
    assert world.task.name == name
    assert (world.model is not None) == (name in ("ocerl/Paper-v0", "ocerl/Tabular-v0"))


def test_a_table_is_found_in_a_gymnasium_environment_with_its_parameters() -> None:
    lake = open_world("FrozenLake-v1")
    assert lake.model is not None
    assert (lake.model.n_states, lake.task.horizon, lake.task.budget_range) == (17, 100, (0.0, 1.0))
    slips, firm = lake.model, open_world("FrozenLake-v1", is_slippery=False, horizon=9).model
    assert firm is not None
    assert firm.horizon == 9
    # On slippery ice an action has three outcomes.
    assert max(len(step.probability) / step.n_pairs for step in slips.steps) > 2
    assert all(len(step.probability) == step.n_pairs for step in firm.steps)


def test_anything_else_is_gymnasiums() -> None:
    world = open_world("Pendulum-v1", g=5.0, budget_range=(-9.0, 0.0))
    assert not world.compiled
    assert world.model is None
    assert world.source is not None
    assert world.source.make().unwrapped.g == 5.0  # pyright: ignore
    assert (world.task.horizon, world.task.budget_range, world.task.guessed) == (200, (-9.0, 0.0), False)


def test_parameters_reach_simulators_and_models() -> None:
    maze: Any = open_world("guarded-maze", noise=0.125, horizon=50)
    assert (maze.environment.noise.item(), maze.task.horizon) == (0.125, 50)
    other: Any = open_world("ocerl/GuardedMaze-v0", mean_cost=7.0)
    assert other.environment.mean_cost.item() == 7.0
    started = open_world("paper", start="s2", horizon=1)
    assert started.model is not None
    assert started.model.states[int(started.model.start.argmax())] == "s2"
    discounted = open_world(zoo.make("paper"), discount=0.5)
    assert discounted.task.discount == 0.5
    assert discounted.task.budget_range == (0.0, 1.0 + 0.5 * 1.5)


def test_a_file_is_a_model(tmp_path: Path) -> None:
    file = tmp_path / "two.csv"
    file.write_text("idstatefrom,idaction,idstateto,probability,reward\n0,0,1,1.0,3.0\n1,0,1,1.0,0.0\n")
    world = open_world(str(file), horizon=2)
    assert world.model is not None
    assert world.task.return_support is not None
    assert world.task.return_support.tolist() == [3.0]


@pytest.mark.parametrize(
    ("given", "parameters", "message"),
    [
        ("papr", {}, r"no environment 'papr' \(did you mean paper\?\): .*guarded-maze.*riverswim.*CSV.*Gymnasium id"),
        ("guarded_mze", {}, r"did you mean guarded-maze\?"),
        ("NoSuchThing-v0", {}, "Gymnasium cannot make NoSuchThing-v0"),
        ("Pendulum-v1", {"mass": 1.0}, "Gymnasium cannot make Pendulum-v1: .*unexpected keyword argument 'mass'"),
        ("CliffWalking-v1", {}, "CliffWalking-v1 has no time limit: give a horizon"),
        ("guarded-maze", {"nose": 1.0}, "guarded-maze has no parameter 'nose'; it has"),
        ("paper", {"noise": 1.0}, "no parameter 'noise'; it has horizon, discount, start"),
        (BettingGame(), {"horizon": 3}, "no parameter 'horizon': set it where you make it"),
        ("ocerl/Tabular-v0", {}, "plays any tabular model: say which, model=…"),
        (3, {}, "by its Gymnasium id or by a function that makes one, got 3"),
        (lambda: 3, {}, "the function has to make a Gymnasium environment, it made 3"),
        ("american-put", {"budget_range": (1.0, 0.0)}, r"budget_range must be two finite numbers, low < high, got \(1"),
        ("american-put", {"budget_range": (np.nan, 0.0)}, "budget_range must be two finite numbers"),
        ("american-put", {"budget_range": 1.0}, "budget_range must be two finite numbers, low < high, got 1.0"),
        ("american-put", {"horizon": 0}, "horizon must be a whole number of at least 1, got 0"),
    ],
)
def test_what_is_no_environment_is_told_in_one_line(given: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(OcerlError, match=message) as told:
        open_world(given, **parameters)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"risk": "cvar:0"}, "tau must be a number with 0 < tau <= 1, got 0.0"),
        ({"steps": 0}, "steps must be a whole number of at least 1, got 0"),
        ({"steps": 1e6}, "steps must be a whole number of at least 1, got 1000000.0"),
        ({"environments": 10, "group": 4}, "environments must be a multiple of group, got 10 and 4"),
        ({"minibatches": 7}, "environments × rollout must be a multiple of minibatches, got 64 × 4 = 256 and 7"),
        ({"learningrate": 1.0}, "there is no setting 'learningrate', did you mean learning_rate?"),
        ({"learning_rate": "fast"}, "learning_rate must be a positive number, got 'fast'"),
        ({"clip": "a"}, "clip must be a positive number or None, got 'a'"),
        ({"gae_lambda": 1.5}, "gae_lambda must be between 0 and 1, got 1.5"),
        ({"barrier": float("nan")}, "barrier must be a number of at least 0, got nan"),
        ({"hidden": [8, 8]}, r"hidden must be a tuple of sizes, such as \(64, 64\), got \[8, 8\]"),
        ({"dense": "no"}, "dense must be True or False, got 'no'"),
        ({"first_budget": 16.0}, "first_budget must be two finite numbers, low <= high, got 16.0"),
        ({"first_budget": (1.0,)}, "first_budget must be two finite numbers"),
        ({"first_budget": (1.0, 2.0, 3.0)}, "first_budget must be two finite numbers"),
        ({"first_budget": (2.0, 1.0)}, "first_budget must be two finite numbers"),
        ({"oracle": "npg"}, "no deep oracle 'npg'; there are reinforce, ppo-forward, ppo-backward"),
        ({"seeds": 0}, "seeds must be a whole number of at least 1, got 0"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"episodes": 0}, "episodes must be a whole number of at least 2, got 0"),
        ({"episodes": 39}, "to estimate cvar:0.25, its tail has to have 10 episodes: episodes must be at least 40"),
        ({"parameters": {"horizon": 3}}, "give it by itself, horizon=…"),
        ({"resume": True}, r"give the folder of the run \(folder=…, --out DIR on the command line\)"),
        ({"environment": "Pendulum-v1", "budget_range": (-1.0, 0.0), "critic": "q"}, "critic='q' needs finitely many"),
        ({"environment": "Pendulum-v1", "budget_range": (-1.0, 0.0), "group": 2}, "group has to be 1"),
        ({"environment": "Pendulum-v1", "budget_range": (-1.0, 0.0), "risk": "cvar:0.001"}, "at least 10000, got 1000"),
        ({"environment": "paper", "budget_range": (1.0, 1.0)}, "budget_range must be two finite numbers, low < high"),
    ],
)
def test_a_run_that_cannot_be_is_told_before_it_begins(settings: dict[str, Any], message: str) -> None:
    given = {"environment": "paper", "risk": "cvar:0.25", **settings}
    with pytest.raises(OcerlError, match=message) as told:
        train(**given)
    assert "\n" not in str(told.value)


def test_the_papers_budgets_each_have_a_knot() -> None:
    """First budgets 0 … 2.5 less a reward of 0 or 1, less one of 0, ½, 1 or 1½, all in steps of ½."""
    world = open_world("paper")
    knots = knots_of(world, DeepConfig())
    assert set(np.arange(-2.5, 2.6, 0.5)) >= set(knots.tolist()) >= set(np.arange(-1.0, 2.6, 0.5))
    driver = driver_of(world, CVaR(0.25), DeepConfig())
    assert driver.inputs.budget_knots.tolist() == knots.tolist()


def test_the_unit_of_payoffs_is_their_spread() -> None:
    """For the mean u(z - b) - u(-b) = z, even over 33 points of [0, 8]: variance (33² - 1) / 12 / 16."""
    assert payoff_unit(Mean(), (0.0, 8.0)) == pytest.approx((1088 / 12 / 16) ** 0.5)
    with pytest.raises(OcerlError, match="in 32 bits cannot learn"):
        payoff_unit(parse_risk("entropic:-1"), (-10_000.0, 0.0))
