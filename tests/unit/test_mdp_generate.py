import numpy as np
import pytest

from ocerl import OcerlError
from ocerl.mdp import random_mdp
from tables import table


def test_a_seed_is_a_model():
    assert table(random_mdp(3)) == table(random_mdp(3))
    assert table(random_mdp(3)) != table(random_mdp(4))


def test_sizes_are_as_asked():
    model = random_mdp(0, states=7, actions=2, horizon=4, successors=5, discount=0.5)
    assert (model.n_states, model.n_actions, model.horizon, model.discount) == (7, 2, 4, 0.5)
    assert {len(outcomes) for by_action in table(model).values() for outcomes in by_action.values()} == {5}
    assert model.start.tolist() == [1.0] + 6 * [0.0]


def test_rewards_independent_of_the_next_state_form_a_product():
    outcomes = table(random_mdp(0, states=50, successors=2, joint=False))[0][0]
    assert len(outcomes) == 2 * 3
    probability = np.array([p for p, _, _ in outcomes]).reshape(2, 3)
    assert np.linalg.matrix_rank(probability, tol=1e-12) == 1
    assert {state for _, state, _ in outcomes[:3]} == {outcomes[0][1]}
    assert [r for _, _, r in outcomes[:3]] == [r for _, _, r in outcomes[3:]]


def test_each_step_may_differ():
    model = random_mdp(0, horizon=3, per_step=True)
    assert len(model.steps) == 3
    assert table(model, 0) != table(model, 1)


def test_absorbing_states_stay_for_nothing():
    model = random_mdp(0, states=5, absorbing=2)
    assert [table(model)[state] for state in (3, 4)] == [{0: [(1.0, 3, 0.0)]}, {0: [(1.0, 4, 0.0)]}]
    assert all(len(table(model)[state]) == 3 for state in (0, 1, 2))


def test_continuous_rewards_fill_the_range():
    rewards = random_mdp(0, states=200, rewards=(-1.0, 3.0), continuous=True).steps[0].reward
    assert rewards.min() >= -1.0
    assert rewards.max() <= 3.0
    assert np.unique(rewards).size == rewards.size


def test_neighbours_are_close():
    for state, by_action in table(random_mdp(0, states=40, successors=3, neighbours=True)).items():
        for outcomes in by_action.values():
            for _, target, _ in outcomes:
                distance = abs(target - state)
                assert min(distance, 40 - distance) <= 3
    around = {
        target
        for outcomes in table(random_mdp(0, states=40, actions=60, successors=3, neighbours=True))[0].values()
        for _, target, _ in outcomes
    }
    assert around == {37, 38, 39, 0, 1, 2, 3}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"states": 0}, "the number of states must be a whole number of at least 1, got 0"),
        ({"successors": 1.5}, "the number of successors must be a whole number"),
        ({"horizon": 0}, "the horizon must be a whole number of at least 1, got 0"),
        ({"absorbing": 5}, "absorbing must be between 0 and 4"),
        ({"rewards": ()}, "rewards must have at least one number"),
    ],
)
def test_impossible_sizes_are_refused(wrong, message):
    with pytest.raises(OcerlError, match=message):
        random_mdp(0, **wrong)
