r"""The tables of the paper's Section 5, Chow's counterexample, and methods that must lose on them.

The paper's model: in s1 every action pays Ber(1/2); in s2, a1 pays 1.5 Ber(3/4) and a2 pays 1/2. A policy is
the pair of its second actions, after the first reward was 0 and after it was 1. Their returns:

==========  ======================================  ========  =========
policy      distribution                            mean      variance
==========  ======================================  ========  =========
a1, a1      0: 1/8, 1: 1/8, 1.5: 3/8, 2.5: 3/8      13/8      43/64
a2, a2      0.5: 1/2, 1.5: 1/2                      1         1/4
a1, a2      0: 1/8, 1.5: 7/8                        21/16     63/256
a2, a1      0.5: 1/2, 1: 1/8, 2.5: 3/8              21/16     223/256
==========  ======================================  ========  =========

The first two are Markov.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import exp, log

import numpy as np
import pytest

from brute_force import (
    Acting,
    Distribution,
    Game,
    attainable,
    cvar,
    distribution_of_policy,
    distribution_of_table,
    markov_optimum,
    markov_tables,
    named,
    optimum,
)
from ocerl.planning import best_markov, evaluate, plan
from support.games import assert_same_returns

HALF, EIGHTH = Fraction(1, 2), Fraction(1, 8)
SURE = Fraction(1)

COIN = ((HALF, 2, Fraction(0)), (HALF, 2, Fraction(1)))
RISKY = ((Fraction(1, 4), 3, Fraction(0)), (Fraction(3, 4), 3, Fraction(3, 2)))
PAPER = Game(({1: {"a1": COIN, "a2": COIN}, 2: {"a1": RISKY, "a2": ((SURE, 3, HALF),)}},), horizon=2, start={1: SURE})

RISKY_RISKY = (
    (Fraction(0), EIGHTH),
    (SURE, EIGHTH),
    (Fraction(3, 2), 3 * EIGHTH),
    (Fraction(5, 2), 3 * EIGHTH),
)
SAFE_SAFE = ((HALF, HALF), (Fraction(3, 2), HALF))
RISKY_SAFE = ((Fraction(0), EIGHTH), (Fraction(3, 2), 7 * EIGHTH))
SAFE_RISKY = ((HALF, HALF), (SURE, EIGHTH), (Fraction(5, 2), 3 * EIGHTH))

ENTROPIC_1 = -log((1 + exp(-1)) / 2) - log((1 + 3 * exp(-1.5)) / 4)
ENTROPIC_2 = (-log((1 + exp(-2)) / 2) - log((1 + 3 * exp(-3)) / 4)) / 2
"""The two rewards of (a1, a1) are independent, so the entropic risk is a sum; a2 would add 1/2 instead of
0.8738 (beta = -1) or 0.6235 (beta = -2), whatever came before: the optimum is Markov."""

TABLE = [
    # risk, optimum, best Markov
    ("mean", 13 / 8, 13 / 8),
    # a1, a2: 21/16 - c 63/256. Markov, c = 1: a1, a1 13/8 - 43/64 = 61/64 (a2, a2: 3/4);
    # c = 2: a2, a2 1 - 2/4 (a1, a1: 13/8 - 86/64 = 9/32).
    ("mean-variance:1", 273 / 256, 61 / 64),
    ("mean-variance:2", 105 / 128, 1 / 2),
    # Truncated: a1, a2 has X - b* <= 3/16 at b* = 21/16, below the truncation at 1/(2c), so it is as above.
    # a1, a1: E (1 - 2c (X - b))_+ = 1 at b* = 7/5 (c = 1, X = 2.5 truncated), which gives
    # 7/5 - 3.36/8 - 0.56/8 + 3/8 (0.09 + 1/4) = 1.0375, and at b* = 5/4 (c = 2, X >= 1.5 truncated),
    # which gives 5/4 - (35/8)/8 - (3/8)/8 + 3/4 * 1/8 = 3/4. a2, a2: 3/4 and 5/8.
    ("monotone-mean-variance:1", 273 / 256, 1.0375),
    ("monotone-mean-variance:2", 105 / 128, 3 / 4),
    ("entropic:-1", ENTROPIC_1, ENTROPIC_1),
    ("entropic:-2", ENTROPIC_2, ENTROPIC_2),
    # a1, a2: (1/8 * 0 + 1/8 * 1.5) / (1/4) and (3/8 * 1.5) / (1/2).
    # Markov: a1, a1 (1/8 * 0 + 1/8 * 1) / (1/4) and (1/8 * 1 + 2/8 * 1.5) / (1/2); a2, a2 1/2 both times.
    ("cvar:0.25", 3 / 4, 1 / 2),
    ("cvar:0.5", 9 / 8, 1.0),
]

PRINTED = {
    "mean-variance:1": (1.0664, 0.9531),
    "mean-variance:2": (0.8203, 0.5),
    "monotone-mean-variance:1": (1.0664, 1.0375),
    "monotone-mean-variance:2": (0.8203, 0.75),
    "entropic:-1": (1.2537, 1.2537),
    "entropic:-2": (0.9067, 0.9067),
    "cvar:0.25": (0.75, 0.5),
    "cvar:0.5": (1.125, 1.0),
}


def test_the_four_policies() -> None:
    assert attainable(PAPER) == {RISKY_RISKY, SAFE_SAFE, RISKY_SAFE, SAFE_RISKY}
    assert {distribution_of_table(PAPER, table) for table in markov_tables(PAPER)} == {RISKY_RISKY, SAFE_SAFE}


@pytest.mark.parametrize(("text", "best", "markov"), TABLE)
def test_the_derivations_agree_with_the_referee_and_with_print(text: str, best: float, markov: float) -> None:
    assert optimum(PAPER, named(text)) == pytest.approx(best, abs=1e-9)
    assert markov_optimum(PAPER, named(text)) == pytest.approx(markov, abs=1e-9)
    if text in PRINTED:
        assert (round(best, 4), round(markov, 4)) == PRINTED[text]


@pytest.mark.parametrize(("text", "best", "markov"), TABLE)
def test_optimum_and_best_markov(text: str, best: float, markov: float) -> None:
    model = PAPER.model()
    result, without_history = plan(model, text), best_markov(model, text)
    assert result.exact
    assert result.value == pytest.approx(best, abs=1e-9)
    assert result.lower <= best + 1e-9
    assert result.upper >= best - 1e-9
    assert without_history.exhaustive
    assert without_history.value == pytest.approx(markov, abs=1e-9)
    assert result.risk_neutral.value == 13 / 8


@pytest.mark.parametrize(("second_action", "distribution"), [(0, RISKY_RISKY), (1, SAFE_SAFE)], ids=["a1", "a2"])
def test_markov_rows_of_the_first_table(second_action: int, distribution: Distribution) -> None:
    model = PAPER.model()
    table = np.zeros((2, model.n_states), dtype=np.int64)
    table[1, model.states.index(2)] = second_action
    returns = evaluate(model, table)
    assert_same_returns(returns, distribution)
    assert returns.certainty_equivalent("cvar:0.25") == 0.5


def test_optimal_row_of_the_first_table() -> None:
    model = PAPER.model()
    result = plan(model, "cvar:0.25")
    assert_same_returns(result.returns, RISKY_SAFE)
    assert distribution_of_policy(PAPER, model, result.policy) == RISKY_SAFE
    assert result.value == 0.75
    assert result.budget == 1.5  # the lower 1/4-quantile of {0: 1/8, 1.5: 7/8}
    assert result.risk_neutral.oce == 0.5


class Deaf:
    """A policy that is told of every step but not of its reward."""

    def __init__(self, policy: Acting) -> None:
        self.policy = policy

    def reset(self) -> None:
        self.policy.reset()

    def act(self, state: int) -> int:
        return self.policy.act(state)

    def observe(self, reward: float) -> None:
        self.policy.observe(0.0)


@pytest.mark.parametrize("text", ["cvar:0.25", "cvar:0.5", "mean-variance:1", "monotone-mean-variance:2"])
def test_a_policy_that_loses_its_budget_loses(text: str) -> None:
    """Negative control: the same tables without the budget's update do no better than a Markov policy."""
    model = PAPER.model()
    result = plan(model, text)
    deaf = distribution_of_policy(PAPER, model, Deaf(result.policy))
    assert deaf in {RISKY_RISKY, SAFE_SAFE}
    assert named(text)(deaf) <= markov_optimum(PAPER, named(text)) + 1e-9 < result.value - 1e-3


