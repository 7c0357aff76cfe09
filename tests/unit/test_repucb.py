"""Rep-UCB: likelihoods and the bonus by hand, its planning against the planner, its data, and its factorisation."""

from __future__ import annotations

import numpy as np
import pytest

from ocerl.errors import OcerlError
from ocerl.mdp import TabularMDP, random_mdp, zoo
from ocerl.mdp.rich import low_rank_lock, random_low_rank
from ocerl.optimistic import repucb
from ocerl.optimistic.low_rank import LowRankJudge, LowRankWorld, low_rank_problem, low_rank_rewards
from ocerl.optimistic.meta import optimism
from ocerl.optimistic.model_class import FactorClass, FeatureClass, FiniteClass
from ocerl.optimistic.problem import learning_lattice
from ocerl.optimistic.repucb import RepUcbConfig, Transition, gather
from ocerl.optimistic.rich import learner, with_all_actions
from ocerl.planning import evaluate, plan
from ocerl.risk import parse_risk

WORLD = random_low_rank(4, states=8, actions=2, horizon=4, rank=2)


def oracle_of(world=WORLD, risk="cvar:0.3", config=RepUcbConfig(alpha=0.0), models=None):  # noqa: B008
    models = FiniteClass(world.feature_class, world.measure_class) if models is None else models
    return repucb.init(config, low_rank_problem(world), parse_risk(risk), models, low_rank_rewards(world), start=0)


@pytest.mark.parametrize("risk", ["mean", "cvar:0.3", "mean-cvar:0.5,0.2"])
@pytest.mark.parametrize("seed", range(3))
def test_with_the_true_model_and_no_bonus_it_plans_as_the_planner_does(seed: int, risk: str) -> None:
    world = random_low_rank(seed, states=7, actions=3, horizon=4, rank=3)
    oracle = oracle_of(world, risk)
    budgets, values = oracle.values()
    optimum = plan(world.model(), risk).value
    assert (budgets + values).max() == pytest.approx(optimum, abs=1e-9)
    policy = repucb.recommend(oracle)
    judged = LowRankJudge(world)(policy).certainty_equivalent(parse_risk(risk))
    assert judged == pytest.approx(optimum, abs=1e-9)


def test_a_policy_is_judged_as_on_the_table() -> None:
    oracle = oracle_of()
    policy = oracle.policy(float(oracle.values()[0][1]))
    lattice = learning_lattice(WORLD.model())
    table = evaluate(lattice.model, policy.on(lattice))
    expanded = LowRankJudge(WORLD)(policy)
    np.testing.assert_allclose(table.values, expanded.values)
    np.testing.assert_allclose(table.probabilities, expanded.probabilities, atol=1e-12)


def test_the_likelihood_by_hand() -> None:
    """Two φ and two μ over two states: after 0 → 1 its probabilities, then products of two; 1 → 0 decides."""
    certain, other = np.eye(2)[:, None, :], np.eye(2)[::-1, None, :]
    features = np.stack([certain, other])[:, None]
    measures = np.array([[[[0.8, 0.2], [0.1, 0.9]]], [[[0.1, 0.9], [0.8, 0.2]]]])
    models = FiniteClass(features, measures)
    models.add(0, 0, 0, 1)
    np.testing.assert_allclose(np.exp(models.likelihood[0]), [[0.2, 0.9], [0.9, 0.2]])
    models.add(0, 1, 0, 1)
    np.testing.assert_allclose(np.exp(models.likelihood[0]), [[0.18, 0.18], [0.18, 0.18]])
    models.add(0, 1, 0, 0)
    assert models.chosen == [(0, 1)]
    np.testing.assert_allclose(models.fit()[1][0], measures[1, 0])


def test_the_bonus_by_hand() -> None:
    """One-hot features: Σ is diagonal with the visits and λ = 1, so the bonus is α / sqrt(1 + n)."""
    features = np.eye(2)[None, None, :, None, :].repeat(3, axis=1)
    measures = np.full((1, 3, 2, 2), 0.5)
    world = random_low_rank(0, states=2, actions=1, horizon=3, rank=2)
    oracle = oracle_of(world, "mean", RepUcbConfig(alpha=0.6, growth=9.0), FiniteClass(features, measures))
    oracle.update([Transition(0, 0, 0, 1, second=False)] * 3 + [Transition(0, 0, 0, 1, second=True)])
    assert oracle.visits[0, :, 0].tolist() == [3.0, 0.0]
    bonus = oracle._bonus(0, oracle.models.fit()[0][0], 0.6)
    assert bonus[:, 0].tolist() == pytest.approx([0.3, 0.6])
    assert oracle._bonus(0, oracle.models.fit()[0][0], 60.0).max() == 2.0


def test_the_data_of_a_round() -> None:
    """H = 4: for h = 1, 2 both actions, for h = 3 the first one; nothing from the last step."""
    world = LowRankWorld(WORLD, np.random.default_rng(0))
    oracle = oracle_of()
    policy = oracle.policy(float(oracle.values()[0][0]))
    shown = gather(world, policy, low_rank_problem(WORLD), np.random.default_rng(1))
    assert [(t.step, t.second) for t in shown] == [(0, False), (1, True), (1, False), (2, True), (2, False)]
    assert shown[1].state == shown[0].after
    many = [gather(world, policy, low_rank_problem(WORLD), np.random.default_rng(s))[0].action for s in range(200)]
    assert 70 < sum(many) < 130  # uniform: outside with probability below 1e-4


