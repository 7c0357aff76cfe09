"""The regret study and its pictures, on models that are done by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ocerl.experiments.regret import Family, Growth, RegretStudy, growth_of_the_worst
from ocerl.mdp import zoo
from ocerl.optimistic import UcbViConfig, explore, optimism
from ocerl.optimistic.worlds import collect
from ocerl.planning import evaluate, plan
from ocerl.report.regret import plot_regret, plot_regret_study
from support.optimism import learner


def test_the_family_has_its_gap() -> None:
    """The worst tenth of the better action: 0 with probability 0.1 · 0.8 / 2 = 0.04, else 1: (0.1 - 0.04) / 0.1."""
    family = Family(tail=0.1, states=2, actions=3)
    model = family.model(0.2)
    assert plan(model, "cvar:0.1").value == pytest.approx(0.6)
    worse = np.zeros((2, model.n_states), dtype=int)
    assert evaluate(model, worse).certainty_equivalent("cvar:0.1") == pytest.approx(0.4)


def test_regret_counts_the_worse_actions() -> None:
    """The count is the shortfall of all policies played, each evaluated exactly, in the same run step by step."""
    family = Family(tail=0.5, states=1, actions=2)
    world, oracle = learner(family.model(0.5), "cvar:0.5", UcbViConfig(rounds=200), seed=1)
    shortfalls: list[float] = []

    def play(policy: Any) -> Any:
        shortfalls.append(0.75 - evaluate(world.model, policy.on(world.lattice)).certainty_equivalent("cvar:0.5"))
        return collect(world, policy, 2)

    optimism(oracle, play, 200)
    assert 0 < sum(shortfalls) < 50
    assert family.regret(0.5, "hoeffding", 200, seed=1) == pytest.approx(sum(shortfalls))


def test_the_worst_gap_counts() -> None:
    """In one round nothing is known, and the first action, a worse one, is taken: the largest gap is lost."""
    families = [Family(tail, 1, 2) for tail in (0.5, 0.25)]
    growth = growth_of_the_worst("τ", "hoeffding", families, (0.5, 0.25), rounds=1, seeds=2)
    assert growth.x == (0.5, 0.25)
    assert growth.regret == (0.5, 0.5)
    assert growth.power == pytest.approx(0.0, abs=1e-12)


def test_the_picture_shows_the_means() -> None:
    found = explore(zoo.make("paper"), "cvar:0.25", rounds=60, seeds=3)
    values, regret = plot_regret(found).axes
    np.testing.assert_allclose(values.lines[0].get_ydata(), np.mean([run.values for run in found.runs], axis=0))
    expected = np.mean([run.regret(0.75) for run in found.runs], axis=0)
    np.testing.assert_allclose(regret.lines[0].get_ydata(), expected)
    assert values.lines[1].get_ydata() == [0.75, 0.75]


def test_the_studys_picture_has_three_parts() -> None:
    line = Growth("a line", (1.0, 2.0), (3.0, 6.0), 1.0, None)
    study = RegretStudy((line,), (line, line), (line,))
    axes = plot_regret_study(study).axes
    assert [len(part.lines) for part in axes] == [1, 2, 1]
    assert axes[0].lines[0].get_ydata().tolist() == [3.0, 6.0]  # type: ignore[union-attr]
    assert study.to_dict()["tail"][0]["power"] == 1.0
    assert str(study).startswith("a line: power 1.00")
