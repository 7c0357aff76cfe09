"""The table's arithmetic and its files, on learners that are quick."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from ocerl.experiments.oce_table import PAPER, Learned, OCERow, OCETable
from ocerl.report.oce_table import plot_oce_table


@pytest.fixture
def table() -> OCETable:
    row = OCERow("cvar:0.25", 0.75, Learned((0.7, 0.75, 0.8), 1.0), Learned((0.75, 0.75), 2.0), 0.5)
    return OCETable((row, OCERow("entropic:-3", 0.5, row.policy, row.policy, 0.5)), 3, 100, 3.0)


def test_means_and_intervals(table: OCETable) -> None:
    learned = table.rows[0].optimistic
    assert learned.mean == pytest.approx(0.75)
    # Student's t(0.975, 2) = 4.302653, standard deviation 0.05 over the root of 3.
    assert learned.half_width == pytest.approx(4.302653 * 0.05 / 3**0.5)
    assert table.rows[0].policy.half_width == 0.0
    assert Learned((0.75,), 1.0).half_width == 0.0


def test_what_the_paper_prints_stands_beside(table: OCETable) -> None:
    first, second = table.rows
    assert first.printed == PAPER["cvar:0.25"]
    assert not first.markov_optimal
    assert second.printed is None
    assert second.markov_optimal
    assert table.to_dict()["rows"][0]["paper"]["policy_optimization"] == (0.71, 0.08)
    assert table.to_dict()["rows"][1]["paper"] is None


def test_the_csv_file(table: OCETable, tmp_path: Path) -> None:
    table.save_csv(tmp_path / "folder" / "table.csv")
    with (tmp_path / "folder" / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["risk"] for row in rows] == ["cvar:0.25", "entropic:-3"]
    assert [float(rows[0][name]) for name in ("optimum", "policy_optimization", "best_markov")] == [0.75, 0.75, 0.5]
    assert rows[1]["markov_optimal"] == "True"


def test_the_picture_has_every_risk(table: OCETable) -> None:
    axes = plot_oce_table(table).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["cvar:0.25", "entropic:-3"]
