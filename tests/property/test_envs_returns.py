"""The possible returns of a model are those of all its histories."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings

from brute_force import Game, State
from ocerl.envs import TabularEnvironment
from support.games import games


def returns_of_histories(game: Game) -> list[float]:
    reached: set[tuple[State, Fraction]] = {(state, Fraction(0)) for state, p in game.start.items() if p}
    for step in range(game.horizon):
        reached = {
            (after, earned + reward)
            for state, earned in reached
            for action in game.choices(step, state)
            for _, after, reward in game.outcomes(step, state, action)
        }
    return sorted({float(earned) for _, earned in reached})


@given(game=games(discounts=(Fraction(1), Fraction(1, 2))))
@settings(max_examples=60)
def test_the_support_is_what_histories_reach(game: Game) -> None:
    environment = TabularEnvironment(game.model())
    expected = returns_of_histories(game)
    assert environment.return_support is not None
    np.testing.assert_allclose(environment.return_support, expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(environment.return_range, (expected[0], expected[-1]), rtol=0, atol=1e-9)
