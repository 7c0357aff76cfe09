"""A policy as a table one can read: in this step and state, between these budgets, take this action."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.tabular import Label, TabularMDP
from ocerl.planning.evaluate import fixed_moves, flow  # pyright: ignore[reportPrivateUsage]
from ocerl.planning.grid import Grid
from ocerl.planning.policy import BudgetPolicy, MarkovPolicy

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rule:
    """In `step` (from 1) and `state`, with a budget in `[lowest, highest]`, take `action`."""

    step: int
    state: Label
    lowest: float
    highest: float
    action: Label
    probability: float
    """How likely an episode is to use the rule."""


def policy_rules(
    policy: BudgetPolicy | MarkovPolicy,
    *,
    choices_only: bool = True,
    steps: Container[int] | None = None,
    rarest: float = 0.0,
) -> Iterator[Rule]:
    """The policy's rules wherever it gets to, a state's neighbouring budgets with the same action joined.

    The budget is what is still missing to the first one, in time-0 units. `choices_only` leaves out states with
    a single action; `steps` are the steps to list, if not all; what the policy meets with a probability of at
    most `rarest` is left out. A step is worked out when its first rule is asked for.

    >>> from ocerl.mdp import zoo
    >>> from ocerl.planning import plan
    >>> rules = policy_rules(plan(zoo.make("paper"), "cvar:0.25").policy, steps=[2])
    >>> [(rule.state, rule.lowest, rule.highest, rule.action) for rule in rules]
    [('s2', 0.5, 0.5, 'a2'), ('s2', 1.5, 1.5, 'a1')]
    """
    if isinstance(policy, BudgetPolicy):
        yield from _budget_rules(policy, choices_only, steps, rarest)
    elif policy.choice is None:
        yield from _markov_rules(policy, choices_only, steps, rarest)
    else:
        raise OcerlError("a policy that draws its actions has probabilities (its `choice`), not rules")


def _budget_rules(
    policy: BudgetPolicy, choices_only: bool, steps: Container[int] | None, rarest: float
) -> Iterator[Rule]:
    lattice, first = policy.lattice, policy.first_position
    grid = Grid.of(lattice, 1)
    high = grid.earned_windows(first, first).high
    masses = flow(grid, first, fixed_moves(grid, first, policy.tables, policy.low, policy.outside))
    for step, mass in zip(range(grid.length), masses, strict=False):
        if steps is not None and step + 1 not in steps:
            continue
        # Positions run against the budget: mirrored, they come from the smallest budget up.
        mirrored = mass[:, ::-1]
        state, column = np.nonzero(mirrored > rarest)
        position = high[step] - column
        slot = policy.slots(step, state, position)
        earned = lattice.origins[:step].sum() + lattice.unit * (position - first)
        budget = policy.budget - earned
        yield from _rules(
            lattice.model, step, state, slot, (budget, budget), mirrored[state, column].astype(np.float64), choices_only
        )


def _markov_rules(
    policy: MarkovPolicy, choices_only: bool, steps: Container[int] | None, rarest: float
) -> Iterator[Rule]:
    model, mass = policy.model, policy.model.start
    for step in range(model.require_horizon()):
        if steps is None or step + 1 in steps:
            state = np.flatnonzero(mass > rarest)
            slot = policy.slots[step][state].astype(np.int64)
            any_budget = np.full(state.size, -np.inf), np.full(state.size, np.inf)
            yield from _rules(model, step, state, slot, any_budget, mass[state], choices_only)
        t = model.transitions(step)
        of_pair = np.zeros(t.n_pairs)
        of_pair[t.pair_start[:-1] + policy.slots[step]] = mass
        moved = of_pair[t.outcome_pair] * t.probability
        mass = np.bincount(t.next_state, moved, t.n_states).astype(np.float64)


def _rules(
    model: TabularMDP,
    step: int,
    state: Ints,
    slot: Ints,
    budgets: tuple[Floats, Floats],
    probability: Floats,
    choices_only: bool,
) -> Iterator[Rule]:
    """Join neighbours of the same state and slot; `budgets` are the least and the largest of each."""
    t = model.transitions(step)
    new = (np.diff(state, prepend=-1) != 0) | (np.diff(slot, prepend=-1) != 0)
    first = np.flatnonzero(new)
    last = np.append(first[1:], state.size) - 1
    total = np.add.reduceat(probability, first) if first.size else probability
    for i, j, p in zip(first, last, total, strict=False):
        pair = t.pair_start[state[i]]
        if choices_only and t.pair_start[state[i] + 1] - pair == 1:
            continue
        yield Rule(
            step + 1,
            model.states[state[i]],
            float(budgets[0][i]),
            float(budgets[1][j]),
            model.actions[t.action[pair + slot[i]]],
            float(p),
        )
