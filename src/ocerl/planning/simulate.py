"""Simulated episodes of a policy on a known model, all at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.tabular import TabularMDP
from ocerl.planning.policy import BudgetPolicy, MarkovPolicy


def simulate(
    model: TabularMDP, policy: BudgetPolicy | MarkovPolicy, episodes: int, seed: int = 0
) -> NDArray[np.float64]:
    """The returns of independent episodes. Works step by step over all episodes together.

    >>> from ocerl.mdp import zoo
    >>> from ocerl.planning import plan
    >>> best = plan(zoo.make("paper"), "cvar:0.25")
    >>> sorted(set(best.simulate(1000).tolist()))
    [0.0, 1.5]
    """
    if episodes < 1:
        raise OcerlError(f"the number of episodes must be at least 1, got {episodes}")
    random = np.random.default_rng(seed)
    state = random.choice(model.n_states, episodes, p=model.start)
    total = np.zeros(episodes)
    position = np.full(episodes, policy.first_position if isinstance(policy, BudgetPolicy) else 0)
    for step in range(model.require_horizon()):
        t = model.transitions(step)
        pair = t.pair_start[state] + _slots(policy, step, state, position, random)
        cumulative = np.cumsum(t.probability)
        first, last = t.outcome_start[pair], t.outcome_start[pair + 1] - 1
        base = cumulative[first] - t.probability[first]
        drawn = np.searchsorted(cumulative, base + random.random(episodes) * (cumulative[last] - base), side="right")
        outcome = np.clip(drawn, first, last)
        reward = t.reward[outcome]
        total += model.discount**step * reward
        if isinstance(policy, BudgetPolicy) and step < policy.lattice.length:
            position += policy.lattice.round_reward(step, reward)
        state = t.next_state[outcome].astype(np.int64)
    return total


def _slots(
    policy: BudgetPolicy | MarkovPolicy,
    step: int,
    state: NDArray[np.int64],
    position: NDArray[np.int64],
    random: np.random.Generator,
) -> NDArray[np.int64]:
    if isinstance(policy, BudgetPolicy):
        return policy.slots(step, state, position)
    if policy.choice is None:
        return policy.slots[step][state].astype(np.int64)
    t, choice = policy.model.transitions(step), policy.choice[step]
    slots = np.zeros(state.size, dtype=np.int64)
    left = random.random(state.size)
    for slot in range(t.max_slots):
        # Walk along each state's probabilities until the draw is used up.
        beyond = left >= 0
        exists = t.pair_start[state] + slot < t.pair_start[state + 1]
        pair = np.minimum(t.pair_start[state] + slot, choice.size - 1)
        slots[beyond & exists] = slot
        left -= np.where(exists, choice[pair], 0.0)
    return slots
