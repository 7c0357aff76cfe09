"""Runs that are interrupted and gone on with, and runs that stop at a number that is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from ocerl.envs import BettingGame, Environment
from ocerl.errors import OcerlError
from ocerl.gradient.checkpoint import NAME
from ocerl.gradient.deep import evaluation, judging, running
from ocerl.gradient.deep.result import DeepTraining
from ocerl.gradient.deep.saving import arrays_of
from ocerl.gradient.deep.train import train
from support.counting import Counting

TINY: dict[str, Any] = {"environments": 4, "rollout": 4, "epochs": 1, "minibatches": 2, "hidden": (4,), "group": 1}
SMALL_EFFORT = evaluation.Effort(candidates=3, episodes=16, finalists=2, final_episodes=16)


@pytest.fixture(autouse=True)
def every_update_is_judged() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "RECORDS", (20, 20))
        yield


@pytest.fixture(autouse=True)
def _often_and_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint after every advance, and few episodes for each judgement."""
    monkeypatch.setattr(running, "CHECKPOINT_SECONDS", -1.0)
    for name in ("COMPILED_QUICK", "COMPILED_FULL", "GYMNASIUM_QUICK", "GYMNASIUM_FULL"):
        monkeypatch.setattr(judging, name, SMALL_EFFORT)


class Interrupted(Exception):  # noqa: N818
    """Of the test's own, so that nothing catches it."""


def after(update: int) -> running.Progress:
    def progress(made: int, total: int, note: str) -> None:
        if made >= update:
            raise Interrupted

    return progress


def on_paper(**options: Any) -> DeepTraining:
    return train("paper", "cvar:0.25", **{**TINY, "seeds": 2, "episodes": 40, "steps": 16 * 7, **options})


def assert_same(found: DeepTraining, expected: DeepTraining) -> None:
    """To the last bit."""
    assert found.updates.tolist() == expected.updates.tolist()
    assert found.values.tobytes() == expected.values.tobytes()
    for one, other in zip(found.runs, expected.runs, strict=True):
        assert eqx.tree_equal(one.policy.network, other.policy.network)
        assert (one.value, one.estimate, one.policy.budget) == (other.value, other.estimate, other.policy.budget)


def test_a_resumed_run_is_the_whole_run(tmp_path: Path) -> None:
    whole = on_paper()
    assert whole.updates.tolist() == list(range(8))
    with pytest.raises(Interrupted):
        on_paper(folder=tmp_path, progress=after(3))
    with np.load(tmp_path / NAME) as stored:
        assert stored["history/update"].tolist() == [0, 1, 2, 3]
    assert_same(on_paper(folder=tmp_path, resume=True), whole)
    # A run that is done is looked at again.
    assert_same(on_paper(folder=tmp_path, resume=True), whole)
    # What follows could fail: another seed is another run.
    assert not eqx.tree_equal(on_paper(seed=5).runs[0].policy.network, whole.runs[0].policy.network)


def test_a_seed_is_the_same_alone_and_beside_others() -> None:
    """But for the rounding of products that are made side by side."""
    both, second = on_paper(steps=48), on_paper(steps=48, seeds=1, seed=1)
    mine, theirs = both.runs[1].policy.network.agent, second.runs[0].policy.network.agent
    assert eqx.tree_equal(mine, theirs, rtol=1e-3, atol=1e-4)
    assert not eqx.tree_equal(mine, both.runs[0].policy.network.agent, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"steps": 16 * 8}, "has steps 112, not 128: resume it as it was begun"),
        ({"risk": "cvar:0.5"}, "has risk cvar:0.25, not cvar:0.5"),
        ({"seeds": 1}, "has seeds 2, not 1"),
        ({"seed": 3}, "has seed 0, not 3"),
        ({"learning_rate": 0.5}, "has learning_rate 0.005, not 0.5"),
        ({"discount": 0.5}, "has model "),
        ({"budget_range": (0.0, 9.0)}, r"has budget_range \[0.0, 2.5\], not \[0.0, 9.0\]"),
        ({"environment": "betting-game"}, "has environment paper, not betting-game"),
    ],
)
def test_other_settings_are_refused(begun: Path, changed: dict[str, Any], message: str) -> None:
    given = {"environment": "paper", "risk": "cvar:0.25", **TINY, "seeds": 2, "episodes": 40, "steps": 112, **changed}
    with pytest.raises(OcerlError, match=message):
        train(**given, folder=begun, resume=True)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("begun")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "CHECKPOINT_SECONDS", -1.0)
        patch.setattr(judging, "COMPILED_QUICK", SMALL_EFFORT)
        with pytest.raises(Interrupted):
            on_paper(folder=folder, progress=after(1))
    return folder


def test_numbers_of_numpys_are_numbers(tmp_path: Path) -> None:
    trained = train(
        "guarded-maze",
        "cvar:0.25",
        **{**TINY, "steps": 16},
        seed=np.int64(3),  # pyright: ignore
        episodes=40,
        horizon=4,
        parameters={"noise": np.float32(0.125)},
        folder=tmp_path,
    )
    assert trained.runs[0].seed == 3


# ---- numbers that are none ----


