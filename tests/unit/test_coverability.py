"""Coverability by hand and by brute force, and the bounds of Appendix D.3 on random worlds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ocerl.errors import OcerlError
from ocerl.mdp import TabularMDP, random_mdp
from ocerl.mdp.rich import exogenous_lock, low_rank_lock, random_low_rank
from ocerl.mdp.tabular import Columns
from ocerl.planning.coverability import coverability


def choose(horizon: int) -> TabularMDP:
    """One state; an action pays 0, the other 1."""
    return TabularMDP.from_outcomes({0: {"none": [(1.0, 0, 0.0)], "one": [(1.0, 0, 1.0)]}}, horizon=horizon)


def test_by_hand() -> None:
    """Cov is 2, one state with two actions. In step 2 the budgets b1 and b1 - 1 can each be reached surely."""
    found = coverability(choose(2))
    assert (found.original, found.augmented, found.returns, found.budgets) == (2.0, 4.0, 3, 2)


def test_all_returns_as_first_budgets_break_the_papers_count() -> None:
    """First budgets 0, 1, 2: in step 2 the budgets -1, 0, 1, 2, each met surely, so 4 · 2 = 8 > |B| Cov = 6."""
    found = coverability(choose(2), first_budgets=(0.0, 1.0, 2.0))
    assert found.augmented == 8.0
    assert found.augmented > found.returns * found.original
    assert found.augmented <= (2 * found.returns - 1) * found.original


def markov_tables(model: TabularMDP) -> list[np.ndarray]:
    """All deterministic Markov policies of a model with the same number of actions everywhere."""
    horizon, states, actions = model.require_horizon(), model.n_states, model.n_actions
    return [
        np.array(choice).reshape(horizon, states)
        for choice in itertools.product(range(actions), repeat=horizon * states)
    ]


def occupancies(model: TabularMDP, table: np.ndarray) -> np.ndarray:
    """`[step, state, action]`, forwards."""
    mass, found = model.start, np.zeros((*table.shape, model.n_actions))
    for step, slots in enumerate(table):
        found[step, np.arange(model.n_states), slots] = mass
        t, after = model.transitions(step), np.zeros(model.n_states)
        for state, slot in enumerate(slots):
            pair = t.pair_start[state] + slot
            for i in range(t.outcome_start[pair], t.outcome_start[pair + 1]):
                after[t.next_state[i]] += mass[state] * t.probability[i]
        mass = after
    return found


def with_earned(model: TabularMDP) -> TabularMDP:
    """The augmented MDP as a model: what has been earned is part of the state."""
    horizon, most = model.require_horizon(), 3
    columns: list[Columns] = []
    for step in range(horizon):
        t, rows = model.transitions(step), []
        for pair in range(t.n_pairs):
            for i in range(t.outcome_start[pair], t.outcome_start[pair + 1]):
                for earned in range(horizon * (most - 1) + 1):
                    after = min(earned + int(t.reward[i]), horizon * (most - 1))
                    state, target = t.pair_state[pair] * 8 + earned, t.next_state[i] * 8 + after
                    rows.append((state, t.action[pair], target, t.probability[i], 0.0))
        columns.append(tuple(np.array(column) for column in zip(*rows, strict=True)))  # type: ignore[arg-type]
    states = tuple(range(8 * model.n_states))
    return TabularMDP.from_indices(columns, states=states, actions=model.actions, horizon=horizon)


def test_brute_force() -> None:
    """The best of all 64 deterministic Markov policies for every state and action, which the maximum is among."""
    model = random_mdp(3, states=2, actions=2, horizon=3, rewards=(0.0, 1.0), per_step=True)
    each = np.stack([occupancies(model, table) for table in markov_tables(model)])
    assert coverability(model).original == pytest.approx(each.max(axis=0).sum(axis=(1, 2)).max(), abs=1e-12)


def test_the_augmented_one_is_that_of_the_augmented_model() -> None:
    model = random_mdp(5, states=3, actions=2, horizon=3, rewards=(0.0, 1.0, 2.0), per_step=True)
    expanded = with_earned(model)
    mine = coverability(model).augmented
    # The states that are never met in the expanded model count for nothing.
    assert mine == pytest.approx(coverability(expanded).original, abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_for_random_worlds(seed: int) -> None:
    """Cov_aug <= |B| Cov for one first budget, and |B - B| Cov for all returns as first budgets."""
    model = random_mdp(seed, states=4, actions=2, horizon=4, rewards=(0.0, 1.0, 2.0), per_step=seed % 2 == 0)
    one = coverability(model)
    assert one.original <= one.augmented + 1e-12
    assert one.augmented <= one.returns * one.original + 1e-9
    assert one.budgets <= one.returns
    several = coverability(model, first_budgets=np.arange(9.0).tolist())
    assert several.augmented <= several.budgets * one.original + 1e-9
    assert several.augmented >= one.augmented


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_exogenous_block_worlds(bits: int) -> None:
    """Cov <= |Z_en| |A| however many observations there are, and Cov_aug <= |B| |Z_en| |A|."""
    world = exogenous_lock(bits=bits, horizon=3, candidates=3)
    found, endogenous = coverability(world.model()), coverability(world.endogenous)
    latents, actions = world.n_latents, world.endogenous.n_actions
    assert found.original == pytest.approx(endogenous.original, abs=1e-12)
    assert found.original <= latents * actions
    assert found.augmented <= found.returns * latents * actions


@pytest.mark.parametrize("seed", range(5))
def test_low_rank_worlds(seed: int) -> None:
    """Cov <= d |A| and Cov_aug <= |B| d |A|, from the second step on; in the first it is |A|."""
    world = random_low_rank(seed, states=8, actions=3, horizon=3, rank=2)
    found = coverability(world.model())
    assert found.original <= 2 * 3 + 1e-9
    assert found.augmented <= found.returns * 2 * 3 + 1e-9


def test_the_bound_of_the_rank_does_not_grow_with_the_states() -> None:
    small, large = (coverability(low_rank_lock(states=states).model()) for states in (20, 60))
    assert max(small.original, large.original) <= 3 * 4


def test_rewards_without_a_unit() -> None:
    with pytest.raises(OcerlError, match="no common unit"):
        coverability(random_mdp(1, continuous=True))