RETURNS = {
    ("a1", "a1"): RISKY_RISKY,
    ("a2", "a2"): SAFE_SAFE,
    ("a1", "a2"): RISKY_SAFE,
    ("a2", "a1"): SAFE_RISKY,
}


def budget_recursion(update: Callable[[float, float], float], tau: float) -> float:
    """The best CVaR over all first budgets of the policies that a recursion with this update finds."""

    def second(budget: float) -> str:
        # The expected shortfall (b - r)_+ of a1 against that of a2.
        risky = max(budget, 0.0) / 4 + 3 * max(budget - 1.5, 0.0) / 4
        return "a1" if risky <= max(budget - 0.5, 0.0) else "a2"

    return max(
        cvar(tau)(RETURNS[second(update(first, 0.0)), second(update(first, 1.0))])
        for first in (0.0, 0.5, 1.0, 1.5, 2.5)
    )


@pytest.mark.parametrize(("tau", "best", "markov"), [(0.25, 0.75, 0.5), (0.5, 1.125, 1.0)])
def test_a_wrong_budget_update_loses(tau: float, best: float, markov: float) -> None:
    """Negative control: b - r finds the optimum; a frozen budget is as good as the best Markov policy."""
    assert budget_recursion(lambda budget, reward: budget - reward, tau) == best
    assert budget_recursion(lambda budget, reward: budget, tau) == markov
    assert budget_recursion(lambda budget, reward: budget + reward, tau) < best


