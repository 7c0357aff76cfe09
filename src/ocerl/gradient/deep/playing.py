"""Training episodes in a vector environment: steps written down as they were seen, with their budgets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, final

import jax
import numpy as np
from numpy.typing import NDArray

from ocerl.envs import AugmentedObservation
from ocerl.gradient.deep.lanes import Lanes, Mask
from ocerl.mdp.augmentation import next_budget

Act = Callable[[AugmentedObservation], tuple[Any, Any]]
"""From what is seen in all lanes to the actions, as the learner has them and as the environment wants them."""
FirstBudgets = Callable[[np.random.Generator, int], NDArray[np.floating]]


class Played(NamedTuple):
    """Steps `[time, lanes, …]`."""

    seen: AugmentedObservation
    """Before the action."""
    action: Any
    after: NDArray[np.float64]
    """The budget after the reward: of the ended episode, also where another has begun."""
    reward: NDArray[np.float64]
    ended: Mask
    last: AugmentedObservation
    """After the last step, `[lanes, …]`."""
    returns: NDArray[np.float64] | None = None
    """Of the episodes that ended, in the order of their ends."""


class Row(NamedTuple):
    """A step of all lanes; where it was not `played`, it means nothing."""

    seen: AugmentedObservation
    action: Any
    after: NDArray[np.float64]
    reward: NDArray[np.float64]
    ended: Mask
    played: Mask


@final
class Stage:
    """Lanes with a budget in each, that training plays on from batch to batch."""

    def __init__(
        self, lanes: Lanes, discount: float, seed: int, first_budgets: FirstBudgets, *, begun: int = 0
    ) -> None:
        """`begun` tells the stages of a seed apart: how many updates were made before."""
        self.lanes = lanes
        self._discount = discount
        self._rng = np.random.default_rng((seed, 1, begun))
        self._first: NDArray[Any] = first_budgets(self._rng, lanes.size)
        self._budget = self._first

    def key(self) -> jax.Array:
        """A new key for actions."""
        return jax.random.key(int(self._rng.integers(1 << 31)))

    def play(self, rollout: int, act: Act, first_budgets: FirstBudgets) -> Played:
        """So many steps of each lane."""
        rows: list[Row] = []
        returns: list[NDArray[np.float64]] = []
        played = np.zeros(self.lanes.size, dtype=np.int64)
        while played.min() < rollout:
            row = self._step(act)
            played += row.played
            rows.append(row)
            returns.append(self._first[row.ended] - row.after[row.ended])
            drawn = first_budgets(self._rng, self.lanes.size)
            self._first = np.where(row.ended, drawn, self._first)
            self._budget = np.where(row.ended, drawn, row.after)
        return gathered(rows, self.lanes.seen(self._budget), rollout)._replace(returns=np.concatenate(returns))

    def _step(self, act: Act) -> Row:
        seen = self.lanes.seen(self._budget)
        action, wanted = act(seen)
        taken = self.lanes.step(wanted)
        # A reward that is no number is told in the row, and does not spoil the budget.
        reward = np.where(np.isfinite(taken.reward), taken.reward, 0.0)
        after = np.where(taken.played, next_budget(seen.budget, reward, seen.step, self._discount), seen.budget)
        return Row(seen, action, after, taken.reward, taken.ended, taken.played)


def gathered(rows: list[Row], now: AugmentedObservation, rollout: int) -> Played:
    """The first so many steps that each lane played; `now` is what is seen after the last row."""
    whole: Row = jax.tree.map(lambda *parts: np.stack(parts), *rows)
    lanes = np.arange(whole.played.shape[1])
    order = np.argsort(~whole.played, axis=0, kind="stable")[:rollout]
    seen, action, after, reward, ended = jax.tree.map(lambda part: part[order, lanes], whole[:-1])
    # What follows a lane's last step is in the next row. (Where that only begins an episode, the value is not used.)
    following = jax.tree.map(lambda part, last: np.concatenate([part, last[None]]), whole.seen, now)
    last = jax.tree.map(lambda part: part[order[-1] + 1, lanes], following)
    return Played(seen, action, after, reward, ended, last)
