"""A plan on one page: what the return will be, and what the policy does."""

from __future__ import annotations

from matplotlib.figure import Figure

from ocerl.planning import MarkovPolicy, Plan
from ocerl.report.policy import draw_policy, panels, shown_states
from ocerl.report.returns import draw_returns
from ocerl.report.style import GREY, new_figure, short, styled

RETURNS_WIDTH = 5.4


def plot_plan(plan: Plan) -> Figure:
    """Draw the plan's return distribution against the risk-neutral policy's, and beside it its policy.

    >>> from ocerl.mdp import zoo
    >>> from ocerl.planning import plan
    >>> figure = plot_plan(plan(zoo.make("paper"), "cvar:0.25"))
    >>> [float(bar.get_height()) for bar in figure.axes[0].patches[:2]]
    [0.125, 0.875]
    """
    found = panels(plan.policy)
    states, of = shown_states(plan.model, found)
    width = 2.2 + 1.2 * max(2, len(found))
    with styled():
        figure = new_figure(RETURNS_WIDTH + width, max(4.4, 1.9 + 0.17 * len(states)))
        figure.suptitle(_headline(plan), x=0.01, ha="left", fontsize="large")
        ((left, right),) = figure.subfigures(1, 2, squeeze=False, width_ratios=[RETURNS_WIDTH, width])
        returns = {f"best for {plan.risk.name}": plan.returns, "risk-neutral": plan.neutral_returns}
        draw_returns(left, returns, plan.risk)
        if found:
            axis = "step" if isinstance(plan.policy, MarkovPolicy) else "budget: what is still missing"
            draw_policy(right, plan.model, found, states, of, axis)
        else:
            right.text(0.5, 0.5, "no state leaves a choice", ha="center", va="center", color=GREY)
    return figure


def _headline(plan: Plan) -> str:
    proof = "exact" if plan.exact else f"the optimum is in [{short(plan.lower)}, {short(plan.upper)}]"
    steps = "1 step" if plan.model.horizon == 1 else f"{plan.model.horizon} steps"
    return f"{plan.risk.name} of {plan.model.name}, {steps}: {short(plan.value)} ({proof})"
