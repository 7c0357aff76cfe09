"""The paper's figure of learning curves as a picture."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ocerl.experiments.learning_curves import PAPER_STEPS, Curve, LearningCurves
from ocerl.report.style import GREEN, GREY, VERMILION, new_figure, short, styled


class Look(NamedTuple):
    """How a curve is drawn: those that coincide can be seen through each other."""

    name: str
    colour: str
    width: float
    style: str | tuple[float, tuple[float, ...]]


LINES = {
    "reinforce": Look("REINFORCE", VERMILION, 2.0, "-"),
    "ppo-forward": Look("PPO, forward KL", "#56B4E9", 4.5, "-"),
    "ppo-backward": Look("PPO, backward KL", GREEN, 1.8, (0, (4, 2))),
    "hidden": Look("", GREY, 2.0, (0, (1, 1.2))),
}


def plot_learning_curves(found: LearningCurves) -> Figure:
    """Draw each oracle's mean over seeds with its 95% interval, the control, the optimum and the best Markov policy.

    The updates are on a logarithmic scale (but for the first, from 0 to 1): the learning is over early. Below
    stand the environment's steps.

    >>> import numpy as np
    >>> from ocerl.experiments.learning_curves import Curve
    >>> at, values = np.array([0, 8]), np.array([[0.5, 0.5], [0.75, 0.75]])
    >>> curve = Curve("reinforce", False, at, values, (0.75, 0.75), 256, 1, 1.0)
    >>> axes = plot_learning_curves(LearningCurves((curve,), curve, 0.75, 0.5, (0, 1), 1.0)).axes[0]
    >>> [text.get_text() for text in axes.get_xticklabels()][:3], axes.lines[0].get_ydata().tolist()
    (['0\\n0', '1\\n256', '10\\n2,560'], [0.5, 0.75])
    """
    batch = found.control.batch
    with styled():
        figure = new_figure(7.4, 4.6)
        axes = figure.subplots()
        for curve in sorted(found.curves, key=lambda curve: -LINES[curve.oracle].width):
            _draw(axes, curve)
        _draw(axes, found.control)
        axes.axhline(found.optimum, color="black", linestyle="--", linewidth=1.0, zorder=1)
        axes.axhline(found.markov, color="black", linestyle=":", linewidth=1.2, zorder=1)
        axes.axvline(PAPER_STEPS, color=GREY, linestyle="-.", linewidth=1.0, zorder=1)
        last = max(PAPER_STEPS, int(found.control.updates[-1]))
        axes.set_xscale("symlog", linthresh=1.0, linscale=0.4, subs=range(2, 10))
        axes.set_xlim(0, 1.25 * last)
        low, high = axes.get_ylim()
        axes.set_ylim(min(low, 0.4), max(high, 0.85))
        axes.annotate(f"optimum {short(found.optimum)}", (PAPER_STEPS, found.optimum), **_beside(-6, 4))
        axes.annotate(f"best Markov policy {short(found.markov)}", (PAPER_STEPS, found.markov), **_beside(-6, -12))
        axes.annotate("paper: ~8k steps", (PAPER_STEPS, axes.get_ylim()[1]), **_beside(-6, -12), color=GREY)
        ticks = [0, *(10**k for k in range(int(np.log10(last)) + 1))]
        axes.set_xticks(ticks, [f"{tick:,}\n{tick * batch:,}" for tick in ticks])
        axes.set_xlabel(f"updates\nand steps of the environment, {batch} for each update")
        axes.set_ylabel("CVaR 0.25 of the greedy policy, exact")
        figure.legend(loc="outside lower center", ncols=2, title=f"mean of {len(found.seeds)} seeds, 95% intervals")
    return figure


def _draw(axes: Axes, curve: Curve) -> None:
    if curve.hide_budget:
        look, label = LINES["hidden"], f"{LINES[curve.oracle].name}, budget hidden"
    else:
        look, label = LINES[curve.oracle], LINES[curve.oracle].name
    axes.plot(curve.updates, curve.mean, color=look.colour, label=label, linewidth=look.width, linestyle=look.style)
    if curve.interval is not None:
        axes.fill_between(curve.updates, *curve.interval, color=look.colour, alpha=0.16, linewidth=0)


def _beside(x: float, y: float) -> dict[str, Any]:
    """The place of a note, in points from what it is about."""
    return {"xytext": (x, y), "textcoords": "offset points", "ha": "right", "fontsize": "small"}
