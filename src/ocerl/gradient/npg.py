r"""Exact natural policy gradient (Section 4.1): soft policy iteration in the augmented MDP of a known model.

Under the softmax parameterisation the NPG step is, for every step `h` and pair `(s, b)`,

.. math:: \pi^{k+1}(a \mid s, b) \propto \pi^k(a \mid s, b) \exp(\eta\, Q^{\pi^k}_{aug}(s, b, a)),

computed on logits, from the uniform policy. Each step improves the value of *every* `(s, b)`, so the risk
lower bound never decreases, and

.. math:: \sum_{k=0}^{K-1} \mathrm{OCE}^\star_u - \mathrm{RLB}^{(k)}
          \le |\mathcal B| \Big( \frac{H \log A}{\eta} + H R \Big),

where `R` is the range of the pay-offs (Theorem "Strong Global Convergence" with the regret of Agarwal et al.,
2021, Theorem 5.3, in finite horizon): `rate_bound` computes the right-hand side.

Deviations: :math:`\eta_k = c\, g^k H \log A / (z_{hi} - z_{lo})`. The paper's returns lie in [0, 1], its
`c` and `g` are 1. Values that are exact have no noise to average out, so the default steps grow (Xiao,
2022): a constant step is slow to leave an action that was better while later steps were still played badly.
The growth ends at `LARGEST_GROWTH`, where NPG has become policy iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.gradient import _kernels
from ocerl.gradient.graph import AugmentedGraph
from ocerl.gradient.tables import for_each_seed, node_values, values

Floats = NDArray[np.float64]

LARGEST_GROWTH = 1e12
"""Steps grow to at most this multiple of the first."""


@dataclass(frozen=True, eq=False)
class ExactNPGState:
    """Logits of each run."""

    updates: int
    logits: Floats


@dataclass(frozen=True, eq=False)
class ExactNPG:
    """The oracle; nothing in it is random, so every seed gives the same run.

    >>> from ocerl.gradient.budgets import first_budgets
    >>> from ocerl.gradient.graph import augmented_graph
    >>> from ocerl.mdp import zoo
    >>> from ocerl.risk import parse_risk
    >>> risk = parse_risk("cvar:0.25")
    >>> oracle = ExactNPG(augmented_graph(risk, first_budgets(zoo.make("paper"), risk)))
    >>> state = oracle.update(oracle.init([0]), 100)
    >>> round(float((oracle.budgets + oracle.estimate(state)).max()), 6)
    0.75
    """

    graph: AugmentedGraph
    step_size: float = 1.0
    r"""The multiple `c` of :math:`H \log A / (z_{hi} - z_{lo})`."""
    growth: float = 2.0
    """The factor `g` from one update's step to the next."""

    def __post_init__(self) -> None:
        check_step_size(self.step_size, self.growth)

    @property
    def budgets(self) -> Floats:
        return self.graph.budgets.values

    def init(self, seeds: Sequence[int]) -> ExactNPGState:
        return ExactNPGState(0, np.zeros((len(seeds), self.graph.n_entries)))

    def update(self, state: ExactNPGState, times: int) -> ExactNPGState:
        logits = state.logits.copy()
        steps = step_sizes(self.graph, self.step_size, self.growth, state.updates, times)

        def work(seed: int) -> None:
            value = node_values(self.graph)
            _kernels.improve(self.graph.rows, self.graph.layout, steps, logits[seed], value)

        for_each_seed(work, len(logits))
        return ExactNPGState(state.updates + times, logits)

    def estimate(self, state: ExactNPGState) -> Floats:
        return np.stack([values(self.graph, logits) for logits in state.logits])


def step_sizes(graph: AugmentedGraph, multiple: float, growth: float, updates: int, times: int) -> Floats:
    r"""The next :math:`\eta_k` after so many updates, for values in the units of the return."""
    first = multiple * graph.length * float(np.log(max(graph.most_actions, 2))) / graph.span
    number = np.arange(updates, updates + times)
    return first * np.exp(np.minimum(np.log(growth) * number, np.log(LARGEST_GROWTH)))


def rate_bound(graph: AugmentedGraph, step_size: float) -> float:
    r"""What :math:`\sum_k \mathrm{OCE}^\star - \mathrm{RLB}^{(k)}` cannot exceed with constant steps."""
    eta = float(step_sizes(graph, step_size, 1.0, 0, 1)[0])
    first = graph.length * float(np.log(graph.most_actions)) / eta
    return graph.budgets.values.size * (first + graph.length * float(np.ptp(graph.payoff)))


def check_step_size(step_size: float, growth: float = 1.0) -> None:
    """Refuse steps that lead nowhere."""
    if not (np.isfinite(step_size) and step_size > 0):
        raise OcerlError(f"the step size must be a positive number, got {step_size}")
    if not (np.isfinite(growth) and growth >= 1):
        raise OcerlError(f"the growth of the step size must be at least 1, got {growth}")
