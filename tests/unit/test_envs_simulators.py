"""The simulators by hand: the maze's walls, guard and clock, the put's pay-offs, the game's bets and cap."""

import math
from fractions import Fraction
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocerl.envs import AmericanPut, AugmentedEnvironment, BettingGame, GuardedMaze, TimeStep, sample_returns
from ocerl.envs.american_put import GO_ON, STOP, PutState
from ocerl.envs.betting import BettingState
from ocerl.envs.guarded_maze import GOAL, GUARD, WALLS, MazeState, soft_one_hot
from ocerl.errors import OcerlError

KEY = jax.random.key(0)
LEFT, RIGHT, DOWN, UP = range(4)
MAZE = GuardedMaze(noise=0.0)

step_of = eqx.filter_jit(lambda environment, state, action: environment.step(KEY, state, action))
advance = eqx.filter_jit(lambda maze, state, move: maze.advance(state, move))


def at(x: float, y: float, *, step: int = 0, penalty: float = 0.0) -> MazeState:
    return MazeState(jnp.int32(step), jnp.array([x, y], jnp.float32), jnp.float32(penalty))


def walk(state: MazeState, action: int) -> TimeStep[MazeState]:
    return step_of(MAZE, state, jnp.array(action))


def pushed(state: MazeState, *move: float) -> TimeStep[MazeState]:
    return advance(MAZE, state, jnp.array(move, jnp.float32))


def test_the_map() -> None:
    # Drawn with x to the right and y upwards.
    drawn = [
        "########",
        "#......#",
        "#..###.#",
        "#....#.#",
        "#....#.#",
        "#....#G#",
        "#....!.#",
        "########",
    ]
    cells = {(x, 7 - row): mark for row, line in enumerate(drawn) for x, mark in enumerate(line)}
    assert {cell for cell, mark in cells.items() if mark == "#"} == set(zip(*np.nonzero(WALLS), strict=True))
    assert (cells[GUARD], cells[GOAL]) == ("!", "G")


@pytest.mark.parametrize(("action", "after"), [(LEFT, (1, 2)), (RIGHT, (3, 2)), (DOWN, (2, 1)), (UP, (2, 3))])
def test_a_free_step_moves_by_one_and_costs_one(action: int, after: tuple[int, int]) -> None:
    step = walk(at(2, 2, penalty=50.0), action)
    assert step.state.position.tolist() == list(after)
    assert (step.reward.item(), step.terminated.item(), step.state.step.item()) == (-1.0, False, 1)
    assert step.state.penalty.item() == 50.0


@pytest.mark.parametrize(
    ("start", "action"),
    [
        ((4.0, 4.0), RIGHT),  # (5, 4)
        ((4.0, 4.0), UP),  # (4, 5)
        ((1.25, 2.0), LEFT),  # (0, 2), the border
        ((6.0, 6.25), UP),  # would be 7.25, is clipped to 7: the border
        ((4.5, 4.0), RIGHT),  # from cell 4 (half to even) to cell 6, but the midpoint is in (5, 4)
    ],
)
def test_walls_hold_the_walker_back(start: tuple[float, float], action: int) -> None:
    step = walk(at(*start), action)
    assert step.state.position.tolist() == list(start)
    assert (step.reward.item(), step.terminated.item()) == (-1.0, False)


def test_next_to_a_wall_one_may_walk() -> None:
    assert walk(at(2.0, 4.0), UP).state.position.tolist() == [2.0, 5.0]
    assert walk(at(1.75, 2.0), LEFT).state.position.tolist() == [0.75, 2.0]


def test_the_guard_takes_at_most_once() -> None:
    first = walk(at(4, 1, penalty=10.0), RIGHT)
    assert (first.state.position.tolist(), first.reward.item()) == ([5.0, 1.0], -11.0)
    again = walk(first.state, LEFT)
    back = walk(again.state, RIGHT)
    assert (again.reward.item(), back.reward.item()) == (-1.0, -1.0)


def test_staying_in_sight_of_an_absent_guard_is_free() -> None:
    assert walk(at(4, 1), RIGHT).reward.item() == -1.0


def test_the_midpoint_is_seen() -> None:
    # From x = 4.75 to 5.75 (cell 6): only the start and the midpoint, 5.25, are in the guard's cell.
    step = walk(at(4.75, 1.0, penalty=10.0), RIGHT)
    assert (step.state.position.tolist(), step.reward.item()) == ([5.75, 1.0], -11.0)


def test_where_a_step_began_is_not_seen() -> None:
    # From (5.25, 1.25) to (6.25, 1.25): the midpoint, 5.75, and the end are in cell 6.
    assert walk(at(5.25, 1.25, penalty=10.0), RIGHT).reward.item() == -1.0


def test_the_midpoint_of_a_blocked_step_is_seen() -> None:
    # Into the wall (5, 2); the midpoint (4.875, 1.484375) is in the guard's cell, the position (4, 1) is not.
    step = pushed(at(4.375, 1.40625, penalty=10.0), 1.0, 0.15625)
    assert (step.state.position.tolist(), step.reward.item()) == ([4.375, 1.40625], -11.0)
    assert step.state.penalty.item() == 0.0


def test_the_goal_pays_without_the_cost_of_the_step() -> None:
    step = walk(at(6, 3), DOWN)
    assert (step.reward.item(), step.terminated.item()) == (16.0, True)
    assert walk(at(6, 3, step=100), DOWN).reward.item() == 16.0


