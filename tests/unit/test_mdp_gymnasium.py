from typing import Any, ClassVar

import gymnasium
import pytest

from ocerl import OcerlError
from ocerl.mdp import from_gymnasium
from tables import table


class Corridor(gymnasium.Env[int, int]):
    """Action 1 leads to a cell that earns, or ends the episode: with a next state that would earn, too."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)
    P: ClassVar[Any] = {
        0: {0: [(1.0, 0, 0, False)], 1: [(0.75, 1, 1, False), (0.25, 1, -5, True)]},
        1: {0: [(1.0, 1, 2, False)], 1: []},
    }

    def __init__(self, first: tuple[int, ...] = (0,)) -> None:
        self.first = first

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        return int(self.np_random.choice(self.first)), {}


def test_a_terminated_outcome_ends_whatever_its_next_state():
    model = from_gymnasium(Corridor(), horizon=3, discount=0.9)
    assert table(model) == {
        0: {0: [(1.0, 0, 0.0)], 1: [(0.75, 1, 1.0), (0.25, "end", -5.0)]},
        1: {0: [(1.0, 1, 2.0)]},
        "end": {0: [(1.0, "end", 0.0)]},
    }
    assert (model.horizon, model.discount, model.name) == (3, 0.9, "Corridor")
    assert model.return_range() == pytest.approx((-5.0 * 1.0, 1 + 0.9 * 2 + 0.81 * 2))


def test_frozen_lake_slips_to_the_sides_and_ends_in_holes_and_at_the_goal():
    model = from_gymnasium("FrozenLake-v1")
    left, down, right = 0, 1, 2
    written = table(model)
    assert model.horizon == 100
    assert model.start.argmax() == 0
    # From cell 14, next to the goal at 15: right slips up to 10 or against the wall below.
    assert [
        (pytest.approx(1 / 3), 14, 0.0),
        (pytest.approx(1 / 3), "end", 1.0),
        (pytest.approx(1 / 3), 10, 0.0),
    ] == (written[14][right])
    # From cell 4, a hole at 5 on its right: down slips left against the wall or right into the hole.
    assert [(next_state, reward) for _, next_state, reward in written[4][down]] == [
        (4, 0.0),
        (8, 0.0),
        ("end", 0.0),
    ]
    assert left in written[4]


def test_arguments_of_the_environment_reach_it():
    model = from_gymnasium("FrozenLake-v1", is_slippery=False, horizon=7)
    assert table(model)[14][2] == [(1.0, "end", 1.0)]
    assert model.horizon == 7


def test_taxi_starts_as_gymnasium_says():
    model = from_gymnasium("Taxi-v4")
    # 25 cells, 4 places of the passenger and 3 other destinations, all alike.
    assert sorted(set(model.start.tolist())) == [0.0, pytest.approx(1 / 300)]
    assert model.horizon == 200


def test_cliff_walking_has_no_time_limit_and_needs_a_horizon():
    with pytest.raises(OcerlError, match="CliffWalking-v1 has no time limit: give a horizon"):
        from_gymnasium("CliffWalking-v1")
    # Up, eleven to the right, down: 13 steps of -1, the shortest way, and then nothing more is paid.
    assert from_gymnasium("CliffWalking-v1", horizon=40).return_range()[1] == -13.0


def test_the_time_limit_of_a_wrapper_counts():
    limited = gymnasium.make("FrozenLake-v1", max_episode_steps=12)
    assert from_gymnasium(limited).horizon == 12
    limited.close()


def test_a_start_that_is_not_stated_is_taken_from_resets_only_if_they_agree():
    assert from_gymnasium(Corridor((1,)), horizon=2).start.tolist() == [0.0, 1.0, 0.0]
    with pytest.raises(OcerlError, match="Corridor starts at random and does not say how"):
        from_gymnasium(Corridor((0, 1)), horizon=2)
    given = from_gymnasium(Corridor((0, 1)), horizon=2, start={0: 0.5, 1: 0.5})
    assert given.start.tolist() == [0.5, 0.5, 0.0]


@pytest.mark.parametrize(
    ("environment", "arguments", "message"),
    [
        ("NoSuchThing-v0", {}, "Gymnasium cannot make 'NoSuchThing-v0'"),
        ("not an id", {}, "Gymnasium cannot make 'not an id'"),
        ("no_such_module:Thing-v0", {}, "Gymnasium cannot make"),
        ("Taxi-v3", {}, "Please use `Taxi-v4` instead"),
        ("Blackjack-v1", {}, "Blackjack-v1 has no table of its transitions"),
        ("FrozenLake-v1", {"slippery": True}, "unexpected keyword argument 'slippery'"),
        ("Taxi-v4", {"fickle_passenger": True}, "moves otherwise than its table says"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(environment, arguments, message):
    with pytest.raises(OcerlError, match=message) as caught:
        from_gymnasium(environment, **arguments)
    assert "\n" not in str(caught.value)


def test_a_table_of_another_form_is_refused(monkeypatch):
    monkeypatch.setattr(Corridor, "P", {0: {0: [(1.0, 0, 0.0)]}})
    with pytest.raises(OcerlError, match=r"the table of Corridor is not P\[s\]\[a\]"):
        from_gymnasium(Corridor(), horizon=2)


def test_arguments_need_an_id():
    with pytest.raises(OcerlError, match="is_slippery: arguments of an environment go with its id"):
        from_gymnasium(Corridor(), horizon=2, is_slippery=True)
