"""The risk frontier: what each level of CVaR can have at best, and what it costs in the mean."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ocerl.planning import Frontier
from ocerl.report.style import BLUE, VERMILION, new_figure, short, styled
from ocerl.risk import CVaR

APART = (0.2, 0.07)
"""Points nearer than this part of the panel, across and up, to one that is named are not named."""


def plot_frontier(frontier: Frontier) -> Figure:
    """Draw the best CVaR over the level with the mean of the same policy, and the price of each level.

    The price is told against the policy for the highest level, the risk-neutral one if that is 1: how much of
    the mean each level's best policy gives up, and how much it gains in the tail it is best for.

    >>> from ocerl.mdp import zoo
    >>> from ocerl.planning import frontier
    >>> figure = plot_frontier(frontier(zoo.make("paper"), [0.25, 0.5, 1.0]))
    >>> figure.axes[0].lines[0].get_ydata().tolist()
    [0.75, 1.125, 1.625]
    """
    proof = "exact" if frontier.exact else "certified"
    with styled():
        figure = new_figure(9.6, 4.2)
        title = f"risk frontier of {frontier.model.name}, {frontier.model.horizon} steps ({proof})"
        figure.suptitle(title, x=0.01, ha="left", fontsize="large")
        left, right = figure.subplots(1, 2)
        _draw_levels(left, frontier)
        _draw_price(right, frontier)
    return figure


def _draw_levels(axes: Axes, frontier: Frontier) -> None:
    levels = frontier.levels
    axes.plot(levels, frontier.values, "o-", color=BLUE, markersize=4, label="best CVaR")
    if not frontier.exact:
        axes.fill_between(levels, frontier.values, frontier.uppers, color=BLUE, alpha=0.25, linewidth=0)
    axes.plot(levels, frontier.means, "s-", color=VERMILION, markersize=4, label="mean of the same policy")
    axes.set_xlabel("level τ, the mass of the worst tail")
    axes.set_ylabel("total reward")
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.2)


def _draw_price(axes: Axes, frontier: Frontier) -> None:
    top = int(frontier.levels.argmax())
    given_up = frontier.means[top] - frontier.means
    gained = np.array(
        [
            returns.certainty_equivalent(risk) - frontier.returns[top].certainty_equivalent(risk)
            for risk, returns in zip(map(CVaR, frontier.levels.tolist()), frontier.returns, strict=True)
        ]
    )
    axes.plot(given_up, gained, "o", color=BLUE, markersize=5)
    axes.margins(0.2, 0.08)
    for index in _apart(np.column_stack((given_up, gained))):
        axes.annotate(
            f"τ = {short(frontier.levels[index])}",
            (given_up[index], gained[index]),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
        )
    axes.set_xlabel("mean given up")
    axes.set_ylabel("CVaR at the level gained")
    axes.set_title(f"against the policy for τ = {short(frontier.levels[top])}")


def _apart(points: NDArray[np.float64]) -> list[int]:
    """The points to name: the first and the last, then those that are not too near to one that is named."""
    span = np.ptp(points, axis=0)
    scaled = points / np.where(span > 0, span, 1.0) / APART
    named: list[int] = []
    for index in dict.fromkeys((0, len(points) - 1, *range(len(points)))):
        if all(np.hypot(*(scaled[index] - scaled[other])) > 1 for other in named):
            named.append(index)
    return named
