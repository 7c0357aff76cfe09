"""What every environment keeps, in JAX and in Gymnasium."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from ocerl.envs import (
    AmericanPut,
    AugmentedEnvironment,
    BettingGame,
    CompiledEnv,
    Environment,
    GuardedMaze,
    RandomPolicy,
    TabularEnvironment,
    make,
    rollout,
)
from ocerl.errors import OcerlError
from ocerl.mdp import random_mdp
from ocerl.mdp.tabular import TabularMDP


def coin(chance: float, prize: float) -> TabularEnvironment:
    flip = [(chance, "end", prize), (1 - chance, "play", 0.0)]
    return TabularEnvironment(
        TabularMDP.from_outcomes({"play": {"flip": flip, "rest": [(1.0, "play", 0.0)]}}, horizon=3)
    )


def random_tabular(seed: int) -> TabularEnvironment:
    sizes = {"per_step": True, "random_start": True, "continuous": True}
    return TabularEnvironment(random_mdp(seed, states=4, actions=2, horizon=4, **sizes))


@dataclass(frozen=True)
class Case:
    """An environment, and the same one with other numbers."""

    environment: Environment[Any]
    other: Callable[[], Environment[Any]]


CASES = {
    "paper": Case(make("paper"), lambda: make("paper")),
    "coin": Case(coin(0.25, 1.0), lambda: coin(0.75, 2.0)),
    "random": Case(random_tabular(1), lambda: random_tabular(2)),
    "betting-game": Case(BettingGame(), lambda: BettingGame(win_probability=0.6)),
    "american-put": Case(AmericanPut(), lambda: AmericanPut(drift=0.1, volatility=0.2)),
    "guarded-maze": Case(GuardedMaze(), lambda: GuardedMaze(noise=0.1, guard_probability=0.5)),
    "risky-lock": Case(make("risky-lock", bits=3), lambda: make("risky-lock", bits=3, flip=0.1)),
    "low-rank-vectors": Case(make("low-rank-vectors"), lambda: make("low-rank-vectors", noise=0.05)),
}

each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def episode(environment: Environment[Any], key: jax.Array, steps: int) -> Any:
    """Everything a few random steps bring."""

    def move(state: Any, key: jax.Array) -> tuple[Any, Any]:
        action_key, step_key = jax.random.split(key)
        action = jax.random.randint(action_key, (), 0, environment.action_space.n)
        taken = environment.step(step_key, state, action)
        return taken.state, taken

    reset_key, key = jax.random.split(key)
    state, observation = environment.reset(reset_key)
    return observation, jax.lax.scan(move, state, jax.random.split(key, steps))[1]


def leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


@each_case
def test_a_key_decides_everything_and_vmap_is_the_loop(case: Case) -> None:
    # Two steps: no episode of these ends sooner by more than its last step.
    keys = jax.random.split(jax.random.key(0), 6)
    play = jax.jit(lambda key: episode(case.environment, key, 2))
    loop = [play(key) for key in keys]
    for first, again in zip(leaves(play(keys[0])), leaves(loop[0]), strict=True):
        np.testing.assert_array_equal(first, again)
    together = jax.vmap(lambda key: episode(case.environment, key, 2))(keys)
    for stacked, *single in zip(leaves(together), *map(leaves, loop), strict=True):
        np.testing.assert_allclose(stacked, np.stack(single), rtol=1e-5, atol=1e-6)
    assert len({tuple(np.concatenate([leaf.ravel() for leaf in leaves(one)])) for one in loop}) > 1


@each_case
def test_new_numbers_are_no_new_trace(case: Case) -> None:
    traces = 0

    @jax.jit
    def step(environment: Environment[Any], key: jax.Array) -> Any:
        nonlocal traces
        traces += 1
        return episode(environment, key, 1)

    first, *others = (
        step(environment, jax.random.key(seed))
        for environment, seed in ((case.environment, 0), (case.environment, 1), (case.other(), 1))
    )
    assert jax.tree.structure(first) == jax.tree.structure(others[0])
    assert traces == 1


@each_case
def test_a_step_keeps_the_state_as_it_was(case: Case) -> None:
    environment, key = case.environment, jax.random.key(0)
    state, observation = jax.eval_shape(environment.reset, key)
    taken = jax.eval_shape(environment.step, key, state, jnp.array(0))
    describe = lambda tree: [(leaf.shape, leaf.dtype, leaf.weak_type) for leaf in jax.tree.leaves(tree)]  # noqa: E731
    assert describe(taken.state) == describe(state)
    assert describe(taken.observation) == describe(observation)
    assert observation.shape == environment.observation_space.shape
    assert (taken.reward.shape, taken.reward.dtype) == ((), jnp.float32)
    assert (taken.terminated.shape, taken.terminated.dtype) == ((), jnp.bool_)


@each_case
def test_episodes_end_and_returns_stay_in_range(case: Case) -> None:
    environment = case.environment
    augmented = AugmentedEnvironment(environment, "mean")
    policy = RandomPolicy(int(environment.action_space.n))
    played = jax.tree.map(np.asarray, rollout(augmented, policy, jax.random.key(0), 300))
    assert (played.terminated.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(played.active.sum(axis=1) - 1, played.terminated.argmax(axis=1))
    returns = played.reward @ environment.discount ** np.arange(environment.horizon)
    (low, high), (least, most) = environment.return_range, environment.budget_range
    assert low - 1e-5 <= returns.min() <= returns.max() <= high + 1e-5
    assert low <= least < most <= high
    assert np.isfinite([least, most]).all()
    if environment.return_support is not None:
        gaps = np.abs(returns[:, None] - environment.return_support)
        assert gaps.min(axis=1).max() < 1e-5
        assert (environment.return_support[0], environment.return_support[-1]) == pytest.approx((low, high))
    for observation in played.observation.observation[played.active][:200]:
        assert environment.observation_space.contains(observation)


MODEL = random_mdp(3, states=3, actions=2, horizon=4)
IDS: dict[str, dict[str, Any]] = {
    "ocerl/AmericanPut-v0": {},
    "ocerl/BettingGame-v0": {},
    "ocerl/GuardedMaze-v0": {},
    "ocerl/Paper-v0": {},
    "ocerl/Tabular-v0": {"model": MODEL},
}

each_id = pytest.mark.parametrize(("name", "parameters"), IDS.items())


def gymnasium_episode(env: gymnasium.Env[Any, Any], seed: int | None) -> list[Any]:
    random = np.random.default_rng(0)
    actions = (0, 0, *random.integers(env.action_space.n, size=160).tolist())  # at first, no option is used
    seen: list[Any] = [np.asarray(env.reset(seed=seed)[0]).tolist()]
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(action)
        assert not truncated
        seen += [np.asarray(observation).tolist(), reward]
        if terminated:
            return seen
    raise AssertionError("the episode did not end within the horizon")


@each_id
@pytest.mark.filterwarnings("ignore:.*observation space maximum value is infinity")  # a price has no bound
def test_gymnasium_checks(name: str, parameters: dict[str, Any]) -> None:
    check_env(gymnasium.make(name, **parameters).unwrapped)


@each_id
def test_gymnasium_seeds(name: str, parameters: dict[str, Any]) -> None:
    env = gymnasium.make(name, **parameters)
    first, onward = gymnasium_episode(env, 5), [gymnasium_episode(env, None) for _ in range(5)]
    assert first == gymnasium_episode(env, 5)
    assert onward == [gymnasium_episode(env, None) for _ in range(5)]
    assert any(other != first for other in onward)


def test_gymnasium_pays_what_the_environment_pays() -> None:
    env = gymnasium.make("ocerl/BettingGame-v0", win_probability=1.0)
    env.reset(seed=0)
    steps = [env.step(8) for _ in range(6)]
    assert [step[1] for step in steps] == [1 / 16, 1 / 8, 1 / 4, 1 / 2, 0.0, 0.0]
    assert [step[2] for step in steps] == [False] * 5 + [True]


def test_gymnasium_vector_environments() -> None:
    envs = gymnasium.make_vec("ocerl/AmericanPut-v0", num_envs=3, vectorization_mode="sync")
    observations, _ = envs.reset(seed=0)
    assert observations.shape == (3, 1)
    prices = envs.step(np.zeros(3, dtype=np.int64))[0]
    assert len(set(prices.ravel().tolist())) == 3


def test_gymnasium_errors() -> None:
    env = gymnasium.make("ocerl/AmericanPut-v0").unwrapped
    with pytest.raises(OcerlError, match=r"call reset\(\) before step\(\)"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(OcerlError, match=r"an action must be in Discrete\(2\), got 2"):
        env.step(2)
    env.step(1)
    with pytest.raises(OcerlError, match="the episode has ended"):
        env.step(0)
    with pytest.raises(OcerlError, match="draw nothing: render_mode is None, got 'human'"):
        CompiledEnv("paper", render_mode="human")
