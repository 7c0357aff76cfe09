r"""Iterated (nested, dynamic) risk, for comparison: :math:`\rho(r_1 + \gamma\rho(r_2 + \gamma\rho(r_3 + \dots)))`.

It has Bellman equations and a Markov optimum, but values each step's uncertainty on its own; the paper's
static risk, of the total reward, is another objective (Section 1.1). `iterated` returns the policy that is best
for the nested objective, so that its static risk can be compared with the optimum of `plan`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.tabular import TabularMDP
from ocerl.mdp.transitions import Transitions
from ocerl.planning.distribution import ReturnDistribution
from ocerl.planning.evaluate import evaluate
from ocerl.planning.neutral import bellman, entropic_worth
from ocerl.planning.policy import MarkovPolicy
from ocerl.risk import CVaR, Entropic, Risk, parse_risk


@dataclass(frozen=True, eq=False)
class IteratedPlan:
    """The nested value, the Markov policy that attains it, and that policy's return distribution."""

    risk: Risk
    value: float
    policy: MarkovPolicy
    returns: ReturnDistribution


def iterated(model: TabularMDP, risk: Risk | str, *, resolution: float | None = None) -> IteratedPlan:
    """The best policy for iterated CVaR or iterated entropic risk.

    The start, where it is random, is one more stage of risk. Undiscounted, the iterated entropic risk is the
    static one; iterated CVaR is neither a lower nor an upper bound of CVaR.

    >>> from ocerl.mdp import zoo
    >>> iterated(zoo.make("paper"), "cvar:0.25").value
    0.5
    """
    risk = parse_risk(risk)
    match risk:
        case CVaR(tau):
            value, policy = bellman(model, lambda t, worth: _cvar_worth(t, worth, tau), current=True)
        case Entropic(beta):
            value, policy = bellman(model, lambda t, worth: entropic_worth(t, worth, beta), current=True)
        case _:
            raise OcerlError(f"iterated risk is there for cvar and entropic, got {risk.name}")
    started = model.start > 0
    first = risk.certainty_equivalent(value[started], model.start[started])
    return IteratedPlan(risk, first.value, policy, evaluate(model, policy, resolution=resolution))


def _cvar_worth(t: Transitions, worth: NDArray[np.float64], tau: float) -> NDArray[np.float64]:
    """The mean of the worst tau of each pair's outcomes: sorted within the pair, cut off where tau is used up."""
    order = np.lexsort((worth, t.outcome_pair))
    probability = t.probability[order]
    before = np.cumsum(probability) - probability
    before -= before[t.outcome_start[:-1]][t.outcome_pair]
    counted = np.clip(tau - before, 0.0, probability)
    total = t.over_outcomes(np.add, counted)
    return t.over_outcomes(np.add, counted * worth[order]) / total
