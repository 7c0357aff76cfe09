"""One look for all pictures: colours that colour-blind readers can tell apart, a light grid, readable sizes.

Figures are made through Matplotlib's objects: nothing is registered with `pyplot`, and the settings hold only
while a picture is drawn or written.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, cast

import matplotlib
import numpy as np
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

BLUE, VERMILION, GREEN = "#0072B2", "#D55E00", "#009E73"
PALETTE = (BLUE, VERMILION, GREEN, "#E69F00", "#56B4E9", "#CC79A7", "#000000")
"""The colours of Okabe and Ito, without the yellow that is too light on white."""
GREY = "#6B6B6B"

_SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # comes with Matplotlib: the same picture on every machine
    "font.size": 10.0,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.edgecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.8,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": "black",
    "ytick.labelcolor": "black",
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "lines.linewidth": 1.8,
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "ocerl",  # else the ids within an SVG change from run to run
}


def styled() -> AbstractContextManager[None]:
    """Matplotlib's own defaults with this style on top, whatever the user's settings are, and only inside."""
    defaults = {key: value for key, value in matplotlib.rcParamsDefault.items() if key != "backend"}
    return matplotlib.rc_context(cast(Any, {**defaults, **_SETTINGS}))


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches, that lays itself out."""
    return Figure(figsize=(width, height), layout="constrained")


def short(value: float) -> str:
    """A number for a label, in four digits.

    >>> short(-1.31251), short(0.75)
    ('−1.313', '0.75')
    """
    return f"{value:.4g}".replace("-", "−")


def series_colours(count: int) -> list[str]:
    """Colours for so many series, in order; more than the palette has are taken from a scale."""
    if count <= len(PALETTE):
        return list(PALETTE[:count])
    scale = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.95, count))
    return [to_hex(colour) for colour in scale]
