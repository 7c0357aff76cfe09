"""The paper's figure of learning curves as a picture."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ocerl.experiments.learning_curves import PAPER_STEPS, Curve, LearningCurves
from ocerl.report.style import BLUE, GREEN, GREY, VERMILION, new_figure, short, styled

COLOURS = {"reinforce": VERMILION, "ppo-forward": BLUE, "ppo-backward": GREEN}
NAMES = {"reinforce": "REINFORCE", "ppo-forward": "PPO, forward KL", "ppo-backward": "PPO, backward KL"}


def plot_learning_curves(found: LearningCurves) -> Figure:
    """Draw each oracle's mean over seeds with its 95% interval, the control, the optimum and the best Markov policy.

    The updates are on a logarithmic scale (but for the first, from 0 to 1): the learning is over early. A second
    scale has the environment steps.

    >>> import numpy as np
    >>> from ocerl.experiments.learning_curves import Curve
    >>> at, values = np.array([0, 8]), np.array([[0.5, 0.5], [0.75, 0.75]])
    >>> curve = Curve("reinforce", False, at, values, (0.75, 0.75), 256, 1, 1.0)
    >>> axes = plot_learning_curves(LearningCurves((curve,), curve, 0.75, 0.5, (0, 1), 1.0)).axes[0]
    >>> axes.get_xlabel(), axes.lines[0].get_ydata().tolist()
    ('updates', [0.5, 0.75])
    """
    batch = found.control.batch
    with styled():
        figure = new_figure(7.4, 4.6)
        axes = figure.subplots()
        for curve in found.curves:
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
        ticks = [0, *(10**k for k in range(6) if 10**k <= last)]
        axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axes.set_xlabel("updates")
        axes.set_ylabel("CVaR 0.25 of the greedy policy, exact")
        above = axes.secondary_xaxis("top", functions=(lambda x: x * batch, lambda x: x / batch))
        above.set_xlabel(f"environment steps ({batch} for each update)")
        above.set_xticks([tick * batch for tick in ticks], [f"{tick * batch:,}" for tick in ticks])
        figure.legend(loc="outside lower center", ncols=2, title=f"mean of {len(found.seeds)} seeds, 95% intervals")
    return figure


def _draw(axes: Axes, curve: Curve) -> None:
    hidden = curve.hide_budget
    name, colour = NAMES[curve.oracle], GREY if hidden else COLOURS[curve.oracle]
    label = f"{name}, budget hidden" if hidden else name
    axes.plot(curve.updates, curve.mean, color=colour, label=label, marker="x" if hidden else "o", markersize=3)
    if curve.interval is not None:
        axes.fill_between(curve.updates, *curve.interval, color=colour, alpha=0.18, linewidth=0)


def _beside(x: float, y: float) -> dict[str, object]:
    """The place of a note, in points from what it is about."""
    return {"xytext": (x, y), "textcoords": "offset points", "ha": "right", "fontsize": "small"}
