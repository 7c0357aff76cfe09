"""The agnostic form: with one-hot features it is the tabular one, the lemma's bound holds, and no budget is a loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ocerl.errors import OcerlError
from ocerl.gradient import AgnosticNPG, ExactJudge, ExactNPG, augmented_graph, first_budgets
from ocerl.gradient.agnostic import least_squares_in_ball
from ocerl.gradient.graph import AugmentedGraph
from ocerl.gradient.tables import probabilities
from ocerl.mdp import TabularMDP, random_mdp, zoo
from ocerl.planning import best_markov, plan
from ocerl.risk import parse_risk


def graph_of(model: TabularMDP, risk: str) -> AugmentedGraph:
    return augmented_graph(parse_risk(risk), first_budgets(model, parse_risk(risk)))


def one_hot(step: int, states: Any, budgets: Any) -> Any:
    """One feature for each pair: they are met in one order."""
    return np.eye(len(states))


def hidden(step: int, states: Any, budgets: Any) -> Any:
    """The budget is not shown."""
    return np.eye(3)[states]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_one_hot_features_are_the_table(seed: int) -> None:
    model = random_mdp(seed, states=2, horizon=3, successors=2, action_sets=True)
    graph = graph_of(model, "cvar:0.4")
    agnostic = AgnosticNPG(graph, one_hot, planned_updates=50, norm_bound=1000.0)
    # The tabular step with the lemma's eta = c · H log(A) / span, where beta = 1/2.
    eta = np.sqrt(2 * np.log(graph.most_actions) / (0.5 * 50 * 1000.0**2))
    assert agnostic.eta == pytest.approx(eta, rel=1e-12)
    scaled = AgnosticNPG(graph, one_hot, planned_updates=1, norm_bound=60.0)
    multiple = scaled.eta * graph.span / (graph.length * np.log(graph.most_actions))
    tabular = ExactNPG(graph, step_size=float(multiple), growth=1.0)
    state, table = scaled.init([0]), tabular.init([0])
    for _ in range(6):
        state, table = scaled.update(state, 5), tabular.update(table, 5)
        np.testing.assert_allclose(
            probabilities(graph, state.logits[0]), probabilities(graph, table.logits[0]), atol=1e-6
        )
    assert np.abs(probabilities(graph, table.logits[0]) - 0.5).max() > 0.2, "something was learned"


def test_the_lemmas_bound() -> None:
    r"""One-hot features make err = 0: the total distance is at most :math:`H W \sqrt{2 \beta K \log A}`."""
    graph = graph_of(zoo.make("paper"), "cvar:0.25")
    updates, norm = 200, 20.0
    oracle = AgnosticNPG(graph, one_hot, planned_updates=updates, norm_bound=norm)
    best = ExactNPG(graph)
    optimal = best.estimate(best.update(best.init([0]), 60)).mean()
    state, total = oracle.init([0]), 0.0
    for _ in range(updates):
        total += optimal - oracle.estimate(state).mean()
        state = oracle.update(state, 1)
    assert 0 < total <= 2 * norm * np.sqrt(2 * 0.5 * updates * np.log(2))


def test_without_the_budget_it_stays_at_the_markov_value() -> None:
    model = zoo.make("paper")
    graph = graph_of(model, "cvar:0.25")
    oracle = AgnosticNPG(graph, hidden, planned_updates=600, norm_bound=1.0)
    state = oracle.init([0])
    for _ in range(6):
        state = oracle.update(state, 100)
        chosen = (oracle.budgets + oracle.estimate(state)).argmax(axis=1)
        value = ExactJudge(graph)(state, chosen).value[0]
        assert value <= best_markov(model, "cvar:0.25").value + 1e-9
    assert value == pytest.approx(0.5, abs=0.02)


def test_from_samples_of_an_unknown_model() -> None:
    model = zoo.make("paper")
    graph = graph_of(model, "cvar:0.25")
    oracle = AgnosticNPG(graph, one_hot, planned_updates=100, norm_bound=5.0, episodes=1000)
    state = oracle.update(oracle.init([0, 1]), 100)
    chosen = (oracle.budgets + oracle.estimate(state)).argmax(axis=1)
    assert (ExactJudge(graph)(state, chosen).value >= plan(model, "cvar:0.25").value - 0.05).all()
    again = oracle.update(oracle.update(oracle.init([0, 1]), 30), 70)
    assert np.array_equal(state.theta, again.theta)


def test_least_squares_in_a_ball() -> None:
    # (2 + m, 1 + m) w = (2, 1) has w = (1, 1) at m = 0; at m = 1 it is (2/3, 1/2), of norm 5/6.
    gram, moment = np.diag([2.0, 1.0]), np.array([2.0, 1.0])
    np.testing.assert_allclose(least_squares_in_ball(gram, moment, 2.0), [1.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(least_squares_in_ball(gram, moment, 5 / 6), [2 / 3, 1 / 2], atol=1e-9)
    # Of all solutions of w1 + w2 = 1, the shortest.
    np.testing.assert_allclose(least_squares_in_ball(np.ones((2, 2)), np.ones(2), 5.0), [0.5, 0.5], atol=1e-12)
    assert not least_squares_in_ball(np.zeros((2, 2)), np.zeros(2), 1.0).any()


def test_bad_features_and_settings() -> None:
    graph = graph_of(zoo.make("paper"), "cvar:0.25")
    for wrong in (lambda h, s, b: np.zeros(len(s)), lambda h, s, b: np.full((len(s), 2), np.nan)):
        with pytest.raises(OcerlError, match=r"features must give finite numbers of shape \[5, d\]"):
            AgnosticNPG(graph, wrong, planned_updates=5, norm_bound=1.0).init([0])
    with pytest.raises(OcerlError, match="planned_updates must be at least 1, got 0"):
        AgnosticNPG(graph, one_hot, planned_updates=0, norm_bound=1.0)
    with pytest.raises(OcerlError, match="norm_bound must be a positive number, got -1"):
        AgnosticNPG(graph, one_hot, planned_updates=5, norm_bound=-1.0)