def test_the_lock_is_learned_from_its_candidates() -> None:
    world = low_rank_lock(states=40)
    made = learner(world, "repucb", parse_risk("cvar:0.25"), seed=0)
    optimism(made.oracle, made.play, 150)
    assert made.worth(made.recommend(made.oracle)) == pytest.approx(plan(world.expanded, "cvar:0.25").value, abs=1e-9)


def test_em_never_loses_likelihood_and_finds_a_small_model() -> None:
    """Each step of EM raises the posterior; with a prior of almost nothing that is the likelihood."""
    random = np.random.default_rng(3)
    model = FactorClass(steps=1, states=6, actions=2, rank=2, sweeps=1, prior=1e-9)
    truth = random_low_rank(5, states=6, actions=2, horizon=2, rank=2)
    joint = truth.features[0] @ truth.measures[0]
    for _ in range(3000):
        state, action = int(random.integers(6)), int(random.integers(2))
        model.add(0, state, action, int(random.choice(6, p=joint[state, action])))

    def likelihood() -> float:
        features, measures = model.features[0], model.measures[0]
        return sum(n * float(np.log(features[p] @ measures[:, s])) for (p, s), n in model.counts.seen[0].items())

    before = likelihood()
    for _ in range(30):
        model.fit()
        after = likelihood()
        assert after >= before - 1e-6
        before = after
    model.sweeps = 300
    features, measures = model.fit()
    apart = np.abs(features[0] @ measures[0] - joint).sum(axis=-1)
    assert apart.mean() < 0.15, "about sqrt(6 / 250) for 250 visits to a pair"


def test_free_measures_find_the_features() -> None:
    """The true φ among others that shuffle its latents by pair, at steps whose pairs are all visited."""
    world = random_low_rank(6, states=6, actions=2, horizon=2, rank=2)
    random = np.random.default_rng(0)
    wrong = [random.permutation(world.features.reshape(-1, 2)).reshape(world.features.shape) for _ in range(4)]
    models = FeatureClass(np.stack([*wrong[:2], world.features, *wrong[2:]]), sweeps=50)
    joint = world.features[0] @ world.measures[0]
    for _ in range(4000):
        state, action = int(random.integers(6)), int(random.integers(2))
        models.add(0, state, action, int(random.choice(6, p=joint[state, action])))
    features, measures = models.fit()
    np.testing.assert_array_equal(features[0], world.features[0])
    assert np.abs(measures[0] - world.measures[0]).max() < 0.1


def test_a_class_that_cannot_realise_the_model_says_so() -> None:
    world = low_rank_lock(states=20)
    broken = world.measure_class.copy()
    broken[..., 1] = 0.0  # no candidate ever emits state 1
    broken /= broken.sum(axis=-1, keepdims=True)
    oracle = oracle_of(world, models=FiniteClass(world.feature_class, broken))
    with pytest.raises(OcerlError, match=r"cannot realise the model: no pair of its 20 φ and 20 μ .* to state 1"):
        oracle.update([Transition(0, 0, 0, 1, second=False)])


def test_bad_input() -> None:
    with pytest.raises(OcerlError, match="rank 9 is larger than the number of states, 8"):
        learner(WORLD, "repucb", parse_risk("mean"), 0, rank=9)
    with pytest.raises(OcerlError, match="the rank must be a whole number of at least 1"):
        learner(WORLD, "repucb", parse_risk("mean"), 0, rank=0)
    with pytest.raises(OcerlError, match="a reward depends on the next state"):
        learner(random_mdp(1, states=3, actions=2, horizon=3), "repucb", parse_risk("mean"), 0)
    uncertain = random_mdp(1, states=3, actions=2, horizon=3, joint=False, random_start=True)
    with pytest.raises(OcerlError, match="needs a certain start"):
        learner(uncertain, "repucb", parse_risk("mean"), 0)
    with pytest.raises(OcerlError, match="alpha must be a number of at least 0"):
        RepUcbConfig(alpha=-1.0)
    with pytest.raises(OcerlError, match="ridge must be a positive number"):
        RepUcbConfig(ridge=0.0)
    with pytest.raises(OcerlError, match="a finite class needs candidates"):
        FiniteClass(np.zeros((0, 1, 2, 1, 1)), np.zeros((1, 1, 1, 2)))
    with pytest.raises(OcerlError, match=r"μ must have shape \(candidates, 1, 1, 2\)"):
        FiniteClass(np.ones((1, 1, 2, 1, 1)), np.ones((1, 1, 1, 3)) / 3)


@pytest.mark.parametrize("oracle", ["golf", "repucb"])
def test_plain_tables_are_learned(oracle: str) -> None:
    """The paper's model: states for themselves, or a factorisation of rank 2."""
    made = learner(zoo.make("paper"), oracle, parse_risk("cvar:0.25"), seed=1, rank=2 if oracle == "repucb" else None)
    optimism(made.oracle, made.play, 800)
    assert made.worth(made.recommend(made.oracle)) == pytest.approx(0.75)


def test_all_actions_change_nothing() -> None:
    model = random_mdp(3, states=4, actions=3, horizon=3, action_sets=True)
    whole: TabularMDP = with_all_actions(model)
    assert set(np.diff(whole.transitions(0).pair_start)) == {3}
    for risk in ("mean", "cvar:0.3"):
        assert plan(whole, risk).value == pytest.approx(plan(model, risk).value, abs=1e-12)
