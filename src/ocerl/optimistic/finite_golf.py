r"""GOLF over finite function classes, exactly as written in Appendix D.3.

Each :math:`\mathcal F_h` is a list of tables over (state, budget, action). The condition of the version space couples
neighbouring steps only,

.. math:: \mathcal L_h(f_h, f_{h+1}) \le \min_{g \in \mathcal F_h} \mathcal L_h(g, f_{h+1}) + \beta
          \quad\text{for all } h,

so a member `(f_1, …, f_H)` is a path through admissible pairs. Going backwards finds which `f_1` begin such a path,
and :math:`\hat V(b_1)` is the largest :math:`\max_a f_1(s_1, b_1, a)` among them: the optimum over all paths without
listing them. In a product class, as the paper has it, the version space is never empty: from the last step back,
take each time the member of least loss. With `groups`, a path stays in one group (as one decoder through all
steps) while the comparison is with all members, and then it can be.

With `weighted`, each squared error is divided by the square of what can still be reached from its budget, as in
`golf`; unweighted it is the paper's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.lattice import Lattice
from ocerl.optimistic._kernels import Values
from ocerl.optimistic.golf import augmented
from ocerl.optimistic.problem import Problem
from ocerl.optimistic.rows import BudgetRows, rows_of
from ocerl.optimistic.table import TablePolicy
from ocerl.optimistic.worlds import Episode
from ocerl.risk import Risk

Floats = NDArray[np.float64]


@dataclass(eq=False)
class FiniteGolf:
    """The oracle's state: the losses of all pairs of neighbouring members, and what they leave."""

    rows: BudgetRows
    start: int
    classes: Sequence[Floats]
    """`[step]`: tables `[member, state, column, action]`, columns as in the rows of budgets."""
    beta: float
    weighted: bool = False
    groups: Sequence[NDArray[np.int64]] | None = None
    """`[step]`: the group of each member, if a path has to stay in one."""
    ahead: list[Floats] = field(init=False)
    """`[step]`: `max_a f` over the padded rows, `[member, state, column]`; after the last step the pay-off."""
    losses: list[Floats] = field(init=False)
    """`[step]`: the loss of each member with each of the next step, `[member, next member]`."""

    def __post_init__(self) -> None:
        problem = self.rows.problem
        for step, (tables, width) in enumerate(zip(self.classes, self.rows.arrays.width[:-1], strict=True)):
            actions = np.diff(problem.pair_start[0])[0]
            expected = (problem.n_states, int(width), int(actions))
            if tables.ndim != 4 or tables.shape[0] == 0 or tables.shape[1:] != expected:
                raise OcerlError(
                    f"step {step + 1}: the class must have shape (members, {expected}), got {tables.shape}"
                )
        end = self.rows.empty_values(pessimistic=False).upper[-1][None]
        best = [self.rows.extended(step, tables.max(axis=3)) for step, tables in enumerate(self.classes)]
        self.ahead = [*best, end]
        self.losses = [np.zeros((len(f), len(g))) for f, g in zip(self.classes, self.ahead[1:], strict=True)]

    def values(self) -> tuple[Floats, Floats]:
        """The first budgets and their optimistic values."""
        return self.rows.arrays.budgets, self._first().max(axis=0)

    def policy(self, budget: float) -> TablePolicy:
        """The greedy policy of the most optimistic member for one of the first budgets."""
        position = self.rows.first_position(budget)
        member, slots = int(self._first()[:, position].argmax()), list[NDArray[np.int64]]()
        pairs = self._admissible()
        for step, tables in enumerate(self.classes):
            slots.append(tables[member].argmax(axis=2))
            member = int(pairs[step][member].argmax())
        widest = int(self.rows.arrays.width.max())
        table = np.stack([np.pad(slot, ((0, 0), (0, widest - slot.shape[1]))) for slot in slots]).astype(np.uint16)
        empty = np.empty((0, 0, 0))
        plan = Values(empty, empty, table, np.empty((0, 0), dtype=np.bool_), np.empty((0, 0)))
        return TablePolicy.of_plan(self.rows, plan, position)

    def update(self, episode: Episode) -> None:
        """Add the squared TD errors of an episode for all pairs of members."""
        for step, (column, after, slot) in enumerate(augmented(self.rows, episode)):
            state, follows = episode.states[step], episode.states[step + 1]
            target = self.ahead[step + 1][:, follows, after]
            error = self.classes[step][:, state, column, slot][:, None] - target[None, :]
            span = float(self.rows.arrays.span[step, column]) if self.weighted else 1.0
            if span > 0:
                self.losses[step] += (error / span) ** 2

    @property
    def threshold(self) -> float:
        """The least β with which the version space is not empty."""
        need = np.zeros(1)
        for excess in reversed(self._excess()):
            need = np.maximum(excess, need[None, :]).min(axis=1)
        return float(need.min())

    def _excess(self) -> list[Floats]:
        """`[step]`: by how much a member's loss is above the least, infinite for a pair of two groups."""
        excess = [loss - loss.min(axis=0) for loss in self.losses]
        if self.groups is not None:
            for found, own, following in zip(excess, self.groups, self.groups[1:], strict=False):
                found[own[:, None] != following[None, :]] = np.inf
        return excess

    def _admissible(self) -> list[NDArray[np.bool_]]:
        """`[step]`: which pairs of members are part of the version space, `[member, next member]`."""
        alive: NDArray[np.bool_] = np.ones(1, dtype=np.bool_)
        found: list[NDArray[np.bool_]] = []
        for excess in reversed(self._excess()):
            found.append(np.logical_and(excess <= self.beta, alive[None, :]))
            alive = np.any(found[-1], axis=1)
        if not alive.any():
            raise OcerlError(
                f"the version space is empty at beta={self.beta:g}: at least {self.threshold:.4g} would admit a member "
                "(is the class complete? `incompleteness` says how far backups are from it)"
            )
        return found[::-1]

    def _first(self) -> Floats:
        """`[member of the first step, position]`: its value at the start, nothing for those that are out."""
        alive: NDArray[np.bool_] = np.any(self._admissible()[0], axis=1)
        return np.where(alive[:, None], self.classes[0][:, self.start].max(axis=2), -np.inf)


