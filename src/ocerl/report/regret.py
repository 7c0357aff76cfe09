"""Learning by optimism: how good the played policies are, and what the learning cost."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator
from numpy.typing import NDArray

from ocerl.experiments.regret import RegretStudy
from ocerl.optimistic import Exploration
from ocerl.report.style import BLUE, GREY, VERMILION, new_figure, series_colours, short, styled


def plot_regret(found: Exploration) -> Figure:
    """Draw the OCE of the policies played, and where the optimum is known the cumulative regret.

    Lines are means over seeds, bands 95% intervals of the means. The regret's panel has both axes logarithmic and
    a dotted line that grows like √K, to compare slopes with.

    >>> from ocerl.optimistic import explore
    >>> figure = plot_regret(explore("paper", "cvar:0.25", rounds=500, seeds=2))
    >>> [axes.get_xlabel() for axes in figure.axes]
    ['round', 'round']
    """
    with styled():
        figure = new_figure(9.6 if found.optimum is not None else 5.4, 4.0)
        title = f"{found.oracle}, {found.risk.name} of {found.model}: mean of {len(found.runs)} seeds"
        figure.suptitle(title, x=0.01, ha="left", fontsize="large")
        if found.optimum is None:
            _draw_values(figure.subplots(), found)
        else:
            left, right = figure.subplots(1, 2)
            _draw_values(left, found)
            _draw_regret(right, found, found.optimum)
    return figure


def _draw_values(axes: Axes, found: Exploration) -> None:
    rounds = found.runs[0].rounds
    kind = "exact" if found.exact else "of the returns" if found.optimum is None else "on binned rewards"
    _draw_band(axes, rounds, np.stack([run.values for run in found.runs]), f"policy played ({kind})")
    if found.optimum is not None:
        axes.axhline(found.optimum, color=VERMILION, linestyle="--", label=f"optimum {short(found.optimum)}")
    axes.set_xscale("log")
    axes.set_xlabel("round")
    axes.set_ylabel(found.risk.name)
    axes.legend(loc="lower right")


def _draw_regret(axes: Axes, found: Exploration, optimum: float) -> None:
    rounds = found.runs[0].rounds
    regret = np.stack([run.regret(optimum) for run in found.runs])
    _draw_band(axes, rounds, regret, "cumulative regret")
    last = float(regret[:, -1].mean())
    axes.set_xscale("log")
    if last > 0:
        axes.plot(rounds, last * np.sqrt(rounds / rounds[-1]), ":", color=GREY, label="√K")
        axes.set_yscale("log")
    axes.set_xlabel("round")
    axes.set_ylabel("cumulative regret")
    axes.legend(loc="upper left")


def plot_regret_study(study: RegretStudy) -> Figure:
    """Draw the three parts of the study, each with both axes logarithmic; the legend has the fitted powers.

    >>> from ocerl.experiments.regret import regret_study
    >>> study = regret_study(rounds=100, seeds=2, sizes=(2, 4), worst_rounds=100, tails=(1 / 2, 1 / 4))
    >>> [axes.get_xlabel() for axes in plot_regret_study(study).axes]
    ['round K', 'states S or actions A', 'tail τ']
    """
    with styled():
        figure = new_figure(13.0, 4.2)
        parts = (study.in_rounds, study.in_size, study.in_tail)
        names = ("round K", "states S or actions A", "tail τ")
        for axes, part, name in zip(figure.subplots(1, 3), parts, names, strict=True):
            for growth, colour in zip(part, series_colours(len(part)), strict=True):
                marker = "" if name == "round K" else "o"
                label = f"{growth.label}: {short(round(growth.power, 2))}"
                axes.plot(growth.x, growth.regret, marker=marker, color=colour, label=label)
            axes.set_xscale("log")
            axes.set_yscale("log")
            if name != "round K":  # a few points, each with its number
                at = part[0].x
                axes.set_xticks(at, labels=[short(x) for x in at])
                axes.xaxis.set_minor_locator(NullLocator())
                axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                axes.yaxis.set_major_formatter("{x:g}")
                axes.yaxis.set_minor_locator(NullLocator())
            axes.set_xlabel(name)
            if name != "round K":
                axes.set_xticks(part[0].x, [short(x) for x in part[0].x])
                axes.minorticks_off()
            axes.set_ylabel("cumulative OCE regret")
            axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), fontsize="x-small")
    return figure


def _draw_band(axes: Axes, rounds: NDArray[np.int64], curves: NDArray[np.float64], label: str) -> None:
    from scipy.special import stdtrit

    mean, seeds = curves.mean(axis=0), curves.shape[0]
    axes.plot(rounds, mean, color=BLUE, label=label)
    if seeds > 1:
        reach = stdtrit(seeds - 1, 0.975) * curves.std(axis=0, ddof=1) / np.sqrt(seeds)
        axes.fill_between(rounds, mean - reach, mean + reach, color=BLUE, alpha=0.25, linewidth=0)
