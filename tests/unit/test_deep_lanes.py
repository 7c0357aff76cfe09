"""Episodes side by side by hand: what a step means in each of Gymnasium's autoreset modes, and what is counted."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.gradient.deep.lanes import Lanes
from ocerl.gradient.deep.playing import Stage
from ocerl.gradient.deep.trials import independent_seeds, seeds_from, trial_returns
from support.counting import Counting, makers

MODES = list(AutoresetMode)
LENGTHS = ((2, 1, 3), (3, 2))


def lanes_of(
    *lengths: tuple[int, ...], mode: AutoresetMode, horizon: int = 9, seeds: Iterator[int] | None = None
) -> Lanes:
    return Lanes(SyncVectorEnv(makers(*lengths), autoreset_mode=mode), horizon, count() if seeds is None else seeds)


def nothing(seen: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    still = np.zeros(len(seen.budget), dtype=np.int64)
    return still, still


def seven(rng: np.random.Generator, number: int) -> NDArray[np.float64]:
    return np.full(number, 7.0)


# What both lanes of LENGTHS do in five steps: (episode, step), the reward 10^episode + step, the budget 7 - rewards.
SEEN = np.array([[(0, 0), (0, 1), (1, 0), (2, 0), (2, 1)], [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]]).swapaxes(0, 1)
REWARD = np.array([[1, 2, 10, 100, 101], [1, 2, 3, 10, 11]]).T
BEFORE = np.array([[7, 6, 7, 7, -93], [7, 6, 4, 7, -3]]).T
AFTER = np.array([[6, 4, -3, -93, -194], [6, 4, 1, -3, -14]]).T
ENDED = np.array([[0, 1, 1, 0, 0], [0, 0, 1, 0, 1]], dtype=bool).T


@pytest.mark.parametrize("mode", MODES)
def test_a_batch_holds_the_same_steps_in_every_autoreset_mode(mode: AutoresetMode) -> None:
    stage = Stage(lanes_of(*LENGTHS, mode=mode), 1.0, 0, seven)
    played = stage.play(5, nothing, seven)
    np.testing.assert_array_equal(played.seen.observation, SEEN)
    np.testing.assert_array_equal(played.seen.step, SEEN[..., 1])
    np.testing.assert_array_equal(played.seen.budget, BEFORE)
    np.testing.assert_array_equal(played.after, AFTER)
    np.testing.assert_array_equal(played.reward, REWARD)
    np.testing.assert_array_equal(played.ended, ENDED)
    # Lane 0 goes on in its third episode. Lane 1 has ended: what follows has no value to anyone.
    np.testing.assert_array_equal(played.last.observation[0], [2, 2])
    assert (played.last.step[0], played.last.budget[0]) == (2, -194)
    assert played.returns is not None
    assert sorted(played.returns) == [3, 6, 10, 21]


@pytest.mark.parametrize("mode", MODES)
def test_the_next_batch_goes_on_where_the_last_one_ended(mode: AutoresetMode) -> None:
    stage = Stage(lanes_of(*LENGTHS, mode=mode), 1.0, 0, seven)
    stage.play(5, nothing, seven)
    played = stage.play(3, nothing, seven)
    assert played.seen.observation[:, 0].tolist() == [[2, 2], [3, 0], [3, 1]]
    assert played.seen.observation[:, 1].tolist() == [[2, 0], [2, 1], [2, 2]]
    assert played.seen.budget[:, 0].tolist() == [-194, 7, 7 - 1000]
    assert played.seen.budget[:, 1].tolist() == [7, -93, -194]


def test_a_next_step_environment_pays_for_other_lanes_with_dropped_steps_never_with_empty_ones() -> None:
    # Lane 0 begins an episode after every step: two calls a step. Lane 1 is ahead by five when lane 0 has five.
    stage = Stage(lanes_of((1,), (100,), mode=AutoresetMode.NEXT_STEP, horizon=100), 1.0, 0, seven)
    first, second = (stage.play(5, nothing, seven) for _ in range(2))
    assert first.seen.observation[:, 0].tolist() == [[episode, 0] for episode in range(5)]
    assert first.seen.step[:, 1].tolist() == [0, 1, 2, 3, 4]
    assert first.last.step[1] == 5
    assert second.seen.observation[:, 0].tolist() == [[episode, 0] for episode in range(5, 10)]
    # Its budget went on during the steps that were dropped: 7 - Σ (1 + step).
    step = int(second.seen.step[0, 1])
    assert step == 9
    assert second.seen.budget[0, 1] == 7 - sum(1 + before for before in range(step))


@pytest.mark.parametrize("mode", MODES)
def test_the_final_observation_is_that_of_the_episode_that_ended(mode: AutoresetMode) -> None:
    lanes = lanes_of(*LENGTHS, mode=mode)
    still = np.zeros(2, dtype=np.int64)
    assert not lanes.step(still).ended.any()
    assert lanes.step(still).ended.tolist() == [True, False]
    assert lanes.final_observation(0).tolist() == [0, 2]
    # Where the next episode begins at once, its first observation is what is acted on.
    assert lanes.observation[0].tolist() == ([0, 2] if mode is AutoresetMode.NEXT_STEP else [1, 0])


@pytest.mark.parametrize("mode", MODES)
def test_budgets_are_discounted_by_the_time_of_their_own_episode(mode: AutoresetMode) -> None:
    played = Stage(lanes_of(*LENGTHS, mode=mode), 0.5, 0, seven).play(5, nothing, seven)
    assert played.after[:, 0].tolist() == [6, 5, -3, -93, -93 - 101 / 2]


def test_every_episode_has_a_first_budget_of_its_own() -> None:
    def drawn(rng: np.random.Generator, number: int) -> NDArray[np.float64]:
        return rng.uniform(3, 5, number)

    played = Stage(lanes_of((1,), (2,), mode=AutoresetMode.SAME_STEP), 1.0, 0, drawn).play(6, nothing, drawn)
    firsts = played.seen.budget[np.asarray(played.seen.step) == 0]
    assert len(set(firsts.tolist())) == firsts.size == 6 + 3
    assert ((firsts > 3) & (firsts < 5)).all()


def test_an_episode_longer_than_the_horizon_is_cut_or_refused() -> None:
    lanes, still = lanes_of((5,), mode=AutoresetMode.DISABLED, horizon=2), np.zeros(1, dtype=np.int64)
    assert [bool(lanes.step(still).ended[0]) for _ in range(4)] == [False, True, False, True]
    for mode in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP):
        lanes = lanes_of((5,), mode=mode, horizon=2)
        lanes.step(still)
        with pytest.raises(OcerlError, match=r"goes on after 2 steps, the horizon: .* TimeLimit of 2"):
            lanes.step(still)


@pytest.mark.parametrize("mode", MODES)
def test_each_trial_that_is_begun_is_counted_once(mode: AutoresetMode) -> None:
    # Of four episodes the long one in lane 0 is the last to end. Lane 1 plays the rest, and then for nobody.
    lanes = lanes_of((6,), (1, 2), mode=mode)
    found = trial_returns(lanes, lambda seen: nothing(seen)[0], np.array([7.0]), 4)
    assert found.tolist() == [[1 + 2 + 3 + 4 + 5 + 6, 1, 10 + 11, 100]]


def test_trials_begin_with_their_budget_and_see_it_shrink() -> None:
    met: list[tuple[int, int, float]] = []

    def act(seen: Any) -> NDArray[np.int64]:
        met.append((int(seen.observation[0, 0]), int(seen.step[0]), float(seen.budget[0])))
        return np.zeros(1, dtype=np.int64)

    trial_returns(lanes_of((2, 1), mode=AutoresetMode.DISABLED), act, np.array([5.0, 8.0]), 2)
    assert met == [(0, 0, 5), (0, 1, 4), (1, 0, 5), (2, 0, 8), (2, 1, 8 - 100), (3, 0, 8)]


class Gamble(Counting):
    """One step that pays 1, or nine steps that pay 1 each: the reset decides."""

    def __init__(self) -> None:
        super().__init__((1,))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        first = super().reset(seed=seed)
        self.lengths = (int(self.np_random.choice([1, 9])),)
        return first

    def reward(self, episode: int, step: int) -> float:
        return 1.0


@pytest.mark.parametrize("copies", [1, 4, 30])
def test_trials_are_the_episodes_of_their_seeds_however_many_are_played_at_once(copies: int) -> None:
    seeds = independent_seeds((0,), 10)
    expected: list[int] = []
    for seed in seeds:
        alone = Gamble()
        alone.reset(seed=seed)
        expected.append(alone.lengths[0])
    assert {*expected} == {1, 9}

    def again() -> Iterator[int]:
        while True:
            yield from seeds

    lanes = Lanes(SyncVectorEnv([Gamble] * copies, autoreset_mode=AutoresetMode.DISABLED), 9, again())
    found = trial_returns(lanes, lambda seen: nothing(seen)[0], np.array([0.0, 1.0]), 10)
    np.testing.assert_allclose(found, [expected, expected], atol=1e-12)


def test_seeds_of_neighbours_have_nothing_in_common() -> None:
    mine, next_one = seeds_from((0, 0)), seeds_from((1, 0))
    assert not {next(mine) for _ in range(50)} & {next(next_one) for _ in range(50)}
    assert not set(independent_seeds((0, 1), 50)) & set(independent_seeds((1, 1), 50))


def test_a_dictionary_has_its_final_observation_too() -> None:
    class Named(Counting):
        def __init__(self) -> None:
            super().__init__((1,))
            self.observation_space = spaces.Dict(where=self.observation_space, lit=spaces.Discrete(2))

        def _observation(self) -> Any:
            return {"where": super()._observation(), "lit": np.int64(self._step)}

    for mode in MODES:
        lanes = Lanes(SyncVectorEnv([Named], autoreset_mode=mode), 9, count())
        assert lanes.step(np.zeros(1, dtype=np.int64)).ended.all()
        last = lanes.final_observation(0)
        assert (last["where"].tolist(), int(last["lit"])) == ([0, 1], 1)
