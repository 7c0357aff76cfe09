"""`ocerl train MODEL --risk RISK`: learn a policy by policy gradients (Algorithm 2)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ocerl.cli import _shared

if TYPE_CHECKING:
    from ocerl.gradient import Training


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "train",
        help="learn a policy for a risk by policy gradients",
        description="Train policies on a tabular model by policy gradients in its augmented MDP (Algorithm 2); "
        "npg and reinforce learn from samples only, npg-exact knows the model. Every result is judged exactly.",
    )
    _shared.add_model_options(parser)
    parser.add_argument("--risk", required=True, help="such as cvar:0.25, entropic:-1, mean-variance:1")
    parser.add_argument("--oracle", choices=("npg", "npg-exact", "reinforce"), default="npg", help="default npg")
    parser.add_argument("--updates", type=int, metavar="N", help="number of updates (default: the oracle's)")
    parser.add_argument("--seeds", type=int, metavar="N", help="number of independent runs (default 10, npg-exact 1)")
    parser.add_argument("--episodes", type=int, metavar="N", help="episodes for each update (default 32)")
    parser.add_argument("--step-size", type=float, metavar="C", help="step size (default 1)")
    parser.add_argument("--growth", type=float, metavar="G", help="factor from one step of npg to the next")
    parser.add_argument("--exploration", type=float, metavar="P", help="share of random actions (default 0.1)")
    parser.add_argument("--budgets", type=int, metavar="N", help="train at most so many first budgets (default 101)")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in --out, to the same result")
    _shared.add_output_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Train, print, and write what was asked for."""
    from ocerl.gradient import train_tabular
    from ocerl.gradient.budgets import MOST_BUDGETS
    from ocerl.mdp import load_model
    from ocerl.risk import parse_risk

    risk = parse_risk(options.risk)
    model = load_model(options.model, horizon=options.horizon, discount=options.discount, start=options.start)
    with _shared.progress_bar(f"training on {model.name}") as progress:
        found = train_tabular(
            model,
            risk,
            oracle=options.oracle,
            updates=options.updates,
            seeds=options.seeds,
            seed=options.seed,
            budgets=MOST_BUDGETS if options.budgets is None else options.budgets,
            resolution=options.resolution,
            folder=options.out,
            resume=options.resume,
            progress=progress,
            episodes=options.episodes,
            step_size=options.step_size,
            growth=options.growth,
            exploration=options.exploration,
        )
    if options.out:
        found.save(options.out)
    if options.json:
        _shared.print_json(found.to_dict())
        return
    _print(found)
    if options.out:
        print(f"written to {options.out}/")


def _print(found: Training) -> None:
    print(found)
    rows = [
        [str(run.seed), f"{run.value:.6g}", f"{run.budget:.6g}", f"{bound:.6g}", f"{run.returns.mean:.6g}"]
        for run, bound in zip(found.runs, found.lower_bounds[-1], strict=True)
    ]
    columns = ["seed", found.risk.name, "first budget", "risk lower bound", "mean return"]
    _shared.print_table(f"{found.oracle}, {found.settings['updates']} updates", columns, rows)