class Failing(Environment[Any]):
    """The betting game, whose reward is NaN at a step."""

    game: Any = None
    at: Any = eqx.field(default=0, converter=jnp.asarray)
    horizon: int = eqx.field(static=True, default=6)
    discount: float = eqx.field(static=True, default=1.0)
    observation_space = property(lambda self: self.game.observation_space)
    action_space = property(lambda self: self.game.action_space)
    return_range = property(lambda self: self.game.return_range)
    budget_range = property(lambda self: self.game.budget_range)
    return_support = property(lambda self: None)

    def reset(self, key: Any) -> Any:
        return self.game.reset(key)

    def step(self, key: Any, state: Any, action: Any) -> Any:
        taken = self.game.step(key, state, action)
        return taken._replace(reward=jnp.where(state.step == self.at, jnp.nan, taken.reward))


def failing(at: int, **options: Any) -> DeepTraining:
    environment = Failing(game=BettingGame(), at=at)
    return train(environment, "cvar:0.25", **{**TINY, "episodes": 40, "steps": 16 * 5, **options})


def test_a_reward_that_is_no_number_stops_the_run_where_it_was_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step 5 of the first episodes is step 1 of the second batch of 4."""
    with monkeypatch.context() as blind:
        blind.setattr(judging.Judge, "value", lambda *_: 0.5)
        with pytest.raises(OcerlError) as told:
            failing(5, folder=tmp_path)
    message = str(told.value)
    assert message.startswith("seed 0, update 2: a reward is not finite: step 1 of environment 0: the environment has")
    assert message.endswith(f"{tmp_path} has the checkpoint of update 1")
    with np.load(tmp_path / NAME) as stored:
        assert all(np.isfinite(stored[n]).all() for n in stored.files if stored[n].dtype == np.float32)
    # Mended, it goes on. (Its environments are objects that a run cannot compare.)
    resumed = failing(99, folder=tmp_path, resume=True)
    assert resumed.updates.tolist() == list(range(6))
    assert resumed.values[:2].tolist() == [[0.5], [0.5]]


def test_a_judge_who_meets_it_first_says_so() -> None:
    with pytest.raises(
        OcerlError, match="seed 0, judged after update 0: an episode of Failing has the return nan: the"
    ):
        failing(5)


def test_weights_that_are_no_numbers_stop_the_run(tmp_path: Path) -> None:
    with pytest.raises(
        OcerlError, match=r"^seed \d, update \d: the weights are not finite .*below 1e\+30; .*checkpoint"
    ):
        on_paper(learning_rate=1e30, folder=tmp_path)
    with np.load(tmp_path / NAME) as stored:
        assert all(np.isfinite(stored[n]).all() for n in stored.files if stored[n].dtype == np.float32)


# ---- Gymnasium ----


class Walk(Counting):
    """Three steps; a reward of the action taken, or none that is a number at one of all its steps."""

    def __init__(self, at: int = -1) -> None:
        super().__init__((3,), spaces.Discrete(2))
        self._at, self._taken = at, 0

    def step(self, action: Any) -> Any:
        observation, _, *rest = super().step(action)
        self._taken += 1
        return observation, float("nan") if self._taken == self._at else float(action), *rest

    def reward(self, episode: int, step: int) -> float:
        return 0.0


def walking(at: int = -1, **options: Any) -> DeepTraining:
    fixed: dict[str, Any] = {"horizon": 3, "budget_range": (0.0, 3.0), "episodes": 40, "steps": 16 * 5}
    return train(lambda: Walk(at), "cvar:0.25", **{**TINY, **fixed, **options})


def test_gymnasiums_runs_go_on_with_the_same_learner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Interrupted):
        walking(folder=tmp_path, progress=after(2))
    with np.load(tmp_path / NAME) as stored:
        kept = {name[6:]: stored[name] for name in stored.files if name.startswith("state/")}
        values = stored["history/value"].tolist()
    taken_up: list[Any] = []
    play = running.Run.play

    def watched(run: running.Run, state: Any, history: Any) -> Any:
        taken_up.append(arrays_of(run.driver.kept(state)))
        taken_up.append(state.stages[0]._rng.bit_generator.state)
        return play(run, state, history)

    monkeypatch.setattr(running.Run, "play", watched)
    found = walking(folder=tmp_path, resume=True)
    assert taken_up[0].keys() == kept.keys()
    assert all(np.array_equal(taken_up[0][name], kept[name]) for name in kept)
    assert found.updates.tolist() == [0, 1, 2, 3, 4, 5]
    assert found.values[:3].tolist() == values
    # Its new episodes are not those of the beginning again.
    walking(steps=16)
    assert taken_up[1] != taken_up[3]


def test_gymnasiums_rewards_have_to_be_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The 7th step of each environment is step 2 of the second batch."""
    monkeypatch.setattr(judging.Judge, "value", lambda *_: 0.5)
    with pytest.raises(OcerlError) as told:
        walking(7, folder=tmp_path)
    message = str(told.value)
    assert message.startswith("seed 0, update 2: a reward is not finite: step 2 of environment 0: ")
    assert message.endswith("has the checkpoint of update 1")
    monkeypatch.undo()
    assert walking(folder=tmp_path, resume=True).updates.tolist() == [0, 1, 2, 3, 4, 5]


def test_an_environment_without_a_horizon() -> None:
    with pytest.raises(OcerlError, match=r"Walk has no time limit.*horizon=….*--horizon H"):
        walking(horizon=None)


def test_a_function_that_fails_is_the_users_own_error() -> None:
    def broken() -> Any:
        raise RuntimeError("no display")

    with pytest.raises(RuntimeError, match="no display"):
        train(broken, "mean")
