r"""How the regret of UCB-VI grows: with the rounds, with states and actions, and with the tail's mass.

1. On random models the cumulative OCE regret grows like :math:`K^p`; the theorem's `p` is 1/2, on a fixed model it
   may be less.
2. The bound grows like :math:`\sqrt{SA}`.
3. For CVaR the bound is :math:`\tau^{-1}` with the Hoeffding bonus and :math:`\tau^{-1/2}` with the Bernstein bonus
   (Appendix D.4).

Parts 2 and 3 are about the worst model for a given K, so the worst of a family is taken: one of S states is
drawn, and its actions pay 1 except with probability :math:`\tau(1 + \Delta)/2`, or for one of them
:math:`\tau(1 - \Delta)/2`. Their CVaRs :math:`(1 \mp \Delta)/2` differ by :math:`\Delta`, which runs over a grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import sched_getaffinity
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ocerl.mdp import TabularMDP, random_mdp
from ocerl.mdp.tabular import Label
from ocerl.optimistic import UcbViConfig, explore
from ocerl.optimistic.runner import start
from ocerl.optimistic.task import find_task
from ocerl.planning.grid import Progress
from ocerl.risk import CVaR, mean_interval

RISK = "cvar:0.25"
STATES, ACTIONS, HORIZON = 4, 2, 3
GAPS = np.geomspace(0.5, 0.5 / 2**7, 8)
Bonus = Literal["hoeffding", "bernstein"]
BONUSES: tuple[Bonus, ...] = ("hoeffding", "bernstein")


@dataclass(frozen=True)
class Growth:
    """How a regret grows along an axis: `regret ~ x^power`, fitted on logarithms for each seed."""

    label: str
    x: tuple[float, ...]
    regret: tuple[float, ...]
    """The mean over seeds."""
    power: float
    power_ci: tuple[float, float] | None

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON form."""
        return {
            "label": self.label,
            "x": list(self.x),
            "regret": list(self.regret),
            "power": self.power,
            "power_ci": None if self.power_ci is None else list(self.power_ci),
        }


