"""What UCB-VI promises with a probability, over many seeds, and what it reaches."""

from __future__ import annotations

import pytest

from ocerl.conformance import check_optimism, ucbvi_maker
from ocerl.mdp import random_mdp, zoo
from ocerl.optimistic import UcbViConfig, explore

PAPER = {
    # 3/4 and 9/8; 273/256 and 105/128; -log((1 + e^-1)/2) - log((1 + 3 e^-1.5)/4), and its like for -2.
    "cvar:0.25": 0.75,
    "cvar:0.5": 1.125,
    "mean-variance:1": 1.06640625,
    "mean-variance:2": 0.8203125,
    "entropic:-1": 1.2537212761242942,
    "entropic:-2": 0.9066536082087034,
}


@pytest.mark.parametrize("bonus", ["hoeffding", "bernstein"])
@pytest.mark.parametrize("risk", ["cvar:0.25", "entropic:-1"])
def test_the_theoretical_bonus_is_optimistic(risk: str, bonus: str) -> None:
    """Each of 60 runs fails with probability at most 0.2: more than 25 do with probability below 3e-5."""
    model = random_mdp(11, states=3, actions=2, horizon=2)
    config = UcbViConfig(rounds=150, bonus=bonus, bonus_scale="theory", delta=0.2)  # type: ignore[arg-type]
    report = check_optimism(ucbvi_maker(model, risk, config), model, risk, rounds=150, seeds=60, delta=0.2)
    assert (1 - report.optimistic_runs) * 60 <= 25


def test_too_small_a_bonus_is_not_optimistic() -> None:
    """Negative control of the test above: with a tenth of the bonus it fails far more often than allowed."""
    model = random_mdp(11, states=3, actions=2, horizon=2)
    config = UcbViConfig(rounds=150, bonus_scale=0.05, delta=0.2)
    report = check_optimism(ucbvi_maker(model, "cvar:0.25", config), model, "cvar:0.25", rounds=150, seeds=60)
    assert (1 - report.optimistic_runs) * 60 > 25


@pytest.mark.parametrize("oracle", ["ucbvi", "ucbvi-bernstein"])
@pytest.mark.parametrize("risk", PAPER)
def test_the_papers_model_is_learned(risk: str, oracle: str) -> None:
    """Ten seeds, defaults, rewards not known. The seeds are fixed; none of 40 others failed when this was written."""
    found = explore(zoo.make("paper"), risk, oracle=oracle, rounds=20_000, seeds=10)
    assert found.optimum == pytest.approx(PAPER[risk], abs=1e-9)
    for run in found.runs:
        assert run.value == pytest.approx(PAPER[risk], abs=1e-9)
    assert found.last_tenth_mean == pytest.approx(PAPER[risk], abs=0.01)


def test_without_exploration_it_is_not_learned() -> None:
    """Negative control: greedy, some of twenty seeds stay with what their first episodes happened to show."""
    found = explore(zoo.make("paper"), "entropic:-2", rounds=2000, seeds=20, bonus_scale=0.0)
    assert sum(run.value < PAPER["entropic:-2"] - 1e-3 for run in found.runs) >= 2
