"""`explore`: Gymnasium environments, what it refuses, and its answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from ocerl.cli import main
from ocerl.errors import OcerlError
from ocerl.mdp import TabularMDP, zoo
from ocerl.optimistic import explore
from ocerl.optimistic.explore import schedule
from ocerl.optimistic.result import SeedRun
from ocerl.planning import BudgetPolicy, evaluate, load_policy
from ocerl.risk import mean_interval

PAPER = zoo.make("paper")


class Slots(gymnasium.Env[int, int]):
    """The paper's model as an environment without a table; `spike` is paid instead in one late episode."""

    observation_space: Any = Discrete(2)
    action_space: Any = Discrete(2, start=1)

    def __init__(self, spike: float | None = None) -> None:
        self.spike, self.episodes, self.state = spike, 0, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.state, self.episodes = 0, self.episodes + 1
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if self.state == 0:
            self.state = 1
            return 1, float(self.np_random.random() < 0.5), False, False, {}
        if self.spike is not None and self.episodes > 50:
            return 1, self.spike, True, False, {}
        return 1, 1.5 * float(self.np_random.random() < 0.75) if action == 1 else 0.5, True, False, {}


def slots(**asked: Any) -> Any:
    environment = Slots(asked.pop("spike", None))
    options: dict[str, Any] = {"rounds": 300, "horizon": 2, "reward_range": (0.0, 1.5), "resolution": 0.5, **asked}
    return explore(environment, "cvar:0.25", **options)


def test_an_environment_without_a_table_is_learned() -> None:
    """The recommended policy plays a1 after 0 and a2 after 1; its value is an estimate from fresh episodes."""
    found = slots(rounds=2000)
    assert not found.exact
    assert found.optimum is None
    policy = found.runs[0].policy
    chosen = []
    for reward in (0.0, 1.0):
        policy.reset()
        policy.act(0)
        policy.observe(reward)
        chosen.append(policy.act(1) + 1)
    assert chosen == [1, 2]
    # 1000 episodes, of which 250 are the tail: 0 with probability 1/2 there. Five standard errors.
    assert found.runs[0].value == pytest.approx(0.75, abs=0.2)


def test_an_environment_with_a_table_is_played_and_judged_exactly() -> None:
    lake = gymnasium.make("FrozenLake-v1", is_slippery=False)
    found = explore(lake, "mean", rounds=300, horizon=8)
    assert found.exact
    assert found.optimum == 1.0
    assert found.runs[0].value in (0.0, 1.0)
    assert found.runs[0].played == 300


def test_a_reward_outside_its_range_is_caught_in_its_round_and_nothing_is_lost(tmp_path: Path) -> None:
    # The environment is reset once for its seed, so its 51st episode is that of round 50.
    with pytest.raises(OcerlError, match=r"round 50: the reward 9 .*\[0, 1\.5\].*the 49 rounds before it are kept"):
        slots(spike=9.0, out=tmp_path)
    with np.load(tmp_path / "checkpoints" / "seed-0.npz") as kept:
        assert int(kept["start"].sum()) == 49
    found = slots(spike=None, out=tmp_path, resume=True)
    assert found.runs[0].played == 300


def test_a_run_in_an_environment_is_resumed_to_the_same_bits(tmp_path: Path) -> None:
    whole = slots()
    with pytest.raises(OcerlError):
        slots(spike=9.0, out=tmp_path)
    resumed = slots(out=tmp_path, resume=True)
    assert resumed.runs[0].values.tolist() == whole.runs[0].values.tolist()
    assert resumed.runs[0].value == whole.runs[0].value


def test_seeds_that_share_an_environment_are_apart() -> None:
    both = slots(seeds=[1, 2])
    for run, seed in zip(both.runs, (1, 2), strict=True):
        alone = slots(seeds=[seed]).runs[0]
        assert run.values.tolist() == alone.values.tolist()
    assert both.runs[0].values.tolist() != both.runs[1].values.tolist()


def test_more_memory_than_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ocerl.optimistic.rows.available_memory", lambda: 100_000)
    with pytest.raises(OcerlError, match=r"need 0\.[0-9] GiB, 0\.0 GiB are free: give a coarser resolution"):
        explore(PAPER, "mean-variance:1", rounds=10, first_budgets=100_000)


class Lines(Slots):
    """An environment whose observations are points."""

    observation_space: Any = Box(0.0, 1.0, (2,))


