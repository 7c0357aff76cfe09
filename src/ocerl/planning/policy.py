"""Policies that carry what they need to know: their step, and for a history-dependent one their budget.

All have `reset()`, `act(state)` and `observe(reward)`; nobody outside repeats the budget recursion. States and
actions are indices into the model's `states` and `actions`. They save to a folder of plain arrays and JSON.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.lattice import Lattice
from ocerl.mdp.tabular import TabularMDP


class Policy(abc.ABC):
    """What an episode needs of a policy."""

    @abc.abstractmethod
    def reset(self) -> None:
        """Begin an episode."""

    @abc.abstractmethod
    def act(self, state: int) -> int:
        """The action in a state."""

    @abc.abstractmethod
    def observe(self, reward: float) -> None:
        """Take note of the reward that the action brought."""


@dataclass(eq=False)
class MarkovPolicy(Policy):
    """A policy that looks at the step and the state only.

    `slots[step, state]` for a deterministic one; `choice[step][pair]` are the probabilities of one that draws.
    """

    model: TabularMDP
    slots: NDArray[np.integer]
    choice: list[NDArray[np.float64]] | None = None
    seed: int = 0
    _step: int = field(default=0, init=False)
    _random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)

    @classmethod
    def from_table(cls, model: TabularMDP, table: ArrayLike) -> MarkovPolicy:
        """Check a table of slots `[horizon, states]` or of probabilities `[horizon, states, slots]`."""
        array, horizon = np.asarray(table), model.require_horizon()
        expected = f"[{horizon}, {model.n_states}] (slots) or [{horizon}, {model.n_states}, slots] (probabilities)"
        if array.ndim not in (2, 3) or array.shape[:2] != (horizon, model.n_states):
            raise OcerlError(f"a Markov table must have the shape {expected}, got {list(array.shape)}")
        counts = np.stack([np.diff(model.transitions(h).pair_start) for h in range(horizon)])
        if array.ndim == 2:
            if not np.issubdtype(array.dtype, np.integer) or (array < 0).any() or (array >= counts).any():
                raise OcerlError(
                    "a Markov table of slots must hold whole numbers from 0 to the state's number of actions - 1"
                )
            return cls(model, array)
        if array.shape[2] < counts.max():
            raise OcerlError(f"a Markov table of probabilities needs {counts.max()} slots, got {array.shape[2]}")
        beyond = np.arange(array.shape[2]) >= counts[:, :, None]
        if (
            not np.isfinite(array).all()
            or (array < 0).any()
            or (array[beyond] > 0).any()
            or not np.allclose(array.sum(axis=2), 1.0, atol=1e-8)
        ):
            raise OcerlError(
                "the probabilities of a Markov table must be at least 0 and sum to 1 over the state's own slots"
            )
        choice = [array[h][~beyond[h]].astype(np.float64) for h in range(horizon)]
        return cls(model, array.argmax(axis=2), choice)

    def reset(self) -> None:
        self._step = 0

    def act(self, state: int) -> int:
        t = self.model.transitions(self._step)
        first, last = t.pair_start[state], t.pair_start[state + 1]
        if self.choice is None:
            return int(t.action[first + self.slots[self._step, state]])
        return int(self._random.choice(t.action[first:last], p=self.choice[self._step][first:last]))

    def observe(self, reward: float) -> None:
        self._step += 1


@dataclass(eq=False)
class BudgetPolicy(Policy):
    """A policy of the augmented MDP with its first budget: it carries its position on the lattice along.

    `tables[step][state, y - low[step]]` is the slot at position `y`; beyond the table's edges every utility
    with one kink is linear, and `outside[step, state]` (the best for the mean) serves.
    """

    lattice: Lattice
    first_position: int
    budget: float
    tables: Sequence[NDArray[np.integer]]
    low: NDArray[np.int64]
    outside: NDArray[np.integer]
    _step: int = field(default=0, init=False)
    _position: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.reset()

    def from_budget(self, first_position: int, budget: float) -> BudgetPolicy:
        """The same policy, begun with another first budget."""
        return replace(self, first_position=first_position, budget=budget)

    def reset(self) -> None:
        self._step, self._position = 0, self.first_position

    def slots(self, step: int, state: NDArray[np.int64], position: NDArray[np.int64]) -> NDArray[np.int64]:
        """The slots in some states at some positions."""
        slots = self.outside[step][state].astype(np.int64)
        if step < self.lattice.length:
            table, column = self.tables[step], position - self.low[step]
            inside = (column >= 0) & (column < table.shape[1])
            slots[inside] = table[state[inside], column[inside]]
        return slots

    def act(self, state: int) -> int:
        t = self.lattice.model.transitions(self._step)
        slot = self.slots(self._step, np.array([state]), np.array([self._position]))[0]
        return int(t.action[t.pair_start[state] + slot])

    def observe(self, reward: float) -> None:
        if self._step < self.lattice.length:
            self._position += int(self.lattice.round_reward(self._step, reward))
        self._step += 1