CHOW = Game(
    (
        {
            0: {"move": ((HALF, 1, Fraction(100)), (HALF, 2, Fraction(0)))},
            2: {
                "a1": ((Fraction(1, 4), 3, Fraction(-300)), (Fraction(3, 4), 3, Fraction(300))),
                "a2": ((SURE, 3, Fraction(0)),),
                "a3": ((HALF, 3, Fraction(-50)), (HALF, 3, Fraction(250))),
            },
        },
    ),
    horizon=2,
    start={0: SURE},
)
"""One random move, then one choice: the state that pays 100 needs none."""


def decomposition_bound(grid: int) -> float:
    r"""What the dynamic program over tilted levels claims for the counterexample at level 1/2.

    CVaR decomposes as :math:`\min_\xi \sum_s p_s \xi_s \mathrm{CVaR}_{\tau\xi_s}(Z \mid s)` over tilts
    :math:`0 \le \xi \le 1/\tau` of mean 1. The dynamic program lets each state choose its action for each
    level, :math:`\max_a \mathrm{CVaR}_{\tau\xi_s}(Z \mid s, a)`, *inside* the minimum: an action for every
    tilt, where a policy has one for all. So it claims too much, if anything.

    Here :math:`p = \tau = 1/2`, so a tilt :math:`\xi = 2m` of the state with the choice gives it the level
    and the weight :math:`m`; the rest goes to the state that pays 100.
    """
    choices = [
        tuple((reward, probability) for probability, _, reward in outcomes) for outcomes in CHOW.tables[0][2].values()
    ]
    masses = [number / grid for number in range(1, grid + 1)]
    tilted = [100.0 * (1.0 - mass) + mass * max(cvar(mass)(choice) for choice in choices) for mass in masses]
    return min(100.0, *tilted)


def test_chows_counterexample() -> None:
    # Worst half of the whole: a1 {-300: 1/8, 100: 3/8} -> 0; a2 {0: 1/2} -> 0; a3 {-50: 1/4, 100: 1/4} -> 25.
    assert sorted(cvar(0.5)(distribution) for distribution in attainable(CHOW)) == [0.0, 0.0, 25.0]
    result = plan(CHOW.model(), "cvar:0.5")
    assert result.exact
    assert result.value == 25.0
    assert_same_returns(result.returns, ((Fraction(-50), HALF / 2), (Fraction(100), HALF), (Fraction(250), HALF / 2)))


def test_the_decomposition_is_a_bound_and_not_a_value() -> None:
    # 100 (1 - m) plus the greatest of 300 m - 150 (a1, m > 1/4), 0 (a2) and 250 m - 150 (a3, m > 1/2):
    # it falls to 50 at m = 1/2, where a2 is best still, and rises from there with a1. That is on the grid.
    assert decomposition_bound(grid=40) == pytest.approx(50.0, abs=1e-9)
    assert optimum(CHOW, cvar(0.5)) == 25.0
