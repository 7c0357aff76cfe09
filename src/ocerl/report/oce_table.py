"""The paper's table of six OCEs as a picture: what both meta-algorithms reach in every seed."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from ocerl.experiments.oce_table import OCETable
from ocerl.report.style import BLUE, GREEN, GREY, VERMILION, new_figure, styled


def plot_oce_table(table: OCETable) -> Figure:
    """Draw a row for each risk: both algorithms' seeds with their 95% intervals, the optimum, the best Markov.

    >>> from ocerl.experiments.oce_table import Learned, OCERow
    >>> reached = Learned((0.74, 0.75), 1.0)
    >>> row = OCERow("cvar:0.25", 0.75, reached, reached, 0.5)
    >>> axes = plot_oce_table(OCETable((row,), 2, 100, 1.0)).axes[0]
    >>> [tick.get_text() for tick in axes.get_yticklabels()]
    ['cvar:0.25']
    """
    places = np.arange(len(table.rows), dtype=np.float64)
    optimum, markov = [row.optimum for row in table.rows], [row.markov for row in table.rows]
    with styled():
        figure = new_figure(7.4, 1.5 + 0.5 * len(table.rows))
        axes = figure.subplots()
        axes.vlines(optimum, places - 0.36, places + 0.36, color=GREY, linewidth=1.5, label="optimum")
        axes.plot(markov, places, "o", color=VERMILION, label="best Markov policy")
        for kind, offset, colour, label in (
            ([row.optimistic for row in table.rows], -0.18, GREEN, "optimism (UCB-VI)"),
            ([row.policy for row in table.rows], 0.18, BLUE, "policy optimization (NPG)"),
        ):
            axes.errorbar(
                [learned.mean for learned in kind],
                places + offset,
                xerr=[learned.half_width for learned in kind],
                fmt="D",
                markersize=4,
                capsize=3,
                color=colour,
                label=label,
            )
            for place, learned in zip(places + offset, kind, strict=True):
                axes.plot(learned.values, np.full(len(learned.values), place), "|", color=colour, alpha=0.5)
        axes.set_yticks(places, [row.risk for row in table.rows])
        axes.set_ylim(len(table.rows) - 0.5, -0.5)
        axes.set_xlabel(f"certainty equivalent of the total reward, {table.seeds} seeds, 95% intervals")
        figure.legend(loc="outside upper left", ncols=2)
    return figure
