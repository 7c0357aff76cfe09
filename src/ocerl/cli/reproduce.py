"""`ocerl reproduce NAME`: the paper's results, and those that go with its theory, computed again."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ocerl.cli import _shared

if TYPE_CHECKING:
    from ocerl.experiments.rich import Study


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "reproduce", help="the paper's tables and figure", description="Compute the paper's results again."
    )
    results = parser.add_subparsers(dest="what", required=True, metavar="RESULT")
    for name, run, text in (
        ("markov-table", markov_table, "three policies' CVaR, and how far Markov policies fall short"),
        ("oce-table", oce_table, "both meta-algorithms against the best Markov policy, for six OCEs"),
        ("learning-curves", learning_curves, "three deep oracles on the paper's MDP, and without sight of the budget"),
        ("regret", regret, "how UCB-VI's regret grows with rounds, states, actions and the tail (some minutes)"),
        ("exogenous", exogenous, "GOLF and UCB-VI against the number of exogenous bits (some minutes)"),
        ("rank", rank, "Rep-UCB and UCB-VI against the number of states at rank 3 (some minutes)"),
    ):
        result = results.add_parser(name, help=text, description=text)
        _shared.add_output_options(result)
        result.set_defaults(run=run)
        if name != "markov-table":
            runs = {"oce-table": 10, "regret": 8}.get(name, 5)
            result.add_argument("--seeds", type=_runs, default=runs, metavar="N", help=f"runs (default {runs})")
        if name == "learning-curves":
            result.add_argument("--updates", type=_runs, metavar="K", help="updates of each run (default 8000)")
        if name == "regret":
            result.add_argument("--rounds", type=_runs, default=20_000, metavar="K", help="rounds (default 20000)")
            result.add_argument(
                "--worst-rounds", type=_runs, default=200_000, metavar="K", help="rounds on hard models"
            )

        if name in ("exogenous", "rank"):
            axis = "bits" if name == "exogenous" else "states"
            result.add_argument("--sizes", type=_sizes, metavar="N,N,…", help=f"the numbers of {axis}")
            result.add_argument("--limit", type=_runs, metavar="K", help="the most episodes of a run")


def markov_table(options: argparse.Namespace) -> None:
    """The exact tables."""
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
                ", ".join(f"{z:g}: {p:g}" for z, p in zip(returns.values, returns.probabilities, strict=True)),
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
                _yes(row.markov_optimal),
            ]
            for row in found.rows
        ],
    )
    _say_where(options)


def oce_table(options: argparse.Namespace) -> None:
    """The table of what is learned."""
    from ocerl.experiments.oce_table import oce_table

    with _shared.progress_bar("the table of OCEs") as progress:
        found = oce_table(seeds=options.seeds, seed=options.seed, progress=progress)
    if options.out:
        from ocerl.report import save_figure
        from ocerl.report.oce_table import plot_oce_table

        _shared.write_json(options.out / "oce-table.json", found.to_dict())
        found.save_csv(options.out / "oce-table.csv")
        save_figure(plot_oce_table(found), options.out / "oce-table")
    if options.json:
        _shared.print_json(found.to_dict())
        return
    _shared.print_table(
        f"learned on the paper's MDP ({found.seeds} seeds, 95% intervals), and the best Markov policy",
        ["risk", "OCE*", "optimistic", "NPG", "Markov", "optimal?"],
        [
            [
                row.risk.replace("monotone-", "monotone "),  # so that a narrow terminal can wrap it
                f"{row.optimum:.4f}",
                f"{row.optimistic.mean:.4f}±{row.optimistic.half_width:.4f}",
                f"{row.policy.mean:.4f}±{row.policy.half_width:.4f}",
                f"{row.markov:.4f}",
                _yes(row.markov_optimal),
            ]
            for row in found.rows
        ],
    )
    _shared.print_table(
        "as printed in the paper",
        ["risk", "optimistic", "NPG", "best Markov"],
        [
            [
                row.risk,
                f"{row.printed.optimistic[0]:.2f}±{row.printed.optimistic[1]:.2f}",
                f"{row.printed.policy[0]:.2f}±{row.printed.policy[1]:.2f}",
                f"{row.printed.markov:g}",
            ]
            for row in found.rows
            if row.printed
        ],
    )
    print("the monotone mean-variances are the paper's appendix's; its table reports the plain ones")
    _say_where(options)


def learning_curves(options: argparse.Namespace) -> None:
    """The figure of learning curves."""
    from ocerl.experiments.learning_curves import learning_curves

    with _shared.progress_bar("the learning curves") as progress:
        found = learning_curves(seeds=options.seeds, seed=options.seed, updates=options.updates, progress=progress)
    if options.out:
        from ocerl.report import save_figure
        from ocerl.report.learning_curves import plot_learning_curves

        _shared.write_json(options.out / "learning-curves.json", found.to_dict())
        save_figure(plot_learning_curves(found), options.out / "learning-curves")
    if options.json:
        _shared.print_json(found.to_dict())
        return
    rows: list[list[str]] = []
    for curve in (*found.curves, found.control):
        interval = curve.final_interval
        rows.append(
            [
                curve.label,
                " ".join(f"{value:.4f}" for value in curve.final),
                f"{curve.final_mean:.4f}",
                "" if interval is None else f"{interval[0]:.4f} … {interval[1]:.4f}",
                "never" if curve.reached is None else f"{curve.reached:,}",
            ]
        )
    _shared.print_table(
        f"CVaR 0.25 learned on the paper's MDP, exact: optimum {found.optimum:g}, best Markov policy {found.markov:g}",
        ["oracle", "each seed", "mean", "95% interval", f"mean ≥ {found.near:g} from update"],
        rows,
    )
    print(f"an update is {found.control.batch} steps of the environment; the paper's curves arrive at ~8k steps")
    _say_where(options)


def regret(options: argparse.Namespace) -> None:
    """The study of how regret grows."""
    from ocerl.experiments.regret import regret_study

    with _shared.progress_bar("the regret of UCB-VI") as progress:
        found = regret_study(
            rounds=options.rounds, seeds=options.seeds, worst_rounds=options.worst_rounds, progress=progress
        )
    if options.out:
        from ocerl.report import plot_regret_study, save_figure

        _shared.write_json(options.out / "regret.json", found.to_dict())
        save_figure(plot_regret_study(found), options.out / "regret")
    if options.json:
        _shared.print_json(found.to_dict())
        return
    print(found)
    _say_where(options)


def exogenous(options: argparse.Namespace) -> None:
    """The figure "exogenous size does not matter"."""
    from ocerl.experiments.rich import exogenous_study

    _rich(options, exogenous_study, "exogenous", "bits")


def rank(options: argparse.Namespace) -> None:
    """The figure "rank matters, states don't"."""
    from ocerl.experiments.rich import rank_study

    _rich(options, rank_study, "rank", "states")


def _rich(options: argparse.Namespace, study: Callable[..., Study], name: str, axis: str) -> None:
    given = {axis: options.sizes, "limit": options.limit}
    with _shared.progress_bar(name) as progress:
        chosen = {key: value for key, value in given.items() if value is not None}
        found = study(seeds=options.seeds, seed=options.seed, progress=progress, **chosen)
    if options.out:
        from ocerl.report import save_figure
        from ocerl.report.rich import plot_rich

        _shared.write_json(options.out / f"{name}.json", found.to_dict())
        save_figure(plot_rich(found), options.out / name)
    if options.json:
        _shared.print_json(found.to_dict())
        return
    print(found)
    _say_where(options)


def _sizes(text: str) -> tuple[int, ...]:
    if not all(part.isdigit() and int(part) > 0 for part in text.split(",")):
        raise argparse.ArgumentTypeError(f"must be whole numbers of at least 1 with commas between, got {text}")
    return tuple(int(part) for part in text.split(","))


def _runs(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text}")
    return int(text)


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def _say_where(options: argparse.Namespace) -> None:
    if options.out:
        print(f"written to {options.out}/")
