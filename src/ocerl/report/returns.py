"""Return distributions side by side, with the certainty equivalent and the mean of each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.planning import ReturnDistribution
from ocerl.report.style import GREY, new_figure, series_colours, short, styled
from ocerl.risk import Risk, parse_risk

MOST_BARS = 24
"""Distributions with more values than this between them are drawn as cumulative curves."""
NEAREST_BARS = 1 / 60
"""So are those with values nearer to each other than this part of their range."""
WIDEST_BAR = 0.06
"""A bar is at most this part of the range wide, so that those of two values do not fill the picture."""
NO_ERROR = 1e-9
"""Rounding by less than this part of the largest return is not mentioned."""
UNSEEN = 1e-4
"""The curves leave out this much probability at either end, where a rare extreme would squeeze the rest."""

Distributions = Mapping[str, ReturnDistribution]


def plot_returns(distributions: Distributions, risk: Risk | str) -> Figure:
    """Draw labelled return distributions: bars for a few values, cumulative curves for many.

    Below, a row for each leads from its certainty equivalent (diamond) to its mean (circle).

    >>> fair = ReturnDistribution(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    >>> [float(bar.get_height()) for bar in plot_returns({"fair": fair}, "cvar:0.5").axes[0].patches]
    [0.5, 0.5]
    """
    if not distributions:
        raise OcerlError("there is no return distribution to plot: give at least one")
    with styled():
        figure = new_figure(6.4, 3.8 + 0.25 * len(distributions))
        draw_returns(figure, distributions, parse_risk(risk))
    return figure


def draw_returns(figure: Figure | SubFigure, distributions: Distributions, risk: Risk) -> None:
    """Fill a figure, or a part of one: the distributions above, certainty equivalents and means below."""
    count = len(distributions)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3.0, 0.3 + 0.3 * count])
    colours = dict(zip(distributions, series_colours(count), strict=True))
    marks = {label: (returns.certainty_equivalent(risk), returns.mean) for label, returns in distributions.items()}
    bars = _bars_fit(distributions.values())
    upper.set_xlim(_range(distributions.values(), bars, marks.values()))
    if bars:
        _draw_bars(upper, distributions, colours)
    else:
        _draw_curves(upper, distributions, colours, risk.tail)
    if count > 1:
        upper.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.2)
    _draw_marks(lower, marks, colours, risk.name)
    lower.set_xlabel(f"total reward{_rounding(distributions.values())}")


def _bars_fit(distributions: Iterable[ReturnDistribution]) -> bool:
    values = _all_values(distributions)
    nearest = NEAREST_BARS * (values[-1] - values[0])
    return values.size <= MOST_BARS and bool((np.diff(values) >= nearest).all())


def _all_values(distributions: Iterable[ReturnDistribution]) -> NDArray[np.float64]:
    return np.unique(np.concatenate([returns.values for returns in distributions]))


def _range(
    distributions: Collection[ReturnDistribution], bars: bool, marks: Iterable[tuple[float, float]]
) -> tuple[float, float]:
    """The returns to show, with room for the bars around them and for the numbers beside the marks."""
    unseen = 0.0 if bars else UNSEEN
    seen: list[float] = []
    for returns in distributions:
        cumulative = np.cumsum(returns.probabilities)
        ends = np.searchsorted(cumulative, [unseen, 1 - unseen]).clip(max=returns.values.size - 1)
        seen += returns.values[ends].tolist()
    marked = [mark for pair in marks for mark in pair]
    span = max(*seen, *marked) - min(*seen, *marked) or 1.0
    beside = (0.04 + (WIDEST_BAR / 2 * len(distributions) if bars else 0.0)) * span
    number = 0.18 * span
    return min(min(seen) - beside, min(marked) - number), max(max(seen) + beside, max(marked) + number)


def _rounding(distributions: Collection[ReturnDistribution]) -> str:
    """How far the true returns may be from those drawn, where rewards had to be rounded."""
    low = min(returns.error[0] for returns in distributions)
    high = max(returns.error[1] for returns in distributions)
    values = _all_values(distributions)
    if high - low <= NO_ERROR * max(abs(values[0]), abs(values[-1])):
        return ""
    return f" (rounded: the true one is {short(low)} to {short(high)} more)"


def _draw_bars(axes: Axes, distributions: Distributions, colours: Mapping[str, str]) -> None:
    count, values = len(distributions), _all_values(distributions.values())
    gap = float(np.diff(values).min()) if values.size > 1 else 1.0
    width = min(0.8 * gap / count, WIDEST_BAR * max(gap, float(values[-1] - values[0])))
    for place, (label, returns) in enumerate(distributions.items()):
        middle = returns.values + (place - (count - 1) / 2) * width
        axes.bar(middle, returns.probabilities, 0.92 * width, color=colours[label], label=label)
    axes.set_ylabel("probability")
    axes.grid(visible=False, axis="x")


def _draw_curves(axes: Axes, distributions: Distributions, colours: Mapping[str, str], tail: float | None) -> None:
    low, high = axes.get_xlim()
    for label, returns in distributions.items():
        values = np.concatenate(([min(low, returns.values[0])], returns.values, [max(high, returns.values[-1])]))
        cumulative = np.concatenate(([0.0], np.cumsum(returns.probabilities), [1.0]))
        axes.step(values, cumulative, where="post", color=colours[label], label=label)
    axes.set_xlim(low, high)
    axes.set_ylabel("probability of at most this")
    axes.set_ylim(-0.02, 1.02)
    if tail is not None and tail < 1:
        axes.axhline(tail, color=GREY, linewidth=1.0, linestyle=":")
        end = axes.get_yaxis_transform()
        axes.text(0.995, tail + 0.01, f"worst {short(100 * tail)} %", transform=end, ha="right", color=GREY)


def _draw_marks(axes: Axes, marks: Mapping[str, tuple[float, float]], colours: Mapping[str, str], risk: str) -> None:
    """A row for each distribution, from its certainty equivalent to its mean, with both numbers outside."""
    axes.set_title(f"◆ {risk}    ● mean", fontsize="small", color=GREY)
    for row, (label, (worth, mean)) in enumerate(marks.items()):
        colour = colours[label]
        axes.plot([worth, mean], [row, row], color=colour, linewidth=1.2)
        axes.plot(worth, row, "D", color=colour, markersize=6)
        axes.plot(mean, row, "o", color=colour, markersize=6)
        _write_beside(axes, worth, row, short(worth), -1)
        _write_beside(axes, mean, row, short(mean), 1)
    axes.set_ylim(len(marks) - 0.4, -0.6)
    axes.yaxis.set_major_locator(NullLocator())


def _write_beside(axes: Axes, x: float, row: int, text: str, side: int) -> None:
    """A number to the left (-1) or right (1) of a mark."""
    axes.annotate(
        text,
        (x, row),
        xytext=(7 * side, 0),
        textcoords="offset points",
        ha="left" if side > 0 else "right",
        va="center",
        fontsize="small",
    )
