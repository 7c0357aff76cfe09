r"""`plan`: the policy that is best for a risk among all history-dependent ones, with a certificate."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from ocerl.mdp.lattice import Lattice, counted_range, exact_lattice, rounded_lattice
from ocerl.mdp.tabular import TabularMDP
from ocerl.planning.certificate import Certificate, guaranteed
from ocerl.planning.continuous import solve_continuous
from ocerl.planning.evaluate import evaluation_lattice, forward_markov
from ocerl.planning.first_budget import (
    MEAN_WEIGHT,
    BudgetRange,
    Solution,
    best_of,
    saturating_budgets,
    upper_bounds,
    work_in,
    work_of,
    worthwhile,
)
from ocerl.planning.grid import Grid, Progress
from ocerl.planning.memory import check_resolution
from ocerl.planning.neutral import exponential, risk_neutral
from ocerl.planning.policy import MarkovPolicy
from ocerl.planning.result import Plan
from ocerl.planning.tables import TableStore
from ocerl.risk import Entropic, Mean, Risk, Utility, parse_risk

EXACT_TOLERANCE = 1e-9
"""An answer is called exact if nothing can beat it by more than this part of the return range."""
GAP_TARGET = 5e-4
"""Without a resolution, rounding is refined until the certified interval is this part of the return range …"""
WORK_LIMIT = 2e10
"""… or a pass would take more multiplications than this (some seconds on two cores)."""
FIRST_POINTS = 2000


def plan(
    model: TabularMDP,
    risk: Risk | str,
    *,
    resolution: float | None = None,
    method: Literal["augmented"] | None = None,
    precision: Literal["float64", "float32"] = "float64",
    store: Path | str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Plan:
    r"""Find the policy with the largest OCE of the return among all history-dependent policies (Theorem 2.1).

    .. math:: \mathrm{OCE}^\star_u = \max_b \{\, b + V^\star_1(s_1, b) \,\}

    Rewards on a common lattice make the answer exact. With other rewards, or a discount, they are rounded down
    and up to a `resolution` (chosen from the gap it leaves, unless given): for a monotone utility the two
    optima bracket OCE*, and the policy of the lower one is returned, with the lower bound as its guaranteed
    value. The entropic risk and the mean take the direct Bellman equations, which need no budget;
    `method="augmented"` sends them through the augmented MDP all the same.

    `precision="float32"` halves memory and time; the rounding error enters the certificate. `store` is a folder
    to which the policy's tables are streamed while the solve runs. `progress` is called with steps done and in all.

    >>> from ocerl.mdp import zoo
    >>> best = plan(zoo.make("paper"), "cvar:0.25")
    >>> best.value, best.exact, best.budget
    (0.75, True, 1.5)
    """
    began = time.perf_counter()
    model.require_horizon()
    risk = _on_range(parse_risk(risk), model)
    check_resolution(model, resolution)
    neutral_value, neutral = risk_neutral(model)
    options = _Options(risk, neutral, precision, TableStore(Path(store) if store else None), threads, progress)
    if method is None and isinstance(risk, Mean | Entropic):
        policy, value = _without_budget(model, risk, neutral, neutral_value)
        lattice = evaluation_lattice(model, resolution)
        returns = forward_markov(Grid.of(lattice, threads), policy)
        certificate = Certificate(value, value, value, exact=True)
        budget = value
    else:
        solution, certificate = _solve(model, options, resolution)
        policy, returns, budget = solution.policy, solution.returns, solution.policy.budget
        lattice = solution.policy.lattice
    return Plan(
        model=model,
        risk=risk,
        certificate=certificate,
        budget=budget,
        policy=policy,
        returns=returns,
        neutral_value=neutral_value,
        neutral_policy=neutral,
        lattice=lattice,
        seconds=time.perf_counter() - began,
    )


def _on_range(risk: Risk, model: TabularMDP) -> Risk:
    """A user's utility is examined where this model uses it: on differences of returns."""
    if not isinstance(risk, Utility):
        return risk
    low, high = model.return_range()
    return replace(risk, low=min(risk.low, low - high), high=max(risk.high, high - low))


@dataclass(frozen=True, eq=False)
class _Options:
    risk: Risk
    neutral: MarkovPolicy
    precision: Literal["float64", "float32"]
    store: TableStore
    threads: int | None
    progress: Progress | None

    @property
    def dtype(self) -> type[np.floating]:
        return np.float32 if self.precision == "float32" else np.float64


def _without_budget(
    model: TabularMDP, risk: Risk, neutral: MarkovPolicy, neutral_value: float
) -> tuple[MarkovPolicy, float]:
    if isinstance(risk, Entropic):
        value, policy = exponential(model, risk.beta)
        return policy, value
    return neutral, neutral_value


def _solve(model: TabularMDP, options: _Options, resolution: float | None) -> tuple[Solution, Certificate]:
    exact = exact_lattice(model)
    if exact is not None and (resolution is None or resolution <= exact.unit):
        return _solve_exact(exact, options)
    if resolution is not None:
        found = _bracket(model, options, resolution)
        return found.solution, found.certificate
    return _refine(model, options)