def test_the_goal_may_be_reached_under_the_guards_eyes() -> None:
    # To (5.65625, 1.625), the goal's cell, by (5.484375, 1.4375), the guard's.
    step = pushed(at(5.3125, 1.25, penalty=10.0), 0.34375, 0.375)
    assert (step.reward.item(), step.terminated.item()) == (6.0, True)


def test_only_the_first_32_steps_cost() -> None:
    assert [walk(at(2, 2, step=step), LEFT).reward.item() for step in (30, 31, 32, 33)] == [-1, -1, 0, 0]


def test_the_horizon_is_the_end() -> None:
    assert [walk(at(2, 2, step=step), LEFT).terminated.item() for step in (158, 159)] == [False, True]


def test_staying_away_is_worth_minus_32() -> None:
    left = lambda key, observation: jnp.array(LEFT)  # noqa: E731
    returns = sample_returns(AugmentedEnvironment(GuardedMaze(noise=0.0), "mean"), left, KEY, 50)
    assert set(returns.tolist()) == {-32.0}


def test_soft_one_hot() -> None:
    weights = np.zeros((8, 8))
    weights[2, 3] = weights[2, 4] = 0.375  # 0.75 · 0.5
    weights[3, 3] = weights[3, 4] = 0.125  # 0.25 · 0.5
    np.testing.assert_array_equal(soft_one_hot(jnp.array([2.25, 3.5])), weights.ravel())


@given(x=st.floats(0, 7, width=32), y=st.floats(0, 7, width=32))
@settings(max_examples=30)
def test_a_position_can_be_read_from_its_soft_one_hot(x: float, y: float) -> None:
    weights = np.asarray(soft_one_hot(jnp.array([x, y]))).reshape(8, 8)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(), 1.0, atol=1e-5)
    np.testing.assert_allclose(np.arange(8) @ weights.sum(axis=1), x, atol=1e-5)
    np.testing.assert_allclose(np.arange(8) @ weights.sum(axis=0), y, atol=1e-5)


def put_step(put: AmericanPut, price: float, step: int, action: int) -> TimeStep[PutState]:
    return step_of(put, PutState(jnp.int32(step), jnp.float32(price)), jnp.array(action))


@pytest.mark.parametrize(
    ("price", "step", "action", "reward", "terminated"),
    [
        (0.75, 3, STOP, 0.25, True),
        (0.75, 3, GO_ON, 0.0, False),
        (1.25, 3, STOP, 0.0, True),
        (0.75, 8, GO_ON, 0.0, False),
        (0.75, 9, GO_ON, 0.25, True),  # the tenth decision stops
        (1.25, 9, GO_ON, 0.0, True),
    ],
)
def test_put_payoffs(price: float, step: int, action: int, reward: float, terminated: bool) -> None:
    taken = put_step(AmericanPut(), price, step, action)
    assert (taken.reward.item(), taken.terminated.item()) == (reward, terminated)


def test_the_price_without_volatility_follows_the_drift() -> None:
    taken = put_step(AmericanPut(volatility=0.0), 0.8, 0, GO_ON)
    assert taken.observation.item() == pytest.approx(0.8 * math.exp(-0.3 * 0.1), rel=1e-6)


def test_the_put_starts_at_the_money() -> None:
    assert AmericanPut().reset(KEY)[1].tolist() == [1.0]
    assert put_step(AmericanPut(), 1.0, 0, STOP).reward.item() == 0.0


def bet(wealth: float, eighths: int, *, win: bool, step: int = 0) -> TimeStep[BettingState]:
    game = BettingGame(win_probability=float(win))
    return step_of(game, BettingState(jnp.int32(step), jnp.float32(wealth)), jnp.array(eighths))


@pytest.mark.parametrize(
    ("wealth", "eighths", "win", "after"),
    [
        (16, 8, True, 32),
        (16, 8, False, 0),
        (16, 0, True, 16),
        (200, 4, True, 256),  # 300, capped
        (200, 3, False, 125),
        (256, 8, True, 256),
        (0, 8, True, 0),
    ],
)
def test_bets(wealth: float, eighths: int, win: bool, after: float) -> None:
    taken = bet(wealth, eighths, win=win)
    assert taken.state.wealth.item() == after
    assert taken.reward.item() == (after - wealth) / 256
    assert taken.observation.tolist() == [after / 256]


def test_the_game_has_six_rounds() -> None:
    assert [bet(16, 1, win=True, step=step).terminated.item() for step in (4, 5)] == [False, True]


@given(rounds=st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=6, max_size=6))
@settings(max_examples=30)
def test_wealth_is_exact(rounds: list[tuple[int, bool]]) -> None:
    wealth = Fraction(16)
    for eighths, win in rounds:
        taken = bet(float(wealth), eighths, win=win)
        stake = wealth * eighths / 8
        after = min(wealth + stake, Fraction(256)) if win else wealth - stake
        assert taken.reward.item() == (after - wealth) / 256
        wealth = after


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: GuardedMaze(noise=-0.1), "noise must be a finite number from 0 to inf, got -0.1"),
        (lambda: GuardedMaze(guard_probability=1.5), "guard_probability must be .* from 0 to 1, got 1.5"),
        (lambda: BettingGame(win_probability=math.nan), "win_probability must be .* got nan"),
        (lambda: BettingGame(horizon=0), "the horizon must be a whole number of at least 1, got 0"),
        (lambda: AmericanPut(discount=1.5), r"the discount must be in \(0, 1\], got 1.5"),
    ],
)
def test_wrong_parameters(build: Any, message: str) -> None:
    with pytest.raises(OcerlError, match=message):
        build()
