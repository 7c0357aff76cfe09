"""How many updates of the tabular policy gradients a second, for 1, 10 and 100 seeds at once.

    python benchmarks/policy_optimization.py

An update of sampled NPG plays 32 episodes, fits Q to all transitions so far and takes a soft policy iteration; an
update of REINFORCE plays 32 episodes; exact NPG makes one pass over the augmented graph. Compiled code is warm;
figures are medians of three, with both cores where there is more than one seed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

from ocerl.gradient import ExactNPG, Reinforce, SampledNPG, augmented_graph, first_budgets
from ocerl.gradient.graph import AugmentedGraph
from ocerl.mdp import TabularMDP, random_mdp, zoo
from ocerl.risk import parse_risk

ORACLES: dict[str, Callable[[AugmentedGraph], Any]] = {
    "npg": SampledNPG,
    "npg-exact": lambda graph: ExactNPG(graph, growth=1.0),
    "reinforce": Reinforce,
}
MODELS: dict[str, tuple[TabularMDP, int]] = {
    "the paper's MDP": (zoo.make("paper"), 1000),
    "random: 20 states, 3 actions, 10 steps": (random_mdp(1, states=20, horizon=10), 20),
}
REPEATS = 3


def updates_per_second(oracle: Any, seeds: int, updates: int) -> float:
    """Updates of each seed in a second."""
    oracle.update(oracle.init([0]), 1)
    times: list[float] = []
    for _ in range(REPEATS):
        state = oracle.init(range(seeds))
        began = time.perf_counter()
        oracle.update(state, updates)
        times.append(time.perf_counter() - began)
    return updates / statistics.median(times)


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    risk = parse_risk("cvar:0.25")
    print(f"{len(os.sched_getaffinity(0))} cores; updates per second and seed (of all seeds together)")
    for name, (model, updates) in MODELS.items():
        graph = augmented_graph(risk, first_budgets(model, risk))
        print(f"\n{name}: {graph.budgets.values.size} first budgets, {graph.layout.row.size:,} pairs (s, b)")
        for label, make in ORACLES.items():
            rates = [(seeds, updates_per_second(make(graph), seeds, updates)) for seeds in (1, 10, 100)]
            told = ", ".join(f"{seeds} seeds {rate:,.0f} ({rate * seeds:,.0f})" for seeds, rate in rates)
            print(f"  {label:10} {told}")


if __name__ == "__main__":
    main()
