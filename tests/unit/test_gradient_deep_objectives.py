"""Advantages against a double loop, and what the oracles' gradients are by hand."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from ocerl.gradient.deep.actions import Softmax
from ocerl.gradient.deep.agent import Agent
from ocerl.gradient.deep.config import DeepConfig
from ocerl.gradient.deep.inputs import Features, Inputs
from ocerl.gradient.deep.objectives import Sample, Weights, advantages, divergence, loss

KL, BARRIER = 0.7, 0.3
WEIGHTS = Weights(jnp.float32(KL), jnp.float32(BARRIER))


def estimated(payoff: Any, ended: Any, value: Any, last: Any, gae_lambda: float) -> np.ndarray:
    """By the definition: the λ-weighted sum of temporal differences, each found on its own."""
    steps, lanes = payoff.shape
    found = np.zeros((steps, lanes))
    for lane in range(lanes):
        for t in range(steps):
            weight = 1.0
            for k in range(t, steps):
                after = 0.0 if ended[k, lane] else (value[k + 1, lane] if k + 1 < steps else last[lane])
                found[t, lane] += weight * (payoff[k, lane] + after - value[k, lane])
                if ended[k, lane]:
                    break
                weight *= gae_lambda
    return found


@pytest.mark.parametrize("gae_lambda", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("steps", [1, 13])
def test_advantages_are_their_definition(gae_lambda: float, steps: int) -> None:
    rng = np.random.default_rng(3)
    payoff, value = rng.normal(size=(2, steps, 4))
    ended, last = rng.random((steps, 4)) < 0.3, rng.normal(size=4)
    found = advantages(*(jnp.asarray(x) for x in (payoff, ended, value, last)), gae_lambda)
    np.testing.assert_allclose(found, estimated(payoff, ended, value, last, gae_lambda), atol=1e-5)


def agent_and_sample(number: int = 6) -> tuple[Agent, Sample]:
    """A network that is not uniform, and steps it took itself."""
    inputs = Inputs.of(spaces.Discrete(3), time_knots=np.arange(2.0), knots=np.array([0.0, 1.0]))
    agent = Agent(jax.random.key(0), inputs, Softmax(3), hidden=(5,), critic="q")
    agent = jax.tree.map(lambda w: w + 0.5 * jax.random.normal(jax.random.key(w.size), w.shape), agent)
    rng = np.random.default_rng(0)
    features = Features(jnp.float32(rng.normal(size=(number, 5))), jnp.float32(rng.normal(size=(number, 3))), ())
    action = jnp.asarray(rng.integers(3, size=number))
    advantage, target = jnp.float32(rng.normal(size=(2, number)))
    return agent, Sample(features, action, agent.parameters(features), advantage, target)


def gradient(oracle: Any, weights: Weights = WEIGHTS, **settings: Any) -> Any:
    agent, sample = agent_and_sample()
    config = DeepConfig(oracle=oracle, **settings)
    return eqx.filter_grad(lambda agent: loss(agent, sample, weights, config)[0])(agent)


def by_hand(barrier: float) -> Any:
    """Of minus the mean of A log π, less the barrier, plus half the critic's squared error."""
    agent, sample = agent_and_sample()

    def total(agent: Agent) -> jax.Array:
        logits = agent.actor(sample.features)
        chance = jnp.exp(logits) / jnp.exp(logits).sum(axis=-1, keepdims=True)
        steps = jnp.arange(sample.action.size)
        gain = (sample.advantage * jnp.log(chance[steps, sample.action])).mean()
        error = ((agent.critic(sample.features)[steps, sample.action] - sample.target) ** 2).mean()
        return -gain - barrier * jnp.log(chance).mean() + 0.5 * error

    return eqx.filter_grad(total)(agent)


def assert_same(found: Any, expected: Any) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), found, expected)


@pytest.mark.parametrize("oracle", ["reinforce", "ppo-forward", "ppo-backward"])
def test_where_the_policy_is_the_old_one_all_oracles_have_reinforces_gradient(oracle: str) -> None:
    assert_same(gradient(oracle), by_hand(BARRIER))
    assert_same(gradient(oracle, clip=0.2), by_hand(BARRIER))
    assert_same(gradient(oracle, Weights(jnp.float32(KL), jnp.float32(0.0))), by_hand(0.0))


def two_actions(old: float, new: float, advantage: float, **settings: Any) -> float:
    """The oracle's gain at one step whose action, of two, was taken with probability `old`, and is now with `new`."""
    agent, sample = agent_and_sample(1)
    before, after = (jnp.log(jnp.array([[p, 1 - p, 1e-30]])) for p in (old, new))
    bias = agent.actor.body.last.bias
    still = jax.tree.map(jnp.zeros_like, agent)
    agent = eqx.tree_at(lambda a: a.actor.body.last.bias, still, after[0].astype(bias.dtype))
    sample = sample._replace(action=jnp.array([0]), old=before, advantage=jnp.array([advantage]), target=jnp.zeros(1))
    weights = Weights(jnp.float32(settings.pop("kl", 0.0)), jnp.float32(0.0))
    return -loss(agent, sample, weights, DeepConfig(**settings))[0].item()


@pytest.mark.parametrize(
    ("old", "new", "advantage", "clipped"),
    [
        (0.5, 0.55, 2.0, 2.2),
        (0.5, 0.75, 2.0, 2.4),  # no more is gained beyond 1.2
        (0.5, 0.25, 2.0, 1.0),
        (0.5, 0.25, -2.0, -1.6),  # nor below 0.8
        (0.5, 0.75, -2.0, -3.0),
    ],
)
def test_the_clip(old: float, new: float, advantage: float, clipped: float) -> None:
    assert two_actions(old, new, advantage, clip=0.2) == pytest.approx(clipped, rel=1e-5)
    assert two_actions(old, new, advantage) == pytest.approx(new / old * advantage, rel=1e-5)


def test_forward_and_backward_divergence() -> None:
    """From (1/2, 1/2) to (1/4, 3/4): forward ½ log 2 + ½ log ⅔ = ½ log 4/3, backward ¼ log ½ + ¾ log 3/2."""
    forward, backward = np.log(4 / 3) / 2, 0.75 * np.log(3) - np.log(2)
    assert forward != pytest.approx(backward, rel=0.05)
    old, new = (jnp.log(jnp.array([p, 1 - p])) for p in (0.5, 0.25))
    assert divergence(Softmax(2), DeepConfig(oracle="ppo-forward"), old, new).item() == pytest.approx(forward, rel=1e-5)
    assert divergence(Softmax(2), DeepConfig(oracle="ppo-backward"), old, new).item() == pytest.approx(
        backward, rel=1e-5
    )
    for oracle, expected in (("ppo-forward", forward), ("ppo-backward", backward)):
        found = two_actions(0.5, 0.25, 0.0, kl=0.7, oracle=oracle)
        assert found == pytest.approx(-0.7 * expected, rel=1e-4)
