r"""Both conditions of Definition 3.1, measured for an oracle on a known model.

1. *Optimism*: :math:`\hat V_{1,k}(s_1, b) \ge V^\star_1(s_1, b) - \epsilon_k` in every round and at every first budget
   of the oracle, against the planner's :math:`V^\star`.
2. *Bounded regret*: :math:`\sum_k \hat V_{1,k}(s_1, \hat b_k) - V^{\pi^k}_1(s_1, \hat b_k)` grows slower than K, with
   every policy evaluated exactly; the power of K is fitted on the last nine tenths of the rounds, on logarithms.

Theorem 3.2 turns the two into a bound on the OCE regret.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp import TabularMDP
from ocerl.mdp.lattice import Lattice
from ocerl.mdp.rich import RichWorld
from ocerl.optimistic.meta import OptimisticOracle, optimism
from ocerl.optimistic.problem import learning_lattice, problem_of_model
from ocerl.optimistic.rich import learner
from ocerl.optimistic.table import DecodedPolicy, TablePolicy
from ocerl.optimistic.ucbvi import UcbViConfig, init
from ocerl.optimistic.worlds import TabularWorld, collect
from ocerl.planning import ReturnDistribution, evaluate
from ocerl.planning.backward import backward
from ocerl.planning.grid import Grid
from ocerl.planning.policy import Policy
from ocerl.risk import Risk, mean_interval, parse_risk

Floats = NDArray[np.float64]
Play = Callable[[Policy], Any]
MakeOracle = Callable[[int], tuple[OptimisticOracle[Any], Play]]
"""From a seed to a new oracle and the function that collects one episode with a policy."""

ROUNDING = 1e-9
"""A shortfall below this part of the values' size is rounding."""


@dataclass(frozen=True, kw_only=True)
class OptimismReport:
    """How an oracle fared in both conditions of Definition 3.1."""

    model: str
    risk: str
    rounds: int
    seeds: int
    delta: float
    optimistic_share: float
    """The share of rounds and budgets, over all seeds, at which optimism held."""
    optimistic_runs: float
    """The share of seeds for which it held in every round and at every budget."""
    shortfall: float
    """The largest amount by which a value was too low, beyond its slack."""
    total_gap: tuple[float, ...]
    """The sum of condition 2 for each seed."""
    exponents: tuple[float, ...]
    """The fitted power of K for each seed."""

    @property
    def exponent(self) -> float:
        """The mean fitted power."""
        return float(np.mean(self.exponents))

    @property
    def exponent_ci(self) -> tuple[float, float] | None:
        """Its 95% interval over seeds; None for a single seed."""
        return mean_interval(self.exponents)

    @property
    def optimistic(self) -> bool:
        """Condition 1: the runs without any failure are at least a share of 1 - delta."""
        return self.optimistic_runs >= 1 - self.delta

    @property
    def sublinear(self) -> bool:
        """Condition 2: the power is below 1, with its interval."""
        return (self.exponent if self.exponent_ci is None else self.exponent_ci[1]) < 1.0

    @property
    def passes(self) -> bool:
        """Both conditions."""
        return self.optimistic and self.sublinear

    def to_dict(self) -> dict[str, Any]:
        """All figures."""
        return {
            "model": self.model,
            "risk": self.risk,
            "rounds": self.rounds,
            "seeds": self.seeds,
            "delta": self.delta,
            "optimistic_share": self.optimistic_share,
            "optimistic_runs": self.optimistic_runs,
            "shortfall": self.shortfall,
            "total_gap": list(self.total_gap),
            "exponent": self.exponent,
            "exponent_ci": list(self.exponent_ci) if self.exponent_ci else None,
            "optimistic": self.optimistic,
            "sublinear": self.sublinear,
            "passes": self.passes,
        }

    def __str__(self) -> str:
        interval = "" if self.exponent_ci is None else f" (95%: {self.exponent_ci[0]:.2f} … {self.exponent_ci[1]:.2f})"
        verdicts = ["holds" if verdict else "FAILS" for verdict in (self.optimistic, self.sublinear)]
        return (
            f"Definition 3.1 on {self.model}, {self.risk}: {self.rounds} rounds, {self.seeds} seeds\n"
            f"  1 optimism        {verdicts[0]}  {self.optimistic_share:.2%} of rounds and budgets, "
            f"{self.optimistic_runs:.1%} of runs throughout; largest shortfall {self.shortfall:.3g}\n"
            f"  2 bounded regret  {verdicts[1]}  sum of V̂ − V^π {np.mean(self.total_gap):.4g}, "
            f"growing like K^{self.exponent:.2f}{interval}"
        )


def check_optimism(
    make: MakeOracle,
    model: TabularMDP,
    risk: Risk | str,
    *,
    rounds: int,
    seeds: int = 10,
    delta: float = 0.05,
    slack: Callable[[int], float] = lambda _: 0.0,
) -> OptimismReport:
    r"""Run Algorithm 1 with an oracle and measure both conditions; `slack` gives :math:`\epsilon_k` of round k from 1.

    >>> from ocerl.mdp import zoo
    >>> paper = zoo.make("paper")
    >>> make = ucbvi_maker(paper, "cvar:0.25", UcbViConfig(rounds=50, bonus_scale="theory"))
    >>> check_optimism(make, paper, "cvar:0.25", rounds=50, seeds=2).optimistic
    True
    """
    risk = parse_risk(risk)
    lattice = learning_lattice(model)
    watches = [_Watch(lattice, risk, rounds, slack) for _ in range(seeds)]
    for seed, watch in enumerate(watches):
        oracle, play = make(seed)
        optimism(oracle, watch.around(play), rounds, observe=watch.observe)
    return OptimismReport(
        model=model.name,
        risk=risk.name,
        rounds=rounds,
        seeds=seeds,
        delta=delta,
        optimistic_share=float(np.mean([watch.share.mean() for watch in watches])),
        optimistic_runs=float(np.mean([bool((watch.share == 1.0).all()) for watch in watches])),
        shortfall=max(watch.shortfall for watch in watches),
        total_gap=tuple(float(watch.gaps.sum()) for watch in watches),
        exponents=tuple(growth(watch.gaps) for watch in watches),
    )


