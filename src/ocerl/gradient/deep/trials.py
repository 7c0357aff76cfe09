"""Fresh episodes for judging a policy: each that is begun is counted, and counted once.

Whoever plays many episodes side by side until enough have ended counts too many short ones. Here the episodes to be
played are a list; a lane whose episode is over takes the next of the list, and all are played to their end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocerl.envs import AugmentedObservation
from ocerl.gradient.deep.lanes import Lanes
from ocerl.mdp.augmentation import next_budget


def trial_returns(
    lanes: Lanes,
    act: Callable[[AugmentedObservation], Any],
    budgets: NDArray[np.floating],
    episodes: int,
    discount: float = 1.0,
) -> NDArray[np.float64]:
    """The returns of so many episodes from each of the budgets, `[budgets, episodes]`; the lanes have just begun."""
    first = np.repeat(np.asarray(budgets, dtype=np.float64), episodes)
    found = np.full(first.size, np.nan)
    # Lanes that find the list empty play on, uncounted, from the last budget.
    number = np.arange(lanes.size)
    budget = first[np.minimum(number, first.size - 1)]
    begun, left = lanes.size, first.size
    while left:
        step = lanes.steps
        taken = lanes.step(act(lanes.seen(budget)))
        budget = np.where(taken.played, next_budget(budget, taken.reward, step, discount), budget)
        counted = taken.ended & (number < first.size)
        found[number[counted]] = first[number[counted]] - budget[counted]
        left -= int(counted.sum())
        number[taken.ended] = begun + np.arange(taken.ended.sum())
        begun += int(taken.ended.sum())
        budget = np.where(taken.ended, first[np.minimum(number, first.size - 1)], budget)
    return found.reshape(-1, episodes)


def independent_seeds(entropy: tuple[int, ...], number: int) -> list[int]:
    """Seeds that share nothing with those of other entropy, though it be the next number."""
    return (np.random.SeedSequence(entropy).generate_state(number) >> 1).tolist()


def seeds_from(entropy: tuple[int, ...]) -> Iterator[int]:
    """The same without end."""
    drawn = np.random.default_rng(entropy)
    while True:
        yield int(drawn.integers(1 << 31))
