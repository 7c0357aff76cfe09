"""One update, part by part: units, control variates, averages, the KL weight."""

from __future__ import annotations

from math import comb
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
from ocerl.gradient.deep.learner import Batch, LearnerState, averaged, init, less_common_chance, scaled, update

FEW = 20
"""So many steps at a knot count as much as the whole batch."""


def test_advantages_are_centred_and_scaled_at_each_knot() -> None:
    """Two knots whose pay-offs differ by a factor of 1000 and a shift: with many steps both end at unit size."""
    rng = np.random.default_rng(0)
    many = 20_000
    knot = np.arange(2 * many) % 2
    advantage = np.where(knot == 1, 5000 + 1000 * rng.normal(size=2 * many), rng.normal(size=2 * many) - 3)
    found = np.asarray(scaled(jnp.float32(advantage), jnp.float32(np.eye(2)[knot])))
    for one in range(2):
        own = found[knot == one]
        assert abs(own.mean()) < 0.05
        # The lean on the whole batch weighs 20 in 20 020 steps, but its square is up to 500 000 times as large.
        lean = FEW * (1000.0**2 / 2) / (many + FEW)
        expected = 1 if one else 1 / (1 + lean) ** 0.5
        assert own.std() == pytest.approx(expected, rel=0.05)
    assert np.corrcoef(found[knot == 1], advantage[knot == 1])[0, 1] > 0.9999