@pytest.mark.parametrize(
    ("environment", "asked", "message"),
    [
        (PAPER, {"rounds": 0}, "rounds must be a whole number of at least 1, got 0"),
        (PAPER, {"rounds": -5}, "at least 1, got -5"),
        (PAPER, {"oracle": "ucb"}, "no oracle 'ucb': choose one of ucbvi, ucbvi-bernstein"),
        (PAPER, {"seeds": 0}, "seeds must be a number of at least 1"),
        (PAPER, {"seeds": []}, "seeds must be a number of at least 1"),
        (PAPER, {"bonus_scale": -1.0}, "bonus_scale must be a number of at least 0 or 'theory'"),
        (PAPER, {"resolution": -1.0}, "resolution must be a positive number"),
        (TabularMDP.from_outcomes({0: {0: [(1.0, 0, 1.0)]}}), {}, "no horizon"),
        (zoo.make("paper").with_(horizon=2), {"horizon": 0}, "at least 1, got 0"),
        (Slots(), {"reward_range": (0.0, 1.0)}, "Slots has no time limit: give a horizon"),
        (Slots(), {"horizon": 2}, r"declare a range \(reward_range=\(low, high\)\)"),
        (Slots(), {"horizon": 2, "reward_range": (2.0, 1.0)}, "low <= high"),
        (Slots(), {"horizon": 0, "reward_range": (0.0, 1.0)}, "at least 1, got 0"),
        (Slots(), {"horizon": 2, "reward_range": (0, 1.5), "known_rewards": True}, "known_rewards needs a model"),
        (Lines(), {"horizon": 2}, r"Lines has observations in Box\(.*Discrete space"),
        ("CartPole-v1", {}, "CartPole-v1 has observations in Box"),
        ("no-such-model", {}, "there is no model 'no-such-model'"),
    ],
)
def test_what_is_refused(environment: Any, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(OcerlError, match=message) as error:
        explore(environment, "cvar:0.25", **{"rounds": 10, **asked})
    assert "\n" not in str(error.value)


def test_a_model_that_differs_by_step_needs_counts_by_step() -> None:
    model = TabularMDP.from_outcomes([{0: {0: [(1.0, 0, 1.0)]}}, {0: {0: [(1.0, 0, 0.0)]}}])
    with pytest.raises(OcerlError, match="per_step=True"):
        explore(model, "mean", rounds=10, per_step=False)
    assert explore(model, "mean", rounds=10).runs[0].value == 1.0


def test_a_utility_without_a_bound() -> None:
    from ocerl.risk import Utility

    logarithm = Utility(lambda t: np.log1p(np.maximum(t, -1.0)), label="log")
    with np.errstate(divide="ignore"), pytest.raises(OcerlError, match="not finite at -"):
        explore(PAPER, logarithm, rounds=10)


def test_the_rounds_that_are_judged() -> None:
    chosen = schedule(20_000)
    assert chosen[0] == 1
    assert chosen[-1] == 20_000
    assert (np.diff(chosen) > 0).all()
    assert (chosen > 18_000).sum() >= 200


def test_regret_counts_the_rounds_in_between() -> None:
    """Judged in rounds 1, 3 and 10 with 0, 1 and 2 of an optimum of 2: 2, then two rounds of 1, then seven of 0."""
    run = SeedRun(
        seed=0,
        value=2.0,
        budget=0.0,
        policy=explore(PAPER, "mean", rounds=1).runs[0].policy,
        rounds=np.array([1, 3, 10]),
        values=np.array([0.0, 1.0, 2.0]),
        played=10,
    )
    assert run.regret(2.0).tolist() == [2.0, 4.0, 4.0]
    assert run.last_tenth == 2.0


def test_the_interval_of_a_mean() -> None:
    """Values 0 and 2: mean 1, standard error 1, and Student's 97.5% quantile with one degree is 12.706."""
    interval = mean_interval([0.0, 2.0])
    assert interval == pytest.approx((1 - 12.7062, 1 + 12.7062), abs=1e-3)
    assert mean_interval([3.0]) is None


def test_saved_and_loaded(tmp_path: Path) -> None:
    found = explore(PAPER, "entropic:-1", rounds=500, seeds=[7])
    found.save(tmp_path)
    document = json.loads((tmp_path / "explore.json").read_text())
    keys = {"risk", "oracle", "seeds", "value_mean", "value_ci", "optimum", "seconds"}
    assert keys <= document.keys()
    assert document["seeds"][0].keys() == {"seed", "value", "budget", "curve"}
    assert document["value_ci"] is None
    policy = load_policy(tmp_path / "seed-7")
    assert isinstance(policy, BudgetPolicy)
    value = evaluate(PAPER, policy).certainty_equivalent("entropic:-1")
    assert value == pytest.approx(document["seeds"][0]["value"], abs=1e-12)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "explore",
        "paper",
        "--risk",
        "cvar:0.25",
        "--oracle",
        "ucbvi-bernstein",
        "--rounds",
        "800",
        "--seeds",
        "2",
        "--seed",
        "5",
        "--json",
    ]
    assert main([*words, "--out", str(tmp_path)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [entry["seed"] for entry in printed["seeds"]] == [5, 6]
    assert printed["optimum"] == 0.75
    assert (tmp_path / "regret.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "explore.json").exists()
    assert main([*words, "--out", str(tmp_path), "--resume"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert {**again, "seconds": 0} == {**printed, "seconds": 0}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("explore paper --risk cvar:0.25 --rounds 0", "rounds must be"),
        ("explore paper --risk cvar:0.25 --rounds 10 --seeds 0", "--seeds must be at least 1"),
        ("explore paper --risk cvar:0.25 --rounds 10 --oracle none", "no oracle 'none'"),
        ("explore paper --risk cvar:0.25 --rounds 10 --bonus-scale big", "--bonus-scale must be"),
        ("explore paper --risk cvar:0.25 --rounds 10 --reward-range 1", "--reward-range must be"),
        ("explore paper --risk cvar:0.25 --rounds 10 --resume", "--resume needs --out"),
        ("explore CartPole-v1 --risk cvar:0.25 --rounds 10", "Discrete space"),
        ("explore paper --rounds 10", "--risk"),
    ],
)
def test_the_commands_mistakes(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert printed.err.startswith("ocerl: ")
    assert printed.err.count("\n") == 1
