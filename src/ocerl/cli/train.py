"""`ocerl train ENV --risk RISK`: learn a policy by policy gradients (Algorithm 2), with tables or networks."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ocerl.cli import _shared
from ocerl.errors import OcerlError

if TYPE_CHECKING:
    from ocerl.gradient import Training
    from ocerl.gradient.deep import DeepTraining

TABULAR = ("npg", "npg-exact", "reinforce-tabular")
DEEP = ("reinforce", "ppo-forward", "ppo-backward")
TABULAR_OPTIONS = ("updates", "episodes", "step_size", "growth", "exploration", "budgets", "resolution")
DEEP_OPTIONS = (
    "steps",
    "environments",
    "rollout",
    "learning_rate",
    "barrier",
    "kl_weight",
    "kl_target",
    "clip",
    "hidden",
)
DEEP_RUN_OPTIONS = ("set", "env", "budget_range", "evaluation_episodes")


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "train",
        help="learn a policy for a risk by policy gradients",
        description="Train policies by policy gradients in the budget-augmented MDP (Algorithm 2). ENV is a model (a "
        "name of the zoo, a CSV file, an id with a table), a simulator (american-put, betting-game, guarded-maze) or "
        "any Gymnasium id. With tables: npg, npg-exact, reinforce-tabular. With networks: reinforce, ppo-forward, "
        "ppo-backward. On a model every result is judged exactly, elsewhere on fresh episodes.",
    )
    parser.add_argument("model", metavar="ENV", help="a model, a simulator or a Gymnasium id")
    parser.add_argument("--risk", required=True, help="such as cvar:0.25, entropic:-1, mean-variance:1")
    parser.add_argument(
        "--oracle",
        choices=(*TABULAR, *DEEP),
        help="default: npg for a model, ppo-forward for anything else",
    )
    parser.add_argument("--seeds", type=int, metavar="N", help="number of independent runs (tables 10, networks 1)")
    parser.add_argument("--horizon", type=int, metavar="H", help="number of steps (default: the environment's own)")
    parser.add_argument("--discount", type=float, metavar="G", help="discount in (0, 1] (default: its own)")
    parser.add_argument("--start", metavar="S", help="the state of a model to start in")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in --out")
    _add_tabular_options(parser.add_argument_group("with tables"))
    _add_deep_options(parser.add_argument_group("with networks"))
    _shared.add_output_options(parser)
    parser.set_defaults(run=run)


def _add_tabular_options(group: Any) -> None:
    group.add_argument("--updates", type=int, metavar="N", help="number of updates (default: the oracle's)")
    group.add_argument("--episodes", type=int, metavar="N", help="episodes for each update (default 32)")
    group.add_argument("--step-size", type=float, metavar="C", help="step size (default 1)")
    group.add_argument("--growth", type=float, metavar="G", help="factor from one step of npg to the next")
    group.add_argument("--exploration", type=float, metavar="P", help="share of random actions (default 0.1)")
    group.add_argument("--budgets", type=int, metavar="N", help="train at most so many first budgets (default 101)")
    group.add_argument(
        "--resolution", type=_shared.positive, metavar="R", help="unit to which off-lattice rewards are rounded"
    )


def _add_deep_options(group: Any) -> None:
    group.add_argument("--steps", type=int, metavar="N", help="environment steps of each seed")
    group.add_argument("--environments", type=int, metavar="N", help="episodes side by side")
    group.add_argument("--rollout", type=int, metavar="T", help="steps of each of them between two updates")
    group.add_argument("--learning-rate", type=float, metavar="C", help="Adam's step size at the beginning")
    group.add_argument("--barrier", type=float, metavar="W", help="weight of the log-barrier")
    group.add_argument("--kl-weight", type=float, metavar="W", help="weight of PPO's KL penalty")
    group.add_argument("--kl-target", type=float, metavar="D", help="adapt the KL weight to this divergence")
    group.add_argument("--clip", type=float, metavar="E", help="clip importance ratios to 1 ± E")
    group.add_argument("--hidden", type=_sizes, metavar="N,N", help="sizes of the hidden layers (default 64,64)")
    group.add_argument(
        "--budget-range", type=_two_numbers, metavar="LOW,HIGH", help="range of first budgets (default: found out)"
    )
    group.add_argument(
        "--evaluation-episodes", type=int, metavar="N", help="judge results on so many fresh episodes of each seed"
    )
    group.add_argument("--env", action="append", metavar="NAME=VALUE", help="a parameter of the environment; repeat")
    group.add_argument("--set", action="append", metavar="NAME=VALUE", help="any other setting of DeepConfig; repeat")


def run(options: argparse.Namespace) -> None:
    """Train, print, and write what was asked for."""
    if options.resume and not options.out:
        raise OcerlError("--resume needs --out, the folder of the run to go on with")
    if options.oracle is None:
        from ocerl.gradient.deep.world import SIMULATORS, is_table

        simulated = options.model in SIMULATORS or options.env
        options.oracle = "ppo-forward" if simulated or not is_table(options.model) else "npg"
    deep = options.oracle in DEEP
    for name in TABULAR_OPTIONS if deep else (*DEEP_OPTIONS, *DEEP_RUN_OPTIONS):
        if getattr(options, name) is not None:
            others = ", ".join(TABULAR if deep else DEEP)
            raise OcerlError(
                f"--{name.replace('_', '-')} is an option of {others}, not of {options.oracle} "
                "(see ocerl train --help, --oracle chooses)"
            )
    found = _train_networks(options) if deep else _train_tables(options)
    if options.out:
        found.save(options.out)
    if options.json:
        _shared.print_json(found.to_dict())
        return
    print(found)
    _print_seeds(found)
    if options.out:
        print(f"written to {options.out}/")


def _train_tables(options: argparse.Namespace) -> Training:
    from ocerl.gradient import train_tabular
    from ocerl.gradient.budgets import MOST_BUDGETS
    from ocerl.mdp import load_model
    from ocerl.risk import parse_risk

    risk = parse_risk(options.risk)
    model = load_model(options.model, horizon=options.horizon, discount=options.discount, start=options.start)
    with _shared.progress_bar(f"training on {model.name}") as progress:
        return train_tabular(
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


def _train_networks(options: argparse.Namespace) -> DeepTraining:
    from ocerl.gradient.deep import train

    parameters = _assignments("--env", options.env)
    if options.start is not None:
        parameters["start"] = options.start
    settings = (
        {name: getattr(options, name) for name in DEEP_OPTIONS}
        | {"oracle": options.oracle}
        | _assignments("--set", options.set)
    )
    with _shared.progress_bar(f"training on {options.model}") as progress:
        return train(
            options.model,
            options.risk,
            seeds=1 if options.seeds is None else options.seeds,
            seed=options.seed,
            horizon=options.horizon,
            discount=options.discount,
            budget_range=options.budget_range,
            parameters=parameters,
            episodes=options.evaluation_episodes,
            folder=options.out,
            resume=options.resume,
            progress=progress,
            **settings,
        )


def _print_seeds(found: Training | DeepTraining) -> None:
    from ocerl.gradient import Training

    if isinstance(found, Training):
        columns = ["seed", found.risk.name, "first budget", "risk lower bound", "mean return"]
        rows = [
            [str(run.seed), f"{run.value:.6g}", f"{run.budget:.6g}", f"{bound:.6g}", f"{run.returns.mean:.6g}"]
            for run, bound in zip(found.runs, found.lower_bounds[-1], strict=True)
        ]
        _shared.print_table(f"{found.oracle}, {found.settings['updates']} updates", columns, rows)
        return
    title = f"{found.oracle}, {found.config.updates:,} updates of {found.config.batch:,} steps"
    _shared.print_table(title, *_shared.table_of_runs(found.runs))


def _assignments(option: str, texts: list[str] | None) -> dict[str, Any]:
    """`NAME=VALUE` texts as a dictionary; values are read as Python's numbers, words and tuples of them."""
    found: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise OcerlError(f"{option} takes NAME=VALUE, got {text!r}")
        found[name.replace("-", "_")] = _shared.literal(value)
    return found


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _two_numbers(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be two numbers, LOW,HIGH, got {text}") from None
    if not -float("inf") < low < high < float("inf"):
        raise argparse.ArgumentTypeError(f"must be two numbers, LOW < HIGH, got {text}")
    return low, high
