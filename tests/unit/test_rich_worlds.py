"""The worlds of rich observations: their optimum, their emission, and that their three forms are one world."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest

import ocerl.envs
from ocerl.envs import AugmentedEnvironment, RandomPolicy, make, sample_returns
from ocerl.errors import OcerlError
from ocerl.mdp import rich
from ocerl.mdp.rich import LowRankMDP, exogenous_lock, low_rank_lock, random_low_rank, risky_lock
from ocerl.mdp.rich.lock import lock_roles
from ocerl.planning import best_markov, evaluate, plan


def test_the_lock_by_hand() -> None:
    """Two steps: leaving at once is 0.25 for certain; by advancing 2% earn nothing, and from the others 49% have 0.5
    and 49% 0.75 with the safe choice. The worst quarter are the 2% and 23% with 0.5: 0.46 in the mean.
    """
    assert plan(risky_lock(horizon=2), "cvar:0.25").value == pytest.approx(0.23 * 0.5 / 0.25)
    # The mean: 0.98 · (0.125 + 0.5), safely or not.
    assert plan(risky_lock(horizon=2), "mean").value == pytest.approx(0.98 * 0.625)


def test_the_roles_are_hidden_by_the_seed() -> None:
    assert (np.sort(lock_roles(4, 1), axis=2) == np.arange(4)).all()
    assert not np.array_equal(lock_roles(4, 1), lock_roles(4, 2))


def test_policies_without_a_budget_miss_the_target() -> None:
    """Negative control: the best Markov policy stays below 95% of the optimum."""
    lock = risky_lock()
    assert best_markov(lock, "cvar:0.25").value < 0.95 * plan(lock, "cvar:0.25").value


@pytest.mark.parametrize("risk", ["cvar:0.25", "entropic:-1"])
def test_the_exogenous_part_does_not_matter_for_the_optimum(risk: str) -> None:
    world = exogenous_lock(bits=3, horizon=4)
    optimum = plan(world.endogenous, risk).value
    assert plan(world.model(), risk).value == pytest.approx(optimum, abs=1e-9)
    for mask in world.masks[:3]:
        assert plan(world.shadow(int(mask)), risk).value == pytest.approx(optimum, abs=1e-9)


def test_the_emission_is_inverted_by_the_true_decoder_alone() -> None:
    world = exogenous_lock(bits=5)
    latent, exogenous = (part.ravel() for part in np.meshgrid(np.arange(4), np.arange(32)))
    observed = world.emit(world.code(latent, exogenous))
    assert sorted(observed) == list(range(128))
    right = [(world.decoders[e, observed] == latent).mean() for e in range(20)]
    assert [e for e in range(20) if right[e] == 1.0] == [world.truth]
    assert max(np.delete(right, world.truth)) <= 0.75
    assert len({decoder.tobytes() for decoder in world.decoders}) == 20


def test_a_shadow_sees_what_its_candidate_sees() -> None:
    """A policy that reads a wrong decoder is worth the same in the shadow and in the whole world."""
    world = exogenous_lock(bits=3, horizon=3, seed=1)
    random = np.random.default_rng(0)
    for number in range(4):
        slots = random.integers(0, 4, (3, 4))
        whole = evaluate(world.model(), slots[:, world.decoders[number]])
        shadow = evaluate(world.shadow(int(world.masks[number])), slots[:, world.shadow_decoder(number)])
        np.testing.assert_allclose(whole.values, shadow.values)
        np.testing.assert_allclose(whole.probabilities, shadow.probabilities, atol=1e-12)


def test_a_parity_flips_as_its_bits_do() -> None:
    """Two bits with 0.1 and 0.2: one of the two flips with probability 0.1 · 0.8 + 0.9 · 0.2 = 0.26."""
    world = exogenous_lock(bits=2, candidates=1)
    assert replace(world, flips=np.array([0.1, 0.2])).parity_flip(3) == pytest.approx(0.26)


def test_the_expanded_world_is_the_world() -> None:
    world = random_low_rank(2, states=6, actions=2, horizon=3, rank=3)
    assert np.linalg.matrix_rank(world.features[1].reshape(-1, 3) @ world.measures[1]) == 3
    for risk in ("mean", "cvar:0.3", "entropic:-1"):
        assert plan(world.expanded, risk).value == pytest.approx(plan(world.model(), risk).value, abs=1e-9)


def test_the_true_parts_are_among_the_candidates() -> None:
    world = low_rank_lock(states=40)
    for truth, candidates in ((world.features, world.feature_class), (world.measures, world.measure_class)):
        assert sum(np.array_equal(truth, candidate) for candidate in candidates) == 1


def random_play(environment: gymnasium.Env[Any, Any], episodes: int) -> float:
    """The mean return of random actions."""
    environment.reset(seed=0)
    environment.action_space.seed(0)
    total = 0.0
    for _ in range(episodes):
        environment.reset()
        over = False
        while not over:
            _, reward, terminated, truncated, _ = environment.step(environment.action_space.sample())
            total, over = total + float(reward), terminated or truncated
    return total / episodes


@pytest.mark.parametrize(
    ("identity", "world", "parameters"),
    [
        ("ocerl/RiskyLock-v0", exogenous_lock(bits=2).endogenous, {"bits": 2}),
        ("ocerl/LowRank-v0", low_rank_lock(states=20, candidates=1).expanded, {}),
        ("ocerl/LowRankVectors-v0", low_rank_lock(states=20, candidates=1).expanded, {}),
    ],
)
def test_gymnasium_plays_the_same_world(identity: str, world: Any, parameters: dict[str, Any]) -> None:
    """The mean return of random actions: exact against 4000 episodes, within 5 standard errors."""
    environment = gymnasium.make(identity, **parameters)
    table = np.stack(
        [
            (np.arange(world.n_actions) < n[:, None]) / n[:, None]
            for n in (np.diff(world.transitions(h).pair_start) for h in range(world.horizon))
        ]
    )
    exact = evaluate(world, table)
    mean = float(exact.values @ exact.probabilities)
    spread = float(np.sqrt((exact.values - mean) ** 2 @ exact.probabilities))
    game = AugmentedEnvironment(environment.unwrapped.environment, "mean")  # type: ignore[attr-defined]
    returns = sample_returns(game, RandomPolicy(world.n_actions), jax.random.key(1), 4000)
    assert abs(float(returns.mean()) - mean) < 5 * spread / np.sqrt(4000)
    assert abs(random_play(environment, 200) - mean) < 5 * spread / np.sqrt(200)


def test_wrong_worlds_are_refused() -> None:
    with pytest.raises(OcerlError, match="at most 20"):
        exogenous_lock(bits=21)
    with pytest.raises(OcerlError, match="ask for fewer candidates"):
        exogenous_lock(bits=1, candidates=100)
    with pytest.raises(OcerlError, match="oracle that decodes observations"):
        exogenous_lock(bits=16).model()
    with pytest.raises(OcerlError, match=r"has no parameter 'bit'; it has bits"):
        rich.make("risky-lock", bit=3)
    with pytest.raises(OcerlError, match="there are risky-lock, low-rank"):
        rich.make("lock")
    with pytest.raises(OcerlError, match="the noise must be"):
        make("low-rank-vectors", dimension=1)
    world = low_rank_lock(states=20)
    with pytest.raises(OcerlError, match="rank 3 is larger than the number of states, 2"):
        LowRankMDP(
            features=np.full((1, 2, 1, 3), 1 / 3),
            measures=np.full((1, 3, 2), 0.5),
            rewards=np.zeros((1, 2, 1)),
            feature_class=world.feature_class,
            measure_class=world.measure_class,
        )
    assert ocerl.envs.make("risky-lock", bits=2).horizon == 5
