"""Sampled runs with fixed seeds: the bounds hold in these runs, and are missed only if learning breaks.

The seeds are fixed, so nothing here is random from run to run; the bounds are the ones the product states.
"""

from __future__ import annotations

import numpy as np
import pytest

from ocerl.gradient import train_tabular
from ocerl.mdp import random_mdp, zoo
from ocerl.planning import best_markov

# OCE* by the planner, hand-derived in test_paper_table, and the best Markov value.
PAPER = {
    "mean-variance:1": (273 / 256, 0.953125),
    "mean-variance:2": (105 / 128, 0.5),
    "entropic:-1": (1.253721, 1.253721),
    "entropic:-2": (0.906654, 0.906654),
    "cvar:0.25": (0.75, 0.5),
    "cvar:0.5": (1.125, 1.0),
}


@pytest.mark.parametrize("risk", PAPER)
def test_the_papers_table(risk: str) -> None:
    trained = train_tabular(zoo.make("paper"), risk)
    optimum, markov = PAPER[risk]
    assert trained.oracle == "npg"
    assert len(trained.runs) == 10
    assert trained.optimum[0] == pytest.approx(optimum, abs=1e-6)
    values = np.array([run.value for run in trained.runs])
    assert abs(values.mean() - optimum) <= 0.005
    assert np.abs(values - optimum).max() <= 0.02
    assert best_markov(zoo.make("paper"), risk).value == pytest.approx(markov, abs=1e-6)
    # The softmax policies themselves, not only their rounding.
    assert np.abs(trained.values[-1] - optimum).max() <= 0.02


@pytest.mark.parametrize("risk", ["cvar:0.25", "mean-variance:2"])
def test_reinforce_beats_the_best_markov_policy(risk: str) -> None:
    trained = train_tabular(zoo.make("paper"), risk, oracle="reinforce-tabular", seeds=5)
    optimum, markov = PAPER[risk]
    assert min(run.value for run in trained.runs) >= optimum - 0.02
    assert trained.values[-1].min() > (optimum + markov) / 2


def test_another_ten_seeds() -> None:
    trained = train_tabular(zoo.make("paper"), "cvar:0.25", seed=1000)
    assert min(run.value for run in trained.runs) >= 0.73


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_random_models(seed: int) -> None:
    model = random_mdp(seed, states=5, actions=3, horizon=5, random_start=True)
    trained = train_tabular(model, "cvar:0.3", seeds=3, growth=1.01)
    low, high = model.return_range()
    assert min(run.value for run in trained.runs) >= trained.optimum[0] - 0.02 * (high - low)


@pytest.mark.slow
def test_the_betting_game() -> None:
    trained = train_tabular(
        zoo.make("betting-game"),
        "cvar:0.25",
        seeds=2,
        updates=120,
        episodes=100_000,
        growth=1.1,
        exploration=0.3,
        budgets=41,
    )
    # By the planner, with rewards rounded to 2^-15: OCE* is in [0.041540, 0.041708].
    assert min(run.value for run in trained.runs) >= 0.98 * 0.041708
    assert max(run.value for run in trained.runs) <= 0.041708
