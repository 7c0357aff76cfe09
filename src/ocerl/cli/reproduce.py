"""`ocerl reproduce markov-table`: the paper's results, computed again."""

from __future__ import annotations

import argparse
from typing import Any

from ocerl.cli import _shared


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "reproduce", help="the paper's tables", description="Compute the paper's results again."
    )
    parser.add_argument("what", choices=("markov-table",), help="which result")
    _shared.add_output_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Compute, print, and write what was asked for."""
    from ocerl.experiments import markov_table

    found = markov_table()
    if options.out:
        from ocerl.report import plot_markov_table, save_figure

        _shared.write_json(options.out / "markov-table.json", found.to_dict())
        save_figure(plot_markov_table(found), options.out / "markov-table")
    if options.json:
        _shared.print_json(found.to_dict())
        return
    _shared.print_table(
        "three policies of the paper's MDP",
        ["action at s2", "return: probability", "CVaR_0.25"],
        [
            [
                name,
                ", ".join(
                    f"{z:g}: {p:g}" for z, p in zip(returns.values, returns.probabilities, strict=True)
                ),
                f"{returns.certainty_equivalent('cvar:0.25'):g}",
            ]
            for name, returns in found.policies.items()
        ],
        left=2,
    )
    _shared.print_table(
        "the best policy against the best Markov policy",
        ["risk", "optimum", "first budget", "best Markov", "(paper)", "Markov optimal?"],
        [
            [
                row.risk,
                f"{row.optimum:.4f}",
                f"{row.budget:.4f}",
                f"{row.markov:.4f}",
                "" if row.markov_paper is None else f"{row.markov_paper:g}",
                "yes" if row.markov_optimal else "no",
            ]
            for row in found.rows
        ],
    )
    if options.out:
        print(f"written to {options.out}/")