def test_the_units_of_advantages_by_hand() -> None:
    """Three steps, two knots, the second step half at each."""
    advantage, hats = [3.0, -1.0, 4.0], [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    steps = [1.5 + FEW, 1.5 + FEW]
    means = [(3 - 0.5) / steps[0], (-0.5 + 4) / steps[1]]
    centred = [a - sum(h * m for h, m in zip(hat, means, strict=True)) for a, hat in zip(advantage, hats, strict=True)]
    whole = sum(c * c for c in centred) / 3
    squares = [
        (sum(c * c * hat[k] for c, hat in zip(centred, hats, strict=True)) + FEW * whole) / steps[k] for k in range(2)
    ]
    sizes = [sum(h * s for h, s in zip(hat, squares, strict=True)) ** 0.5 for hat in hats]
    expected = [c / size for c, size in zip(centred, sizes, strict=True)]
    np.testing.assert_allclose(scaled(jnp.array(advantage), jnp.array(hats)), expected, rtol=1e-5)


def test_what_is_common_is_taken_off_without_moving_the_expected_gradient() -> None:
    """A bandit whose arms pay 0 and 1, plus noise that all of a group share, played with probability 1/2 each.

    The score of the second arm is ±1/2; the expected gradient is Σ_a π(a) score(a) r(a) = 1/4. Over 2000 batches
    the two means are within 5 standard errors of it, and the variance falls to less than a third.
    """
    groups, group, batches = 64, 4, 2000
    rng = np.random.default_rng(0)
    action = rng.integers(2, size=(batches, groups * group))
    common = np.repeat(3 * rng.normal(size=(batches, groups)), group, axis=1)
    advantage = jnp.float32(action - 0.5 + common)
    score = action - 0.5
    plain = (score * np.asarray(advantage)).mean(axis=1)
    less = (score * np.asarray(jax.vmap(lambda a: less_common_chance(a[None], group)[0])(advantage))).mean(axis=1)
    for found in (plain, less):
        assert abs(found.mean() - 0.25) < 5 * found.std() / batches**0.5
    assert less.var() < plain.var() / 3


def test_with_nothing_in_common_little_is_taken_off() -> None:
    advantage = jnp.float32(np.random.default_rng(0).normal(size=(100, 64)))
    assert float(jnp.abs(less_common_chance(advantage, 4) - advantage).max()) < 0.2


def test_others_of_the_group_are_what_is_taken_off_by_hand() -> None:
    """Groups (1, 3) and (2, -1): the others are (3, 1, -1, 2), β = (3 + 3 - 2 - 2) / (9 + 1 + 1 + 4) = 2/15."""
    found = less_common_chance(jnp.array([[1.0, 3.0, 2.0, -1.0]]), 2)
    np.testing.assert_allclose(found, [np.array([1, 3, 2, -1]) - 2 / 15 * np.array([3, 1, -1, 2])], rtol=1e-5)


INPUTS = Inputs.of(spaces.Discrete(2), time_knots=np.arange(2.0), knots=np.array([0.0, 1.0]))
SMALL: dict[str, Any] = {"environments": 2, "rollout": 4, "minibatches": 1, "epochs": 1, "hidden": (), "group": 1}


def learner(**settings: Any) -> tuple[LearnerState, DeepConfig]:
    config = DeepConfig(**{**SMALL, **settings})
    agent = Agent(jax.random.key(0), INPUTS, Softmax(2), hidden=config.hidden, critic="q")
    return init(jax.random.key(1), INPUTS, agent, config), config


def test_the_average_is_the_polynomial_one() -> None:
    """Of the K agents so far, the j-th has the weight C(j + 7, 8) / C(K + 8, 9) (all of them sum to 1)."""
    state, _ = learner()
    total = 12
    agents = [
        jax.tree.map(lambda w, j=j: jnp.sin(w + 3.0 * j) if eqx.is_inexact_array(w) else w, state.agent)
        for j in range(1, total + 1)
    ]
    average = state.agent
    for number, agent in enumerate(agents):
        average = averaged(average, agent, jnp.int32(number))
    weights = [comb(j + 7, 8) / comb(total + 8, 9) for j in range(1, total + 1)]
    assert sum(weights) == pytest.approx(1.0)
    expected = sum(w * agent.critic.body.last.weight for w, agent in zip(weights, agents, strict=True))
    np.testing.assert_allclose(average.critic.body.last.weight, expected, rtol=1e-4, atol=1e-6)


def batch(state: LearnerState, payoff: float) -> Batch:
    """One state; action 1 pays. Actions alternate."""
    features = Features(jnp.ones((4, 2, 4)), jnp.ones((4, 2, 3)), ())
    action = jnp.arange(8).reshape(4, 2) % 2
    parameters = state.agent.parameters(features)
    last = jax.tree.map(lambda x: x[0], features)
    return Batch(features, action, parameters, payoff * action, jnp.ones((4, 2), dtype=bool), last)


@pytest.mark.parametrize(
    ("target", "rate", "factor"), [(None, 0.5, 1.0), (1e-9, 0.5, 2.0), (1e3, 0.5, 0.5)], ids=["fixed", "far", "near"]
)
def test_the_kl_weight_goes_the_right_way(target: float | None, rate: float, factor: float) -> None:
    """A divergence above the target makes it dearer, one below it cheaper."""
    state, config = learner(kl_target=target, learning_rate=rate, epochs=2, steps=80)
    after, metrics = update(state, batch(state, 1.0), config)
    assert float(metrics.kl) > 1e-8
    assert after.kl_weight.item() == pytest.approx(config.kl_weight * factor)


def test_an_update_makes_what_pays_likelier_and_counts_itself() -> None:
    state, config = learner(learning_rate=0.05, steps=80)
    given = batch(state, 1.0)
    after, _ = update(state, given, config)
    before, now = (x.agent.parameters(given.features)[0, 0, 1].item() for x in (state, after))
    assert now > before
    assert after.updates.item() == 1
    # The first average is the first agent.
    assert eqx.tree_equal(after.average, after.agent, rtol=1e-4, atol=1e-6)


def test_steps_and_barrier_fall_linearly() -> None:
    """Adam's first step is the rate itself, for every weight with a gradient: 1, and at half of the run 0.55 of it."""
    state, config = learner(learning_rate=0.01, final_rate=0.1, steps=80, barrier=0.0)
    moved: list[float] = []
    for made in (0, 5):
        late = state._replace(updates=jnp.int32(made))
        after, _ = update(late, batch(late, 1.0), config)
        change = after.agent.actor.body.last.bias - state.agent.actor.body.last.bias
        moved.append(float(jnp.abs(change).max()))
    assert moved == pytest.approx([0.01, 0.01 * (1 - 0.9 * 5 / 10)], rel=1e-3)
