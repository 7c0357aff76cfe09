"""Policies written as rules: the budgets, the actions and how often each is used, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ocerl.errors import OcerlError
from ocerl.mdp import TabularMDP, zoo
from ocerl.mdp.lattice import exact_lattice
from ocerl.planning import BudgetPolicy, MarkovPolicy, Rule, plan, policy_rules

FORK = TabularMDP.from_outcomes(
    {
        "start": {"left": [(1.0, "L", 1.0)], "right": [(1.0, "R", 0.0)]},
        "L": {"one": [(1.0, "end", 1.0)], "none": [(1.0, "end", 0.0)]},
        "R": {"one": [(1.0, "end", 1.0)], "none": [(1.0, "end", 0.0)]},
    },
    horizon=2,
)
"""Left pays at once, so that no good policy sees R."""

DRAW = TabularMDP.from_outcomes(
    {
        "draw": {"draw": [(0.25, "choose", float(reward)) for reward in range(4)]},
        "choose": {"safe": [(1.0, "end", 1.0)], "risky": [(0.5, "end", 0.0), (0.5, "end", 3.0)]},
    },
    horizon=2,
)


def in_step(rules: list[Rule], step: int) -> list[tuple[object, float, float, object, float]]:
    return [
        (rule.state, rule.lowest, rule.highest, rule.action, rule.probability) for rule in rules if rule.step == step
    ]


def by_hand(first_budget: int, slots: list[int]) -> BudgetPolicy:
    """A policy of `DRAW`: `slots` in the state `choose`, for the budgets from the first one down."""
    lattice = exact_lattice(DRAW)
    assert lattice is not None
    assert (lattice.floor, lattice.unit) == (0.0, 1.0)
    table = np.zeros((3, len(slots)), dtype=np.uint8)
    table[DRAW.states.index("choose")] = slots
    low = np.full(3, -first_budget)
    outside = np.zeros((2, 3), dtype=np.uint8)
    return BudgetPolicy(lattice, -first_budget, float(first_budget), [np.zeros_like(table), table], low, outside)


@pytest.mark.parametrize(("risk", "budget"), [("cvar:0.25", 1.5), ("mean-variance:1", 21 / 16)])
def test_the_paper(risk: str, budget: float) -> None:
    """The best policy takes a1 if the first reward was 0 and a2 if it was 1, for both risks.

    The first budget is the lower quartile 1.5 of its return, and its mean 21/16, which no return equals.
    """
    rules = list(policy_rules(plan(zoo.make("paper"), risk).policy))
    assert in_step(rules, 2) == [
        ("s2", pytest.approx(budget - 1), pytest.approx(budget - 1), "a2", 0.5),
        ("s2", pytest.approx(budget), pytest.approx(budget), "a1", 0.5),
    ]
    ((state, lowest, highest, _, probability),) = in_step(rules, 1)
    assert (state, lowest, highest, probability) == ("s1", pytest.approx(budget), pytest.approx(budget), 1.0)


def test_a_policy_without_budgets() -> None:
    """The entropic optimum is Markov: a1, whatever came before."""
    rules = list(policy_rules(plan(zoo.make("paper"), "entropic:-1").policy))
    assert in_step(rules, 2) == [("s2", -math.inf, math.inf, "a1", 1.0)]


def test_neighbouring_budgets_are_joined() -> None:
    """Rewards 0, 1, 2, 3 leave the budgets 2, 1, 0, -1, for which the slots are 1, 1, 0, 1."""
    rules = list(policy_rules(by_hand(2, [1, 1, 0, 1])))
    assert in_step(rules, 1) == []
    assert in_step(rules, 2) == [
        ("choose", -1.0, -1.0, "risky", 0.25),
        ("choose", 0.0, 0.0, "safe", 0.25),
        ("choose", 1.0, 2.0, "risky", 0.5),
    ]


def test_beyond_the_table_the_mean_decides() -> None:
    """With budgets 2 and 1 in the table, 0 and -1 are outside of it, where slot 0 serves."""
    assert in_step(list(policy_rules(by_hand(2, [1, 1]))), 2) == [
        ("choose", -1.0, 0.0, "safe", 0.5),
        ("choose", 1.0, 2.0, "risky", 0.5),
    ]


def test_states_without_a_choice() -> None:
    policy = by_hand(2, [0, 0, 0, 0])
    assert {rule.state for rule in policy_rules(policy)} == {"choose"}
    assert in_step(list(policy_rules(policy, choices_only=False)), 1) == [("draw", 2.0, 2.0, "draw", 1.0)]


@pytest.mark.parametrize("risk", ["cvar:0.5", "entropic:-1"])
def test_only_where_the_policy_gets(risk: str) -> None:
    rules = list(policy_rules(plan(FORK, risk).policy))
    assert [(rule.step, rule.state, rule.action) for rule in rules] == [(1, "start", "left"), (2, "L", "one")]


def test_budgets_are_in_units_of_the_first_step() -> None:
    """Pay 1 in each step at a discount of 1/2: the budget is the return 1.75, and loses 1, then 1/2."""
    model = TabularMDP.from_outcomes({"s": {"work": [(1.0, "s", 1.0)], "rest": [(1.0, "s", 0.0)]}})
    rules = policy_rules(plan(model.with_(horizon=3, discount=0.5), "cvar:0.5").policy)
    assert [(rule.lowest, rule.highest, rule.action) for rule in rules] == [
        (1.75, 1.75, "work"),
        (0.75, 0.75, "work"),
        (0.25, 0.25, "work"),
    ]


def test_steps() -> None:
    policy = plan(FORK, "cvar:0.5").policy
    assert [rule.step for rule in policy_rules(policy, steps=[2])] == [2]
    assert [rule.step for rule in policy_rules(plan(FORK, "mean").policy, steps={1})] == [1]


def test_what_is_rare_is_left_out() -> None:
    policy = by_hand(2, [0, 1, 0, 1])
    assert len(list(policy_rules(policy, rarest=0.24))) == 4
    assert not list(policy_rules(policy, rarest=0.25))


def test_a_first_state_that_is_random() -> None:
    policy = plan(FORK.with_(start={"L": 0.25, "R": 0.75}, horizon=1), "cvar:0.5").policy
    assert in_step(list(policy_rules(policy)), 1) == [("L", 1.0, 1.0, "one", 0.25), ("R", 1.0, 1.0, "one", 0.75)]


def test_a_policy_that_draws_has_no_rules() -> None:
    even = np.zeros((2, FORK.n_states, 2))
    even[:, :, 0] = 1.0
    even[:, : len(FORK.states) - 1] = 0.5
    with pytest.raises(OcerlError, match="draws its actions"):
        list(policy_rules(MarkovPolicy.from_table(FORK, even)))
