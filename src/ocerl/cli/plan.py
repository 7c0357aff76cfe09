"""`ocerl plan MODEL --risk RISK`: the best policy for a risk on a known model."""

from __future__ import annotations

import argparse
from itertools import islice
from typing import TYPE_CHECKING, Any

from ocerl.cli import _shared

if TYPE_CHECKING:
    from ocerl.planning import MarkovPlan, Plan

RULES_SHOWN = 20


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "plan",
        help="the best policy for a risk on a known model",
        description="Find the policy with the best certainty equivalent of the total reward, with a certificate.",
    )
    _shared.add_model_options(parser)
    parser.add_argument(
        "--risk", required=True, help="such as cvar:0.25, entropic:-1, mean-variance:1, mean-cvar:0.5,0.1"
    )
    parser.add_argument(
        "--policy",
        choices=("history", "markov"),
        default="history",
        help="optimise over all policies (history), or over those that see state and step only",
    )
    _shared.add_output_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Plan, print, and write what was asked for."""
    from ocerl.mdp import load_model
    from ocerl.planning import best_markov, plan
    from ocerl.risk import parse_risk

    risk = parse_risk(options.risk)
    model = load_model(options.model, horizon=options.horizon, discount=options.discount, start=options.start)
    if options.policy == "markov":
        found = best_markov(model, risk, resolution=options.resolution, seed=options.seed)
    else:
        with _shared.progress_bar(f"planning {model.name}") as progress:
            found = plan(model, risk, resolution=options.resolution, progress=progress)
    if options.out:
        _write(found, options)
    if options.json:
        _shared.print_json(_document(found, options.resolution))
    else:
        _print(found)
        if options.out:
            print(f"written to {options.out}/")


def _document(found: Plan | MarkovPlan, resolution: float | None) -> dict[str, Any]:
    """The documented JSON form; the best Markov policy's has the budget that values it and what it is held against."""
    from ocerl.planning import Plan, evaluate, risk_neutral

    if isinstance(found, Plan):
        return found.to_dict()
    mean, neutral = risk_neutral(found.model)
    oce = evaluate(found.model, neutral, resolution=resolution).certainty_equivalent(found.risk)
    budget = found.risk.certainty_equivalent(found.returns.values, found.returns.probabilities).budget
    return {**found.to_dict(), "budget": budget, "risk_neutral": {"value": mean, "oce": oce}}


def _write(found: Plan | MarkovPlan, options: argparse.Namespace) -> None:
    from ocerl.planning import Plan, save_policy
    from ocerl.report import plot_plan, plot_returns, save_figure

    if isinstance(found, Plan):
        found.save(options.out)
        save_figure(plot_plan(found), options.out / "plan")
    else:
        _shared.write_json(options.out / "plan.json", _document(found, options.resolution))
        save_policy(found.policy, options.out)
        save_figure(plot_returns({"best Markov": found.returns}, found.risk), options.out / "plan")


def _print(found: Plan | MarkovPlan) -> None:
    from ocerl.planning import Plan, policy_rules

    if isinstance(found, Plan):
        print(found)
    else:
        proof = "every Markov policy tried" if found.exhaustive else f"a search; no policy exceeds {found.upper:.6g}"
        print(f"{found.risk.name} of {found.model.name}, best Markov policy: {found.value:.6g} ({proof})")
    rules = list(islice(policy_rules(found.policy), RULES_SHOWN + 1))
    rows = [
        [str(rule.step), str(rule.state), _interval(rule.lowest, rule.highest), str(rule.action)]
        for rule in rules[:RULES_SHOWN]
    ]
    title = "the policy" if len(rules) <= RULES_SHOWN else f"the policy's first {RULES_SHOWN} rules"
    _shared.print_table(title, ["step", "state", "budget", "action"], rows, left=4)


def _interval(low: float, high: float) -> str:
    if low == high:
        return f"{low:.6g}"
    return "any" if low == -float("inf") else f"{low:.6g} … {high:.6g}"