def init(
    problem: Problem,
    risk: Risk,
    classes: Sequence[Floats],
    *,
    beta: float,
    start: int,
    weighted: bool = False,
    groups: Sequence[NDArray[np.int64]] | None = None,
) -> FiniteGolf:
    """An oracle that has seen nothing, over classes with as many columns as `rows_of(problem, risk, 1)` has."""
    return FiniteGolf(rows_of(problem, risk, 1), start, classes, beta, weighted, groups)


def incompleteness(golf: FiniteGolf, lattice: Lattice) -> list[float]:
    r"""For each step, how far the backup of some member of the next step is from the class, in the largest norm.

    .. math:: \max_{f \in \mathcal F_{h+1}} \min_{g \in \mathcal F_h} \| T f - g \|_\infty

    The class is complete on this model if all are 0.
    """
    found: list[float] = []
    for step, tables in enumerate(golf.classes):
        t, ahead = lattice.model.transitions(step), golf.ahead[step + 1]
        width = tables.shape[2]
        columns = np.arange(width)
        backup = np.zeros((len(ahead), t.n_pairs, width))
        for i, (pair, target, units) in enumerate(zip(t.outcome_pair, t.next_state, lattice.shifts(step), strict=True)):
            at = golf.rows.after(step, 0, int(units)) + columns
            backup[:, pair] += t.probability[i] * ahead[:, target][:, at]
        own = np.moveaxis(tables, 3, 2).reshape(len(tables), -1, width)[:, : t.n_pairs]
        apart = np.abs(backup[:, None] - own[None]).max(axis=(2, 3))
        found.append(float(apart.min(axis=1).max()))
    return found
