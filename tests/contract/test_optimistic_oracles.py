"""Every optimistic oracle goes through one suite; its runs are the same compiled, stepped, and resumed."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ocerl.conformance import check_optimism, ucbvi_maker
from ocerl.errors import OcerlError
from ocerl.mdp import TabularMDP, random_mdp, zoo
from ocerl.optimistic import UcbViConfig, explore, optimism
from ocerl.optimistic._episodes import run
from ocerl.optimistic.worlds import collect
from ocerl.planning.policy import Policy
from support.optimism import learner

MODELS = {
    "paper": zoo.make("paper"),
    "random start": random_mdp(1, states=3, actions=2, horizon=3, random_start=True),
    "step by step": random_mdp(2, states=3, actions=2, horizon=3, per_step=True, absorbing=1),
    "action sets": random_mdp(3, states=4, actions=3, horizon=3, action_sets=True, joint=False),
}
ORACLES = {
    "ucbvi": UcbViConfig(rounds=1000),
    "ucbvi-bernstein": UcbViConfig(rounds=1000, bonus="bernstein"),
}
RISKS = ("mean", "cvar:0.25", "entropic:-1")


def trace(model: TabularMDP, risk: str, config: UcbViConfig, seed: int) -> list[Any]:
    """What an oracle says in each round of the meta-algorithm, and what it is shown."""
    seen: list[Any] = []
    oracle, play = ucbvi_maker(model, risk, config)(seed)

    def played(policy: Policy) -> Any:
        seen.append(play(policy))
        return seen[-1]

    optimism(oracle, played, 50, observe=lambda *said: seen.append((said[0], said[1], said[3].tolist())))
    return seen


@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize("model", MODELS)
def test_a_seed_decides_everything(model: str, oracle: str) -> None:
    one, same, other = (trace(MODELS[model], "cvar:0.25", ORACLES[oracle], seed) for seed in (5, 5, 6))
    assert one == same
    assert one != other


@pytest.mark.parametrize("oracle", ORACLES)
def test_a_policy_outlives_updates(oracle: str) -> None:
    world, learned = learner(MODELS["paper"], "cvar:0.25", ORACLES[oracle])
    first = learned.policy(1.5)
    before = [table.copy() for table in first.tables]
    optimism(learned, lambda policy: collect(world, policy, 2), 50)
    assert all((table == kept).all() for table, kept in zip(first.tables, before, strict=True))
    assert any((table != kept).any() for table, kept in zip(learned.policy(1.5).tables, before, strict=True))


@pytest.mark.parametrize("know", [False, True], ids=["rewards learned", "rewards known"])
@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize("model", MODELS)
def test_the_compiled_run_is_the_meta_algorithm(model: str, oracle: str, risk: str, know: bool) -> None:
    """To the bit, in what was counted, what is planned and what random numbers come next."""
    worlds, learners = zip(*(learner(MODELS[model], risk, ORACLES[oracle], know=know) for _ in range(2)), strict=True)
    fast, stepped = learners
    horizon = fast.problem.horizon
    optimism(stepped, lambda policy: collect(worlds[1], policy, horizon), 120)
    arrays = (fast.told, fast.counts, fast.rows.arrays, fast.plan, fast.log_term)
    for rounds in (1, 119):
        run(worlds[0].outcomes, *arrays, worlds[0].random, np.zeros((horizon, 4), dtype=np.int64), rounds)
    for name in fast.counts._fields:
        np.testing.assert_array_equal(getattr(fast.counts, name), getattr(stepped.counts, name), err_msg=name)
    for name in ("upper", "lower", "slots"):
        np.testing.assert_array_equal(getattr(fast.plan, name), getattr(stepped.plan, name), err_msg=name)
    assert worlds[0].random.bit_generator.state == worlds[1].random.bit_generator.state
    assert int(fast.counts.start.sum()) == 120


def comparable(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name != "seconds"}


class Killed(BaseException):
    """Not an `Exception`: nothing in between may catch it."""


@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize(("model", "risk"), [("paper", "cvar:0.25"), ("step by step", "entropic:-1")])
def test_resumed_is_uninterrupted(
    model: str, risk: str, oracle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ocerl.optimistic.runner.CHECKPOINT_SECONDS", 0.0)
    asked: dict[str, Any] = {"oracle": oracle, "rounds": 3000, "seeds": [3, 4]}
    whole = explore(MODELS[model], risk, **asked)
    calls = itertools.count()

    def kill(done: int, total: int) -> None:
        if next(calls) == 60:
            raise Killed

    with pytest.raises(Killed):
        explore(MODELS[model], risk, **asked, out=tmp_path, progress=kill)
    assert list((tmp_path / "checkpoints").glob("*.npz"))
    resumed = explore(MODELS[model], risk, **asked, out=tmp_path, resume=True)
    assert comparable(resumed.to_dict()) == comparable(whole.to_dict())
    again = explore(MODELS[model], risk, **asked, out=tmp_path, resume=True)
    assert comparable(again.to_dict()) == comparable(whole.to_dict()), "a finished run has nothing left to do"


def test_another_run_is_not_resumed(tmp_path: Path) -> None:
    explore(MODELS["paper"], "cvar:0.25", rounds=20, out=tmp_path)
    with pytest.raises(OcerlError, match=r"risk cvar:0\.25, this run has cvar:0\.5"):
        explore(MODELS["paper"], "cvar:0.5", rounds=20, out=tmp_path, resume=True)
    changed = TabularMDP.from_outcomes({"s1": {"a": [(1.0, "s1", 0.5)]}}, horizon=2, name="paper")
    with pytest.raises(OcerlError, match="digest"):
        explore(changed, "cvar:0.25", rounds=20, out=tmp_path, resume=True)


def test_a_checkpoint_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints" / "seed-0.npz"
    path.parent.mkdir()
    path.write_bytes(b"not an archive")
    with pytest.raises(OcerlError, match="is not a checkpoint"):
        explore(MODELS["paper"], "cvar:0.25", rounds=20, out=tmp_path, resume=True)


def test_threads_change_nothing() -> None:
    one, two = (explore(MODELS["paper"], "cvar:0.25", rounds=500, seeds=4, threads=threads) for threads in (1, 2))
    assert comparable(one.to_dict()) == comparable(two.to_dict())


@pytest.mark.parametrize("risk", ["cvar:0.25", "entropic:-1"])
@pytest.mark.parametrize("oracle", ORACLES)
def test_conformance(oracle: str, risk: str) -> None:
    report = check_optimism(
        ucbvi_maker(MODELS["paper"], risk, ORACLES[oracle]), MODELS["paper"], risk, rounds=1000, seeds=5
    )
    assert report.passes, str(report)
    assert report.optimistic_share == 1.0
    assert "holds" in str(report)
    assert report.to_dict()["passes"] is True


@pytest.mark.parametrize("risk", ["cvar:0.25", "entropic:-1"])
def test_without_a_bonus_the_suite_fails(risk: str) -> None:
    """Negative control."""
    greedy = UcbViConfig(rounds=300, bonus_scale=0.0)
    report = check_optimism(ucbvi_maker(MODELS["paper"], risk, greedy), MODELS["paper"], risk, rounds=300, seeds=5)
    assert not report.optimistic
    assert not report.passes
    assert report.shortfall > 0.1
    assert "FAILS" in str(report)


def test_values_that_never_come_down_fail_the_suite() -> None:
    """Negative control of the second condition: an oracle that claims the best there is, for ever."""
    model = MODELS["paper"]
    make = ucbvi_maker(model, "cvar:0.25", UcbViConfig(rounds=200, bonus_scale=1000.0))
    report = check_optimism(make, model, "cvar:0.25", rounds=200, seeds=3)
    assert report.optimistic
    assert report.exponent == pytest.approx(1.0, abs=0.05)
    assert not report.sublinear


def test_slack_is_granted() -> None:
    model = MODELS["paper"]
    make = ucbvi_maker(model, "cvar:0.25", UcbViConfig(rounds=50, bonus_scale=0.0))
    strict = check_optimism(make, model, "cvar:0.25", rounds=50, seeds=2)
    granted = check_optimism(make, model, "cvar:0.25", rounds=50, seeds=2, slack=lambda number: 100.0 / number)
    assert strict.optimistic_runs == 0.0
    assert granted.optimistic_runs == 1.0


def test_every_round_counts_for_the_report() -> None:
    """By hand: 4 rounds, gaps 1, 1, 1, 1 are a sum that grows like K."""
    from ocerl.conformance.optimism import growth

    assert growth(np.ones(100)) == pytest.approx(1.0)
    assert growth(np.arange(1.0, 101.0)) == pytest.approx(2.0, abs=0.05)
    assert growth(-np.ones(100)) == 0.0
