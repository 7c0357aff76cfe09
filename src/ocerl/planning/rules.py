"""A policy as a table one can read: in this step and state, between these budgets, take this action."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocerl.mdp.tabular import Label
from ocerl.planning.grid import Grid
from ocerl.planning.policy import BudgetPolicy, MarkovPolicy


@dataclass(frozen=True)
class Rule:
    """In `step` (from 1) and `state`, with a budget in `[lowest, highest]`, take `action`."""

    step: int
    state: Label
    lowest: float
    highest: float
    action: Label


def policy_rules(policy: BudgetPolicy | MarkovPolicy, *, choices_only: bool = True) -> Iterator[Rule]:
    """The policy's rules for every budget that can be met from its first one, neighbours with the same action joined.

    The budget is what is still missing to the first one, in time-0 units. `choices_only` leaves out states with
    a single action.

    >>> from ocerl.mdp import zoo
    >>> from ocerl.planning import plan
    >>> rules = policy_rules(plan(zoo.make("paper"), "cvar:0.25").policy)
    >>> [(rule.state, rule.lowest, rule.highest, rule.action) for rule in rules if rule.step == 2]
    [('s2', 0.5, 0.5, 'a2'), ('s2', 1.5, 1.5, 'a1')]
    """
    if isinstance(policy, MarkovPolicy):
        yield from _markov_rules(policy, choices_only)
        return
    grid = Grid.of(policy.lattice, 1)
    model, unit = policy.lattice.model, policy.lattice.unit
    met = _met_positions(grid, policy)
    remaining = np.append(np.cumsum(policy.lattice.origins[::-1])[::-1], 0.0) + policy.lattice.tail
    for step in range(grid.length):
        t = grid.transitions(step)
        for state in grid.states[step]:
            positions = met[step][int(state)]
            count = int(t.pair_start[state + 1] - t.pair_start[state])
            if not positions.size or (choices_only and count == 1):
                continue
            budgets = remaining[step] - unit * positions
            slots = policy.slots(step, np.full(positions.size, state), positions)
            actions = t.action[t.pair_start[state] + slots]
            # From the smallest budget up.
            order = np.argsort(budgets)
            budgets, actions = budgets[order], actions[order]
            cuts = np.flatnonzero(np.diff(actions)) + 1
            for part, chosen in zip(np.split(budgets, cuts), np.split(actions, cuts), strict=True):
                label = model.actions[int(chosen[0])]
                yield Rule(step + 1, model.states[int(state)], float(part[0]), float(part[-1]), label)


def _met_positions(grid: Grid, policy: BudgetPolicy) -> list[dict[int, NDArray[np.int64]]]:
    """For each step and state the positions that some play of actions reaches from the first one."""
    met: list[dict[int, NDArray[np.int64]]] = []
    current = {int(s): np.array([policy.first_position]) for s in grid.states[0]}
    for step in range(grid.length):
        met.append(current)
        t, shift = grid.transitions(step), grid.lattice.shifts(step)
        gathered: dict[int, list[NDArray[np.int64]]] = {}
        for state, positions in current.items():
            first, last = t.outcome_start[t.pair_start[state]], t.outcome_start[t.pair_start[state + 1]]
            for outcome in range(int(first), int(last)):
                gathered.setdefault(int(t.next_state[outcome]), []).append(positions + shift[outcome])
        current = {state: np.unique(np.concatenate(parts)) for state, parts in gathered.items()}
    return met


def _markov_rules(policy: MarkovPolicy, choices_only: bool) -> Iterator[Rule]:
    model = policy.model
    for step, reached in enumerate(model.reachable()[:-1]):
        t = model.transitions(step)
        for state in np.flatnonzero(reached):
            if choices_only and t.pair_start[state + 1] - t.pair_start[state] == 1:
                continue
            action = t.action[t.pair_start[state] + policy.slots[step, state]]
            yield Rule(step + 1, model.states[int(state)], -np.inf, np.inf, model.actions[int(action)])
