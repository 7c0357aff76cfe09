"""What every model of the zoo keeps."""

import math
from fractions import Fraction

import pytest

from ocerl.mdp import TabularMDP, load_model, read_csv, write_csv, zoo
from tables import Table, table

WHOLE_REWARDS = ("chow", "betting-chain", "gambler", "machine-replacement", "inventory", "cliff")
LATTICES = {"paper": Fraction(1, 2), "riverswim": Fraction(1, 200)} | dict.fromkeys(WHOLE_REWARDS, Fraction(1))
"""The spacing on which all rewards of a model lie, where it has a coarse one."""
SMALL = {"american-put": {"levels": 41}, "betting-game": {"horizon": 3}}


def make(name: str) -> TabularMDP:
    return zoo.make(name, **SMALL.get(name, {}))


def in_words(written: Table) -> dict[str, dict[str, list[tuple[float, str, float]]]]:
    """A file has words where a model may have tuples and fractions."""
    return {
        str(state): {
            str(action): [(p, str(target), reward) for p, target, reward in outcomes]
            for action, outcomes in by_action.items()
        }
        for state, by_action in written.items()
    }


@pytest.mark.parametrize("name", zoo.names())
def test_probabilities_are_positive_and_sum_to_one(name):
    model = make(name)
    for step in range(len(model.steps)):
        for by_action in table(model, step).values():
            assert by_action
            for outcomes in by_action.values():
                assert all(p > 0 for p, _, _ in outcomes)
                assert math.fsum(p for p, _, _ in outcomes) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("name", zoo.names())
def test_it_has_its_name_one_start_a_horizon_and_a_finite_range(name):
    model = make(name)
    assert model.name == name
    assert sorted(set(model.start.tolist())) == [0.0, 1.0]
    assert model.require_horizon() >= 1
    low, high = model.return_range()
    assert -math.inf < low < high < math.inf


@pytest.mark.parametrize("name", zoo.names())
def test_its_names_are_short_and_different_in_words(name):
    model = make(name)
    for labels in (model.states, model.actions):
        assert len(set(map(str, labels))) == len(labels)
        assert max(len(str(label)) for label in labels) <= 24


@pytest.mark.parametrize("name", [name for name in zoo.names() if name != "american-put"])
def test_every_state_can_be_reached(name):
    """In as many steps as there are states; not the put's, whose grid is wider than some steps go."""
    model = make(name)
    steps = model.with_(horizon=max(model.require_horizon(), model.n_states)).reachable()
    assert sum(steps).astype(bool).all()


@pytest.mark.parametrize(("name", "spacing"), LATTICES.items())
def test_rewards_lie_on_a_coarse_lattice(name, spacing):
    rewards = make(name).steps[0].reward.tolist()
    assert {(Fraction(reward).limit_denominator(10**6) / spacing).denominator for reward in rewards} == {1}


@pytest.mark.parametrize("name", zoo.names())
def test_the_horizon_the_discount_and_the_start_can_be_chosen_by_text(name):
    horizon = zoo.make(name).require_horizon() + 1
    last = zoo.make(name, horizon=horizon).states[-1]
    model = load_model(name, horizon=horizon, discount=0.5, start=str(last))
    assert (model.horizon, model.discount) == (horizon, 0.5)
    assert model.start.tolist() == [0.0] * (model.n_states - 1) + [1.0]


@pytest.mark.parametrize("name", zoo.names())
def test_it_survives_a_file(name, tmp_path):
    model = make(name)
    write_csv(model, tmp_path / "model.csv")
    again = read_csv(tmp_path / "model.csv", horizon=model.horizon)
    for step in range(len(model.steps)):
        assert in_words(table(again, step)) == in_words(table(model, step))
