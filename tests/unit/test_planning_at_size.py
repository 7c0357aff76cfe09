"""The fast paths: dense products, half precision, threads, tables on disk, against a product MDP written plainly."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ocerl.mdp import TabularMDP, from_arrays, random_mdp
from ocerl.mdp.lattice import exact_lattice
from ocerl.planning import evaluate, load_policy, plan
from ocerl.planning.dense import factor
from ocerl.planning.grid import Grid

LEVEL = 0.3
REWARDS = (0.0, 2.0, 5.0)


def product_mdp_value(model: TabularMDP, level: float) -> float:
    """CVaR's optimum by dynamic programming over (state, budget) pairs, one loop per index."""
    horizon = model.require_horizon()
    t = model.transitions(0)
    most = int(horizon * max(REWARDS))
    budgets = np.arange(most + 1)
    value = np.tile(-budgets / level, (model.n_states, 1))
    for _ in range(horizon):
        updated = np.full_like(value, -np.inf)
        for state in range(model.n_states):
            for pair in range(t.pair_start[state], t.pair_start[state + 1]):
                worth = np.zeros(most + 1)
                for i in range(t.outcome_start[pair], t.outcome_start[pair + 1]):
                    after = np.maximum(budgets - int(t.reward[i]), 0)
                    worth += t.probability[i] * value[t.next_state[i], after]
                updated[state] = np.maximum(updated[state], worth)
        value = updated
    return float((budgets + model.start @ value).max())


def dense_model(seed: int, *, random_rewards: bool, states: int = 80) -> TabularMDP:
    random = np.random.default_rng(seed)
    transition = random.dirichlet(np.ones(states), (states, 3))
    if random_rewards:
        return from_arrays(transition, (np.array(REWARDS), random.dirichlet(np.ones(3), (states, 3))), horizon=5)
    return from_arrays(transition, random.choice(REWARDS, (states, 3)), horizon=5)


@pytest.mark.parametrize("random_rewards", [False, True])
def test_a_matrix_product_is_the_same_backup(random_rewards: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = dense_model(1, random_rewards=random_rewards)
    assert factor(model.transitions(0), np.float64) is not None
    by_product = plan(model, f"cvar:{LEVEL}")
    assert by_product.value == pytest.approx(product_mdp_value(model, LEVEL), abs=1e-9)
    monkeypatch.setattr(backward_module(), "factor", lambda t, dtype: None)
    one_by_one = plan(model, f"cvar:{LEVEL}")
    assert by_product.value == pytest.approx(one_by_one.value, abs=1e-12)
    smooth = plan(model, "monotone-mean-variance:0.05")
    monkeypatch.undo()
    assert plan(model, "monotone-mean-variance:0.05").value == pytest.approx(smooth.value, abs=1e-9)


def backward_module() -> ModuleType:
    import importlib

    return importlib.import_module("ocerl.planning.backward")


def test_rewards_that_depend_on_the_next_state_are_not_factored() -> None:
    random = np.random.default_rng(2)
    states = 70
    transition = random.dirichlet(np.ones(states), (states, 2))
    model = from_arrays(transition, random.choice(REWARDS, (states, 2, states)), horizon=4)
    assert factor(model.transitions(0), np.float64) is None
    assert plan(model, f"cvar:{LEVEL}").value == pytest.approx(product_mdp_value(model, LEVEL), abs=1e-9)


@pytest.mark.parametrize("successors", [1, 2, 3, 4, 5, 6, 9, 10, 11, 14])
def test_any_number_of_outcomes(successors: int) -> None:
    """The kernel takes outcomes four and five at a time: each remainder has its own loop."""
    model = random_mdp(successors, states=12, actions=3, horizon=4, successors=successors, rewards=REWARDS)
    assert plan(model, f"cvar:{LEVEL}").value == pytest.approx(product_mdp_value(model, LEVEL), abs=1e-9)


def test_rows_longer_than_a_block() -> None:
    rewards = (0.0, 1.0, 700.0)
    model = random_mdp(0, states=6, actions=2, horizon=3, successors=3, rewards=rewards)
    assert exact_lattice(model) is not None
    assert Grid.of(exact_lattice(model)).points > 2 * 512
    found = plan(model, "cvar:0.5")
    assert found.exact
    assert found.returns.certainty_equivalent("cvar:0.5") == found.value


def test_single_precision_stays_inside_its_certificate() -> None:
    model = random_mdp(3, states=200, actions=4, horizon=15, successors=5, rewards=REWARDS)
    exact = plan(model, "cvar:0.1")
    single = plan(model, "cvar:0.1", precision="float32")
    assert exact.exact
    assert single.lower <= exact.value + 1e-9
    assert exact.value <= single.upper
    assert single.upper - single.lower < 1e-2


def test_the_number_of_threads_changes_nothing() -> None:
    model = random_mdp(4, states=300, actions=4, horizon=8, successors=5, rewards=REWARDS)
    one, three = (plan(model, "cvar:0.2", threads=threads) for threads in (1, 3))
    assert one.value == three.value
    assert one.policy.budget == three.policy.budget
    for a, b in zip(one.policy.tables, three.policy.tables, strict=True):
        np.testing.assert_array_equal(a, b)


def test_tables_on_disk(tmp_path: Path) -> None:
    model = random_mdp(5, states=50, actions=3, horizon=6, successors=3, rewards=REWARDS)
    in_memory = plan(model, "cvar:0.2")
    streamed = plan(model, "cvar:0.2", store=tmp_path / "run")
    assert all(isinstance(table, np.memmap) for table in streamed.policy.tables)
    assert streamed.value == in_memory.value
    streamed.save(tmp_path / "run")
    assert evaluate(model, load_policy(tmp_path / "run")).certainty_equivalent("cvar:0.2") == in_memory.value


def test_progress_counts_every_step() -> None:
    seen: list[tuple[int, int]] = []
    model = random_mdp(6, states=5, actions=2, horizon=7, successors=2, rewards=REWARDS)
    plan(model, "cvar:0.2", progress=lambda done, total: seen.append((done, total)))
    assert seen == [(step, 7) for step in range(1, 8)]


def test_the_kernel_is_compiled_once_for_a_precision() -> None:
    from ocerl.planning import _kernels

    model = random_mdp(7, states=5, actions=2, horizon=3, successors=2, rewards=REWARDS)
    plan(model, "cvar:0.2")
    before = len(_kernels.backup.signatures)
    plan(random_mdp(8, states=70, actions=3, horizon=9, successors=4, rewards=(0.0, 3.0)), "mean-cvar:0.2,0.05")
    assert len(_kernels.backup.signatures) == before
