"""A tabular model as an environment: joint outcomes, steps of their own, missing actions, possible returns."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ocerl.envs import TabularEnvironment, make
from ocerl.envs.tabular import TabularState
from ocerl.errors import OcerlError
from ocerl.mdp.tabular import TabularMDP

KEYS = jax.random.split(jax.random.key(0), 200)


def taken(model: TabularMDP, step: int, state: int, action: int) -> set[tuple[int, float, bool]]:
    """Every `(next state, reward, terminated)` that 200 draws bring."""
    before = TabularState(jnp.int32(step), jnp.int32(state))
    after = jax.vmap(TabularEnvironment(model).step, (0, None, None))(KEYS, before, jnp.array(action))
    columns = (after.observation.tolist(), after.reward.tolist(), after.terminated.tolist())
    return set(zip(*columns, strict=True))


def test_reward_and_next_state_are_joint() -> None:
    model = TabularMDP.from_outcomes(
        {"start": {"go": [(0.5, "left", -1.0), (0.5, "right", 1.0)]}, "left": {"go": [(1.0, "left", 1.0)]}},
        horizon=2,
    )
    # Draws of reward and state by themselves would also bring (1, 1.0) and (2, -1.0).
    assert taken(model, 0, 0, 0) == {(1, -1.0, False), (2, 1.0, True)}


def test_every_step_has_its_model() -> None:
    tables = [{0: {"go": [(1.0, 0, reward)]}} for reward in (1.0, 2.0, 4.0)]
    model = TabularMDP.from_outcomes(tables)
    assert [taken(model, step, 0, 0) for step in range(3)] == [
        {(0, 1.0, False)},
        {(0, 2.0, False)},
        {(0, 4.0, True)},
    ]


def test_a_missing_action_acts_as_the_states_first() -> None:
    model = TabularMDP.from_outcomes(
        {0: {"a": [(1.0, 0, 1.0)], "b": [(1.0, 0, 2.0)]}, 1: {"b": [(1.0, 1, 3.0)], "c": [(1.0, 1, 4.0)]}},
        horizon=5,
    )
    assert [taken(model, 0, 0, action) for action in range(3)] == [
        {(0, 1.0, False)},
        {(0, 2.0, False)},
        {(0, 1.0, False)},
    ]
    assert [taken(model, 0, 1, action) for action in range(3)] == [
        {(1, 3.0, False)},
        {(1, 3.0, False)},
        {(1, 4.0, False)},
    ]


def test_an_episode_ends_where_nothing_is_left() -> None:
    # `wait` pays nothing now, but may lead to more; `end` never pays again.
    model = TabularMDP.from_outcomes({"wait": {"stay": [(1.0, "wait", 0.0)], "take": [(1.0, "end", 1.0)]}}, horizon=4)
    assert taken(model, 0, 0, 0) == {(0, 0.0, False)}
    assert taken(model, 0, 0, 1) == {(1, 1.0, True)}
    assert taken(model, 3, 0, 0) == {(0, 0.0, True)}


def test_the_first_state_is_drawn_from_the_start() -> None:
    model = TabularMDP.from_outcomes(
        {state: {"go": [(1.0, state, 1.0)]} for state in "abcd"}, start={"b": 0.5, "c": 0.5}, horizon=1
    )
    _, first = jax.vmap(TabularEnvironment(model).reset)(KEYS)
    assert set(first.tolist()) == {1, 2}


def test_many_outcomes_are_all_drawn() -> None:
    # 16 equally likely outcomes: one is missing from 200 draws with probability 16 · (15/16)^200 = 4e-5.
    model = TabularMDP.from_outcomes({0: {"roll": [(1 / 16, 0, float(n)) for n in range(16)]}}, horizon=2)
    assert taken(model, 0, 0, 0) == {(0, float(n), False) for n in range(16)}


def test_the_papers_returns() -> None:
    environment = make("paper")
    np.testing.assert_array_equal(environment.return_support, [0.0, 0.5, 1.0, 1.5, 2.5])
    assert environment.return_range == environment.budget_range == (0.0, 2.5)


def test_discounted_returns() -> None:
    model = TabularMDP.from_outcomes({0: {"flip": [(0.5, 0, 0.0), (0.5, 0, 1.0)]}}, horizon=2, discount=0.5)
    environment = TabularEnvironment(model)
    np.testing.assert_allclose(environment.return_support, [0.0, 0.5, 1.0, 1.5], atol=1e-12)
    assert environment.discount == 0.5


def test_returns_without_a_lattice_are_not_listed() -> None:
    model = TabularMDP.from_outcomes({0: {"flip": [(0.5, 0, 1.0), (0.5, 0, 2**0.5)]}}, horizon=3)
    assert TabularEnvironment(model).return_support is None


def test_make() -> None:
    assert make("paper", horizon=1).return_range == (0.0, 1.0)
    assert make("guarded-maze", horizon=20).horizon == 20
    assert make(TabularMDP.from_outcomes({0: {0: [(1.0, 0, 1.0)]}}), horizon=4).return_range == (4.0, 4.0)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("guarded_maze", {}, "no environment 'guarded_maze', did you mean guarded-maze"),
        ("guarded-maze", {"nose": 1}, "guarded-maze has no parameter 'nose'; it has .*noise"),
        ("paper", {"noise": 1}, "a tabular model has no parameter 'noise'; it has horizon"),
        ("no-such-thing", {}, "there is no model 'no-such-thing'"),
    ],
)
def test_make_errors(name: str, parameters: dict[str, int], message: str) -> None:
    with pytest.raises(OcerlError, match=message):
        make(name, **parameters)


def test_a_model_needs_a_horizon() -> None:
    with pytest.raises(OcerlError, match="has no horizon"):
        TabularEnvironment(TabularMDP.from_outcomes({0: {0: [(1.0, 0, 1.0)]}}))