def growth(terms: Floats) -> float:
    """The power of K with which the sum of the first K terms grows, by least squares over the last nine tenths.

    It is 0 for a sum that ends at or below 0, which is bounded already.

    >>> round(growth(1 / np.sqrt(np.arange(1, 10001))), 2)
    0.5
    """
    sums = np.cumsum(terms)
    if sums[-1] <= 0:
        return 0.0
    rounds = np.arange(1, terms.size + 1)
    fitted = (rounds > terms.size // 10) & (sums > 0)
    if fitted.sum() < 2:
        raise OcerlError(f"a power of K is fitted over at least 2 rounds, got {terms.size}")
    # Equal weight for equal stretches of the logarithm.
    return float(np.polyfit(np.log(rounds[fitted]), np.log(sums[fitted]), 1, w=rounds[fitted] ** -0.5)[0])


def ucbvi_maker(
    model: TabularMDP, risk: Risk | str, config: UcbViConfig, *, per_step: bool | None = None
) -> MakeOracle:
    """New UCB-VI oracles for a model: what `check_optimism` takes."""
    risk, lattice = parse_risk(risk), learning_lattice(model)
    problem = problem_of_model(lattice, per_step=not model.stationary if per_step is None else per_step)

    def make(seed: int) -> tuple[OptimisticOracle[Any], Play]:
        world = TabularWorld(lattice, problem.terminal, np.random.default_rng(seed))
        oracle = init(config, problem, risk, atoms=world.rewards, room=world.most_outcomes)
        return oracle, lambda policy: collect(world, policy, problem.horizon)

    return make


def rich_maker(
    world: TabularMDP | RichWorld, risk: Risk | str, oracle: str, config: Any = None, *, rank: int | None = None
) -> MakeOracle:
    """New GOLF or Rep-UCB oracles for a world; `check_optimism` takes them with the world's table, `world.model()`."""

    def make(seed: int) -> tuple[OptimisticOracle[Any], Play]:
        made = learner(world, oracle, parse_risk(risk), seed, config=config, rank=rank)
        return made.oracle, made.play

    return make


class _Watch:
    """Follows one run: what the oracle claims, against the planner and the exact value of what it plays."""

    def __init__(self, lattice: Lattice, risk: Risk, rounds: int, slack: Callable[[int], float]) -> None:
        self.lattice, self.risk, self.slack = lattice, risk, slack
        self.share, self.gaps = np.ones(rounds), np.zeros(rounds)
        self.shortfall = 0.0
        self._number, self._budget, self._claim = 0, 0.0, 0.0
        self._best: tuple[Floats, Floats] | None = None
        self._judged: dict[bytes, ReturnDistribution] = {}

    def observe(self, number: int, budget: float, budgets: Floats, values: Floats) -> None:
        """Compare the claims of a round with the optimal values."""
        if self._best is None or not np.array_equal(self._best[0], budgets):
            self._best = budgets, optimal_values(self.lattice, self.risk, budgets)
        best = self._best[1]
        short = best - self.slack(number + 1) - values
        self.share[number] = np.mean(short <= ROUNDING * (1 + np.abs(best)))
        self.shortfall = max(self.shortfall, float(short.max()))
        self._number, self._budget = number, budget
        self._claim = float(values[np.flatnonzero(budgets == budget)[0]])

    def around(self, play: Play) -> Play:
        """The same play, with the policy evaluated first."""

        def watched(policy: Policy) -> Any:
            returns = self._evaluate(policy)
            achieved = float(returns.probabilities @ self.risk.utility(returns.values - self._budget))
            self.gaps[self._number] = self._claim - achieved
            return play(policy)

        return watched

    def _evaluate(self, policy: Policy) -> ReturnDistribution:
        model = self.lattice.model
        if not isinstance(policy, TablePolicy | DecodedPolicy):
            return evaluate(model, policy)
        if policy.key not in self._judged:
            self._judged[policy.key] = evaluate(model, policy.on(self.lattice))
        return self._judged[policy.key]


def optimal_values(lattice: Lattice, risk: Risk, budgets: Floats) -> Floats:
    r"""The planner's :math:`V^\star_1(s_1, b)`, in expectation over the start, at any budgets.

    >>> from ocerl.mdp import zoo
    >>> lattice = learning_lattice(zoo.make("paper"))
    >>> optimal_values(lattice, parse_risk("cvar:0.25"), np.array([1.5, 2.0])).tolist()
    [-0.75, -2.25]
    """
    grid = Grid.of(lattice, 1)
    position = np.array([grid.position(float(budget)) for budget in budgets])
    whole = np.floor(position + ROUNDING)
    offset = np.where(np.abs(position - whole) < ROUNDING, 0.0, position - whole)
    values = np.empty(budgets.size)
    for rest in np.unique(offset):
        chosen = offset == rest
        y = whole[chosen].astype(np.int64)
        windows = grid.earned_windows(int(y.min()), int(y.max()))
        row = backward(grid, windows, lambda at, rest=rest: np.asarray(risk.utility(lattice.unit * (at + rest))))
        values[chosen] = row[y - y.min()]
    return values
