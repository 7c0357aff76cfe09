r"""Risk-neutral and exponential Bellman equations: the two risks whose best policy needs no budget."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ocerl.mdp.tabular import TabularMDP
from ocerl.mdp.transitions import Transitions
from ocerl.planning import _kernels
from ocerl.planning.policy import MarkovPolicy

Aggregate = Callable[[Transitions, NDArray[np.float64]], NDArray[np.float64]]
"""From the worth of each outcome to the worth of each pair."""


def bellman(
    model: TabularMDP, aggregate: Aggregate, *, current: bool = False
) -> tuple[NDArray[np.float64], MarkovPolicy]:
    r"""Backward induction :math:`V_h(s) = \max_a \rho[\gamma^h r + V_{h+1}(s')]`, in time-0 units.

    With `current`, in each step's own units instead: :math:`V_h(s) = \max_a \rho[r + \gamma V_{h+1}(s')]`.
    Returns the values of the first step's states and the greedy policy.
    """
    slots = _no_slots(model)
    value = np.zeros(model.n_states)
    for step in reversed(range(slots.shape[0])):
        t = model.transitions(step)
        paid, ahead = (1.0, model.discount) if current else (model.discount**step, 1.0)
        worth = aggregate(t, paid * t.reward + ahead * value[t.next_state])
        slots[step] = t.greedy_slot(worth)
        value = t.over_actions(np.maximum, worth)
    return value, MarkovPolicy(model, slots)


def risk_neutral(model: TabularMDP) -> tuple[float, MarkovPolicy]:
    r"""The largest mean return and a policy that has it.

    >>> from ocerl.mdp import zoo
    >>> risk_neutral(zoo.make("paper"))[0]
    1.625
    """
    slots = _no_slots(model)
    value, out = np.zeros((2, model.n_states))
    for step in reversed(range(model.require_horizon())):
        t = model.transitions(step)
        outcomes = (t.pair_start, t.outcome_start, t.probability, t.next_state, t.reward)
        _kernels.mean_backup(*outcomes, model.discount**step, value, out, slots[step])
        value, out = out, value
    return float(model.start @ value), MarkovPolicy(model, slots)


def exponential(model: TabularMDP, beta: float) -> tuple[float, MarkovPolicy]:
    r"""The exponential Bellman equation of the entropic risk, an independent path without budgets.

    :math:`W_h(s) = \max_a \frac1\beta \log \mathbb E\, e^{\beta(\gamma^h r + W_{h+1}(s'))}`, by log-sum-exp, so
    that large :math:`|\beta|` times a large return does not overflow (Fei et al., 2021).

    >>> from ocerl.mdp import zoo
    >>> round(exponential(zoo.make("paper"), -1.0)[0], 4)
    1.2537
    """

    value, policy = bellman(model, lambda t, worth: entropic_worth(t, worth, beta))
    started = model.start > 0
    least = value[started].min()
    total = model.start[started] @ np.expm1(beta * (value[started] - least))
    return float(least + np.log1p(total) / beta), policy


def entropic_worth(t: Transitions, worth: NDArray[np.float64], beta: float) -> NDArray[np.float64]:
    """The entropic risk of each pair's outcomes, relative to the worst one so that nothing overflows."""
    least = t.over_outcomes(np.minimum, worth)
    return least + np.log1p(t.expected(np.expm1(beta * (worth - least[t.outcome_pair])))) / beta


def _no_slots(model: TabularMDP) -> NDArray[np.unsignedinteger]:
    """A table for every step and state, in the smallest type that holds a slot."""
    kind = np.min_scalar_type(max(step.max_slots for step in model.steps))
    return np.zeros((model.require_horizon(), model.n_states), dtype=kind)
