r"""UCB-VI as an optimistic oracle in the augmented MDP (Appendix D.1 and D.4).

With `n` visits to a pair `(s, a)` and the empirical distribution :math:`\hat P` of its outcomes `(s', r)`,

.. math:: \hat Q_h(s,b,a) = \hat E[\hat V_{h+1}(s', b-r)] + \mathrm{bonus}, \qquad
          \hat V_h(s,b) = \min\{ \max_a \hat Q_h(s,b,a),\ U_h(b) \},

where :math:`U_h(b)` and :math:`U_h(b) - D_h(b)` are the largest and the least utility that the rewards still to
come can reach from budget `b`. With :math:`L = c^2 \log(\cdot)`, `c` being `bonus_scale`,

* Hoeffding: :math:`D_h(b) \sqrt{L / 2n}`;
* Bernstein: :math:`\sqrt{2L/(n-1)}\,\big(\hat\sigma[\hat V_{h+1}] + \sqrt{\hat E(\hat V_{h+1} - \check V_{h+1})^2}\big)
  + \tfrac73 D_h(b) L/(n-1)`, where :math:`\check V` is a pessimistic value of the same policy.

No bonus is more than :math:`D_h(b)`, and a pair without a visit is worth the best that can be reached.

**Optimism.** Let the logarithm be that of the number of (pair, step, budget) triples times the most visits a pair
can have, over δ (four times as many for Bernstein). Then Hoeffding's inequality for :math:`V^\star_{h+1}`, or
Maurer and Pontil's empirical Bernstein bound with :math:`|V^\star - \hat V| \le \hat V - \check V`, holds
everywhere with probability 1 − δ, and by induction with `c = 1` ("theory") so does
:math:`\check V \le V^\star \le \hat V`.

Deviations from the paper: rewards are learned with the transitions, as joint outcomes (`known_rewards` is the
paper's setting); bonus and clipping follow what can be reached from `(h, b)` instead of :math:`V^{\max}`; the
default `c` is smaller than 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.optimistic._episodes import learn
from ocerl.optimistic._kernels import Counts, Told, Values, first_values, replan
from ocerl.optimistic.problem import Problem
from ocerl.optimistic.rewards import KnownRewards
from ocerl.optimistic.rows import BudgetRows, rows_of
from ocerl.optimistic.table import TablePolicy
from ocerl.optimistic.worlds import Episode
from ocerl.risk import Risk

DEFAULT_SCALE = 0.5


@dataclass(frozen=True, kw_only=True)
class UcbViConfig:
    """What can be chosen about UCB-VI."""

    rounds: int
    """The number of rounds K, which enters the bonus."""
    bonus: Literal["hoeffding", "bernstein"] = "hoeffding"
    bonus_scale: float | Literal["theory"] = DEFAULT_SCALE
    """The factor `c` of every deviation; "theory" is 1, with which optimism holds with probability 1 - delta."""
    delta: float = 0.05
    """The probability with which optimism may fail."""
    first_budgets: int = 64
    """At least so many first budgets are on the grid of a utility that is curved."""

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise OcerlError(f"rounds must be a whole number of at least 1, got {self.rounds}")
        if self.bonus not in ("hoeffding", "bernstein"):
            raise OcerlError(f"bonus must be 'hoeffding' or 'bernstein', got {self.bonus!r}")
        if self.bonus_scale != "theory" and not (
            isinstance(self.bonus_scale, float | int) and 0 <= self.bonus_scale < math.inf
        ):
            raise OcerlError(f"bonus_scale must be a number of at least 0 or 'theory', got {self.bonus_scale!r}")
        if not 0 < self.delta < 1:
            raise OcerlError(f"delta must lie strictly between 0 and 1, got {self.delta}")
        if self.first_budgets < 1:
            raise OcerlError(f"first_budgets must be at least 1, got {self.first_budgets}")


@dataclass(eq=False)
class UcbVi:
    """The oracle's state: counts, and the plan for them. `update` changes both in place."""

    problem: Problem
    rows: BudgetRows
    log_term: float
    """`L`, with the scale's square in it."""
    told: Told
    counts: Counts
    plan: Values
    atoms: dict[float, int] = field(default_factory=dict[float, int])
    """The reward values met (or known to the world), by their numbers."""

    def values(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The first budgets and their optimistic values."""
        budgets = self.rows.arrays.budgets
        values = np.empty_like(budgets)
        first_values(self.told, self.counts, self.rows.arrays, self.plan, self.log_term, values)
        return budgets, values

    def policy(self, budget: float) -> TablePolicy:
        """The greedy policy from one of the first budgets."""
        position = int(np.flatnonzero(self.rows.arrays.budgets == budget)[0])
        return TablePolicy.of_plan(self.rows, self.plan, position)

    def update(self, episode: Episode) -> None:
        """Count an episode and plan again where it changed something."""
        self.count(episode)
        replan(self.told, self.counts, self.rows.arrays, self.plan, self.log_term, False)

    def count(self, episode: Episode) -> None:
        """Count an episode without planning."""
        seen = self._compiled(episode)
        learn(self.told, self.counts, seen, len(episode.actions))

    def _compiled(self, episode: Episode) -> NDArray[np.int64]:
        """The episode as rows `(s, slot, s', atom)`, with room made for what is new in it."""
        for step, reward in enumerate(episode.rewards):
            self.problem.check_reward(step, reward)
        seen = np.zeros((max(1, len(episode.actions)), 4), dtype=np.int64)
        seen[0, 0] = episode.states[0]
        new: set[tuple[int, int, int]] = set()
        for step, (action, reward) in enumerate(zip(episode.actions, episode.rewards, strict=True)):
            state, after = episode.states[step], episode.states[step + 1]
            pairs = self.problem.pairs(step, state)
            slot = int(np.flatnonzero(self.problem.actions[pairs] == action)[0])
            seen[step] = state, slot, after, self._atom(reward)
            new.add((pairs.start + slot, after, int(seen[step, 3])))
        if not self.told.known_start.size:
            self._make_room(new)
        return seen

    def _make_room(self, outcomes: set[tuple[int, int, int]]) -> None:
        """Make the counts wide enough for some `(pair, s', atom)`, which may be new or not."""
        counts, needed = self.counts, 0
        for pair in {pair for pair, _, _ in outcomes}:
            listed = range(int(counts.used[pair]))
            old = {(pair, int(counts.next_state[pair, i]), int(counts.atom[pair, i])) for i in listed}
            needed = max(needed, len(old | {outcome for outcome in outcomes if outcome[0] == pair}))
        if needed > counts.atom.shape[1]:
            self.counts = with_room(counts, 2 * needed)

    def _atom(self, reward: float) -> int:
        if reward not in self.atoms:
            self.atoms[reward] = len(self.atoms)
            shift = np.hstack([self.told.shift, self.problem.shifts([reward])])
            self.told = self.told._replace(shift=shift)
        return self.atoms[reward]


def init(
    config: UcbViConfig,
    problem: Problem,
    risk: Risk,
    *,
    atoms: NDArray[np.float64] | None = None,
    room: int = 4,
    known: KnownRewards | None = None,
) -> UcbVi:
    """An oracle that has seen nothing, with its first plan.

    `atoms` are reward values to be numbered beforehand, `room` is how many outcomes of a pair there is space for.
    """
    rows = rows_of(problem, risk, config.first_budgets)
    values = np.empty(0) if atoms is None else atoms
    nothing, numbers = np.empty(0, dtype=np.int64), np.empty(0)
    told = Told(
        pair_start=problem.pair_start,
        terminal=problem.terminal,
        shift=problem.shifts(values),
        start=problem.start,
        known_start=nothing if known is None else known.start,
        known_next=nothing if known is None else known.next_state,
        known_atom=nothing if known is None else known.atom,
        known_weight=numbers if known is None else known.weight,
    )
    oracle = UcbVi(
        problem=problem,
        rows=rows,
        log_term=scaled_log_term(config, problem, rows),
        told=told,
        counts=no_counts(problem, room),
        plan=rows.empty_values(pessimistic=config.bonus == "bernstein"),
        atoms={float(value): number for number, value in enumerate(values)},
    )
    plan_everything(oracle)
    return oracle


def plan_everything(oracle: UcbVi) -> None:
    """Plan every row for the present counts."""
    replan(oracle.told, oracle.counts, oracle.rows.arrays, oracle.plan, oracle.log_term, True)


def scaled_log_term(config: UcbViConfig, problem: Problem, rows: BudgetRows) -> float:
    """`c² log(events · visits / delta)`: the union over everything optimism rests on.

    For one pair, one step and one budget at most 10 visits, and delta = 0.1, it would be `log(1 · 10 / 0.1)`.
    """
    scale = 1.0 if config.bonus_scale == "theory" else config.bonus_scale
    pairs = np.diff(problem.pair_start[:, [0, -1]], axis=1)[:, 0]
    events = float((np.broadcast_to(pairs, problem.horizon) * rows.arrays.width[:-1]).sum())
    if not problem.start.any():
        events += float(rows.arrays.width[0])
    visits = config.rounds * (problem.horizon if problem.layers == 1 else 1)
    sides = 4 if config.bonus == "bernstein" else 1
    return scale**2 * math.log(sides * events * visits / config.delta)


def no_counts(problem: Problem, room: int) -> Counts:
    """Counts of nothing."""
    pairs = problem.n_pairs
    return Counts(
        visits=np.zeros(pairs, dtype=np.int64),
        used=np.zeros(pairs, dtype=np.int64),
        next_state=np.zeros((pairs, room), dtype=np.int64),
        atom=np.zeros((pairs, room), dtype=np.int64),
        weight=np.zeros((pairs, room)),
        probability=np.zeros((pairs, room)),
        touched=np.zeros(pairs, dtype=np.bool_),
        start=np.zeros(problem.n_states, dtype=np.int64),
    )


def with_room(counts: Counts, room: int) -> Counts:
    """The same counts with space for more outcomes of a pair."""

    def wider(array: NDArray[np.generic]) -> NDArray[np.generic]:
        return np.pad(array, ((0, 0), (0, room - array.shape[1])))

    columns = ("next_state", "atom", "weight", "probability")
    return counts._replace(**{name: wider(getattr(counts, name)) for name in columns})
