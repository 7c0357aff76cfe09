"""Episodes side by side in a Gymnasium vector environment, whichever way it begins the next one.

Gymnasium has three ways, `AutoresetMode`. With *same step*, the step that ends an episode already brings the first
observation of the next. With *next step*, the episode is begun by the following step, whose action and reward mean
nothing. With *disabled*, whoever plays has to begin it. `Lanes` makes one of the three: after each step it says in
which lanes an episode `ended`, so that what follows is of the next one, and where a step was `played` at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, final

import jax
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from numpy.typing import NDArray

from ocerl.envs import AugmentedObservation
from ocerl.errors import OcerlError

Mask = NDArray[np.bool_]


class Taken(NamedTuple):
    """What a step brought to each lane."""

    reward: NDArray[np.float64]
    ended: Mask
    """The episode is over: by its rules, by its time limit or at the horizon; for a static risk these are the same."""
    played: Mask
    """Not so where all that the step did was to begin an episode."""


@final
class Lanes:
    """A vector environment in the middle of its episodes.

    Seeds are taken one for each episode that is begun here: those of the first `reset`, lane by lane, and with
    autoreset *disabled* all that follow, in the order in which they begin and then by lane.
    """

    def __init__(self, environment: VectorEnv[Any, Any, Any], horizon: int, seeds: Iterator[int]) -> None:
        self.environment = environment
        self.size = environment.num_envs
        self.mode = AutoresetMode(environment.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self._horizon = horizon
        self._seeds = seeds
        # Other vector environments take a single number.
        self._seeds_each = isinstance(environment.unwrapped, SyncVectorEnv | AsyncVectorEnv)
        first = [next(seeds) for _ in range(self.size)]
        self.observation: Any = self._reset(first if self._seeds_each else first[0])
        self.steps = np.zeros(self.size, dtype=np.int32)
        """How many steps each episode has taken; 0 from the end of one on, even while the next is yet to be begun."""
        self._waiting = np.zeros(self.size, dtype=np.bool_)
        self._last: tuple[Any, dict[str, Any]] = (self.observation, {})

    def seen(self, budget: Any) -> AugmentedObservation:
        """What a policy sees, from budgets for all lanes."""
        step: Any = self.steps
        return AugmentedObservation(self.observation, step, budget)

    def step(self, actions: Any) -> Taken:
        """Take a step in every lane."""
        arrived, reward, terminated, truncated, info = self.environment.step(actions)
        self._last = (arrived, info)
        played = ~self._waiting
        steps = self.steps + played
        ended = played & (np.asarray(terminated) | np.asarray(truncated))
        ended |= self._overdue(played & ~ended & (steps >= self._horizon))
        if self.mode is AutoresetMode.NEXT_STEP:
            self._waiting = ended
        self.observation = self._restarted(ended) if self.mode is AutoresetMode.DISABLED and ended.any() else arrived
        self.steps = np.where(ended, 0, steps).astype(np.int32)
        return Taken(np.where(played, reward, 0.0).astype(np.float64), ended, played)

    def final_observation(self, lane: int) -> Any:
        """The last observation of the episode that ended in this lane with the latest step.

        For whoever wants to look at it: as the episode is truly over, nothing is learned from it.
        """
        arrived, info = self._last
        if self.mode is AutoresetMode.SAME_STEP:
            return info["final_obs"][lane]
        return jax.tree.map(lambda part: part[lane], arrived)

    def _overdue(self, lanes: Mask) -> Mask:
        """Episodes that reach the horizon end there; only without autoreset can that be done from here."""
        if lanes.any() and self.mode is not AutoresetMode.DISABLED:
            raise OcerlError(
                f"an episode goes on after {self._horizon} steps, the horizon: "
                f"give the vector environment's copies a TimeLimit of {self._horizon}, or give a longer horizon"
            )
        return lanes

    def _restarted(self, lanes: Mask) -> Any:
        """The observation after new episodes have begun in some lanes."""
        seeds = [next(self._seeds) if one else None for one in lanes] if self._seeds_each else None
        return self._reset(seeds, options={"reset_mask": lanes})

    def _reset(self, seed: Any, **options: Any) -> Any:
        return self.environment.reset(seed=seed, **options)[0]
