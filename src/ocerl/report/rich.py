"""How many episodes an oracle needs, against the size of what does not matter."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from ocerl.experiments.rich import Series, Study
from ocerl.report.style import GREY, new_figure, series_colours, styled

NAMES = {
    "golf": "GOLF",
    "repucb": "Rep-UCB, 20 φ and 20 μ",
    "repucb-free-measures": "Rep-UCB, 20 φ and any μ",
    "repucb-from-nothing": "Rep-UCB, any φ and μ",
    "ucbvi": "UCB-VI",
}
AXES = {"m": "exogenous bits m (2^m exogenous states)", "S": "states S"}


def plot_rich(study: Study) -> Figure:
    """Draw a panel for each risk: means of the seeds that reached the target with 95% intervals, each seed as a dot.

    A cross at the limit stands for seeds that never reached it.

    >>> from ocerl.experiments.rich import exogenous_study
    >>> study = exogenous_study(bits=(1, 2), risks=("mean",), seeds=2, limit=300, horizon=2, workers=1)
    >>> plot_rich(study).axes[0].get_ylabel()
    'episodes to 95% of OCE*'
    """
    risks = list(dict.fromkeys(one.risk for one in study.series))
    with styled():
        figure = new_figure(4.8 * len(risks), 4.2)
        figure.suptitle(study.title, x=0.01, ha="left", fontsize="large")
        for axes, risk in zip(figure.subplots(1, len(risks), squeeze=False)[0], risks, strict=True):
            drawn = [one for one in study.series if one.risk == risk]
            for one, colour in zip(drawn, series_colours(len(drawn)), strict=True):
                _draw(axes, one, colour)
            _label(axes, drawn[0])
    return figure


def _draw(axes: Axes, one: Series, colour: str) -> None:
    points = [(x, mean, ci) for x, mean, ci in zip(one.x, one.means(), one.intervals(), strict=True) if mean]
    axes.plot([x for x, _, _ in points], [mean for _, mean, _ in points], "o-", color=colour, label=NAMES[one.oracle])
    for x, _, ci in points:
        if ci:
            axes.plot([x, x], [max(ci[0], 1.0), ci[1]], color=colour, linewidth=3, alpha=0.4)
    for x, runs in zip(one.x, one.runs, strict=True):
        reached = [run.reached for run in runs if run.reached is not None]
        axes.plot([x] * len(reached), reached, ".", color=colour, alpha=0.5, markersize=4)
        if len(reached) < len(runs):
            axes.plot([x], [one.limit], "x", color=colour)


def _label(axes: Axes, one: Series) -> None:
    axes.axhline(one.limit, color=GREY, linestyle=":", linewidth=1)
    axes.set_yscale("log")
    if one.axis == "S":
        axes.set_xscale("log")
    axes.set_xticks(one.x, [str(x) for x in one.x])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(AXES[one.axis])
    axes.set_ylabel("episodes to 95% of OCE*")
    axes.set_title(one.risk)
    axes.legend(loc="best", fontsize="small")
