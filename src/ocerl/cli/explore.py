"""`ocerl explore MODEL --risk RISK`: learn a policy by optimism, without a model (Algorithm 1)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Literal

from ocerl.cli import _shared
from ocerl.errors import OcerlError

if TYPE_CHECKING:
    from ocerl.optimistic import Exploration


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "explore",
        help="learn a policy for a risk by optimism, without a model",
        description="Explore a world that is not known (a tabular model is simulated) and learn the best policy "
        "for a risk by optimism (Algorithm 1). Where a model is known, every result is judged exactly.",
    )
    _shared.add_model_options(parser)
    parser.add_argument("--risk", required=True, help="such as cvar:0.25, entropic:-1, mean-variance:1")
    parser.add_argument("--oracle", default="ucbvi", help="ucbvi, ucbvi-bernstein, golf or repucb (default ucbvi)")
    parser.add_argument("--bits", type=int, metavar="M", help="of risky-lock: the exogenous bits (default 4)")
    parser.add_argument("--states", type=int, metavar="S", help="of low-rank (default 100) and low-rank-vectors (20)")
    parser.add_argument("--rank", type=int, metavar="D", help="repucb: learn a factorisation of this rank from nothing")
    parser.add_argument("--rounds", type=int, required=True, metavar="K", help="number of rounds (episodes)")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="number of independent runs (default 1)")
    parser.add_argument(
        "--bonus-scale", default=None, metavar="C", help="factor of the bonus (default 0.5), or theory, which is 1"
    )
    parser.add_argument("--delta", type=float, default=0.05, help="how often optimism may fail (default 0.05)")
    parser.add_argument("--known-rewards", action="store_true", help="tell the learner the rewards' distributions")
    parser.add_argument("--per-step", action="store_true", help="counts of its own for every step")
    parser.add_argument(
        "--reward-range", metavar="LOW,HIGH", help="the range of rewards, for an environment without a table"
    )
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in --out, to the same result")
    _shared.add_output_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Explore, print, and write what was asked for."""
    from ocerl.optimistic import explore
    from ocerl.optimistic.ucbvi import DEFAULT_SCALE

    if options.seeds < 1:
        raise OcerlError(f"--seeds must be at least 1, got {options.seeds}")
    if options.resume and not options.out:
        raise OcerlError("--resume needs --out, the folder of the run to go on with")
    changed = options.discount is not None or options.start is not None
    with _shared.progress_bar(f"exploring {options.model}") as progress:
        found = explore(
            _world(options, changed),
            options.risk,
            oracle=options.oracle,
            rounds=options.rounds,
            rank=options.rank,
            seeds=range(options.seed, options.seed + options.seeds),
            bonus_scale=DEFAULT_SCALE if options.bonus_scale is None else _scale(options.bonus_scale),
            delta=options.delta,
            known_rewards=options.known_rewards,
            per_step=True if options.per_step else None,
            horizon=None if changed or options.bits or options.states else options.horizon,
            reward_range=None if options.reward_range is None else _range(options.reward_range),
            resolution=options.resolution,
            out=options.out,
            resume=options.resume,
            progress=progress,
        )
    if options.out:
        from ocerl.report.regret import plot_regret
        from ocerl.report.save import save_figure

        found.save(options.out)
        save_figure(plot_regret(found), options.out / "regret")
    if options.json:
        _shared.print_json(found.to_dict())
        return
    _print(found)
    if options.out:
        print(f"written to {options.out}/")


def _world(options: argparse.Namespace, changed: bool) -> Any:
    """What is to be explored: a name, or a model or world with the parameters that were given."""
    from ocerl.mdp import load_model, rich

    given = {"bits": options.bits, "states": options.states}
    parameters = {name: value for name, value in given.items() if value is not None}
    if options.model in rich.WORLDS:
        if changed:
            raise OcerlError(
                f"{options.model} has a start and no discount of its own: leave --discount and --start out"
            )
        if parameters and options.horizon is not None:
            parameters["horizon"] = options.horizon
        return rich.make(options.model, **parameters) if parameters else options.model
    if parameters:
        named = " and ".join(f"--{name}" for name in parameters)
        raise OcerlError(f"{named} belongs to the worlds {', '.join(rich.WORLDS)}, not to {options.model}")
    if changed:
        return load_model(options.model, horizon=options.horizon, discount=options.discount, start=options.start)
    return options.model


def _print(found: Exploration) -> None:
    print(found)
    rows = [[str(run.seed), f"{run.value:.6g}", f"{run.budget:.6g}", f"{run.last_tenth:.6g}"] for run in found.runs]
    _shared.print_table(
        f"{found.oracle}, {found.rounds} rounds",
        ["seed", found.risk.name, "first budget", "mean of the last tenth"],
        rows,
    )


def _scale(text: str) -> float | Literal["theory"]:
    if text == "theory":
        return "theory"
    try:
        return float(text)
    except ValueError:
        raise OcerlError(f"--bonus-scale must be a number of at least 0 or theory, got {text}") from None


def _range(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise OcerlError(f"--reward-range must be two numbers LOW,HIGH, such as -1,1, got {text}") from None
    return low, high
