"""The referee is refereed: hand-derived trees, distributions and certainty equivalents."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from brute_force import (
    NOTHING,
    Game,
    attainable,
    count_policies,
    cvar,
    distribution_of_policy,
    distribution_of_table,
    entropic,
    markov_optimum,
    markov_tables,
    mean,
    mean_cvar,
    mean_variance,
    mixture,
    monotone_mean_variance,
    named,
    of_utility,
    optimum,
)

HALF, QUARTER, EIGHTH = Fraction(1, 2), Fraction(1, 4), Fraction(1, 8)

COIN_THEN_BET = Game(
    tables=(
        {
            0: {"go": ((HALF, 1, 0), (HALF, 1, 1))},
            1: {"safe": ((1, 2, 1),), "risky": ((HALF, 2, 0), (HALF, 2, 2))},
        },
    ),
    horizon=2,
    start={0: Fraction(1)},
)
"""A fair coin pays 0 or 1; then either 1 for sure, or 0 or 2 with a fair coin."""


class TestTree:
    def test_counts_one_action_for_each_history(self) -> None:
        # Two histories reach the choice (coin 0, coin 1), each with two actions: 4 policies, 2 Markov.
        assert count_policies(COIN_THEN_BET) == 4
        assert len(list(markov_tables(COIN_THEN_BET))) == 2

    def test_lists_every_distribution(self) -> None:
        assert attainable(COIN_THEN_BET) == {
            ((1, HALF), (2, HALF)),  # safe, safe
            ((0, QUARTER), (1, QUARTER), (2, QUARTER), (3, QUARTER)),  # risky, risky
            ((0, QUARTER), (2, Fraction(3, 4))),  # risky after 0, safe after 1: 0, 2 | 2
            ((1, Fraction(3, 4)), (3, QUARTER)),  # safe after 0, risky after 1: 1 | 1, 3
        }

    def test_discounts_in_time_zero_units(self) -> None:
        game = Game(({0: {"a": ((1, 0, 1),)}},), horizon=3, start={0: Fraction(1)}, discount=HALF)
        assert attainable(game) == {((Fraction(7, 4), Fraction(1)),)}  # 1 + 1/2 + 1/4

    def test_uses_the_table_of_the_step_and_stays_where_none_is(self) -> None:
        step_tables = ({0: {"a": ((1, 1, 5),)}}, {0: {"a": ((1, 0, 100),)}}, {1: {"a": ((1, 1, 7),)}})
        game = Game(step_tables, horizon=3, start={0: Fraction(1)})
        assert attainable(game) == {((12, Fraction(1)),)}  # 5, then state 1 has no row in step 2, then 7

    def test_rows_that_look_alike_are_one_event(self) -> None:
        # Twice "state 1, reward 0": nothing tells the two apart, so the second choice is the same after both.
        table = {0: {"go": ((HALF, 1, 0), (HALF, 1, 0))}, 1: {"x": ((1, 1, 0),), "y": ((1, 1, 1),)}}
        assert attainable(Game((table,), horizon=2, start={0: Fraction(1)})) == {
            ((0, Fraction(1)),),
            ((1, Fraction(1)),),
        }

    def test_the_first_state_is_seen_before_acting(self) -> None:
        table = {0: {"x": ((1, 0, 0),), "y": ((1, 0, 1),)}, 1: {"x": ((1, 1, 0),), "y": ((1, 1, 1),)}}
        game = Game((table,), horizon=1, start={0: QUARTER, 1: Fraction(3, 4)})
        assert attainable(game) == {
            ((0, Fraction(1)),),
            ((0, Fraction(3, 4)), (1, QUARTER)),
            ((0, QUARTER), (1, Fraction(3, 4))),
            ((1, Fraction(1)),),
        }

    def test_forward_distribution_of_a_table(self) -> None:
        risky = {(0, 0): "go", (1, 1): "risky"}
        assert distribution_of_table(COIN_THEN_BET, risky) == (
            (0, QUARTER),
            (1, QUARTER),
            (2, QUARTER),
            (3, QUARTER),
        )

    def test_history_beats_markov(self) -> None:
        # Make the coin matter: risky pays 0 or 3. Markov: safe {1, 2}; risky {0, 1, 3, 4}. With history also
        # risky-after-0 {0: 1/4, 2: 1/2, 3: 1/4} and risky-after-1 {1: 3/4, 4: 1/4}.
        # CVaR_3/4: 4/3, 4/3, 4/3, 1. Mean - Var/4: 3/2 - 1/16 = 23/16; 2 - 10/16 = 22/16;
        # 7/4 - (17/4 - 49/16)/4 = 7/4 - 19/64 = 93/64, the best; 7/4 - (19/4 - 49/16)/4 = 7/4 - 27/64.
        paid = {**COIN_THEN_BET.tables[0]}
        paid[1] = {"safe": ((1, 2, 1),), "risky": ((HALF, 2, 0), (HALF, 2, 3))}
        game = Game((paid,), horizon=2, start={0: Fraction(1)})
        assert optimum(game, cvar(0.75)) == pytest.approx(4 / 3, abs=1e-12)
        assert optimum(game, mean_variance(0.25)) == 93 / 64
        assert markov_optimum(game, mean_variance(0.25)) == 23 / 16


class CoinReader:
    """Bets after a 0 only; counts its own steps, as a policy object must."""

    def __init__(self, forgets: bool = False, starts_over: bool = True) -> None:
        self.step, self.seen, self.forgets, self.starts_over = 0, 0.0, forgets, starts_over

    def reset(self) -> None:
        if self.starts_over:
            self.step, self.seen = 0, 0.0

    def act(self, state: int) -> int:
        actions = ("go", "safe", "risky")
        return actions.index("go" if state == 0 else "safe" if self.seen > 0 else "risky")

    def observe(self, reward: float) -> None:
        self.step, self.seen = self.step + 1, self.seen + (0.0 if self.forgets else reward)


class TestWalk:
    def test_sees_what_a_policy_object_does(self) -> None:
        walked = distribution_of_policy(COIN_THEN_BET, COIN_THEN_BET.model(), CoinReader())
        assert walked == ((0, QUARTER), (2, Fraction(3, 4)))

    def test_finds_an_object_that_ignores_rewards(self) -> None:
        walked = distribution_of_policy(COIN_THEN_BET, COIN_THEN_BET.model(), CoinReader(forgets=True))
        assert walked == ((0, QUARTER), (1, QUARTER), (2, QUARTER), (3, QUARTER))

    def test_finds_an_object_that_keeps_the_last_episode(self) -> None:
        with pytest.raises(AssertionError, match="after reset"):
            distribution_of_policy(COIN_THEN_BET, COIN_THEN_BET.model(), CoinReader(starts_over=False))


THREE = ((Fraction(0), EIGHTH), (Fraction(1), EIGHTH), (Fraction(3), Fraction(3, 4)))


class TestCertaintyEquivalents:
    def test_mean_and_cvar(self) -> None:
        assert mean(THREE) == 2.375
        assert cvar(1.0)(THREE) == 2.375
        assert cvar(0.125)(THREE) == 0.0
        assert cvar(0.25)(THREE) == 0.5  # (0 + 1)/8 over 1/4
        assert cvar(0.5)(THREE) == 1.75  # (1/8 + 3/4) / (1/2)
        assert mean_cvar(0.5, 0.25)(THREE) == 1.4375

    def test_entropic(self) -> None:
        expected = -math.log((1 + math.exp(-1) + 6 * math.exp(-3)) / 8)
        assert entropic(-1.0)(THREE) == pytest.approx(expected, abs=1e-14)
        assert entropic(-5.0)(((Fraction(10_000), Fraction(1)),)) == 10_000.0

    def test_mean_variance(self) -> None:
        # E X^2 = 1/8 + 27/4 = 6.875, Var = 6.875 - 5.640625 = 1.234375
        assert mean_variance(2.0)(THREE) == 2.375 - 2.46875

    def test_monotone_mean_variance(self) -> None:
        # c = 1: E (1 - 2(X - b))_+ = (1 + 2b)/8 + (2b - 1)/8 = b/2 = 1 for 1/2 <= b <= 5/2, so b = 2 and the
        # value is 2 + u(-2)/8 + u(-1)/8 + 3/4 * 1/4 = 2 - 6/8 - 2/8 + 3/16.
        assert monotone_mean_variance(1.0)(THREE) == pytest.approx(1.1875, abs=1e-12)

    def test_utility_by_its_definition(self) -> None:
        assert of_utility(lambda t: min(4.0 * t, 0.0))(THREE) == pytest.approx(0.5, abs=1e-9)
        # X = 0 or 1, u = log(1 + t): b + log(1 - b)/2 + log(2 - b)/2 has slope
        # 1 - 1/(2(1-b)) - 1/(2(2-b)) = 0 where 2b^2 - 4b + 1 = 0, at b = 1 - sqrt(1/2).
        log_utility = of_utility(lambda t: math.log1p(t) if t > -1 else -math.inf)
        fair = ((Fraction(0), HALF), (Fraction(1), HALF))
        expected = 1 - math.sqrt(0.5) + math.log(0.5 + math.sqrt(0.5)) / 2
        assert log_utility(fair) == pytest.approx(expected, abs=1e-12)

    def test_names(self) -> None:
        assert named("cvar:0.25")(THREE) == 0.5
        assert named("mean-cvar:0.5,0.25")(THREE) == 1.4375
        assert named("mean")(THREE) == 2.375

    def test_mixture_merges_values(self) -> None:
        shifted = mixture([(HALF, Fraction(1), NOTHING), (HALF, Fraction(0), ((Fraction(1), Fraction(1)),))])
        assert shifted == ((1, Fraction(1)),)


def test_model_is_the_same_table() -> None:
    model = COIN_THEN_BET.model()
    assert model.states == (0, 1, 2)
    assert model.actions == ("go", "safe", "risky")
    first = model.transitions(0)
    assert np.array_equal(first.next_state[:2], [1, 1])
    assert np.array_equal(first.reward[:2], [0.0, 1.0])
