"""The policy of a plan over rows of budgets: a table of actions by what has been earned so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ocerl.mdp.lattice import Lattice
from ocerl.optimistic._kernels import Values
from ocerl.optimistic.problem import Problem
from ocerl.optimistic.rows import BudgetRows
from ocerl.planning.policy import BudgetPolicy, Policy


@dataclass(eq=False)
class TablePolicy(Policy):
    """The plan's policy from one first budget, which may lie off the lattice: `tables[step][state, earned]`."""

    problem: Problem
    budget: float
    tables: list[NDArray[np.uint16]]
    _step: int = field(default=0, init=False)
    _earned: int = field(default=0, init=False)

    @classmethod
    def of_plan(cls, rows: BudgetRows, plan: Values, position: int) -> TablePolicy:
        """Copy out what can be met from the first budget at a position of the first row.

        Beyond a row's window the utility is linear, and what is best at its edge is best there.
        """
        arrays, problem = rows.arrays, rows.problem
        y = int(arrays.low[0]) + position
        tables: list[NDArray[np.uint16]] = []
        for step in range(problem.horizon):
            met = y + arrays.refine * np.arange(problem.earned[step] + 1) - arrays.low[step]
            column = np.clip(met, 0, arrays.width[step] - 1)
            tables.append(plan.slots[step][:, column])
        return cls(problem, float(arrays.budgets[position]), tables)

    @property
    def key(self) -> bytes:
        """What tells policies of one problem apart, so that none is judged twice."""
        return b"".join(table.tobytes() for table in self.tables)

    def reset(self) -> None:
        self._step, self._earned = 0, 0

    def act(self, state: int) -> int:
        slot = int(self.tables[self._step][state, self._earned])
        return int(self.problem.actions[self.problem.pairs(self._step, state)][slot])

    def observe(self, reward: float) -> None:
        # A reward outside the declared range is refused when the episode is learned; until then, go on.
        earned = self._earned + int(self.problem.shifts([reward])[self._step, 0])
        self._earned = min(max(earned, 0), int(self.problem.earned[self._step + 1]))
        self._step += 1

    def on(self, lattice: Lattice) -> BudgetPolicy:
        """The same policy as the planner's kind, on the lattice of the model that posed the problem."""
        return budget_policy(lattice, self.budget, self.tables)


@dataclass(eq=False)
class DecodedPolicy(Policy):
    """A policy over latents that reads them off the observation with a decoder."""

    decoder: int
    """The decoder's number."""
    decode: NDArray[np.integer]
    """`[observation]`: the latent."""
    over: TablePolicy
    """What to do by latent."""

    @property
    def budget(self) -> float:
        return self.over.budget

    @property
    def key(self) -> bytes:
        """What tells policies of one problem apart, so that none is judged twice."""
        return self.decoder.to_bytes(4) + self.over.key

    def reset(self) -> None:
        self.over.reset()

    def act(self, state: int) -> int:
        return self.over.act(int(self.decode[state]))

    def observe(self, reward: float) -> None:
        self.over.observe(reward)

    def on(self, lattice: Lattice) -> BudgetPolicy:
        """The same policy as the planner's kind, on the lattice of a model whose states are the observations."""
        return self.through(self.decode, lattice)

    def through(self, decode: NDArray[np.integer], lattice: Lattice) -> BudgetPolicy:
        """The same for a model with other states, `decode[state]` being the latent in each."""
        slots = np.diff(lattice.model.transitions(0).pair_start)
        # A state that ends the episode has one slot, whatever the decoder takes it for.
        tables = [np.minimum(table[decode], slots[:, None] - 1) for table in self.over.tables]
        return budget_policy(lattice, self.budget, tables)


def budget_policy(lattice: Lattice, budget: float, tables: Sequence[NDArray[np.integer]]) -> BudgetPolicy:
    """Tables `[step][state, earned]` as the planner's kind of policy."""
    model = lattice.model
    outside = np.zeros((model.require_horizon(), model.n_states), dtype=np.int64)
    return BudgetPolicy(lattice, 0, budget, tables, np.zeros(len(tables), dtype=np.int64), outside)
