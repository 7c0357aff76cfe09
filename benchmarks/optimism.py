"""How many rounds of UCB-VI a core plays in a second, planning again after every one; and a peer.

    python benchmarks/optimism.py [--peer PYTHON]

`--peer` is a Python in whose environment rlberry-scool is installed; its UCBVI learns the same risk-neutral
problem (20 states, 4 actions, 20 steps, every next state possible) right after ours, planning again after
every episode too. Everything runs on one core; figures are medians of three, of processor time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from ocerl.mdp import TabularMDP, from_arrays, random_mdp, zoo
from ocerl.optimistic import UcbVi, UcbViConfig
from ocerl.optimistic._episodes import run
from ocerl.optimistic.problem import learning_lattice, problem_of_model
from ocerl.optimistic.ucbvi import init, plan_everything
from ocerl.optimistic.worlds import TabularWorld
from ocerl.risk import parse_risk

STATES, ACTIONS, HORIZON = 20, 4, 20
REPEATS = 3

PEER = """
import sys, time
import numpy as np
from rlberry.envs.finite_mdp import FiniteMDP
from rlberry_scool.agents.ucbvi import UCBVIAgent
import rlberry
rlberry.logger.setLevel("ERROR")
with np.load(sys.argv[1]) as stored:
    P, R = stored["P"], stored["R"]
horizon, episodes = int(sys.argv[2]), int(sys.argv[3])
seconds = []
for seed in range(3):
    agent = UCBVIAgent(FiniteMDP(R, P), horizon=horizon)
    agent.fit(5)
    began = time.process_time()
    agent.fit(episodes)
    seconds.append(time.process_time() - began)
print(sorted(seconds)[1])
"""


def learner(model: TabularMDP, risk: str, bonus: str, rounds: int, seed: int) -> tuple[TabularWorld, UcbVi]:
    lattice = learning_lattice(model)
    problem = problem_of_model(lattice, per_step=False)
    world = TabularWorld(lattice, problem.terminal, np.random.default_rng(seed))
    config = UcbViConfig(rounds=rounds, bonus=bonus)  # type: ignore[arg-type]
    return world, init(config, problem, parse_risk(risk), atoms=world.rewards, room=world.most_outcomes)


def play(world: TabularWorld, oracle: UcbVi, rounds: int) -> float:
    """Seconds of processor time for so many compiled rounds."""
    episode = np.zeros((oracle.problem.horizon, 4), dtype=np.int64)
    arrays = (oracle.told, oracle.counts, oracle.rows.arrays, oracle.plan, oracle.log_term)
    run(world.outcomes, *arrays, world.random, episode, 1)
    began = time.process_time()
    run(world.outcomes, *arrays, world.random, episode, rounds)
    return time.process_time() - began


def rounds_per_second(model: TabularMDP, risk: str, bonus: str, rounds: int) -> float:
    seconds = [play(*learner(model, risk, bonus, rounds, seed), rounds) for seed in range(REPEATS)]
    return rounds / statistics.median(seconds)


def dense_problem(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Transitions that lead everywhere, and a certain reward in {0, 0.1, …, 1} for each state and action."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(STATES), size=(STATES, ACTIONS))
    return P, rng.integers(0, 11, size=(STATES, ACTIONS)) / 10


def against_the_peer(python: Path | None, rounds: int) -> None:
    P, R = dense_problem()
    ours = rounds_per_second(from_arrays(P, R, horizon=HORIZON), "mean", "hoeffding", rounds)
    print(f"risk-neutral, S={STATES}, A={ACTIONS}, H={HORIZON}: {ours:,.0f} episodes/s")
    if python is None:
        print("  (no --peer given: nothing to compare with)")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        np.savez(path, P=P, R=R)
        episodes = 60
        told = subprocess.run(
            [python, "-c", PEER, path, str(HORIZON), str(episodes)], capture_output=True, text=True, check=True
        )
    peer = episodes / float(told.stdout.split()[-1])
    print(f"  rlberry-scool UCBVI: {peer:,.0f} episodes/s; ours is {ours / peer:,.0f} times as fast")


def what_planning_again_saves(model: TabularMDP, rounds: int) -> None:
    """The same rounds, with every row planned again after each instead of only those that can have changed."""
    lazy = play(*(made := learner(model, "cvar:0.25", "hoeffding", rounds, 0)), rounds) / rounds
    _, oracle = made
    began = time.process_time()
    for _ in range(20):
        plan_everything(oracle)
    full = (time.process_time() - began) / 20
    print(f"{model.name}: {lazy * 1e6:,.0f} µs a round, all of it; planning everything alone {full * 1e6:,.0f} µs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, help="a Python that has rlberry-scool")
    parser.add_argument("--rounds", type=int, default=200_000, help="rounds on the paper's model")
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    paper = zoo.make("paper")
    for risk in ("cvar:0.25", "entropic:-1"):
        for bonus in ("hoeffding", "bernstein"):
            speed = rounds_per_second(paper, risk, bonus, options.rounds)
            print(f"paper, {risk}, {bonus}, rewards learned: {speed:,.0f} rounds/s")
    against_the_peer(options.peer, max(100, options.rounds // 50))
    what_planning_again_saves(random_mdp(0, states=200, actions=4, horizon=10, successors=2, neighbours=True), 500)


if __name__ == "__main__":
    main()
