"""UCB-VI where the states are many: planned again now and then, and over observations as they are discovered.

The baseline of the studies of rich observations: UCB-VI with the Hoeffding bonus, the same values as `ucbvi`, but the
policy stays between plans, and states that were not met share a row (they are all worth the most that can be
reached, and their first action is taken).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ocerl.mdp.lattice import Lattice
from ocerl.mdp.rich import ExogenousBlockMDP
from ocerl.optimistic._kernels import Values, extend
from ocerl.optimistic.blocks import BlockWorld, block_problem
from ocerl.optimistic.problem import Problem, learning_lattice
from ocerl.optimistic.rows import BudgetRows
from ocerl.optimistic.table import TablePolicy
from ocerl.optimistic.worlds import Episode
from ocerl.planning import ReturnDistribution

Floats = NDArray[np.float64]


@dataclass(eq=False)
class LazyUcbVi:
    """UCB-VI over episodes instead of counts: memory grows with what was played, not with what could follow."""

    rows: BudgetRows
    factor: float
    """The bonus is `factor / sqrt(N) · D_h(b)`."""
    growth: float = 0.05
    """Plan again when there are more episodes by this part."""
    episodes: int = 0
    planned: int = 0
    seen: NDArray[np.int32] = field(init=False)
    """`[step, episode]`: rows `(s, slot, s', units)`."""
    plan: Values = field(init=False)

    def __post_init__(self) -> None:
        self.seen = np.zeros((self.rows.problem.horizon, 64, 4), dtype=np.int32)
        self.plan = self.rows.empty_values(pessimistic=False)
        self._replan()

    def values(self) -> tuple[Floats, Floats]:
        """The first budgets and their optimistic values, as of the last plan."""
        arrays = self.rows.arrays
        begin = int(arrays.low[0] - arrays.pad_low[0])
        start = int(np.flatnonzero(self.rows.problem.start)[0])
        return arrays.budgets, self.plan.upper[0, start, begin : begin + arrays.width[0]].copy()

    def policy(self, budget: float) -> TablePolicy:
        """The greedy policy from one of the first budgets, as of the last plan."""
        return TablePolicy.of_plan(self.rows, self.plan, self.rows.first_position(budget))

    def update(self, episode: Episode) -> None:
        """Add an episode of full length; plan again if there are enough new ones."""
        problem = self.rows.problem
        if self.episodes == self.seen.shape[1]:
            self.seen = np.pad(self.seen, ((0, 0), (0, self.episodes), (0, 0)))
        units = problem.shifts(episode.rewards)[np.arange(problem.horizon), np.arange(problem.horizon)]
        for step, (state, action) in enumerate(zip(episode.states, episode.actions, strict=False)):
            self.seen[step, self.episodes] = state, action, episode.states[step + 1], units[step]
        self.episodes += 1
        if self.episodes >= (1 + self.growth) * self.planned:
            self._replan()

    def _replan(self) -> None:
        actions, plan = int(self.rows.problem.pair_start[0, 1]), self.plan
        plan_episodes(self.seen, self.episodes, actions, self.rows.arrays, self.factor, plan.upper, plan.slots)
        self.planned = self.episodes


@njit(nogil=True, cache=True)
def plan_episodes(seen, episodes, actions, rows, factor, upper, slots):  # pyright: ignore
    """`V(s, y) = max_a min { mean V(s', y + r) + factor / sqrt(N) · span, ceiling }` over the visits to each pair."""
    states, widest = upper.shape[1], rows.width.max()
    for h in range(seen.shape[0] - 1, -1, -1):
        width, base, begin = rows.width[h], rows.low[h] - rows.pad_low[h + 1], rows.low[h] - rows.pad_low[h]
        total, count = np.zeros((states, actions, widest)), np.zeros((states, actions), dtype=np.int64)
        for i in range(episodes):
            s, a, after, units = seen[h, i]
            first = base + rows.refine * units
            count[s, a] += 1
            for x in range(width):
                total[s, a, x] += upper[h + 1, after, first + x]
        for s in range(states):
            for x in range(width):
                ceiling, span, best = rows.ceiling[h, x], rows.span[h, x], -np.inf
                for a in range(actions):
                    n = count[s, a]
                    q = ceiling if n == 0 else min(total[s, a, x] / n + factor / np.sqrt(n) * span, ceiling)
                    if q > best:
                        best, slots[h, s, x] = q, a
                upper[h, s, begin + x] = max(best, ceiling - span)
            extend(upper[h, s], begin, width, rows.pad_width[h], rows.slope_left, rows.slope_right)


@dataclass(eq=False)
class RawWorld:
    """An exogenous block world as a table would show it: observations, in each step numbered as they are met.

    The last number stands for all that were not met.
    """

    inner: BlockWorld
    states: int
    numbers: NDArray[np.int32] = field(init=False)
    """`[step, observation]`."""
    met: list[int] = field(init=False)
    """`[step]`: how many there are."""
    _step: int = 0

    def __post_init__(self) -> None:
        world = self.inner.world
        shape = (world.endogenous.require_horizon() + 1, world.n_observations)
        self.numbers = np.full(shape, self.states - 1, dtype=np.int32)
        self.met = [0] * shape[0]

    def reset(self) -> int:
        self._step = 0
        return self._number(self.inner.reset())

    def step(self, action: int) -> tuple[int, float, bool]:
        observation, reward, over = self.inner.step(action)
        self._step += 1
        return self._number(observation), reward, over

    def _number(self, observation: int) -> int:
        if self.numbers[self._step, observation] == self.states - 1:
            self.numbers[self._step, observation] = self.met[self._step]
            self.met[self._step] += 1
        return int(self.numbers[self._step, observation])


def raw_problem(world: ExogenousBlockMDP, states: int) -> Problem:
    """The problem over so many discovered states in each step, the first of which is the start."""
    problem = block_problem(world)
    actions, layers = world.endogenous.n_actions, problem.horizon
    start = np.zeros(states)
    start[0] = 1.0
    return replace(
        problem,
        pair_start=np.arange(states + 1)[None, :] * actions + states * actions * np.arange(layers)[:, None],
        actions=np.tile(np.arange(actions), states * layers),
        terminal=np.zeros(states, dtype=np.bool_),
        start=start,
    )


def most_states(world: ExogenousBlockMDP, rounds: int) -> int:
    """How many observations so many episodes can meet in a step, and one number more for the others."""
    return min(world.n_observations, rounds + 1) + 1


@dataclass(eq=False)
class RawJudge:
    """The exact return distribution of a policy over raw observations, whatever the number of bits.

    The mass on (latent, exogenous bits, earned) moves as the endogenous model says, and then each bit is mixed by
    itself: `bits` passes instead of a matrix over all exogenous states.
    """

    raw: RawWorld

    def __call__(self, policy: TablePolicy) -> ReturnDistribution:
        world = self.raw.inner.world
        lattice = learning_lattice(world.endogenous)
        latents, size = world.n_latents, 1 << world.bits
        observed = np.stack([world.emit(world.code(np.full(size, z), np.arange(size))) for z in range(latents)])
        mass = np.zeros((latents, size, 1))
        mass[int(np.flatnonzero(world.endogenous.start)[0]), 0, 0] = 1.0
        for step, table in enumerate(policy.tables):
            slots = table[self.raw.numbers[step][observed]]
            mass = _moved(lattice, step, mass, slots)
            for bit, flip in enumerate(world.flips):
                halves = mass.reshape(latents, size >> (bit + 1), 2, 1 << bit, -1)
                mass = ((1 - flip) * halves + flip * halves[:, :, ::-1]).reshape(mass.shape)
        total = mass.sum(axis=(0, 1))
        met = np.flatnonzero(total > 0)
        values = np.asarray(lattice.floor + lattice.unit * met, dtype=np.float64)
        return ReturnDistribution(values, total[met] / total.sum(), (0.0, 0.0))


def _moved(lattice: Lattice, step: int, mass: Floats, slots: NDArray[np.integer]) -> Floats:
    """The mass after a step of the endogenous model, the bits as they were."""
    t, shifts = lattice.model.transitions(step), lattice.shifts(step)
    after = np.zeros((mass.shape[0], mass.shape[1], mass.shape[2] + int(shifts.max())))
    width = mass.shape[2]
    for pair in range(t.n_pairs):
        state = int(t.pair_state[pair])
        taken = np.where(slots[state, :, :width] == pair - t.pair_start[state], mass[state], 0.0)
        for i in range(int(t.outcome_start[pair]), int(t.outcome_start[pair + 1])):
            units = int(shifts[i])
            after[int(t.next_state[i]), :, units : units + width] += t.probability[i] * taken
    return after
