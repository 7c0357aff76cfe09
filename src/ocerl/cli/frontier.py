"""`ocerl frontier MODEL --risk cvar --levels …`: every level of CVaR from one solve."""

from __future__ import annotations

import argparse
from typing import Any

from ocerl.cli import _shared


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "frontier",
        help="the trade between tail and mean, every level from one solve",
        description="Solve CVaR for many levels at once: the best tail at each level, and the mean it leaves.",
    )
    _shared.add_model_options(parser)
    parser.add_argument("--risk", choices=("cvar",), default="cvar", help="the family of risks")
    parser.add_argument("--levels", default="0.05:1:0.05", help="low:high:step or a list (default 0.05:1:0.05)")
    _shared.add_output_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Solve, print, and write what was asked for."""
    from ocerl.mdp import load_model
    from ocerl.planning import frontier

    levels = _shared.parse_levels(options.levels)
    model = load_model(options.model, horizon=options.horizon, discount=options.discount, start=options.start)
    with _shared.progress_bar(f"frontier of {model.name}") as progress:
        found = frontier(model, levels, resolution=options.resolution, progress=progress)
    if options.out:
        from ocerl.planning import save_policy
        from ocerl.report import plot_frontier, save_figure

        _shared.write_json(options.out / "frontier.json", found.to_dict())
        save_policy(found.policy, options.out)
        save_figure(plot_frontier(found), options.out / "frontier")
    if options.json:
        _shared.print_json(found.to_dict())
        return
    rows = [
        [
            f"{p['level']:g}",
            f"{p['value']:.6g}",
            f"{p['upper']:.6g}",
            f"{p['mean']:.6g}",
            f"{p['budget']:.6g}",
        ]
        for p in found.to_dict()["points"]
    ]
    proof = "exact" if found.exact else f"certified, rewards rounded to {found.policy.lattice.unit:.3g}"
    columns = ["level", "CVaR", "at most", "mean of the same policy", "first budget"]
    _shared.print_table(f"frontier of {model.name} ({proof})", columns, rows)
    if options.out:
        print(f"written to {options.out}/")
