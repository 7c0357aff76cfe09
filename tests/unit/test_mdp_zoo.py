"""The zoo against its sources: values worked out by hand, by enumeration or by another dynamic program."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from brute_force import Game, attainable, cvar, distribution_of_table, markov_optimum, mean, optimum
from ocerl import OcerlError
from ocerl.mdp import TabularMDP, to_arrays, zoo
from tables import table


def game(model: TabularMDP) -> Game:
    """A stationary model as the referee wants it: fractions, states by their positions."""
    place = {label: index for index, label in enumerate(model.states)}
    written = {
        place[state]: {
            str(action): [(_exact(p), place[target], _exact(r)) for p, target, r in outcomes]
            for action, outcomes in by_action.items()
        }
        for state, by_action in table(model).items()
    }
    start = {index: _exact(p) for index, p in enumerate(model.start.tolist()) if p}
    return Game(tables=(written,), horizon=model.require_horizon(), start=start)


def _exact(number: float) -> Fraction:
    return Fraction(number).limit_denominator(1000)


def best_means(model: TabularMDP) -> np.ndarray:
    """The risk-neutral value of each state, by the textbook recursion over dense arrays."""
    probabilities, rewards = to_arrays(model)
    exists = probabilities.sum(axis=2) > 0
    value = np.zeros(model.n_states)
    for _ in range(model.require_horizon()):
        value = np.where(exists, rewards + model.discount * probabilities @ value, -np.inf).max(axis=1)
    return value


def test_the_papers_mdp_has_the_distributions_and_values_of_its_table():
    paper = game(zoo.make("paper"))
    half, eighth = Fraction(1, 2), Fraction(1, 8)
    assert {
        ((0, eighth), (1, eighth), (Fraction(3, 2), 3 * eighth), (Fraction(5, 2), 3 * eighth)),
        ((half, half), (Fraction(3, 2), half)),
        ((0, eighth), (Fraction(3, 2), 7 * eighth)),
    } < attainable(paper)
    assert optimum(paper, cvar(0.25)) == pytest.approx(0.75)
    assert markov_optimum(paper, cvar(0.25)) == pytest.approx(0.5)


def test_chows_counterexample_is_worth_25_and_not_the_claimed_50():
    chow = game(zoo.make("chow"))
    half, eighth = Fraction(1, 2), Fraction(1, 8)
    assert attainable(chow) == {
        ((-300, eighth), (100, half), (300, 3 * eighth)),
        ((0, half), (100, half)),
        ((-50, 2 * eighth), (100, half), (250, 2 * eighth)),
    }
    assert optimum(chow, cvar(0.5)) == pytest.approx(25.0)


@pytest.mark.parametrize(
    ("level", "published"), [(1.0, 13.6), (0.9, 13.0), (0.674, 10.99), (0.364, 8.99), (0.115, 5.59)]
)
def test_the_published_values_of_the_betting_chain_are_those_of_always_betting(level, published):
    """Stopping at once has 10 for certain, so 8.99 and 5.59 cannot be best: the optimum does better."""
    chain = game(zoo.make("betting-chain"))
    always = {(step, state): "bet" for step in range(3) for state in range(6)} | {(2, 6): "stop"}
    betting = distribution_of_table(chain, always)
    assert betting == (
        (1, Fraction(27, 1000)),
        (7, Fraction(189, 1000)),
        (13, Fraction(441, 1000)),
        (19, Fraction(343, 1000)),
    )
    assert cvar(level)(betting) == pytest.approx(published, abs=0.01)
    assert optimum(chain, cvar(level)) >= max(published - 0.01, 10.0)


def test_the_mean_of_the_betting_chain_is_three_favourable_bets():
    assert optimum(game(zoo.make("betting-chain")), mean) == pytest.approx(10 + 3 * 3 * (0.7 - 0.3))


def test_a_chain_bet_needs_the_money():
    poor = zoo.make("betting-chain", wealth=4, bet=3, horizon=2, win_probability=0.5)
    assert table(poor) == {
        (1, 4): {"stop": [(1.0, "end", 4.0)], "bet": [(0.5, (2, 7), 0.0), (0.5, (2, 1), 0.0)]},
        (2, 1): {"stop": [(1.0, "end", 1.0)]},
        (2, 7): {"stop": [(1.0, "end", 7.0)], "bet": [(0.5, "end", 10.0), (0.5, "end", 4.0)]},
        "end": {"stop": [(1.0, "end", 0.0)]},
    }


def test_the_betting_game_moves_by_eighths_up_to_the_cap():
    written = table(zoo.make("betting-game", horizon=2))
    assert set(written) == {16 + 2 * k for k in range(-8, 9)} | {"end"}  # what one round reaches, and what ends
    assert written[16][0] == [(0.8, 16, 0.0), (pytest.approx(0.2), 16, 0.0)]
    assert written[16][8] == [(0.8, 32, 16 / 256), (pytest.approx(0.2), 0, -16 / 256)]
    assert written[24][3] == [(0.8, "end", 9 / 256), (pytest.approx(0.2), "end", -9 / 256)]  # to 33, to 15
    assert written[0] == {0: [(1.0, 0, 0.0)]}
    capped = table(zoo.make("betting-game", wealth=16, cap=24, horizon=3))
    assert capped[20][4] == [(0.8, 24, 4 / 24), (pytest.approx(0.2), 10, -10 / 24)]


def test_the_betting_game_lists_just_the_wealths_that_can_be_reached():
    reached = {Fraction(16)}
    every = set(reached)
    for _ in range(3):
        reached = {
            min(money * (1 + sign * Fraction(k, 8)), Fraction(256))
            for money in reached
            for k in range(9)
            for sign in (1, -1)
        }
        every |= reached
    states = zoo.make("betting-game", horizon=4).states
    assert {Fraction(money) for money in states[:-1]} == every


def test_betting_everything_is_best_for_the_mean_while_the_cap_is_far():
    """Three rounds cannot reach the cap, so each time all of it is bet, which multiplies the mean by 1.6."""
    model = zoo.make("betting-game", horizon=3)
    value = best_means(model)[model.states.index(16)]
    assert value == pytest.approx(16 * (1.6**3 - 1) / 256)


def test_the_gambler_at_even_odds_wins_nothing_on_average():
    model = zoo.make("gambler", goal=6, wealth=2, win_probability=0.5, horizon=4)
    assert best_means(model) == pytest.approx(np.zeros(7))
    assert table(model)[4] == {
        stake: [(0.5, 4 + stake, float(stake)), (0.5, 4 - stake, float(-stake))] for stake in (0, 1, 2)
    }
    assert model.return_range() == (-2.0, 4.0)


def test_puterman_s_inventory_has_the_values_of_the_book():
    assert best_means(zoo.make("inventory")) == pytest.approx([67 / 16, 129 / 16, 194 / 16, 227 / 16])


def test_lost_sales_by_hand():
    """Stock 1 and 1 more: 2 in the house cost 2 to hold and 4 + 2 to order; each sold unit pays 8."""
    outcomes = table(zoo.make("inventory"))[1][1]
    assert outcomes == [(0.25, 2, -8.0), (0.5, 1, 0.0), (0.25, 0, 8.0)]
    assert table(zoo.make("inventory"))[0][0] == [(0.25, 0, 0.0), (0.5, 0, 0.0), (0.25, 0, 0.0)]
    assert list(table(zoo.make("inventory"))[3]) == [0]


def test_a_worn_machine_fails_or_is_replaced():
    written = table(zoo.make("machine-replacement", conditions=3, wear=0.25, replacement_cost=4, failure_cost=10))
    assert written == {
        0: {"run": [(0.75, 0, 0.0), (0.25, 1, 0.0)], "replace": [(1.0, 0, -4.0)]},
        1: {"run": [(0.75, 1, -1.0), (0.25, 2, -1.0)], "replace": [(1.0, 0, -4.0)]},
        2: {"run": [(0.75, 2, -2.0), (0.25, 0, -12.0)], "replace": [(1.0, 0, -4.0)]},
    }


def test_riverswim_is_the_chain_of_its_sources():
    assert table(zoo.make("riverswim", states=3)) == {
        1: {"left": [(1.0, 1, 0.005)], "right": [(0.4, 1, 0.0), (0.6, 2, 0.0)]},
        2: {"left": [(1.0, 1, 0.0)], "right": [(pytest.approx(0.05), 1, 0.0), (0.6, 2, 0.0), (0.35, 3, 0.0)]},
        3: {"left": [(1.0, 2, 0.0)], "right": [(0.4, 2, 1.0), (0.6, 3, 1.0)]},
    }
    # Five moves from the first to the last of six states, then a large reward in each of the 15 steps left.
    assert zoo.make("riverswim").return_range() == (0.0, 15.0)


def test_the_cliff_without_slipping_takes_thirteen_steps():
    safe = zoo.make("cliff", slip=0.0)
    assert best_means(safe)[safe.states.index((3, 0))] == -13.0
    assert safe.n_states == 4 * 12 - 10


def test_a_slip_at_the_edge_falls():
    written = table(zoo.make("cliff", rows=2, columns=3, slip=0.5, fall=-9.0))
    assert written == {
        (0, 0): {
            "up": [(0.5, (0, 0), -1.0), (0.25, (0, 0), -1.0), (0.25, (0, 1), -1.0)],
            "right": [(0.5, (0, 1), -1.0), (0.25, (0, 0), -1.0), (0.25, (1, 0), -1.0)],
            "down": [(0.5, (1, 0), -1.0), (0.25, (0, 1), -1.0), (0.25, (0, 0), -1.0)],
            "left": [(0.5, (0, 0), -1.0), (0.25, (1, 0), -1.0), (0.25, (0, 0), -1.0)],
        },
        (0, 1): {
            "up": [(0.5, (0, 1), -1.0), (0.25, (0, 0), -1.0), (0.25, (0, 2), -1.0)],
            "right": [(0.5, (0, 2), -1.0), (0.25, (0, 1), -1.0), (0.25, (1, 0), -9.0)],
            "down": [(0.5, (1, 0), -9.0), (0.25, (0, 2), -1.0), (0.25, (0, 0), -1.0)],
            "left": [(0.5, (0, 0), -1.0), (0.25, (1, 0), -9.0), (0.25, (0, 1), -1.0)],
        },
        (0, 2): {
            "up": [(0.5, (0, 2), -1.0), (0.25, (0, 1), -1.0), (0.25, (0, 2), -1.0)],
            "right": [(0.5, (0, 2), -1.0), (0.25, (0, 2), -1.0), (0.25, (1, 2), -1.0)],
            "down": [(0.5, (1, 2), -1.0), (0.25, (0, 2), -1.0), (0.25, (0, 1), -1.0)],
            "left": [(0.5, (0, 1), -1.0), (0.25, (1, 2), -1.0), (0.25, (0, 2), -1.0)],
        },
        (1, 0): {
            "up": [(0.5, (0, 0), -1.0), (0.25, (1, 0), -1.0), (0.25, (1, 0), -9.0)],
            "right": [(0.5, (1, 0), -9.0), (0.25, (0, 0), -1.0), (0.25, (1, 0), -1.0)],
            "down": [(0.5, (1, 0), -1.0), (0.25, (1, 0), -9.0), (0.25, (1, 0), -1.0)],
            "left": [(0.5, (1, 0), -1.0), (0.25, (1, 0), -1.0), (0.25, (0, 0), -1.0)],
        },
        (1, 2): {"up": [(1.0, (1, 2), 0.0)]},
    }


class TestAmericanPut:
    """On the grid of prices, for each first budget `b`: stopping a pay-off `u(γ^t x - b)`."""

    DISCOUNT = 0.99

    def stopping_values(self, model: TabularMDP, utility) -> np.ndarray:
        """The value at price 1, for a utility that takes a column of prices to a row of budgets."""
        prices = np.array(model.states[:-1])
        payoff = np.maximum(1 - prices, 0)[:, np.newaxis]
        move = to_arrays(model)[0][0, :-1, 1, :-1]
        value = utility(self.DISCOUNT**9 * payoff)
        for step in reversed(range(9)):
            value = np.maximum(utility(self.DISCOUNT**step * payoff), move @ value)
        return value[prices == 1.0][0]

    def cvar(self, model: TabularMDP, level: float) -> float:
        budgets = np.linspace(0, 0.3, 301)
        values = self.stopping_values(model, lambda z: -np.maximum(budgets - z, 0) / level)
        return float((budgets + values).max())

    def test_a_step_of_the_price_has_the_mean_and_variance_of_the_normal(self):
        model = zoo.make("american-put")
        log_price = np.log(np.array(model.states[:-1]))
        row = to_arrays(model)[0][0, model.states.index(1.0), 1, :-1]
        average = row @ log_price
        assert average == pytest.approx((-0.3 - 0.3**2 / 2) * 0.1, abs=1e-6)
        assert row @ (log_price - average) ** 2 == pytest.approx(0.3**2 * 0.1, rel=1e-5)

    def test_waiting_to_the_end_is_worth_the_closed_form_of_the_european_put(self):
        drift, deviation = 9 * -0.0345, 0.3 * math.sqrt(0.9)
        normal = [0.5 * (1 + math.erf(x / math.sqrt(2))) for x in (-drift / deviation, -drift / deviation - deviation)]
        european = self.DISCOUNT**9 * (normal[0] - math.exp(-0.3 * 0.9) * normal[1])
        model = zoo.make("american-put")
        probabilities, rewards = to_arrays(model)
        value = rewards[9, :, 0]
        for _ in range(9):
            value = probabilities[0, :, 1, :] @ value
        assert self.DISCOUNT**9 * value[model.states.index(1.0)] == pytest.approx(european, abs=1e-4)

    @pytest.mark.parametrize(("level", "reference"), [(0.6, 0.1396), (0.5, 0.1169), (0.2, 0.0452), (0.1, 0.0153)])
    def test_cvar_is_near_its_reference(self, level, reference):
        assert self.cvar(zoo.make("american-put"), level) == pytest.approx(reference, abs=1e-3)

    def test_the_mean_is_near_its_reference(self):
        model = zoo.make("american-put")
        assert self.stopping_values(model, lambda z: z)[0] == pytest.approx(0.2369, abs=1e-4)

    def test_more_levels_come_closer(self):
        """The error at level .2, against 401 levels, falls by more than half each time the levels double."""
        values = [self.cvar(zoo.make("american-put", levels=levels), 0.2) for levels in (51, 101, 201, 401)]
        errors = [abs(value - values[-1]) for value in values[:-1]]
        assert all(finer < coarser / 2 for coarser, finer in pairwise(errors))

    def test_the_last_decision_can_only_stop(self):
        model = zoo.make("american-put", levels=51, horizon=4)
        assert set(table(model, 2)[1.0]) == {"stop", "go on"}
        assert set(table(model, 3)[1.0]) == {"stop"}
        assert model.discount == 0.99

    def test_too_few_levels_are_refused(self):
        with pytest.raises(OcerlError, match=r"these prices need at least 31 levels, got 11"):
            zoo.make("american-put", levels=11)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("papper", {}, r"there is no model 'papper' \(did you mean paper\?\); the zoo has paper, chow, "),
        ("xyz", {}, "there is no model 'xyz'; the zoo has paper, chow, "),
        ("Betting_Game", {}, "did you mean betting-game"),
        ("paper", {"tau": 1}, "the model paper has no parameter 'tau'; it has horizon"),
        ("paper", {"horizon": 0}, "the horizon must be a whole number of at least 1, got 0"),
        ("betting-chain", {"horizon": 0}, "the horizon must be a whole number"),
        ("betting-chain", {"win_probability": 1.2}, "the win probability must be between 0 and 1, got 1.2"),
        (
            "betting-chain",
            {"win_probability": math.nan},
            "the win probability must be between 0 and 1, got nan",
        ),
        ("betting-game", {"horizon": 16}, "beyond 53 bits"),
        ("betting-game", {"cap": 8}, "the cap must be a whole number of at least 16, got 8"),
        ("gambler", {"wealth": 16}, "the wealth must be below the goal of 16, got 16"),
        ("american-put", {"volatility": 0}, "the volatility must be a finite number above 0, got 0"),
        ("american-put", {"drift": math.inf}, "the drift must be a finite number, got inf"),
        ("inventory", {"demand": ()}, "the demand needs the probability"),
        ("inventory", {"demand": (0.5, 0.4)}, "state 0, action 0 sum to 0.9"),
        (
            "machine-replacement",
            {"conditions": 1},
            "the number of conditions must be a whole number of at least 2",
        ),
        ("riverswim", {"states": 1}, "the number of states must be a whole number of at least 2, got 1"),
        ("cliff", {"columns": 2}, "the number of columns must be a whole number of at least 3, got 2"),
    ],
)
def test_what_the_zoo_does_not_have_is_refused(name, parameters, message):
    with pytest.raises(OcerlError, match=message):
        zoo.make(name, **parameters)
