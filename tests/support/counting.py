"""A Gymnasium environment whose every number is known: it counts its episodes and their steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Counting(gymnasium.Env[Any, Any]):
    """Episodes of given lengths, then again from the first; observation `(episode, step)`, reward 10^episode + step.

    Every second episode is truncated instead of terminated. `actions` is what the environment was asked to do.
    """

    def __init__(self, lengths: Sequence[int], actions: spaces.Space[Any] | None = None) -> None:
        self.lengths = lengths
        self.observation_space = spaces.Box(0.0, 1000.0, (2,), dtype=np.float64)
        self.action_space = spaces.Discrete(2) if actions is None else actions
        self.actions: list[Any] = []
        self.closed = False
        self._episode, self._step = -1, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._episode, self._step = self._episode + 1, 0
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        length = self.lengths[self._episode % len(self.lengths)]
        assert self._step < length, "the episode is over"
        assert self.action_space.contains(action), f"{action!r} is not in {self.action_space}"
        self.actions.append(action)
        reward = self.reward(self._episode, self._step)
        self._step += 1
        over, by_rule = self._step == length, self._episode % 2 == 0
        return self._observation(), reward, over and by_rule, over and not by_rule, {}

    def close(self) -> None:
        self.closed = True

    def reward(self, episode: int, step: int) -> float:
        return float(10**episode + step)

    def _observation(self) -> Any:
        return np.array([self._episode, self._step], dtype=np.float64)


def makers(*lengths: Sequence[int]) -> list[Callable[[], Counting]]:
    """One environment for each list of lengths."""
    return [lambda each=each: Counting(each) for each in lengths]
