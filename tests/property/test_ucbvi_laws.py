"""UCB-VI against the planner, and what planning again only where something changed must not change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brute_force import Game
from ocerl.conformance.optimism import optimal_values
from ocerl.mdp import random_mdp
from ocerl.optimistic import UcbViConfig
from ocerl.optimistic.ucbvi import UcbVi, plan_everything
from ocerl.optimistic.worlds import TabularWorld, collect
from ocerl.risk import parse_risk
from support.games import HALVES, games
from support.optimism import learner

RISKS = st.sampled_from(
    ["mean", "cvar:0.1", "cvar:0.5", "mean-cvar:0.5,0.25", "entropic:-1", "mean-variance:1", "monotone-mean-variance:1"]
)
BONUSES = st.sampled_from(["hoeffding", "bernstein"])


def count_the_truth(world: TabularWorld, oracle: UcbVi) -> None:
    """Give the oracle the model's own probabilities as if they had been seen."""
    for layer in range(oracle.problem.layers):
        t = world.model.transitions(layer)
        first = int(oracle.problem.pair_start[layer, 0])
        for pair in range(t.n_pairs):
            outcomes = slice(int(t.outcome_start[pair]), int(t.outcome_start[pair + 1]))
            n = outcomes.stop - outcomes.start
            oracle.counts.visits[first + pair], oracle.counts.used[first + pair] = 1, n
            oracle.counts.next_state[first + pair, :n] = t.next_state[outcomes]
            oracle.counts.atom[first + pair, :n] = np.searchsorted(world.rewards, t.reward[outcomes])
            oracle.counts.probability[first + pair, :n] = t.probability[outcomes]
    oracle.told.start[:] = world.model.start


@settings(max_examples=60)
@given(games(policies=2000, discounts=HALVES), RISKS, BONUSES)
def test_without_a_bonus_and_knowing_all_it_is_the_planner(game: Game, risk: str, bonus: str) -> None:
    config = UcbViConfig(rounds=1, bonus=bonus, bonus_scale=0.0, first_budgets=5)  # type: ignore[arg-type]
    world, oracle = learner(game.model(), risk, config)
    count_the_truth(world, oracle)
    plan_everything(oracle)
    budgets, values = oracle.values()
    if risk == "mean":
        budgets, values = budgets[:1], values[:1]
    expected = optimal_values(world.lattice, parse_risk(risk), budgets)
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-9)


@settings(max_examples=40)
@given(games(policies=500), RISKS, BONUSES, st.integers(0, 1000), st.booleans())
def test_planning_what_changed_is_planning_everything(
    game: Game, risk: str, bonus: str, seed: int, per_step: bool
) -> None:
    """To the bit: values, slots and first values, after every one of twelve episodes."""
    model = game.model()
    config = UcbViConfig(rounds=12, bonus=bonus, first_budgets=5)  # type: ignore[arg-type]
    world, oracle = learner(model, risk, config, seed=seed, per_step=per_step or not model.stationary)
    for _ in range(12):
        budgets, values = oracle.values()
        policy = oracle.policy(float(budgets[np.argmax(budgets + values)]))
        oracle.update(collect(world, policy, oracle.problem.horizon))
        kept = [array.copy() for array in (oracle.plan.upper, oracle.plan.lower, oracle.plan.slots)]
        plan_everything(oracle)
        for before, after in zip(kept, (oracle.plan.upper, oracle.plan.lower, oracle.plan.slots), strict=True):
            np.testing.assert_array_equal(before, after)


@settings(max_examples=20)
@given(st.integers(0, 1000), BONUSES)
def test_a_larger_bonus_is_more_optimistic(seed: int, bonus: str) -> None:
    """The same episodes under three scales: values rise with the scale (Hoeffding's) and stay below the ceiling."""
    model = random_mdp(seed, states=3, actions=2, horizon=3)
    oracles = [
        learner(model, "cvar:0.25", UcbViConfig(rounds=40, bonus=bonus, bonus_scale=scale))[1]  # type: ignore[arg-type]
        for scale in (0.0, 0.3, 1.0)
    ]
    world, _ = learner(model, "cvar:0.25", UcbViConfig(rounds=40), seed=seed)
    for _ in range(40):
        budgets, values = oracles[1].values()
        episode = collect(world, oracles[1].policy(float(budgets[np.argmax(budgets + values)])), 3)
        for oracle in oracles:
            oracle.update(episode)
    low, middle, high = (oracle.values()[1] for oracle in oracles)
    assert (low <= middle + 1e-12).all()
    assert (middle <= high + 1e-12).all()
    assert (high <= oracles[2].rows.arrays.ceiling[0, : high.size]).all()


@pytest.mark.parametrize("risk", ["cvar:0.25", "entropic:-1"])
@settings(max_examples=20)
@given(seed=st.integers(0, 1000))
def test_the_pessimistic_value_is_below_the_optimistic_one(risk: str, seed: int) -> None:
    model = random_mdp(seed, states=3, actions=2, horizon=3, per_step=True)
    world, oracle = learner(model, risk, UcbViConfig(rounds=30, bonus="bernstein", first_budgets=5), seed=seed)
    for _ in range(30):
        budgets, values = oracle.values()
        oracle.update(collect(world, oracle.policy(float(budgets[np.argmax(budgets + values)])), 3))
    assert (oracle.plan.lower <= oracle.plan.upper + 1e-12).all()
