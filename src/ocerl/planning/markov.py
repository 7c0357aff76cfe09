r"""The best Markov policy: what risk-sensitive methods without a budget can reach at most.

For a fixed `b`, :math:`b + \mathbb E\,u(Z - b)` is linear in each state's action probabilities with the others
held, so some deterministic table is best among all Markov policies, randomised ones included. There is no
Bellman equation for it: small problems are solved by enumeration, larger ones by coordinate ascent from many
starts, which the result says (`exhaustive`), with the history-dependent optimum as an upper bound.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocerl.mdp.tabular import TabularMDP
from ocerl.planning import _kernels
from ocerl.planning.certificate import guaranteed
from ocerl.planning.distribution import ReturnDistribution
from ocerl.planning.evaluate import evaluation_lattice, forward_markov, markov_masses
from ocerl.planning.grid import Grid
from ocerl.planning.neutral import risk_neutral
from ocerl.planning.plan import plan
from ocerl.planning.policy import MarkovPolicy
from ocerl.risk import Risk, parse_risk

ENUMERATE_UP_TO = 20_000
"""As many tables are tried one by one."""
RESTARTS = 20


@dataclass(frozen=True, eq=False, kw_only=True)
class MarkovPlan:
    """The best Markov policy found, whether every one was tried, and a bound on all."""

    model: TabularMDP
    risk: Risk
    value: float
    upper: float
    exhaustive: bool
    policy: MarkovPolicy
    returns: ReturnDistribution
    seconds: float

    @property
    def exact(self) -> bool:
        """Every Markov policy was tried, and no reward was rounded."""
        return self.exhaustive and self.returns.error == (0.0, 0.0)

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON form."""
        return {
            "model": self.model.name,
            "risk": self.risk.name,
            "policy": "markov",
            "horizon": self.model.horizon,
            "discount": self.model.discount,
            "value": self.value,
            "lower": self.value,
            "upper": self.upper,
            "exact": self.exact,
            "exhaustive": self.exhaustive,
            "return": {
                "values": self.returns.values.tolist(),
                "probabilities": self.returns.probabilities.tolist(),
                "mean": self.returns.mean,
            },
            "seconds": self.seconds,
        }


def best_markov(model: TabularMDP, risk: Risk | str, *, resolution: float | None = None, seed: int = 0) -> MarkovPlan:
    """The best policy that looks at state and step only.

    >>> from ocerl.mdp import zoo
    >>> found = best_markov(zoo.make("paper"), "cvar:0.25")
    >>> found.value, found.exhaustive
    (0.5, True)
    """
    began = time.perf_counter()
    risk = parse_risk(risk)
    grid = Grid.of(evaluation_lattice(model, resolution))
    free = _free_choices(grid)
    exhaustive = float(np.prod([float(count) for _, _, count in free])) <= ENUMERATE_UP_TO
    candidates = _enumerate(grid, free) if exhaustive else _search(grid, risk, seed)
    best: tuple[float, MarkovPolicy, ReturnDistribution] | None = None
    for policy in candidates:
        returns = forward_markov(grid, policy)
        value = returns.certainty_equivalent(risk)
        if best is None or value > best[0]:
            best = value, policy, returns
    assert best is not None
    found = risk.certainty_equivalent(best[2].values, best[2].probabilities)
    value = guaranteed(best[2], risk, found.budget)
    exact = exhaustive and grid.lattice.error == (0.0, 0.0)
    return MarkovPlan(
        model=model,
        risk=risk,
        value=value,
        upper=value if exact else max(value, plan(model, risk, resolution=resolution).upper),
        exhaustive=exhaustive,
        policy=best[1],
        returns=best[2],
        seconds=time.perf_counter() - began,
    )


def _free_choices(grid: Grid) -> list[tuple[int, int, int]]:
    """Step, state and number of actions, where there is a choice that can be met."""
    choices: list[tuple[int, int, int]] = []
    for step in range(grid.length):
        counts = np.diff(grid.transitions(step).pair_start)
        choices += [(step, int(s), int(counts[s])) for s in grid.states[step] if counts[s] > 1]
    return choices


def _enumerate(grid: Grid, free: list[tuple[int, int, int]]) -> Iterator[MarkovPolicy]:
    model = grid.lattice.model
    table = np.zeros((model.require_horizon(), model.n_states), dtype=np.uint16)
    for slots in itertools.product(*(range(count) for _, _, count in free)):
        for (step, state, _), slot in zip(free, slots, strict=True):
            table[step, state] = slot
        yield MarkovPolicy(model, table.copy())


def _search(grid: Grid, risk: Risk, seed: int) -> Iterator[MarkovPolicy]:
    """Local optima of coordinate ascent, from the risk-neutral policy and from random tables."""
    model, random = grid.lattice.model, np.random.default_rng(seed)
    yield _ascend(grid, risk, risk_neutral(model)[1])
    horizon = model.require_horizon()
    counts = np.stack([np.diff(model.transitions(h).pair_start) for h in range(horizon)])
    for _ in range(RESTARTS):
        yield _ascend(grid, risk, MarkovPolicy(model, random.integers(0, counts).astype(np.uint16)))


def _ascend(grid: Grid, risk: Risk, policy: MarkovPolicy) -> MarkovPolicy:
    """Improve one step's table after the other, then the budget, until neither helps."""
    value, best = -np.inf, policy
    for _ in range(100):
        returns = forward_markov(grid, policy)
        found = risk.certainty_equivalent(returns.values, returns.probabilities)
        if found.value <= value + 1e-12 * max(1.0, abs(value)):
            break
        value, best = found.value, policy
        policy = _sweep(grid, risk, policy, found.budget)
    return best


def _sweep(grid: Grid, risk: Risk, policy: MarkovPolicy, budget: float) -> MarkovPolicy:
    """One backward sweep: each step's table is made the best for the mass that reaches it and the values behind it."""
    windows = grid.earned_windows(0, 0)
    masses = markov_masses(grid, policy)
    slots = policy.slots.copy()
    earned = np.arange(windows.low[-1], windows.high[-1] + 1)
    payoff = np.asarray(risk.utility(grid.lattice.floor + grid.lattice.unit * earned - budget), dtype=np.float64)
    following = np.tile(payoff, (grid.n_states, 1))
    for step in reversed(range(grid.length)):
        t = grid.transitions(step)
        out = np.zeros((grid.n_states, int(windows.widths[step])))
        _kernels.improve_markov(
            grid.states[step],
            t.pair_start,
            t.outcome_start,
            t.probability,
            t.next_state,
            grid.lattice.shifts(step),
            masses[step],
            int(windows.low[step] - windows.low[step + 1]),
            following,
            out,
            slots[step],
        )
        following = out
    return MarkovPolicy(policy.model, slots)
