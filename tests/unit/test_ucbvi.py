r"""UCB-VI on models small enough to do by hand.

`CHOICE` is one step: in s, a or b, each paying 0 or 1. For CVaR at 1/2, u(t) = 2 min(t, 0). The first budgets are
1 and 0 (positions -1 and 0): from b = 1 a reward of 0 leaves u(-1) = -2 and a reward of 1 leaves u(0) = 0, so the
utilities that can be reached span 2 and have the ceiling 0; from b = 0 everything is worth 0.

The union of its bonus is over 3 pairs (a, b, and the one of the end), 1 step and 2 budgets: 6 events.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from ocerl.errors import OcerlError
from ocerl.mdp import TabularMDP, zoo
from ocerl.optimistic import UcbViConfig
from ocerl.optimistic.problem import ending_states, learning_lattice, problem_of_model, problem_of_spaces
from ocerl.optimistic.recommend import recommend
from ocerl.optimistic.rows import reachable_utility, rows_of
from ocerl.optimistic.ucbvi import UcbVi
from ocerl.optimistic.worlds import Episode
from ocerl.planning import evaluate
from ocerl.risk import parse_risk
from support.optimism import learner, scale_for

COIN = [(0.5, "end", 0.0), (0.5, "end", 1.0)]
CHOICE = TabularMDP.from_outcomes({"s": {"a": COIN, "b": COIN}}, horizon=1)
S, END = 0, 1
A, B = 0, 1


def choice(log_term: float, bonus: str = "hoeffding") -> UcbVi:
    sides = 4 if bonus == "bernstein" else 1
    scale = scale_for(log_term, events=6, visits=100, sides=sides)
    return learner(CHOICE, "cvar:0.5", UcbViConfig(rounds=100, bonus=bonus, bonus_scale=scale))[1]  # type: ignore[arg-type]


def see(oracle: UcbVi, action: int, *rewards: float) -> None:
    for reward in rewards:
        oracle.update(Episode([S, END], [action], [reward]))


def value_at(oracle: UcbVi, budget: float) -> float:
    budgets, values = oracle.values()
    return float(values[budgets == budget][0])


def test_what_the_learner_is_told() -> None:
    problem = problem_of_model(learning_lattice(zoo.make("paper")), per_step=False)
    assert problem.unit == 0.5
    assert problem.most.tolist() == [3, 3]  # 3/2 in each step
    assert problem.remaining.tolist() == [6, 3, 0]
    assert problem.earned.tolist() == [0, 3, 6]
    assert problem.terminal.tolist() == [False, False, True]
    assert problem.shifts([0.0, 0.5, 1.5]).tolist() == [[0, 1, 3], [0, 1, 3]]


def test_nothing_seen_is_worth_the_best_there_is() -> None:
    oracle = choice(0.5)
    budgets, values = oracle.values()
    assert budgets.tolist() == [1.0, 0.0]
    assert values.tolist() == [0.0, 0.0]


def test_hoeffding_by_hand() -> None:
    oracle = choice(0.08)
    assert oracle.log_term == pytest.approx(0.08)
    see(oracle, A, 0.0, 0.0, 0.0, 1.0)
    assert value_at(oracle, 1.0) == 0.0, "b was not tried yet"
    see(oracle, B, 0.0)
    # a: 3/4 of -2, plus 2 sqrt(0.08 / 8) = 0.2. b: -2, plus 2 sqrt(0.08 / 2) = 0.4.
    assert value_at(oracle, 1.0) == pytest.approx(-1.3)
    assert value_at(oracle, 0.0) == 0.0, "there is nothing to gain or lose from budget 0"
    assert oracle.policy(1.0).act(S) == A
    see(oracle, A, 0.0, 0.0, 0.0, 0.0)
    # a: 7/8 of -2, plus 2 sqrt(0.08 / 16) = 0.141: now b is better.
    assert value_at(oracle, 1.0) == pytest.approx(-1.6)
    assert oracle.policy(1.0).act(S) == B


def test_hoeffding_turns_to_what_was_tried_less() -> None:
    oracle = choice(2.0)
    see(oracle, A, 0.0, 0.0, 0.0, 0.0)
    see(oracle, B, 0.0)
    # Both saw only -2; a has 2 sqrt(2 / 8) = 1, b has 2 sqrt(2 / 2) = 2.
    assert value_at(oracle, 1.0) == pytest.approx(0.0)
    assert oracle.policy(1.0).act(S) == B


def test_a_bonus_is_at_most_the_span() -> None:
    oracle = choice(50.0)
    see(oracle, A, 0.0, 1.0)
    see(oracle, B, 0.0, 0.0)
    # Unclipped, a is worth -1 + 2 and b -2 + 2: a is preferred, and its value clipped at the ceiling 0.
    assert value_at(oracle, 1.0) == 0.0
    assert oracle.policy(1.0).act(S) == A


def test_bernstein_by_hand() -> None:
    oracle = choice(0.03, "bernstein")
    assert oracle.log_term == pytest.approx(0.03)
    see(oracle, A, 0.0, 0.0, 0.0, 1.0)
    see(oracle, B, 0.0, 0.0, 0.0, 0.0)
    # a: mean -3/2 and variance 3/4 of {-2, -2, -2, 0}; the pay-off is known, so that V^ = V- there.
    # Bonus sqrt(2 · 0.03 / 3) sqrt(3/4) + 7/3 · 2 · 0.03 / 3; b has the second part only.
    rest = 7 / 3 * 2 * 0.03 / 3
    assert value_at(oracle, 1.0) == pytest.approx(-1.5 + math.sqrt(0.02 * 0.75) + rest)
    assert oracle.plan.lower[0, S, 0] == pytest.approx(-1.5 - math.sqrt(0.02 * 0.75) - rest)
    see(oracle, B, 1.0, 1.0, 1.0, 1.0)
    # b: mean -1, variance 1, n = 8.
    expected = -1.0 + math.sqrt(2 * 0.03 / 7) + 7 / 3 * 2 * 0.03 / 7
    assert value_at(oracle, 1.0) == pytest.approx(expected)
    assert oracle.policy(1.0).act(S) == B


def test_bernstein_adds_what_is_not_known_of_the_values_ahead() -> None:
    """Two steps: s moves on to s surely, for nothing; the spread of the values ahead is 0, their gap is not."""
    chain = TabularMDP.from_outcomes({"s": {"go": [(1.0, "t", 0.0)]}, "t": {"play": COIN}}, horizon=2, start="s")
    # 3 pairs; 2 steps with 3 and 2 budgets: 15 events, of at most 2 · 50 visits.
    scale = scale_for(0.02, events=15, visits=100, sides=4)
    config = UcbViConfig(rounds=50, bonus="bernstein", bonus_scale=scale)
    _, oracle = learner(chain, "cvar:0.5", config)
    for reward in (0.0, 0.0, 0.0, 1.0, 1.0):
        oracle.update(Episode([0, 1, 2], [0, 1], [0.0, reward]))
    # In t from b = 1: mean -2 · 3/5, variance 4 · 6/25, n = 5, span 2.
    ahead = math.sqrt(2 * 0.02 / 4) * math.sqrt(0.96) + 7 / 3 * 2 * 0.02 / 4
    upper, lower = -1.2 + ahead, -1.2 - ahead
    # In s from b = 1: the span is 2 as well (the ceiling is 0, the floor -2).
    bonus = math.sqrt(2 * 0.02 / 4) * (upper - lower) + 7 / 3 * 2 * 0.02 / 4
    assert value_at(oracle, 1.0) == pytest.approx(upper + bonus)


def test_the_union_behind_the_theoretical_bonus() -> None:
    _, oracle = learner(CHOICE, "cvar:0.5", UcbViConfig(rounds=100, bonus_scale="theory", delta=0.1))
    assert oracle.log_term == pytest.approx(math.log(6 * 100 / 0.1))


def test_a_start_that_has_to_be_learned() -> None:
    """The value is the mean over the starts seen, with a bonus of its own, never above the ceiling."""
    lottery = CHOICE.with_(start={"s": 0.5, "end": 0.5})
    # One more event for each of the 2 first budgets: 8.
    config = UcbViConfig(rounds=100, bonus_scale=scale_for(0.08, events=8, visits=100))
    _, oracle = learner(lottery, "cvar:0.5", config)
    assert value_at(oracle, 1.0) == 0.0
    see(oracle, A, 0.0)
    see(oracle, B, 0.0)
    oracle.update(Episode([END], [], []))
    oracle.update(Episode([END], [], []))
    # s: -2 + 2 sqrt(0.04) = -1.6; the end: u(-1) = -2. Half each, plus 2 sqrt(0.08 / 8).
    assert value_at(oracle, 1.0) == pytest.approx(-1.8 + 0.2)


def test_known_rewards_count_in_their_proportions() -> None:
    config = UcbViConfig(rounds=100, bonus_scale=0.0)
    _, oracle = learner(CHOICE, "cvar:0.5", config, know=True)
    see(oracle, A, 0.0)
    see(oracle, B, 0.0)
    assert value_at(oracle, 1.0) == pytest.approx(-1.0), "half of -2, although only 0 was seen"


def test_the_mean_needs_no_budgets() -> None:
    oracle = learner(CHOICE, "mean", UcbViConfig(rounds=100, bonus_scale=0.0))[1]
    assert oracle.plan.slots.shape == (1, 2, 1)
    see(oracle, A, 0.0)
    see(oracle, B, 0.0, 1.0)
    budgets, values = oracle.values()
    assert float((budgets + values)[0]) == pytest.approx(0.5)
    assert oracle.policy(float(budgets[0])).act(S) == B


def test_the_grid_of_a_curved_utility() -> None:
    problem = problem_of_model(learning_lattice(zoo.make("paper")), per_step=False)
    rows = rows_of(problem, parse_risk("entropic:-1"), 64)
    budgets = rows.arrays.budgets
    assert rows.arrays.refine == 11  # 6 units, so 67 first budgets
    assert budgets[[0, -1]].tolist() == [3.0, 0.0]
    np.testing.assert_allclose(np.diff(budgets), -0.5 / 11)
    # One unit earned is refine positions on: the utility after a first budget of 3 and a reward of 1/2.
    assert rows.positions(1)[11] == pytest.approx(rows.positions(0)[0] + 1)


def test_what_a_utility_with_a_top_can_reach() -> None:
    """u(t) = t - t² on t = -1, -1/2, 0, 1/2, 1: the top 1/4 is at 1/2, the least -2 at -1."""
    problem = problem_of_model(learning_lattice(zoo.make("paper")), per_step=False)
    least, most = reachable_utility(problem, parse_risk("mean-variance:1"), np.array([-2.0, 0.0, 1.0]), 4)
    assert most.tolist() == [0.25, 0.25, 0.25]
    assert least.tolist() == [-2.0, -2.0, -3.75]


def test_an_end_that_pays_nothing_where_nothing_is_not_the_least() -> None:
    """Rewards of -1 or 0: ending at once is worth u(0 - b), whatever budget is left."""
    debts = TabularMDP.from_outcomes({"s": {"stay": [(1.0, "s", -1.0)], "leave": [(1.0, "end", 0.0)]}}, horizon=3)
    assert ending_states(debts).tolist() == [False, True]
    _, oracle = learner(debts, "cvar:0.5", UcbViConfig(rounds=100, bonus_scale=0.0))
    oracle.update(Episode([0, 0, 0, 0], [0, 0, 0], [-1.0, -1.0, -1.0]))
    oracle.update(Episode([0, 1], [1], [0.0]))
    budgets, values = oracle.values()
    assert budgets.tolist() == [0.0, -1.0, -2.0, -3.0]
    assert values.tolist() == [0.0, 0.0, 0.0, 0.0]
    assert [oracle.policy(0.0).act(0), oracle.policy(-3.0).act(0)] == [1, 0], "ties go to the first action"


def test_recommended_is_the_best_on_what_was_seen_and_nothing_unseen() -> None:
    oracle = choice(8.0)
    see(oracle, A, 0.0, 1.0)
    assert oracle.policy(1.0).act(S) == B, "optimism tries what it does not know"
    assert recommend(oracle).act(S) == A, "the recommendation does not"


def test_a_recommended_budget_is_polished_off_the_grid() -> None:
    """With rewards 0 and 1 in equal parts, the best first budget for E - Var is the mean 1/2, on no grid of thirds."""
    oracle = learner(CHOICE, "mean-variance:1", UcbViConfig(rounds=100, first_budgets=3))[1]
    see(oracle, A, 0.0, 1.0)
    see(oracle, B, 0.0, 1.0)
    assert recommend(oracle).budget == pytest.approx(0.5, abs=1e-3)


def test_policies_of_the_learner_and_the_planner_are_the_same() -> None:
    world, oracle = learner(zoo.make("paper"), "cvar:0.25", UcbViConfig(rounds=10))
    policy = oracle.policy(1.5)
    on_model = policy.on(world.lattice)
    for reward in (0.0, 1.0):
        policy.reset()
        on_model.reset()
        assert policy.act(0) == on_model.act(0)
        policy.observe(reward)
        on_model.observe(reward)
        assert policy.act(1) == on_model.act(1)
    assert evaluate(world.model, on_model).probabilities.sum() == pytest.approx(1.0)


def test_rewards_that_are_binned_state_their_error() -> None:
    """Steps of 2^(1/2) and 1 on a lattice of 1/10: nearest points, each off by at most 1/20."""
    drift = TabularMDP.from_outcomes({"s": {"go": [(0.5, "s", 2**0.5), (0.5, "s", 1.0)]}}, horizon=3)
    problem = problem_of_model(learning_lattice(drift, resolution=0.1), per_step=False)
    assert problem.most.tolist() == [4, 4, 4]  # 1.414 is counted as 1 + 4/10
    assert problem.binning == pytest.approx((0.0, 3 * (2**0.5 - 1.4)))


def test_an_environments_range_holds_the_zero_of_its_end() -> None:
    problem = problem_of_spaces(2, 3, horizon=2, reward_range=(1.0, 2.0), resolution=0.5)
    assert problem.origins.tolist() == [0.0, 0.0]
    assert problem.most.tolist() == [4, 4]
    assert problem.pair_start.tolist() == [[0, 3, 6, 6]]
    assert problem.terminal.tolist() == [False, False, True]
    assert problem.binning == (-0.5, 0.5)


@pytest.mark.parametrize(
    ("field", "wrong", "right"),
    [
        ("rounds", 0, "at least 1"),
        ("bonus", "gauss", "'hoeffding' or 'bernstein'"),
        ("bonus_scale", -1.0, "at least 0"),
        ("bonus_scale", math.nan, "at least 0"),
        ("bonus_scale", "big", "'theory'"),
        ("delta", 0.0, "between 0 and 1"),
        ("delta", 1.0, "between 0 and 1"),
        ("first_budgets", 0, "at least 1"),
    ],
)
def test_a_config_that_is_none(field: str, wrong: object, right: str) -> None:
    with pytest.raises(OcerlError, match=field) as error:
        UcbViConfig(**{"rounds": 10, field: wrong})  # type: ignore[arg-type]
    assert right in str(error.value)
    assert str(wrong) in str(error.value)