@dataclass(frozen=True)
class RegretStudy:
    """The three parts."""

    in_rounds: tuple[Growth, ...]
    in_size: tuple[Growth, ...]
    in_tail: tuple[Growth, ...]

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON form."""
        parts = {"rounds": self.in_rounds, "size": self.in_size, "tail": self.in_tail}
        return {name: [growth.to_dict() for growth in part] for name, part in parts.items()}

    def __str__(self) -> str:
        lines: list[str] = []
        for growth in (*self.in_rounds, *self.in_size, *self.in_tail):
            ci = "" if growth.power_ci is None else f" (95%: {growth.power_ci[0]:.2f} … {growth.power_ci[1]:.2f})"
            lines.append(f"{growth.label}: power {growth.power:.2f}{ci}")
        return "\n".join(lines)


def regret_study(
    *,
    rounds: int = 20_000,
    seeds: int = 8,
    sizes: Sequence[int] = (4, 8, 16, 32),
    worst_rounds: int = 200_000,
    tails: Sequence[float] = (1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32),
    progress: Progress | None = None,
) -> RegretStudy:
    """Run all three parts; every seed has random models of its own.

    >>> study = regret_study(rounds=100, seeds=2, sizes=(2, 4), worst_rounds=100, tails=(1 / 2, 1 / 4))
    >>> [len(part) for part in (study.in_rounds, study.in_size, study.in_tail)]
    [4, 2, 2]
    """
    parts = 8
    done = iter(range(1, parts + 1))

    def step(growth: Growth) -> Growth:
        if progress:
            progress(next(done), parts)
        return growth

    shapes = ((STATES, ACTIONS, HORIZON), (8, 4, 3))
    in_rounds = tuple(
        step(growth_in_rounds(shape, bonus, rounds=rounds, seeds=seeds)) for shape in shapes for bonus in BONUSES
    )
    families: tuple[tuple[str, Bonus, list[Family], Sequence[float]], ...] = (
        ("S", "hoeffding", [Family(0.5, size, 2) for size in sizes], sizes),
        ("A", "hoeffding", [Family(0.5, 1, size) for size in sizes], sizes),
        *(("τ", bonus, [Family(tail, 1, 2) for tail in tails], tails) for bonus in BONUSES),
    )
    in_size_s, in_size_a, *in_tail = [
        step(growth_of_the_worst(name, bonus, models, at, rounds=worst_rounds, seeds=seeds))
        for name, bonus, models, at in families
    ]
    return RegretStudy(in_rounds, (in_size_s, in_size_a), tuple(in_tail))


def growth_in_rounds(shape: tuple[int, int, int], bonus: Bonus, *, rounds: int, seeds: int) -> Growth:
    """The regret over the rounds of random models; the power is fitted over the last nine tenths."""
    states, actions, horizon = shape
    curves = [_curve(_random(seed, states, actions, horizon), bonus, rounds, seed) for seed in range(seeds)]
    at = curves[0][0]
    regret = np.stack([values for _, values in curves])
    late = at > rounds / 10
    return _growth(f"regret in K, S={states}, A={actions}, H={horizon}, {bonus}", at, regret, late)


@dataclass(frozen=True)
class Family:
    """Models that differ in the gap between their best action and the others."""

    tail: float
    states: int
    actions: int

    def model(self, gap: float) -> TabularMDP:
        """The best action is the last, so that no tie favours it.

        >>> from ocerl.planning import plan
        >>> round(plan(Family(0.25, 3, 2).model(0.1), "cvar:0.25").value, 9)
        0.55
        """
        risks = [self.tail * (1 + gap) / 2] * (self.actions - 1) + [self.tail * (1 - gap) / 2]
        choices: dict[Label, list[tuple[float, Label, float]]] = {
            number: [(1 - risk, "end", 1.0), (risk, "end", 0.0)] for number, risk in enumerate(risks)
        }
        table: dict[Label, dict[Label, list[tuple[float, Label, float]]]] = {
            "start": {0: [(1 / self.states, f"s{number}", 0.0) for number in range(self.states)]},
            **{f"s{number}": choices for number in range(self.states)},
        }
        return TabularMDP.from_outcomes(table, horizon=2, name="two steps")

    def regret(self, gap: float, bonus: Bonus, rounds: int, seed: int) -> float:
        """The gap for every time that another action than the best was taken."""
        task = find_task(self.model(gap), horizon=None, per_step=None, reward_range=None, resolution=None)
        config = UcbViConfig(rounds=rounds, bonus=bonus)
        runner = start(task, CVaR(self.tail), config, seed, learn_rewards=True, settings={}, path=None)
        runner.advance(rounds)
        visits = runner.oracle.counts.visits[1 : 1 + self.states * self.actions].reshape(-1, self.actions)
        return gap * float(visits[:, :-1].sum())


def growth_of_the_worst(
    axis: str, bonus: Bonus, families: Sequence[Family], at: Sequence[float], *, rounds: int, seeds: int
) -> Growth:
    """The regret along an axis, in each family that of the gap at which the mean over seeds is worst."""
    jobs = [(family, float(gap), seed) for family in families for gap in GAPS for seed in range(seeds)]
    with ThreadPoolExecutor(len(sched_getaffinity(0))) as pool:
        found = list(pool.map(lambda job: job[0].regret(job[1], bonus, rounds, job[2]), jobs))
    regret = np.array(found).reshape(len(families), GAPS.size, seeds)
    worst = regret.mean(axis=2).argmax(axis=1)
    x = np.array(at, dtype=np.float64)
    by_seed = regret[np.arange(len(families)), worst].T
    return _growth(f"worst regret in {axis}, K={rounds}, {bonus}", x, by_seed, np.ones(x.size, dtype=np.bool_))


def _random(seed: int, states: int, actions: int, horizon: int) -> TabularMDP:
    return random_mdp(seed, states=states, actions=actions, horizon=horizon, successors=2)


def _curve(model: TabularMDP, bonus: Bonus, rounds: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    oracle = "ucbvi" if bonus == "hoeffding" else "ucbvi-bernstein"
    found = explore(model, RISK, oracle=oracle, rounds=rounds, seeds=[seed])
    assert found.optimum is not None
    run = found.runs[0]
    return run.rounds.astype(np.float64), run.regret(found.optimum)


def _growth(label: str, x: NDArray[np.float64], regret: NDArray[np.float64], fitted: NDArray[np.bool_]) -> Growth:
    """Fit each seed's regret; a seed without any has nothing to fit and is left out."""
    kept = [curve for curve in regret if (curve[fitted] > 0).all()]
    # Equal weight for equal stretches of the logarithm.
    at = np.log(x[fitted])
    weight = np.sqrt(np.abs(np.gradient(at)))
    powers = [float(np.polyfit(at, np.log(curve[fitted]), 1, w=weight)[0]) for curve in kept]
    return Growth(
        label,
        tuple(x.tolist()),
        tuple(regret.mean(axis=0).tolist()),
        float(np.mean(powers)) if powers else 0.0,
        mean_interval(powers),
    )
