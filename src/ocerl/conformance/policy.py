r"""The conditions of Definition 4.1, measured for a policy-optimization oracle on a known model.

With the exact value of every policy at every first budget (`evaluate`) and the planner's :math:`V^\star`, in means
over :math:`b \sim \mathrm{Unif}(\mathcal B)`:

1. *value estimate*: :math:`\mathbb E_b |V^{\pi^k}_1 - \hat V^{\pi^k}_1| \le \epsilon_k`;
2. *approximate improvement*: :math:`V^{\pi^{k+1}}_1(d_1) \ge V^{\pi^k}_1(d_1) - \epsilon_k`;
3. *global convergence*: :math:`\sum_k V^\star_1(d_1) - V^{\pi^k}_1(d_1)` grows slower than K.

:math:`\epsilon_k` is the smallest number for which 1 and 2 hold. The report says how large these are, late in the
run, relative to the range of the pay-offs, and whether the theorems that follow from them hold: the risk lower
bound is one up to :math:`2 |\mathcal B| \epsilon_k`, never falls by more than :math:`|\mathcal B| \epsilon_k`, and the
OCE's total shortfall is at most :math:`|\mathcal B|` times that of condition 3 plus :math:`2 \sum_k \epsilon_k`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.gradient.graph import AugmentedGraph
from ocerl.gradient.meta import PolicyOracle, RunState, optimise_policies
from ocerl.gradient.policy import StochasticBudgetPolicy
from ocerl.gradient.tables import probabilities
from ocerl.mdp import TabularMDP
from ocerl.planning import evaluate, plan
from ocerl.planning.backward import backward
from ocerl.planning.evaluate import evaluation_lattice
from ocerl.planning.grid import Grid
from ocerl.planning.policy import Policy
from ocerl.risk import Risk, parse_risk

Floats = NDArray[np.float64]
State = TypeVar("State", bound=RunState)

PolicyOf = Callable[[Any, int, int], Policy]
"""From an oracle's state, a run and the number of a first budget: the policy, begun with that budget."""

ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class PolicyReport:
    """How an oracle fared; every number but `exponent` and `rounds` is relative to the range of the pay-offs."""

    model: str
    risk: str
    rounds: int
    tolerance: float
    value_error: float
    """The mean error of the value estimate over the last half of the rounds, the worst seed's."""
    largest_fall: float
    """The largest fall of the value from one round to the next, over all rounds and seeds."""
    late_fall: float
    """The mean fall over the last half of the rounds, the worst seed's."""
    gap: float
    """The mean distance of the value from the optimum over the last half of the rounds, the worst seed's."""
    exponent: float
    """The power of K with which the total distance grows, fitted on logarithms, the worst seed's."""
    bound_is_one: bool
    """The risk lower bound is one, up to its slack (Lemma "RLB")."""
    bound_improves: bool
    """It never falls by more than its slack (Theorem "Local Improvement")."""
    converges: bool
    """The OCE's total shortfall is within Theorem "Global Convergence"."""

    @property
    def conforms(self) -> bool:
        """Errors, falls and distance are all below the tolerance late in the run, and the theorems hold."""
        small = max(self.value_error, self.late_fall, self.gap) <= self.tolerance
        return small and self.exponent < 1 and self.bound_is_one and self.bound_improves and self.converges

    def __str__(self) -> str:
        return (
            f"{self.risk} of {self.model}, {self.rounds} rounds: {'conforms' if self.conforms else 'FAILS'}\n"
            f"late in the run: value error {self.value_error:.3g}, fall {self.late_fall:.3g}, distance from the "
            f"optimum {self.gap:.3g} (of the pay-offs' range; at most {self.tolerance:g})\n"
            f"largest fall {self.largest_fall:.3g}; total distance grows like K^{self.exponent:.2f}; risk lower "
            f"bound: {_holds(self.bound_is_one)}, improvement: {_holds(self.bound_improves)}, "
            f"convergence: {_holds(self.converges)}"
        )


