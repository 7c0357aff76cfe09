r"""Simulated returns against the planner, an independent simulator and closed forms.

Every bound is of Dvoretzky, Kiefer, Wolfowitz and Massart: a sample of n has
:math:`P(\sup |\hat F - F| > \sqrt{\ln(2/\alpha)/(2n)}) \le \alpha`. Here α is 1e-9 for each comparison, were
the seeds not fixed.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ocerl.envs import (
    AmericanPut,
    AugmentedEnvironment,
    AugmentedObservation,
    GuardedMaze,
    TabularEnvironment,
    sample_returns,
)
from ocerl.envs.american_put import PutState
from ocerl.mdp import random_mdp, zoo
from ocerl.mdp.tabular import TabularMDP
from ocerl.planning import ReturnDistribution, evaluate

EPISODES = 20_000


def bound(samples: int) -> float:
    return math.sqrt(math.log(2 / 1e-9) / (2 * samples))


class MarkovActions(eqx.Module):
    """Actions drawn from probabilities `[step, state, action]`."""

    probabilities: jax.Array

    def __call__(self, key: jax.Array, observation: AugmentedObservation) -> jax.Array:
        return jax.random.choice(
            key,
            self.probabilities.shape[2],
            p=self.probabilities[observation.step, observation.observation],
        )


def simulated(model: TabularMDP, probabilities: np.ndarray) -> np.ndarray:
    environment = AugmentedEnvironment(TabularEnvironment(model), "mean")
    policy = MarkovActions(jnp.asarray(probabilities))
    return np.asarray(sample_returns(environment, policy, jax.random.key(1), EPISODES, 0.0))


def gap(sample: np.ndarray, exact: ReturnDistribution) -> float:
    """The largest difference of the distribution functions, between the atoms."""
    between = exact.values + 1e-4
    return float(np.abs((sample <= between[:, None]).mean(axis=1) - exact.probabilities.cumsum()).max())


@pytest.mark.parametrize("risky", [0.0, 0.3, 1.0])
def test_the_papers_model_returns_what_the_planner_says(risky: float) -> None:
    table = np.broadcast_to([risky, 1 - risky], (2, 3, 2)).copy()
    table[:, 2] = [1.0, 0.0]  # the end has one action
    sample = simulated(zoo.make("paper"), table)
    assert gap(sample, evaluate(zoo.make("paper"), table)) < bound(EPISODES)


def test_another_policy_is_told_apart() -> None:
    # With a1 at s2 the return is 0 in one case of eight, with a2 never.
    table = np.zeros((2, 3, 2))
    table[..., 0] = 1.0
    sample = simulated(zoo.make("paper"), table)
    other = evaluate(zoo.make("paper"), np.array([[0, 1, 0], [0, 1, 0]]))
    assert gap(sample, other) > 0.1


@pytest.mark.parametrize("joint", [True, False])
def test_random_models_return_what_the_planner_says(joint: bool) -> None:
    model = random_mdp(4, states=4, actions=3, horizon=4, joint=joint, per_step=True, random_start=True)
    table = np.random.default_rng(0).dirichlet(np.ones(3), size=(4, 4))
    assert gap(simulated(model, table), evaluate(model, table)) < bound(EPISODES)


def normal_cdf(values: np.ndarray) -> np.ndarray:
    return np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in values])


def test_the_price_is_a_geometric_brownian_motion() -> None:
    put, state = AmericanPut(), PutState(jnp.int32(0), jnp.float32(0.9))
    keys = jax.random.split(jax.random.key(2), EPISODES)
    price = jax.vmap(put.step, (0, None, None))(keys, state, jnp.array(0)).state.price
    growth = np.sort(np.log(np.asarray(price, dtype=float) / 0.9))
    exact = normal_cdf((growth - (-0.3 - 0.045) * 0.1) / (0.3 * math.sqrt(0.1)))
    assert np.abs(np.arange(1, EPISODES + 1) / EPISODES - exact).max() < bound(EPISODES) + 1e-4


def test_the_hidden_penalty() -> None:
    maze = GuardedMaze()
    state, _ = jax.vmap(maze.reset)(jax.random.split(jax.random.key(3), EPISODES))
    penalty, position = np.sort(np.asarray(state.penalty, dtype=float)), np.asarray(state.position)
    assert position.min() >= 0.6
    assert position.max() <= 3.6
    # 16 g c, with g ~ Ber(0.2) and c exponential of mean 2: P(X > x) = 0.2 exp(-x / 32) for x >= 0.
    exact = 1 - 0.2 * np.exp(-penalty / 32)
    empirical = np.searchsorted(penalty, penalty, side="right") / EPISODES
    assert np.abs(empirical - exact).max() < bound(EPISODES)
    uniform = np.sort((position - 0.6) / 3, axis=0)
    assert np.abs(uniform - np.linspace(0, 1, EPISODES)[:, None]).max() < bound(EPISODES) + 1e-4


def short_way(x: Any, y: Any, where: Any) -> Any:
    """To the right, down to the guard's row, along it, and up to the goal."""
    last = where(y > 2, 2, 3)
    return where(x > 5.5, last, where((x < 3.2) | (y < 1.5), 1, 2))


