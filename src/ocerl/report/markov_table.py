"""The paper's Table 2 as a picture: how far the best Markov policy falls short of the optimum."""

from __future__ import annotations

from matplotlib.figure import Figure

from ocerl.experiments import MarkovTable
from ocerl.report.style import BLUE, GREY, VERMILION, new_figure, short, styled


def plot_markov_table(table: MarkovTable) -> Figure:
    """Draw a row for each risk: the optimum, the best Markov policy, and the paper's figure for the latter.

    >>> from ocerl.experiments import markov_table
    >>> [tick.get_text() for tick in plot_markov_table(markov_table()).axes[0].get_yticklabels()][-2:]
    ['cvar:0.25', 'cvar:0.5']
    """
    optimum, markov = [row.optimum for row in table.rows], [row.markov for row in table.rows]
    printed = [(row.markov_paper, i) for i, row in enumerate(table.rows) if row.markov_paper is not None]
    places = range(len(table.rows))
    with styled():
        figure = new_figure(7.4, 1.4 + 0.36 * len(table.rows))
        axes = figure.subplots()
        axes.hlines(places, markov, optimum, color=GREY, linewidth=1.5)
        axes.plot(optimum, places, "D", color=BLUE, label="optimum")
        axes.plot(markov, places, "o", color=VERMILION, label="best Markov policy")
        axes.plot(*zip(*printed, strict=True), "x", color="black", label="the same as printed in the paper")
        for i, row in enumerate(table.rows):
            text = "Markov is optimal" if row.markov_optimal else f"+{short(row.optimum - row.markov)}"
            axes.annotate(
                text,
                (row.optimum, i),
                xytext=(9, 0),
                textcoords="offset points",
                va="center",
                fontsize="small",
            )
        axes.set_yticks(places, [row.risk for row in table.rows])
        axes.set_ylim(len(table.rows) - 0.5, -0.5)
        span = max(optimum) - min(markov)
        axes.set_xlim(min(markov) - 0.08 * span, max(optimum) + 0.3 * span)
        axes.set_xlabel("certainty equivalent of the total reward")
        figure.legend(loc="outside upper left", ncols=3)
    return figure
