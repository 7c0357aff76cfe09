"""The oracles for rich observations go through the suite that UCB-VI goes through, and controls fail it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from ocerl.conformance import check_optimism, rich_maker
from ocerl.mdp.rich import RichWorld, exogenous_lock, low_rank_lock
from ocerl.optimistic import optimism
from ocerl.optimistic.golf import GolfConfig
from ocerl.optimistic.repucb import RepUcbConfig
from ocerl.planning.policy import Policy


@dataclass(frozen=True)
class Case:
    """An oracle in its world, with the rounds it needs."""

    world: RichWorld
    oracle: str
    rounds: int


CASES = {
    "golf": Case(exogenous_lock(bits=2, horizon=3), "golf", 1000),
    "repucb": Case(low_rank_lock(states=12, horizon=3), "repucb", 400),
}
RISKS = ("cvar:0.25", "entropic:-1")


def trace(make: Any, seed: int, rounds: int) -> list[Any]:
    """What an oracle says in each round of the meta-algorithm, and what it is shown."""
    seen: list[Any] = []
    oracle, play = make(seed)

    def played(policy: Policy) -> Any:
        seen.append(play(policy))
        return seen[-1]

    optimism(oracle, played, rounds, observe=lambda *said: seen.append((said[0], said[1], said[3].tolist())))
    return seen


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_seed_decides_everything(case: Case) -> None:
    make = rich_maker(case.world, "cvar:0.25", case.oracle)
    one, same, other = (trace(make, seed, 60) for seed in (5, 5, 6))
    assert one == same
    assert one != other


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_it_conforms(case: Case, risk: str) -> None:
    """Without any slack: for GOLF as its theorem has it, Rep-UCB's grants `H sqrt(A L / k)`."""
    make = rich_maker(case.world, risk, case.oracle)
    report = check_optimism(make, case.world.model(), risk, rounds=case.rounds, seeds=3)
    assert report.passes, str(report)
    assert report.optimistic_share == 1.0


@pytest.mark.parametrize(
    ("name", "control", "risk"),
    [
        ("golf", GolfConfig(unseen=0.0), "cvar:0.25"),
        ("golf", GolfConfig(unseen=0.0), "entropic:-1"),
        ("golf", GolfConfig(beta=0.0), "cvar:0.25"),
        ("repucb", RepUcbConfig(alpha=0.0), "cvar:0.25"),
        ("repucb", RepUcbConfig(alpha=0.0), "entropic:-1"),
    ],
    ids=["unvisited, cvar", "unvisited, entropic", "no radius", "no bonus, cvar", "no bonus, entropic"],
)
def test_without_optimism_it_fails(name: str, control: Any, risk: str) -> None:
    """Negative control."""
    case = CASES[name]
    make = rich_maker(case.world, risk, case.oracle, control)
    report = check_optimism(make, case.world.model(), risk, rounds=200, seeds=5)
    assert not report.optimistic
    assert report.shortfall > 0.1
    assert not report.passes


def test_a_policy_outlives_updates() -> None:
    for case in CASES.values():
        oracle, play = rich_maker(case.world, "cvar:0.25", case.oracle)(0)
        budget = float(oracle.values()[0][2])
        first: Any = oracle.policy(budget)
        before = first.key
        optimism(oracle, play, 200)
        later: Any = oracle.policy(budget)
        assert first.key == before
        assert later.key != before
