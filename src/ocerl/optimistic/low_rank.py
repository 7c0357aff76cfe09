"""A low-rank MDP to play in without a table of it, and exact judgement of policies there."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ocerl.mdp.rich import LowRankMDP
from ocerl.optimistic.problem import Problem, learning_lattice
from ocerl.optimistic.repucb import StepRewards
from ocerl.optimistic.table import TablePolicy, budget_policy
from ocerl.planning import ReturnDistribution, evaluate
from ocerl.planning.policy import BudgetPolicy


class LowRankWorld:
    """Draws a latent from the features and a state from its measure."""

    def __init__(self, world: LowRankMDP, random: np.random.Generator) -> None:
        self.world, self.random = world, random
        self._latent = np.cumsum(world.features, axis=-1)
        self._emission = np.cumsum(world.measures, axis=-1)
        self._state, self._step = 0, 0

    def reset(self) -> int:
        self._state, self._step = 0, 0
        return self._state

    def step(self, action: int) -> tuple[int, float, bool]:
        step, state = self._step, self._state
        reward = float(self.world.rewards[step, state, action])
        latent = _drawn(self._latent[step, state, action], self.random.random())
        self._state = _drawn(self._emission[step, latent], self.random.random())
        self._step += 1
        return self._state, reward, False


def _drawn(cumulative: NDArray[np.float64], uniform: float) -> int:
    """The number that a uniform draw selects; the last sum may be a little below 1."""
    return min(int(np.searchsorted(cumulative, uniform * cumulative[-1], side="right")), cumulative.size - 1)


def low_rank_problem(world: LowRankMDP) -> Problem:
    """What a learner is told: states and actions, the horizon, the rewards' ranges and their unit."""
    steps, states, actions = world.horizon, world.n_states, world.n_actions
    pairs, lattice = np.arange(states + 1) * actions, learning_lattice(world.expanded)
    start = np.zeros(states)
    start[0] = 1.0
    return Problem(
        horizon=steps,
        pair_start=pairs[None, :] + states * actions * np.arange(steps)[:, None],
        actions=np.tile(np.arange(actions), steps * states),
        terminal=np.zeros(states, dtype=np.bool_),
        start=start,
        unit=lattice.unit,
        origins=lattice.origins[::2],
        most=np.array([int(lattice.shifts(step).max()) for step in range(0, lattice.length, 2)]),
    )


def low_rank_rewards(world: LowRankMDP) -> StepRewards:
    """The world's rewards, one for each state and action in a step."""
    atoms = np.unique(world.rewards)
    problem = low_rank_problem(world)
    # Beyond the range are rewards of states that the step cannot meet.
    shifts = np.clip(problem.shifts(atoms), 0, problem.most[:, None])
    weights = (world.rewards[..., None] == atoms).astype(np.float64)
    return StepRewards(shifts, weights)


@dataclass(eq=False)
class LowRankJudge:
    """The exact return distribution of a policy, in the world with its latents as states."""

    world: LowRankMDP
    _judged: dict[bytes, ReturnDistribution] = field(default_factory=dict[bytes, ReturnDistribution])

    def __call__(self, policy: TablePolicy) -> ReturnDistribution:
        if policy.key not in self._judged:
            self._judged[policy.key] = evaluate(self.world.expanded, self.expanded(policy))
        return self._judged[policy.key]

    def expanded(self, policy: TablePolicy) -> BudgetPolicy:
        """The policy in the expanded world: its tables in every other step, the latents' one action in between."""
        rank, tables = self.world.rank, list[NDArray[np.integer]]()
        for table, following in zip(policy.tables, [*policy.tables[1:], None], strict=True):
            tables.append(np.pad(table, ((0, rank), (0, 0))))
            if following is not None:
                tables.append(np.zeros((following.shape[0] + rank, following.shape[1]), dtype=np.uint16))
        return budget_policy(learning_lattice(self.world.expanded), policy.budget, tables)
