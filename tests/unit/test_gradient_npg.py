r"""Exact NPG against numbers derived by hand.

One step, `safe` pays 1 and `risky` 0 or 2 with probability 1/2 each; CVaR at 0.5, so u(t) = -2 (-t)_+. The first
budgets are 0, 1, 2, the span is 2, and :math:`\eta = c \log(2) / 2`. At b = 1 the values are 0 (safe) and -1
(risky); at 0 and 2 both actions are worth the same, 0 and -2.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocerl.errors import OcerlError
from ocerl.gradient import (
    ExactJudge,
    ExactNPG,
    Reinforce,
    SampledNPG,
    augmented_graph,
    first_budgets,
    optimise_policies,
    rate_bound,
)
from ocerl.gradient.graph import AugmentedGraph
from ocerl.gradient.tables import probabilities
from ocerl.mdp import TabularMDP, random_mdp, zoo
from ocerl.planning import plan
from ocerl.risk import parse_risk

CHOICE = TabularMDP.from_outcomes(
    {"s": {"safe": [(1.0, "s", 1.0)], "risky": [(0.5, "s", 0.0), (0.5, "s", 2.0)]}}, horizon=1
)


def graph_of(model: TabularMDP, risk: str) -> AugmentedGraph:
    return augmented_graph(parse_risk(risk), first_budgets(model, parse_risk(risk)))


@pytest.mark.parametrize(
    ("updates", "growth", "safe"),
    # eta = log 2 at first, and the advantage of safe over risky stays 1: odds of 2, 2 · 2 or 2 · 4.
    [(0, 1.0, 1 / 2), (1, 1.0, 2 / 3), (2, 1.0, 4 / 5), (2, 2.0, 8 / 9)],
)
def test_soft_policy_iteration_by_hand(updates: int, growth: float, safe: float) -> None:
    graph = graph_of(CHOICE, "cvar:0.5")
    oracle = ExactNPG(graph, step_size=2.0, growth=growth)
    state = oracle.update(oracle.init([0]), updates)
    # Entries: positions from the least, so budgets 2, 1, 0, each with safe and risky.
    np.testing.assert_allclose(probabilities(graph, state.logits[0]), [0.5, 0.5, safe, 1 - safe, 0.5, 0.5], atol=1e-14)
    np.testing.assert_allclose(oracle.estimate(state), [[0.0, safe - 1.0, -2.0]], atol=1e-14)
    # Begun with 1: returns 0, 1, 2 with probabilities q/2, 1 - q, q/2, whose worst half has mean 1 - q.
    judgement = ExactJudge(graph)(state, np.array([1]))
    np.testing.assert_allclose([judgement.value[0], judgement.lower_bound[0]], safe, atol=1e-14)


def test_the_meta_algorithm_chooses_the_first_budget() -> None:
    oracle = ExactNPG(graph_of(CHOICE, "cvar:0.5"))
    rounds = [found for _, found in optimise_policies(oracle, oracle.init([0]), updates=5, every=2)]
    assert [found.update for found in rounds] == [0, 2, 4, 5]
    assert [int(found.chosen[0]) for found in rounds] == [1, 1, 1, 1]
    assert rounds[0].estimated_bound[0] == 0.5
    assert rounds[0].judgement is None


RISKS = ("cvar:0.3", "mean-cvar:0.4,0.2", "entropic:-0.7", "mean-variance:0.3", "monotone-mean-variance:0.3")


@given(st.integers(0, 10_000), st.sampled_from(RISKS), st.booleans(), st.booleans())
@settings(max_examples=25)
def test_the_risk_lower_bound_rises_to_the_optimum(seed: int, risk: str, per_step: bool, sets: bool) -> None:
    model = random_mdp(seed, states=4, actions=3, horizon=4, per_step=per_step, action_sets=sets, random_start=sets)
    graph, best = graph_of(model, risk), plan(model, risk)
    oracle = ExactNPG(graph)
    course = optimise_policies(oracle, oracle.init([0]), updates=60, every=1, judge=ExactJudge(graph))
    judged = [found.judgement for _, found in course if found.judgement is not None]
    bound, value = (np.array([getattr(j, name)[0] for j in judged]) for name in ("lower_bound", "value"))
    size = max(1.0, float(np.abs(bound).max()))
    assert np.diff(bound).min() >= -1e-12 * size
    assert (bound <= value + 1e-9 * size).all()
    assert (value <= best.upper + 1e-9 * size).all()
    assert value[-1] >= best.value - 1e-3
    if graph.risk.slopes is not None:  # first budgets between those of the grid are better for the others
        assert bound[-1] >= best.value - 1e-9 * size


@given(st.integers(0, 10_000), st.sampled_from(("cvar:0.3", "mean", "mean-cvar:0.4,0.2")))
@settings(max_examples=10)
def test_constant_steps_converge_at_the_stated_rate(seed: int, risk: str) -> None:
    model = random_mdp(seed, states=3, actions=3, horizon=3)
    graph, best = graph_of(model, risk), plan(model, risk).value
    oracle = ExactNPG(graph, step_size=1.0, growth=1.0)
    course = optimise_policies(oracle, oracle.init([0]), updates=200, every=1)
    gaps = np.cumsum([best - found.estimated_bound[0] for _, found in course])
    assert gaps[-1] <= rate_bound(graph, 1.0)
    # The last hundred rounds add less than the first: the total is bounded, not only sublinear.
    assert gaps[-1] - gaps[100] <= gaps[100] + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("risk", ["cvar:0.1", "mean-cvar:0.5,0.2", "entropic:-1", "monotone-mean-variance:0.2"])
def test_large_models_converge(risk: str) -> None:
    model = random_mdp(4, states=200, actions=4, horizon=20)
    graph, best = graph_of(model, risk), plan(model, risk)
    oracle = ExactNPG(graph)
    course = optimise_policies(oracle, oracle.init([0]), updates=40, every=1, judge=ExactJudge(graph))
    judged = [found.judgement for _, found in course if found.judgement is not None]
    bound = np.array([j.lower_bound[0] for j in judged])
    assert np.diff(bound).min() >= -1e-10
    assert judged[-1].value[0] == pytest.approx(best.value, abs=1e-3)
    if graph.risk.slopes is not None:
        assert bound[-1] == pytest.approx(best.value, abs=1e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda graph: ExactNPG(graph, step_size=0.0), "step size must be a positive number, got 0"),
        (lambda graph: ExactNPG(graph, growth=0.5), "growth of the step size must be at least 1, got 0.5"),
        (lambda graph: SampledNPG(graph, episodes=0), "at least 1 episode, got 0"),
        (lambda graph: SampledNPG(graph, exploration=1.5), r"probability in \[0, 1\], got 1.5"),
        (lambda graph: Reinforce(graph, barrier=-1.0), "log-barrier's weight must be at least 0, got -1"),
    ],
)
def test_bad_settings(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(OcerlError, match=message):
        make(graph_of(zoo.make("paper"), "cvar:0.25"))
