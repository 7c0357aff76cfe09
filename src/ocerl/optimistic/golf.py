r"""GOLF for exogenous block MDPs: a version space over candidate decoders, in the augmented MDP (Appendix D.3).

The class is :math:`\mathcal F_h = \bigcup_d \{ f(\phi_d(s), b, a) \}` over candidate decoders :math:`\phi_d`, `f` being
any table within what can be reached from the budget. For members that keep one decoder through all steps, GOLF's
condition :math:`\mathcal L_h(f_h, f_{h+1}) - \min_g \mathcal L_h(g, f_{h+1}) \le \beta` has two parts that add up,

.. math:: \sum_{\text{cells}} N\,(f - \text{mean})^2 \; + \; G_h(d; f_{h+1}),
          \qquad G_h = \mathrm{RSS}_d - \min_e \mathrm{RSS}_e ,

the second being how much better another decoder explains the targets :math:`\max_a f_{h+1}`. This form **relaxes** the
first part from a sum to each cell by itself, so that the largest member can be written down going backwards:

.. math:: Q_h(z,b,a) = \min\{ \text{mean} + \sqrt{\beta / N}\, D_h(b),\ U_h(b) \}, \qquad
          Q_h = U_h(b) \text{ if } N = 0,

and a decoder stays while :math:`\max_h G_h \le \beta_{dec}`, evaluated at that member. For each first budget the best
decoder that stays gives :math:`\hat V(b_1)`, read at :math:`\phi_d(s_1)`, and the policy. Within a decoder every member
of the exact version space with the same β lies below, hence the form is optimistic where the exact one is
(`finite_golf` has the exact one, and a test compares them). Across decoders it is not a relaxation of one
exact set: :math:`G_h` is taken at the optimistic member, not at each.

Deviations from the paper: errors are counted in parts of :math:`D_h(b)`, the spread of pay-offs that can still be
reached, so β has no unit; β and :math:`\beta_{dec}` are separate, their defaults smaller than the theory's; from what a
decoder explains, the noise's variance is subtracted for each cell it uses, else one that splits cells would have
the true one rejected; planning is repeated only when the episodes grew by `growth`, an episode in between plays
the version space of before. The class is complete for the true decoder, but not for those that mix in
exogenous bits: `incomplete_decoders` says for which.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.tabular import TabularMDP
from ocerl.optimistic._golf_kernels import Seen, fit
from ocerl.optimistic._kernels import Values
from ocerl.optimistic.problem import Problem, latent_problem
from ocerl.optimistic.rows import BudgetRows, rows_of
from ocerl.optimistic.table import DecodedPolicy, TablePolicy
from ocerl.optimistic.worlds import Episode
from ocerl.risk import Risk


@dataclass(frozen=True, kw_only=True)
class GolfConfig:
    """What can be chosen about GOLF."""

    beta: float = 0.25
    """β: the radius of the version space in a cell, in parts of the spread that can still be reached, squared."""
    beta_decoder: float = 3.0
    """β_dec: how much worse than another a decoder may explain what was seen, in the same unit."""
    growth: float = 0.02
    """Plan again when there are more episodes by this part."""
    unseen: float = 1.0
    """What a cell without a visit is worth: 1 is the most that can be reached, 0 the least (no optimism)."""
    first_budgets: int = 1
    """At least so many first budgets are on the grid of a utility that is curved."""

    def __post_init__(self) -> None:
        for name in ("beta", "beta_decoder", "growth"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise OcerlError(f"{name} must be a number of at least 0, got {getattr(self, name)}")
        if not 0 <= self.unseen <= 1:
            raise OcerlError(f"unseen must be between 0 and 1, got {self.unseen}")
        if self.first_budgets < 1:
            raise OcerlError(f"first_budgets must be at least 1, got {self.first_budgets}")


@dataclass(eq=False)
class Golf:
    """The oracle's state: the episodes, and for every decoder the plan and the test."""

    config: GolfConfig
    decoders: NDArray[np.integer]
    """`[decoder, observation]`."""
    start: int
    """The observation that episodes begin with."""
    rows: BudgetRows
    plan: Values
    """With a first axis of decoders."""
    seen: Seen
    statistic: NDArray[np.float64]
    """`[decoder]`: the largest G of its steps."""
    episodes: int = 0
    planned: int = 0

    @property
    def survivors(self) -> NDArray[np.bool_]:
        """The decoders that the version space still has."""
        return self.statistic <= self.config.beta_decoder

    def values(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The first budgets and their optimistic values."""
        return self.rows.arrays.budgets, self._first_values().max(axis=0)

    def policy(self, budget: float) -> DecodedPolicy:
        """The greedy policy of the most optimistic decoder for one of the first budgets."""
        position = self.rows.first_position(budget)
        return self.decoded(int(self._first_values()[:, position].argmax()), position)

    def decoded(self, decoder: int, position: int) -> DecodedPolicy:
        """A decoder's greedy policy from the first budget at a position."""
        plan = self.plan._replace(slots=self.plan.slots[decoder])
        return DecodedPolicy(decoder, self.decoders[decoder], TablePolicy.of_plan(self.rows, plan, position))

    def update(self, episode: Episode) -> None:
        """Add an episode, and plan again if there are enough new ones."""
        self._add(episode)
        if self.episodes >= (1 + self.config.growth) * self.planned:
            self.replan()

    def replan(self) -> None:
        """Regress, be optimistic, and test every decoder."""
        self._fit(math.sqrt(self.config.beta), self.config.unseen)
        self.planned = self.episodes
        if not self.survivors.any():
            raise OcerlError(
                f"the version space is empty after {self.episodes} episodes: "
                f"beta_decoder={self.config.beta_decoder:g} "
                f"rejects all {len(self.decoders)} decoders; at least {self.statistic.min():.4g} would admit one "
                "(or none of them decodes this world)"
            )

    def _fit(self, bonus: float, unseen: float) -> None:
        actions, plan = int(self.rows.problem.pair_start[0, 1]), self.plan
        fit(
            self.seen, self.episodes, actions, self.rows.arrays, bonus, unseen, plan.upper, plan.slots, self.statistic
        )  # fmt: skip

    def _add(self, episode: Episode) -> None:
        problem, number = self.rows.problem, self.episodes
        if number == self.seen.column.shape[1]:
            latent, *others = self.seen
            column, after, slot = (np.pad(array, ((0, 0), (0, number))) for array in others)
            self.seen = Seen(np.pad(latent, ((0, 0), (0, 0), (0, number))), column, after, slot)
        seen, ends = self.seen, problem.n_states - 1
        length = len(episode.actions)
        seen.latent[:, : length + 1, number] = self.decoders[:, episode.states]
        seen.latent[:, length if length < problem.horizon else length + 1 :, number] = ends
        for step, (column, after, slot) in enumerate(augmented(self.rows, episode)):
            seen.column[step, number], seen.after[step, number], seen.slot[step, number] = column, after, slot
        self.episodes += 1

    def _first_values(self) -> NDArray[np.float64]:
        """`[decoder, position]`, with nothing for those that were rejected."""
        return np.where(self.survivors[:, None], self._planned_first(), -np.inf)

    def _planned_first(self) -> NDArray[np.float64]:
        """`[decoder, position]`: the values of the first step, at what each decoder takes the start for."""
        arrays = self.rows.arrays
        begin = int(arrays.low[0] - arrays.pad_low[0])
        latents = self.decoders[:, self.start]
        return self.plan.upper[np.arange(len(self.decoders)), 0, latents, begin : begin + arrays.width[0]]


def init(
    config: GolfConfig, problem: Problem, risk: Risk, decoders: NDArray[np.integer], *, start: int | None = None
) -> Golf:
    """An oracle that has seen nothing: every decoder stays, and every cell is worth the most that can be reached.

    `problem` is the one over observations; `start` the observation that episodes begin with, unless it says so.
    """
    if decoders.ndim != 2 or decoders.size == 0 or decoders.min() < 0:
        raise OcerlError(f"decoders must be a table [decoder, observation] of latents, got shape {decoders.shape}")
    if start is None:
        if not problem.start.any():
            raise OcerlError("GOLF needs a certain start: its values are read at the first observation")
        start = int(np.flatnonzero(problem.start)[0])
    rows = rows_of(latent_problem(problem, int(decoders.max()) + 1), risk, config.first_budgets)
    plan = rows.empty_values(pessimistic=False)
    count = len(decoders)
    horizon, room = rows.problem.horizon, 64
    golf = Golf(
        config=config,
        decoders=decoders,
        start=start,
        rows=rows,
        plan=plan._replace(
            upper=np.tile(plan.upper, (count, 1, 1, 1)), slots=np.zeros((count, *plan.slots.shape), dtype=np.uint16)
        ),
        seen=Seen(
            latent=np.zeros((count, horizon + 1, room), dtype=np.int16),
            column=np.zeros((horizon, room), dtype=np.int32),
            after=np.zeros((horizon, room), dtype=np.int32),
            slot=np.zeros((horizon, room), dtype=np.int32),
        ),
        statistic=np.zeros(count),
    )
    golf.replan()
    return golf


def recommend(golf: Golf) -> DecodedPolicy:
    """The policy a run ends with: of the decoder that explains best, with the bonus turned into a malus.

    What was hardly seen is not trusted: a mean of one lucky visit would be.
    """
    plan = golf.plan._replace(upper=golf.plan.upper.copy(), slots=golf.plan.slots.copy())
    careful = replace(golf, plan=plan, statistic=golf.statistic.copy())
    careful._fit(-math.sqrt(golf.config.beta), unseen=0.0)  # pyright: ignore[reportPrivateUsage]
    decoder = int(careful.statistic.argmin())
    values = careful._planned_first()[decoder]  # pyright: ignore[reportPrivateUsage]
    return careful.decoded(decoder, int((golf.rows.arrays.budgets + values).argmax()))


def incomplete_decoders(model: TabularMDP, decoders: ArrayLike) -> list[int]:
    r"""The decoders whose functions have Bellman backups outside of the class, on a model over observations.

    Every :math:`f(\phi_d(s'), b', a')` has its backup in the class iff some decoder `e` tells apart all `(s, a)`
    that differ in the joint distribution of :math:`(r, \phi_d(s'))`; states that cannot be met do not count.

    >>> from ocerl.mdp.rich import exogenous_lock
    >>> world = exogenous_lock(bits=2, candidates=3)
    >>> found = incomplete_decoders(world.model(), world.decoders)
    >>> world.truth in found, len(found)
    (False, 2)
    """
    table = np.asarray(decoders)
    reached = model.reachable()
    complete = np.ones(len(table), dtype=np.bool_)
    for step in range(model.require_horizon() - 1):
        t = model.transitions(step)
        values, atom = np.unique(t.reward, return_inverse=True)
        for d, decode in enumerate(table):
            kinds = int(table.max()) + 1
            ahead = np.zeros((t.n_pairs, kinds * values.size))
            np.add.at(ahead, (t.outcome_pair, decode[t.next_state] * values.size + atom), t.probability)
            met = reached[step][t.pair_state]
            complete[d] &= any(
                _constant(other[t.pair_state[met]] * model.n_actions + t.action[met], ahead[met]) for other in table
            )
    return np.flatnonzero(~complete).tolist()


def _constant(cell: NDArray[np.integer], rows: NDArray[np.float64]) -> bool:
    """Whether all rows of a cell are the same."""
    _, first, where = np.unique(cell, return_index=True, return_inverse=True)
    return bool(np.allclose(rows, rows[first][where], atol=1e-9))


def augmented(rows: BudgetRows, episode: Episode) -> list[tuple[int, int, int]]:
    """An episode in the augmented MDP, for each step: the column of its budget, that of the next one, the slot."""
    if episode.budget is None:
        raise OcerlError("GOLF learns from episodes that know the first budget of the policy that played")
    problem, found = rows.problem, list[tuple[int, int, int]]()
    y = int(rows.arrays.low[0]) + rows.first_position(episode.budget)
    for step, (action, reward) in enumerate(zip(episode.actions, episode.rewards, strict=True)):
        problem.check_reward(step, reward)
        shift = int(problem.shifts([reward])[step, 0])
        column = rows.column(step, y)
        slot = int(np.flatnonzero(problem.actions[problem.pairs(step, 0)] == action)[0])
        found.append((column, rows.after(step, column, shift), slot))
        y += rows.arrays.refine * shift
    return found