def long_way(x: Any, y: Any, where: Any) -> Any:
    """Up on the left, along the top, and down to the goal."""
    last = where(y > 2, 2, 3)
    return where(x > 5.5, last, where(y > 5.5, 1, where(x > 2.4, 0, 3)))


class Walk(eqx.Module):
    """A way as a policy: it reads the position from the soft one-hot."""

    way: Any = eqx.field(static=True)

    def __call__(self, key: jax.Array, observation: AugmentedObservation) -> jax.Array:
        weights = observation.observation.reshape(8, 8)
        cells = jnp.arange(8)
        return self.way(cells @ weights.sum(axis=1), cells @ weights.sum(axis=0), jnp.where)


def maze_returns(way: Any, seed: int) -> np.ndarray:
    """The maze once more, with a map of text and all episodes side by side."""
    rows = ("########", "#....!.#", "#....#G#", "#....#.#", "#....#.#", "#..###.#", "#......#", "########")
    cell = np.array([list(row) for row in rows]).T  # cell[x, y]
    random = np.random.default_rng(seed)
    x, y = random.uniform(0.6, 3.6, (2, EPISODES))
    guard = np.where(random.random(EPISODES) < 0.2, 16 * random.exponential(2.0, EPISODES), 0.0)
    total, alive = np.zeros(EPISODES), np.ones(EPISODES, dtype=bool)
    for time in range(160):
        action = way(x, y, np.where)
        new_x = x + np.choose(action, [-1, 1, 0, 0]) + random.normal(0, 0.2, EPISODES)
        new_y = y + np.choose(action, [0, 0, -1, 1]) + random.normal(0, 0.2, EPISODES)
        new_x, new_y = new_x.clip(0, 7), new_y.clip(0, 7)
        middle = cell[np.rint((x + new_x) / 2).astype(int), np.rint((y + new_y) / 2).astype(int)]
        free = (cell[np.rint(new_x).astype(int), np.rint(new_y).astype(int)] != "#") & (middle != "#")
        x, y = np.where(free, new_x, x), np.where(free, new_y, y)
        here = cell[np.rint(x).astype(int), np.rint(y).astype(int)]
        met = alive & ((here == "!") | (middle == "!"))
        total -= np.where(met, guard, 0.0)
        guard[met] = 0.0
        goal = alive & (here == "G")
        total += np.where(goal, 16.0, np.where(alive & (time < 32), -1.0, 0.0))
        alive &= ~goal
    return total


@pytest.mark.parametrize("way", [short_way, long_way])
def test_the_maze_against_another_simulator(way: Any) -> None:
    environment = AugmentedEnvironment(GuardedMaze(), "mean")
    ours = np.sort(np.asarray(sample_returns(environment, Walk(way), jax.random.key(4), EPISODES)))
    theirs = np.sort(maze_returns(way, seed=5))
    values = np.concatenate((ours, theirs)) + 1e-4
    apart = np.searchsorted(ours, values) - np.searchsorted(theirs, values)
    assert np.abs(apart).max() / EPISODES < 2 * bound(EPISODES)


def test_the_short_way_has_the_better_mean_and_the_worse_tail() -> None:
    environment = AugmentedEnvironment(GuardedMaze(), "mean")
    short, long = (
        np.sort(np.asarray(sample_returns(environment, Walk(way), jax.random.key(4), EPISODES)))
        for way in (short_way, long_way)
    )
    worst = EPISODES // 20
    assert short.mean() > long.mean()
    assert short[:worst].mean() < -50
    # Near-optimal policies reach a mean of 3.91 and a CVaR_.05 of -4.70 (a dynamic program over cells of 0.1);
    # these rules of thumb come close. The standard error of the mean is 0.14.
    assert 2.9 < short.mean() < 4.3
    assert -8 < long[:worst].mean() < -4.2
