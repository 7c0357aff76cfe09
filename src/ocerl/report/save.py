"""Figures on disk."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from ocerl.report.style import styled

DOTS_PER_INCH = 150


def save_figure(figure: Figure, path_without_suffix: Path | str) -> None:
    """Write `….png` and `….svg`, making folders as needed; the same figure gives the same bytes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_figure(Figure(), Path(folder) / "pictures" / "empty")
    ...     sorted(path.name for path in Path(folder).rglob("empty.*"))
    ['empty.png', 'empty.svg']
    """
    path = Path(path_without_suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    with styled():
        figure.savefig(f"{path}.png", dpi=DOTS_PER_INCH, metadata={"Software": None})
        figure.savefig(f"{path}.svg", metadata={"Date": None})
