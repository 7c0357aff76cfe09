"""The benchmark's CartPole is Gymnasium's."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cartpole import CartPole, CartPoleState


def test_steps_are_gymnasiums() -> None:
    """From 2000 states within and beyond the limits."""
    random = np.random.default_rng(0)
    states = random.uniform(-1, 1, (2000, 4)) * [3.0, 3.0, 0.3, 3.0]
    actions = random.integers(0, 2, 2000)
    pole = CartPole()

    def step(physics: jax.Array, action: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        taken = pole.step(jax.random.key(0), CartPoleState(jnp.int32(0), physics), action)
        return taken.observation, taken.reward, taken.terminated

    found = jax.jit(jax.vmap(step))(jnp.asarray(states, jnp.float32), jnp.asarray(actions))
    theirs = gymnasium.make("CartPole-v1").unwrapped
    for state, action, observation, reward, terminated in zip(states, actions, *map(np.asarray, found), strict=True):
        theirs.reset()
        theirs.state = state
        expected = theirs.step(action)
        assert observation == pytest.approx(expected[0], abs=2e-6)
        assert (reward, terminated) == expected[1:3]


def test_the_spaces_and_the_horizon_are_gymnasiums() -> None:
    theirs, pole = gymnasium.make("CartPole-v1"), CartPole()
    assert pole.observation_space == theirs.observation_space
    assert pole.action_space == theirs.action_space
    assert theirs.spec is not None
    assert pole.horizon == theirs.spec.max_episode_steps


def test_an_episode_ends_at_the_horizon() -> None:
    upright = CartPoleState(jnp.int32(498), jnp.zeros(4))
    first = CartPole().step(jax.random.key(0), upright, jnp.array(0))
    second = CartPole().step(jax.random.key(0), first.state, jnp.array(1))
    assert (first.terminated.item(), second.terminated.item()) == (False, True)


def test_starts_are_gymnasiums() -> None:
    _, starts = jax.vmap(CartPole().reset)(jax.random.split(jax.random.key(0), 4000))
    assert np.abs(starts).max() <= 0.05
    assert np.asarray(starts.std(axis=0)) == pytest.approx(0.1 / 12**0.5, rel=0.05)
