"""The neural class: its likelihood finds the model behind the vectors, its bonus counts, and Rep-UCB plans with it."""

from __future__ import annotations

import numpy as np
import pytest

from ocerl.conformance.optimism import optimal_values
from ocerl.errors import OcerlError
from ocerl.mdp.rich import VectorMDP, low_rank_vectors
from ocerl.optimistic import explore
from ocerl.optimistic.meta import optimism
from ocerl.optimistic.neural_class import NeuralClass, NeuralConfig
from ocerl.optimistic.problem import learning_lattice
from ocerl.optimistic.rich import learner
from ocerl.optimistic.vectors import VectorConfig, VectorJudge, VectorPolicy
from ocerl.planning import evaluate, plan
from ocerl.planning.policy import MarkovPolicy
from ocerl.risk import parse_risk

WORLD = low_rank_vectors(states=8, horizon=3)
RISK = parse_risk("cvar:0.25")
SMALL = VectorConfig(hidden=(32,), restarts=2, iterations=150, cosines=128, batch=128)


def uniform_data(world: VectorMDP, models: NeuralClass, count: int) -> None:
    """So many transitions in each step, from states and actions drawn uniformly."""
    random, inner = np.random.default_rng(0), world.inner
    for step in range(models.steps):
        for _ in range(count):
            state, action = int(random.integers(inner.n_states)), int(random.integers(inner.n_actions))
            latent = random.choice(inner.rank, p=inner.features[step, state, action])
            after = random.choice(inner.n_states, p=inner.measures[step, latent])
            before = world.observe(np.array(state), random)
            models.add(step, before, action, world.observe(np.array(after), random))
    models.calibrate(np.stack([row[2] for row in models.seen[0]])[:200])


def test_the_likelihood_finds_the_model() -> None:
    """The next state's distribution, as read off the weights on seen observations, against the true one."""
    models = NeuralClass(2, 4, 8, NeuralConfig(), seed=0)
    uniform_data(WORLD, models, 600)
    before = models.fit().max(axis=0)
    assert (models.fit().max(axis=0) > before - 0.05).all()
    fitted, random = models.snapshot(), np.random.default_rng(1)
    for step in range(2):
        after = np.stack([row[2] for row in models.seen[step]])
        state = np.abs(after[:, None] - WORLD.points[None]).max(axis=2).argmin(axis=1)
        features = fitted.features(step, WORLD.observe(np.arange(8), random))
        weights = fitted.weights(step, after)
        np.testing.assert_allclose(features.sum(axis=-1), 1.0)
        np.testing.assert_allclose(weights.sum(axis=1), 1.0)
        apart = features @ (weights @ np.eye(8)[state]) - WORLD.inner.features[step] @ WORLD.inner.measures[step]
        assert np.abs(apart).sum(axis=-1).mean() / 2 < 0.12, "sqrt(8 / 19) / 2 would be counting by pair"


def test_the_doubt_counts_visits() -> None:
    """With one kernel width between clusters and noise it is about `c / sqrt(1 + N)`, for each action by itself."""
    made = learner(WORLD, "repucb", RISK, 0, config=SMALL)
    plain = made.oracle.planning(0.0, 0.3)[0]
    observed = np.stack([row[0] for row in made.oracle.models.seen[0]])
    tried = np.array([row[1] for row in made.oracle.models.seen[0]])
    found = plain.bonus(0, observed[:1], plain.model.features(0, observed[:1]))[0]
    # All first observations are of the start.
    np.testing.assert_allclose(found, 0.3 / np.sqrt(1 + np.bincount(tried, minlength=4)), rtol=0.25)
    far = WORLD.points[5:6]
    assert plain.bonus(0, far, plain.model.features(0, far)).min() > 0.25


def test_a_policy_is_judged_by_its_states_when_there_is_no_noise() -> None:
    """Without noise a policy for the mean, which has one budget, is a Markov policy on states."""
    world = low_rank_vectors(states=8, horizon=3, noise=0.0)
    made = learner(world, "repucb", parse_risk("mean"), 0, config=SMALL)
    policy = made.recommend(made.oracle)
    slots = np.stack([policy.plan.at(step, world.points)[1][:, 0] for step in range(3)]).astype(np.int64)
    model = world.inner.model()
    table = evaluate(model, MarkovPolicy(model, slots))
    judged = VectorJudge(world, draws=2)(policy)
    np.testing.assert_allclose(judged.values, table.values)
    np.testing.assert_allclose(judged.probabilities, table.probabilities, atol=1e-12)


def test_optimism_and_what_it_finds() -> None:
    """Its claims, with the slack `H sqrt(A L / k)` of the theorem, and the recommended policy, on the smallest lock."""
    made = learner(WORLD, "repucb", RISK, 0, config=SMALL)
    lattice, short = learning_lattice(WORLD.inner.model()), list[float]()

    def watch(number: int, _: float, budgets: np.ndarray, values: np.ndarray) -> None:
        slack = 3 * np.sqrt(4 / (number + 1))
        short.append(float((optimal_values(lattice, RISK, budgets) - slack - values).max()))

    optimism(made.oracle, made.play, 150, observe=watch)
    assert np.mean(np.array(short) <= 1e-9) >= 0.95
    best = plan(WORLD.inner.expanded, RISK).value
    assert made.worth(made.recommend(made.oracle)) >= 0.9 * best


def test_a_seed_decides_everything_and_policies_outlive_updates() -> None:
    one, same = (learner(WORLD, "repucb", RISK, 3, config=SMALL) for _ in range(2))
    first: VectorPolicy = one.next_policy()[0]
    observed = WORLD.observe(np.arange(8), np.random.default_rng(0))
    before = first.plan.at(1, observed)[1].copy()
    for made in (one, same):
        optimism(made.oracle, made.play, 8)
    np.testing.assert_array_equal(first.plan.at(1, observed)[1], before)
    np.testing.assert_array_equal(one.oracle.values()[1], same.oracle.values()[1])
    assert one.oracle.plan is not first.plan


def test_bad_input() -> None:
    for oracle in ("golf", "ucbvi"):
        with pytest.raises(OcerlError, match="seen in vectors: explore it with repucb"):
            explore(WORLD, "mean", oracle=oracle, rounds=2)
    with pytest.raises(OcerlError, match="the rank must be a whole number of at least 1"):
        NeuralConfig(rank=0)
    with pytest.raises(OcerlError, match="rate and width must be positive"):
        NeuralConfig(rate=0.0)
    with pytest.raises(OcerlError, match="alpha and growth must be at least 0"):
        VectorConfig(alpha=-1.0)
    with pytest.raises(OcerlError, match="needs transitions in every step"):
        NeuralClass(1, 2, 3).fit()
    with pytest.raises(OcerlError, match="observations to scale its inputs by"):
        NeuralClass(1, 2, 3).calibrate(np.zeros((1, 3)))
