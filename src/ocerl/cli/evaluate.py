"""`ocerl evaluate RUN`: what trained network policies are worth, on fresh episodes and for any risk."""

from __future__ import annotations

import argparse
from typing import Any

from ocerl.cli import _shared
from ocerl.errors import OcerlError


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "evaluate",
        help="judge the policies of a training run on fresh episodes",
        description="Judge the policies in the folder of `ocerl train ENV --oracle reinforce|ppo-… --out RUN` on fresh "
        "episodes (exactly, where ENV is a model). For another risk than the one trained for, the first budget is "
        "chosen anew: a policy trained for one CVaR serves all levels.",
    )
    parser.add_argument("folder", metavar="RUN", help="the folder that `ocerl train --out` wrote")
    parser.add_argument("--risk", help="a risk (default: the one trained for)")
    parser.add_argument("--levels", help="CVaR at each of these levels: low:high:step or a list, in one evaluation")
    parser.add_argument("--episodes", type=int, metavar="N", help="fresh episodes (default 100,000; Gymnasium's 1000)")
    _shared.add_output_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Evaluate, print, and write what was asked for."""
    if options.levels is not None and options.risk is not None:
        raise OcerlError("give --risk or --levels, not both")
    document, title, columns, rows = _levels(options) if options.levels is not None else _runs(options)
    if options.out:
        _shared.write_json(options.out / "evaluate.json", document)
    if options.json:
        _shared.print_json(document)
        return
    _shared.print_table(title, columns, rows)


Answer = tuple[dict[str, Any], str, list[str], list[list[str]]]
"""The document, and a table of it: title, columns and rows."""


def _runs(options: argparse.Namespace) -> Answer:
    from ocerl.gradient.deep import evaluate_run

    runs = evaluate_run(options.folder, risk=options.risk, episodes=options.episodes, seed=options.seed)
    document = {"run": options.folder, "risk": runs[0].risk, "seeds": [found.to_dict() for found in runs]}
    return document, options.folder, *_shared.table_of_runs(runs)


def _levels(options: argparse.Namespace) -> Answer:
    from ocerl.gradient.deep import evaluate_levels

    levels = _shared.parse_levels(options.levels)
    points = evaluate_levels(options.folder, levels, episodes=options.episodes, seed=options.seed)
    document = {"run": options.folder, "frontier": [point._asdict() for point in points]}
    rows = [
        [str(p.seed), p.risk, f"{p.value:.6g}", f"{p.low:.6g} … {p.high:.6g}", f"{p.mean:.6g}", f"{p.budget:.6g}"]
        for p in points
    ]
    return document, options.folder, ["seed", "risk", "value", "95% interval", "mean", "first budget"], rows
