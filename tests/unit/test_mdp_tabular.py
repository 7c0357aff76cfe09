import numpy as np
import pytest

from ocerl import OcerlError
from ocerl.mdp import TabularMDP, Transitions
from tables import table

# Go on for 1, with an even chance to end with 5 instead; or leave for 2.
GAME = {"in": {"go": [(0.5, "in", 1.0), (0.5, "out", 5.0)], "leave": [(1.0, "out", 2.0)]}}


def test_states_that_are_only_reached_stay_for_nothing():
    assert table(TabularMDP.from_outcomes(GAME)) == {**GAME, "out": {"go": [(1.0, "out", 0.0)]}}


def test_a_state_may_have_no_actions():
    ends = TabularMDP.from_outcomes({"end": {}, "start": {"go": [(1.0, "end", 0.0)]}})
    assert ends.states == ("end", "start")
    assert table(ends)["end"] == {"go": [(1.0, "end", 0.0)]}


def test_the_range_counts_what_can_still_be_earned_in_units_of_the_start():
    model = TabularMDP.from_outcomes(GAME, horizon=3, discount=0.5)
    low, high = model.remaining_range()
    # Last step: from 1 to 5, discounted twice. The step before: 2 and nothing more, or 1, then 5 discounted.
    assert low[:, 0].tolist() == [1.75, 0.75, 0.25, 0.0]
    assert high[:, 0].tolist() == [5.0, 2.5, 1.25, 0.0]
    assert low[:, 1].tolist() == high[:, 1].tolist() == [0.0] * 4
    assert model.return_range() == (1.75, 5.0)


def test_what_is_reached_grows_by_a_step_at_a_time():
    chain = {i: {"on": [(1.0, i + 1, 0.0)]} for i in range(3)}
    reached = TabularMDP.from_outcomes(chain, horizon=2, start={0: 0.5, 2: 0.5}).reachable()
    assert [np.flatnonzero(states).tolist() for states in reached] == [[0, 2], [1, 3], [2, 3]]


def test_a_list_of_tables_is_a_model_for_each_step():
    model = TabularMDP.from_outcomes([GAME, {"in": {"stay": [(1.0, "in", 0.0)]}}])
    assert (model.horizon, model.stationary) == (2, False)
    assert table(model, 1)["in"] == {"stay": [(1.0, "in", 0.0)]}
    idle = TabularMDP.from_outcomes([{}, GAME])
    assert table(idle, 0) == {name: {"go": [(1.0, name, 0.0)]} for name in ("in", "out")}


def test_changes_leave_the_model_as_it_was():
    model = TabularMDP.from_outcomes(GAME)
    changed = model.with_(horizon=5, discount=0.9, start={"in": 0.25, "out": 0.75})
    assert (changed.horizon, changed.discount, changed.start.tolist()) == (5, 0.9, [0.25, 0.75])
    assert (model.horizon, model.discount, model.start.tolist()) == (None, 1.0, [1.0, 0.0])


@pytest.mark.parametrize("probabilities", [[0.1] * 10, [1 / 3] * 3, [0.7, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]])
def test_probabilities_that_sum_to_one_but_for_rounding_are_kept_to_the_last_digit(probabilities):
    count = len(probabilities)
    steps = Transitions.from_rows(count, [0] * count, [0] * count, range(count), probabilities, [0.0] * count)
    assert steps.probability[:count].tolist() == probabilities


def test_probabilities_that_are_a_little_off_are_put_right():
    steps = Transitions.from_rows(1, [0, 0], [0, 0], [0, 0], [0.5, 0.5 + 4e-9], [0.0, 1.0])
    assert steps.probability.sum() == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TabularMDP.from_outcomes({}), "a model needs at least one state, got none"),
        (lambda: TabularMDP.from_outcomes({"s": {}}), "a model needs at least one action, got none"),
        (lambda: TabularMDP.from_outcomes(GAME, horizon=0), "whole number of at least 1, got 0"),
        (lambda: TabularMDP.from_outcomes(GAME, horizon=2.5), "whole number of at least 1, got 2.5"),
        (lambda: TabularMDP.from_outcomes([GAME, GAME], horizon=3), "its horizon must be 2, got 3"),
        (lambda: TabularMDP.from_outcomes(GAME, discount=0.0), r"the discount must be in \(0, 1\], got 0"),
        (lambda: TabularMDP.from_outcomes(GAME, discount=float("nan")), "the discount must be in"),
        (lambda: TabularMDP.from_outcomes(GAME, start="gone"), "there is no state 'gone' to start in"),
        (lambda: TabularMDP.from_outcomes(GAME, start={"in": 0.5}), "start distribution sums to 0.5"),
        (lambda: TabularMDP.from_outcomes({0: {0: [(0.5, 0, 0.0)]}}), "state 0, action 0 sum to 0.5"),
        (lambda: TabularMDP.from_outcomes({0: {0: [(1.5, 0, 0.0), (-0.5, 0, 0.0)]}}), "is -0.5, it must not"),
        (lambda: TabularMDP.from_outcomes({0: {0: [(1.0, 0, float("inf"))]}}), "the reward is inf"),
        (lambda: TabularMDP.from_outcomes(GAME).require_horizon(), "has no horizon"),
        (
            lambda: TabularMDP.from_rows([], states=("a",), actions=(0,)),
            "needs the transitions of at least one step",
        ),
        (
            lambda: TabularMDP.from_indices([([], [], [], [], [])], states=("a", "b", "a"), actions=(0,)),
            "the state 'a' is named 2 times",
        ),
    ],
)
def test_what_is_no_model_is_refused(make, message):
    with pytest.raises(OcerlError, match=message):
        make()