def check_policy_optimization(
    model: TabularMDP,
    risk: Risk | str,
    oracle: PolicyOracle[State],
    policy_of: PolicyOf,
    *,
    rounds: int,
    seeds: Sequence[int] = (0,),
    updates_per_round: int = 1,
    tolerance: float = 0.02,
) -> PolicyReport:
    """Run Algorithm 2 with an oracle on a model that is small enough to evaluate every policy exactly.

    `policy_of` gives the policy in an oracle's state; `table_policy_of` does so for tables over a graph.

    >>> from ocerl.gradient import ExactNPG, augmented_graph, first_budgets
    >>> from ocerl.mdp import zoo
    >>> risk, model = parse_risk("cvar:0.25"), zoo.make("paper")
    >>> graph = augmented_graph(risk, first_budgets(model, risk))
    >>> report = check_policy_optimization(model, risk, ExactNPG(graph, growth=1.0), table_policy_of(graph), rounds=40)
    >>> report.conforms, report.largest_fall
    (True, 0.0)
    """
    if rounds < 4:
        raise OcerlError(f"the report compares halves of a run: it needs at least 4 rounds, got {rounds}")
    risk = parse_risk(risk)
    budgets = oracle.budgets
    seen = _measure(model, risk, oracle, policy_of, list(seeds), rounds, updates_per_round)
    gap = _optimal_values(model, risk, budgets).mean() - seen.value
    fall = np.maximum(0.0, seen.value[:-1] - seen.value[1:])
    slack = seen.error.copy()
    slack[:-1] = np.maximum(slack[:-1], fall)
    scale = float(np.ptp(risk.utility(budgets[:, None] - budgets), axis=0).mean())
    size, rounding = budgets.size, ROUNDING * max(scale, 1.0)
    missed = (plan(model, risk).upper - seen.oce).sum(axis=0)

    def late(measured: Floats) -> float:
        return float(measured[rounds // 2 :].mean(axis=0).max()) / scale

    return PolicyReport(
        model=model.name,
        risk=risk.name,
        rounds=rounds,
        tolerance=tolerance,
        value_error=late(seen.error),
        largest_fall=float(fall.max()) / scale,
        late_fall=late(fall),
        gap=late(gap),
        exponent=max(_power(of_seed) for of_seed in gap.T),
        bound_is_one=bool((seen.bound - seen.oce <= 2 * size * slack + rounding).all()),
        bound_improves=bool((seen.bound[:-1] - seen.bound[1:] <= size * slack[:-1] + rounding).all()),
        converges=bool((missed <= size * (gap + 2 * slack).sum(axis=0) + rounds * rounding).all()),
    )


@dataclass(frozen=True, eq=False)
class _Measured:
    """Arrays `[rounds + 1, seeds]`."""

    value: Floats
    error: Floats
    bound: Floats
    oce: Floats


def _measure(
    model: TabularMDP,
    risk: Risk,
    oracle: PolicyOracle[State],
    policy_of: PolicyOf,
    seeds: list[int],
    rounds: int,
    updates_per_round: int,
) -> _Measured:
    """The true values of every round's policies, by evaluating each from every first budget."""
    budgets = oracle.budgets
    value, error, bound, oce = np.empty((4, rounds + 1, len(seeds)))
    updates = rounds * updates_per_round
    course = optimise_policies(oracle, oracle.init(seeds), updates=updates, every=updates_per_round)
    for number, (state, found) in enumerate(course):
        estimate = oracle.estimate(state)
        for run in range(len(seeds)):
            returns = [evaluate(model, policy_of(state, run, j)) for j in range(budgets.size)]
            true = np.array(
                [z.probabilities @ risk.utility(z.values - b) for z, b in zip(returns, budgets, strict=True)]
            )
            value[number, run] = true.mean()
            error[number, run] = np.abs(true - estimate[run]).mean()
            bound[number, run] = (budgets + true).max()
            oce[number, run] = returns[int(found.chosen[run])].certainty_equivalent(risk)
    return _Measured(value, error, bound, oce)


def table_policy_of(graph: AugmentedGraph) -> PolicyOf:
    """For the oracles whose states hold `logits` over the graph's entries."""

    def policy_of(state: Any, run: int, chosen: int) -> StochasticBudgetPolicy:
        return StochasticBudgetPolicy.of(graph, probabilities(graph, state.logits[run]), chosen)

    return policy_of


def _optimal_values(model: TabularMDP, risk: Risk, budgets: Floats) -> Floats:
    r""":math:`V^\star_1(s_1, b)` by the planner's backward induction, one pass for each first budget."""
    lattice = evaluation_lattice(model)
    grid = Grid.of(lattice, 1)
    windows = grid.earned_windows(0, 0)

    def value(budget: float) -> float:
        def payoff(earned: NDArray[np.int64]) -> Floats:
            return np.asarray(risk.utility(lattice.floor + lattice.unit * earned - budget), np.float64)

        return float(backward(grid, windows, payoff)[0])

    return np.array([value(float(budget)) for budget in budgets])


def _power(gap: Floats) -> float:
    """The slope of the logarithm of the total against that of K, on the last nine tenths; 0 without a total."""
    total = np.cumsum(np.maximum(gap, 0.0))
    number = np.arange(1, total.size + 1)
    kept = number > total.size / 10
    if total[kept][0] <= 0:
        return 0.0
    return float(np.polyfit(np.log(number[kept]), np.log(total[kept]), 1)[0])


def _holds(condition: bool) -> str:
    return "holds" if condition else "FAILS"