def _solve_exact(lattice: Lattice, options: _Options) -> tuple[Solution, Certificate]:
    grid = Grid.of(lattice, options.threads)
    solution = _solve_on(grid, options)
    exact = solution.upper - solution.value <= EXACT_TOLERANCE * _scale(grid)
    upper = solution.value if exact else solution.upper
    return solution, Certificate(solution.value, solution.value, upper, exact=exact)


def _scale(grid: Grid) -> float:
    low, high = grid.return_range
    return max(high - low, abs(low), abs(high), 1e-300)


def _solve_on(grid: Grid, options: _Options, among: BudgetRange | None = None) -> Solution:
    """The best policy on a lattice."""
    risk, outside = options.risk, options.neutral.slots
    if risk.slopes is None:
        tolerance = EXACT_TOLERANCE * _scale(grid) / 2
        return solve_continuous(grid, risk, outside, tolerance=tolerance, progress=options.progress)
    steep, flat = risk.slopes
    found = saturating_budgets(
        grid,
        flat / steep,
        outside,
        mean_weight=MEAN_WEIGHT / steep,
        among=among,
        store=options.store,
        dtype=options.dtype,
        progress=options.progress,
    )
    return best_of(found, grid, risk, rounding=_rounding_error(grid, options), dtype=options.dtype)


def _rounding_error(grid: Grid, options: _Options) -> float:
    """How far float arithmetic can have moved the optimal value: each step adds its sums' relative error."""
    if options.dtype is np.float64:
        return 0.0
    assert options.risk.slopes is not None
    low, high = grid.return_range
    largest = max(options.risk.slopes) * (high - low)
    outcomes = max(int(np.diff(step.outcome_start).max()) for step in grid.lattice.model.steps)
    return grid.length * (outcomes + 2) * float(np.finfo(np.float32).eps) / 2 * largest


def _refine(model: TabularMDP, options: _Options) -> tuple[Solution, Certificate]:
    """Bracket at finer and finer resolutions until the interval is narrow or the work is too much.

    A coarse solve already rules out most first budgets, and with them most positions of the finer ones.
    """
    low, high = model.return_range()
    span = high - low or 1.0
    counted = max(counted_range(model), 1e-300)
    points, among = FIRST_POINTS, None
    while True:
        found = _bracket(model, options, counted / points, among)
        gap = found.certificate.upper - found.certificate.lower
        # Work grows with the resolution, from what this solve would have been with the budgets now left.
        most_points = points * max(1.0, WORK_LIMIT / max(1, found.work))
        if gap <= GAP_TARGET * span or most_points < 2 * points:
            return found.solution, found.certificate
        among = found.among
        # The gap is proportional to the resolution; a fifth more, so that one more pass is enough.
        points = int(min(most_points, points * max(2.0, 1.2 * gap / (GAP_TARGET * span))))


@dataclass(frozen=True, eq=False)
class _Bracket:
    solution: Solution
    certificate: Certificate
    among: BudgetRange | None = None
    """The first budgets that can still be best."""
    work: float = np.inf
    """The multiplications that a solve over these takes at the same resolution."""


def _bracket(model: TabularMDP, options: _Options, unit: float, among: BudgetRange | None = None) -> _Bracket:
    """Solve with rewards rounded down and up; for a utility that is not monotone, to the nearest."""
    risk = options.risk
    if not risk.monotone:
        return _bracket_nearest(model, options, unit)
    down, up = (rounded_lattice(model, unit, rounding) for rounding in ("down", "up"))
    solution = _solve_on(Grid.of(down, options.threads), options, among)
    lower = min(solution.value, guaranteed(solution.returns, risk, solution.policy.budget))
    if risk.slopes is None:
        upper = _solve_on(Grid.of(up, options.threads), options).upper + up.error[1]
        certificate = Certificate(lower, lower, max(upper, lower), exact=False)
        return _Bracket(solution, certificate, work=2 * _work(solution, options))
    grid = Grid.of(up, options.threads)
    budgets, bounds = upper_bounds(grid, risk, among, options.progress)
    bounds += up.error[1]
    among = worthwhile(budgets, bounds, lower)
    certificate = Certificate(lower, lower, max(float(bounds.max()), lower), exact=False)
    return _Bracket(solution, certificate, among, work_of(grid, among))


def _bracket_nearest(model: TabularMDP, options: _Options, unit: float) -> _Bracket:
    r"""Bound the change of :math:`b + E\,u(Z - b)` when every return moves by at most the lattice's error."""
    lattice = rounded_lattice(model, unit, "nearest")
    grid = Grid.of(lattice, options.threads)
    solution = _solve_on(grid, options)
    low, high = lattice.error
    utility: Callable[..., np.ndarray] = options.risk.utility
    lower = guaranteed(solution.returns, options.risk, solution.policy.budget)
    # The utility is concave: its steepest slopes are at the ends of the range it is used on.
    span = grid.return_range
    reach = span[1] - span[0] + max(-low, high)
    ends = np.array([-reach, reach])
    step = max(-low, high)
    steepest = float(np.abs(utility(ends + step) - utility(ends - step)).max()) / 2
    certificate = Certificate(lower, lower, max(solution.upper + steepest, lower), exact=False)
    return _Bracket(solution, certificate, work=_work(solution, options))


def _work(solution: Solution, options: _Options) -> float:
    """The multiplications of all passes of a solve."""
    grid = Grid.of(solution.policy.lattice, options.threads)
    return solution.passes * work_in(grid, grid.earned_windows(0, 0))
