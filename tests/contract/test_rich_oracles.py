"""The oracles for rich observations go through the suite that UCB-VI goes through, and controls fail it."""

from __future__ import annotations

from typing import Any

import pytest

from ocerl.conformance import check_optimism, golf_maker
from ocerl.mdp.rich import exogenous_lock
from ocerl.optimistic import optimism
from ocerl.optimistic.golf import GolfConfig
from ocerl.planning.policy import Policy

LOCK = exogenous_lock(bits=2, horizon=3)


def trace(make: Any, seed: int, rounds: int) -> list[Any]:
    """What an oracle says in each round of the meta-algorithm, and what it is shown."""
    seen: list[Any] = []
    oracle, play = make(seed)

    def played(policy: Policy) -> Any:
        seen.append(play(policy))
        return seen[-1]

    optimism(oracle, played, rounds, observe=lambda *said: seen.append((said[0], said[1], said[3].tolist())))
    return seen


def test_a_seed_decides_everything() -> None:
    make = golf_maker(LOCK, "cvar:0.25", GolfConfig())
    one, same, other = (trace(make, seed, 60) for seed in (5, 5, 6))
    assert one == same
    assert one != other


@pytest.mark.parametrize("risk", ["cvar:0.25", "entropic:-1"])
def test_golf_conforms(risk: str) -> None:
    """Without any slack, as the theorem has it."""
    report = check_optimism(golf_maker(LOCK, risk, GolfConfig()), LOCK.model(), risk, rounds=1000, seeds=3)
    assert report.passes, str(report)
    assert report.optimistic_share == 1.0


@pytest.mark.parametrize("risk", ["cvar:0.25", "entropic:-1"])
@pytest.mark.parametrize("control", [{"unseen": 0.0}, {"beta": 0.0}], ids=["unvisited cells", "no radius"])
def test_golf_without_optimism_fails(risk: str, control: dict[str, float]) -> None:
    """Negative control."""
    make = golf_maker(LOCK, risk, GolfConfig(**control))
    report = check_optimism(make, LOCK.model(), risk, rounds=400, seeds=3)
    assert not report.optimistic
    assert report.shortfall > 0.1
    assert not report.passes
