"""One step of a tabular model: for every state and action, the joint outcomes `(p, s', r)`.

The outcomes are kept in two nested compressed rows, which serve a model of four states and one of a
million alike::

    state s      owns the state-action pairs  pair_start[s] : pair_start[s + 1]
    pair i       owns the outcomes            outcome_start[i] : outcome_start[i + 1]

Action sets may therefore differ from state to state. The position of a pair within its state is called its
*slot*; tables of policies hold slots, and `action[pair]` says which action that is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocerl.errors import OcerlError

SUM_TOLERANCE = 1e-8
"""How far the probabilities of a state and action may be from 1 (they are then normalised)."""


@dataclass(frozen=True, eq=False)
class Transitions:
    """The outcomes of one step, as compressed rows.

    Use `Transitions.from_rows` to build one: it sorts, fills absorbing states and normalises.
    """

    pair_start: NDArray[np.int64]
    action: NDArray[np.int32]
    outcome_start: NDArray[np.int64]
    probability: NDArray[np.float64]
    next_state: NDArray[np.int32]
    reward: NDArray[np.float64]

    @classmethod
    def from_rows(
        cls,
        n_states: int,
        state: ArrayLike,
        action: ArrayLike,
        next_state: ArrayLike,
        probability: ArrayLike,
        reward: ArrayLike,
    ) -> Transitions:
        """Sort rows `(s, a, s', p, r)` by state and action. Rows of probability 0 are dropped.

        A state without rows is absorbing: it gets one action, number 0, that stays and pays 0.
        The probabilities of each pair must already sum to 1 within `SUM_TOLERANCE` (`TabularMDP` checks).

        >>> steps = Transitions.from_rows(2, [0, 0], [0, 0], [0, 1], [0.25, 0.75], [1.0, 2.0])
        >>> steps.pair_start.tolist(), steps.outcome_start.tolist(), steps.next_state.tolist()
        ([0, 1, 2], [0, 2, 3], [0, 1, 1])
        """
        state_, action_, next_, probability_, reward_ = _columns(
            n_states, state, action, next_state, probability, reward
        )
        order = np.lexsort((action_, state_))
        if not np.array_equal(order, np.arange(order.size)):
            state_, action_, next_ = state_[order], action_[order], next_[order]
            probability_, reward_ = probability_[order], reward_[order]
        new_pair = np.ones(state_.size, dtype=bool)
        new_pair[1:] = (state_[1:] != state_[:-1]) | (action_[1:] != action_[:-1])
        first = np.flatnonzero(new_pair)
        pairs_of_state = np.bincount(state_[first], minlength=n_states)
        sums = np.add.reduceat(probability_, first)
        counts = np.diff(np.append(first, state_.size))
        # A sum that is 1 but for its own rounding is left alone: else copying a model would change digits.
        sums[np.abs(sums - 1.0) <= counts * np.finfo(np.float64).eps] = 1.0
        return cls(
            pair_start=_starts(pairs_of_state),
            action=action_[first].astype(np.int32),
            outcome_start=_starts(counts),
            probability=probability_ / np.repeat(sums, counts),
            next_state=next_.astype(np.int32),
            reward=reward_,
        )

    @property
    def n_states(self) -> int:
        return self.pair_start.size - 1

    @property
    def n_pairs(self) -> int:
        return self.action.size

    @cached_property
    def pair_state(self) -> NDArray[np.int32]:
        """The state of each pair."""
        return np.repeat(np.arange(self.n_states, dtype=np.int32), np.diff(self.pair_start))

    @cached_property
    def outcome_pair(self) -> NDArray[np.int64]:
        """The pair of each outcome."""
        return np.repeat(np.arange(self.n_pairs), np.diff(self.outcome_start))

    @property
    def max_slots(self) -> int:
        """The largest number of actions any state has."""
        return int(np.diff(self.pair_start).max())

    def over_outcomes(self, reducer: np.ufunc, per_outcome: NDArray[np.float64]) -> NDArray[np.float64]:
        """Reduce an array over the outcomes of each pair: `np.add` for sums, `np.minimum` for the worst."""
        return reducer.reduceat(per_outcome, self.outcome_start[:-1])

    def over_actions(self, reducer: np.ufunc, per_pair: NDArray[np.float64]) -> NDArray[np.float64]:
        """Reduce an array over the actions of each state."""
        return reducer.reduceat(per_pair, self.pair_start[:-1])

    def expected(self, per_outcome: NDArray[np.float64]) -> NDArray[np.float64]:
        """The expectation of an outcome's worth, for each pair."""
        return self.over_outcomes(np.add, self.probability * per_outcome)

    def greedy_slot(self, per_pair: NDArray[np.float64]) -> NDArray[np.int64]:
        """The slot of the first best action of each state."""
        best = np.repeat(self.over_actions(np.maximum, per_pair), np.diff(self.pair_start))
        slot = np.arange(self.n_pairs) - np.repeat(self.pair_start[:-1], np.diff(self.pair_start))
        candidates = np.where(per_pair >= best, slot, self.max_slots)
        return np.minimum.reduceat(candidates, self.pair_start[:-1])


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))


def _columns(
    n_states: int,
    state: ArrayLike,
    action: ArrayLike,
    next_state: ArrayLike,
    probability: ArrayLike,
    reward: ArrayLike,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """The rows as arrays of one length, without impossible outcomes and with absorbing states filled in."""
    integers = [np.atleast_1d(np.asarray(column, dtype=np.int64)) for column in (state, action, next_state)]
    numbers = [np.atleast_1d(np.asarray(column, dtype=np.float64)) for column in (probability, reward)]
    sizes = {column.shape for column in (*integers, *numbers)}
    if len(sizes) != 1:
        raise OcerlError(f"the columns of a model need one length each, got shapes {sorted(sizes)}")
    probability_, reward_ = numbers
    for name, column in (("probability", probability_), ("reward", reward_)):
        if not np.isfinite(column).all():
            row = int(np.flatnonzero(~np.isfinite(column))[0])
            raise OcerlError(f"row {row}: the {name} is {column[row]}, it must be a finite number")
    if (probability_ < 0).any():
        row = int(np.argmin(probability_))
        raise OcerlError(f"row {row}: the probability is {probability_[row]:g}, it must not be negative")
    for name, column in zip(("state", "next state"), (integers[0], integers[2]), strict=True):
        if column.size and (column.min() < 0 or column.max() >= n_states):
            row = int(np.flatnonzero((column < 0) | (column >= n_states))[0])
            raise OcerlError(f"row {row}: {name} {column[row]} is not among the {n_states} states 0 … {n_states - 1}")
    possible = probability_ > 0
    if not possible.all():
        integers = [column[possible] for column in integers]
        probability_, reward_ = probability_[possible], reward_[possible]
    absorbing = np.setdiff1d(np.arange(n_states), integers[0])
    if absorbing.size:
        zeros = np.zeros(absorbing.size)
        fill = (absorbing, zeros.astype(np.int64), absorbing)
        integers = [np.concatenate((column, extra)) for column, extra in zip(integers, fill, strict=True)]
        probability_ = np.concatenate((probability_, zeros + 1.0))
        reward_ = np.concatenate((reward_, zeros))
    return integers[0], integers[1], integers[2], probability_, reward_
