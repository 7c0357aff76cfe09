"""The environments in Gymnasium: `gymnasium.make("ocerl/GuardedMaze-v0")` after `import ocerl.envs`.

One class wraps any environment of this package and calls its compiled step, so that there is no second
implementation which could come to differ. A step costs no more than one written with small NumPy arrays (for
the maze 35 µs against 42, measured side by side), because a single call returns everything, the numbers packed
into one array. Where speed counts, stay in JAX: in a compiled loop over many episodes a step is far cheaper.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from ocerl.envs._base import Environment
from ocerl.envs.catalogue import make
from ocerl.errors import OcerlError
from ocerl.mdp.tabular import TabularMDP

IDS = {
    "ocerl/AmericanPut-v0": {"model": "american-put"},
    "ocerl/BettingGame-v0": {"model": "betting-game"},
    "ocerl/GuardedMaze-v0": {"model": "guarded-maze"},
    "ocerl/LowRank-v0": {"model": "low-rank"},
    "ocerl/LowRankVectors-v0": {"model": "low-rank-vectors"},
    "ocerl/Paper-v0": {"model": "paper"},
    "ocerl/RiskyLock-v0": {"model": "risky-lock"},
    "ocerl/Tabular-v0": {},
}
"""The ids, and the name each gives to `ocerl.envs.make`; `ocerl/Tabular-v0` asks for it: `model=…`."""

ENTRY_POINT = f"{__name__}:CompiledEnv"


class CompiledEnv(gymnasium.Env[Any, Any]):
    """An environment of this package as a Gymnasium environment; parameters are those of `ocerl.envs.make`.

    Reaching the horizon is the end of the task: it is reported as `terminated`, never as `truncated`. The
    attributes `environment`, `horizon` and `discount` are there for whoever computes a return.

    >>> import gymnasium
    >>> import ocerl.envs
    >>> put = gymnasium.make("ocerl/AmericanPut-v0", volatility=0.2)
    >>> observation, info = put.reset(seed=0)
    >>> observation, reward, terminated, truncated, info = put.step(1)
    >>> observation.tolist(), reward, terminated, truncated
    ([1.0], 0.0, True, False)
    """

    def __init__(self, model: str | TabularMDP, *, render_mode: str | None = None, **parameters: Any) -> None:
        if render_mode is not None:
            raise OcerlError(f"these environments draw nothing: render_mode is None, got {render_mode!r}")
        self.environment: Environment[Any] = make(model, **parameters)
        self.horizon, self.discount = self.environment.horizon, self.environment.discount
        self.observation_space = self.environment.observation_space
        self.action_space = self.environment.action_space
        leaves, self._structure = jax.tree.flatten(self.environment)
        self._leaves = tuple(leaves)
        self._key: Any = None
        self._state: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._key = self.np_random.integers(1 << 32, size=2, dtype=np.uint32)
        self._state, observation = _reset(self._leaves, self._structure, self._key)
        return self._host(observation), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self._key is None:
            raise OcerlError("the episode has ended or not begun: call reset() before step()")
        if not self.action_space.contains(action):
            raise OcerlError(f"an action must be in {self.action_space}, got {action!r}")
        self._state, observation, numbers = _step(self._leaves, self._structure, self._key, self._state, action)
        reward, terminated = np.asarray(numbers).tolist()
        if terminated:
            self._key = None
        return self._host(observation), reward, bool(terminated), False, {}

    def _host(self, observation: jax.Array) -> Any:
        """An observation of one's own, of the type that Gymnasium wants: a NumPy array or integer."""
        return np.array(observation, dtype=self.observation_space.dtype)[()]


@partial(jax.jit, static_argnames="structure")
def _reset(leaves: tuple[Any, ...], structure: Any, key: Any) -> tuple[Any, jax.Array]:
    environment: Environment[Any] = jax.tree.unflatten(structure, leaves)
    return environment.reset(jax.random.wrap_key_data(key))


@partial(jax.jit, static_argnames="structure")
def _step(
    leaves: tuple[Any, ...], structure: Any, key: Any, state: Any, action: Any
) -> tuple[Any, jax.Array, jax.Array]:
    environment: Environment[Any] = jax.tree.unflatten(structure, leaves)
    # The key of a step: that of the episode and the number of the step, counted from 1.
    step_key = jax.random.fold_in(jax.random.wrap_key_data(key), state.step + 1)
    taken = environment.step(step_key, state, action)
    numbers = jnp.stack([taken.reward, taken.terminated.astype(taken.reward.dtype)])
    return taken.state, taken.observation, numbers


def register() -> None:
    """Make the ids known to Gymnasium; those that are known already stay."""
    for name, parameters in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=ENTRY_POINT, kwargs=parameters)
