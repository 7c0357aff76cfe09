r"""REINFORCE with a table of logits, for comparison: the plain gradient where NPG takes the natural one.

.. math:: \theta \leftarrow \theta + \frac{\alpha}{n} \sum_{i=1}^{n} \sum_h \nabla_\theta
          \log \pi_\theta(a_h \mid s_h, b_h) \,\big( u(-b_{H+1}) - \beta_h(s_h, b_h) \big)

over a batch of `n` episodes with first budgets from :math:`\mathrm{Unif}(\mathcal B)`. The baseline
:math:`\beta_h(s, b)` is the running mean of the pay-offs met from there; in the first layer it is the value
estimate :math:`\hat V_1(s_1, b)`.

As in Appendix C a log-barrier keeps the softmax from saturating: at every visited `(s, b)` the gradient of
:math:`\frac{\lambda}{A} \sum_a \log \pi(a \mid s, b)` is added. Step and barrier are in units of the range of
returns, so that they do not depend on the reward's scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.gradient import _kernels
from ocerl.gradient.graph import AugmentedGraph
from ocerl.gradient.npg import check_step_size
from ocerl.gradient.npg_sampled import check_episodes
from ocerl.gradient.tables import for_each_seed, own_copies, random_words, write_back

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ReinforceState:
    """Logits, baselines and the random stream of each run."""

    updates: int
    logits: Floats
    baseline: Floats
    visits: NDArray[np.int64]
    random: NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Reinforce:
    """The oracle.

    >>> from ocerl.gradient.budgets import first_budgets
    >>> from ocerl.gradient.graph import augmented_graph
    >>> from ocerl.mdp import zoo
    >>> from ocerl.risk import parse_risk
    >>> risk = parse_risk("cvar:0.25")
    >>> oracle = Reinforce(augmented_graph(risk, first_budgets(zoo.make("paper"), risk)), episodes=8)
    >>> state = oracle.update(oracle.init([1]), 10)
    >>> int(state.visits.sum())
    160
    """

    graph: AugmentedGraph
    step_size: float = 1.0
    """The step, divided by the range of returns and multiplied by the number of first budgets."""
    episodes: int = 32
    """Episodes for each update."""
    barrier: float = 0.01
    """The weight of the log-barrier, in units of the range of returns."""

    def __post_init__(self) -> None:
        check_step_size(self.step_size)
        check_episodes(self.episodes)
        if not (np.isfinite(self.barrier) and self.barrier >= 0):
            raise OcerlError(f"the log-barrier's weight must be at least 0, got {self.barrier}")

    @property
    def budgets(self) -> Floats:
        return self.graph.budgets.values

    def init(self, seeds: Sequence[int]) -> ReinforceState:
        shape = (len(seeds), self.graph.layout.row.size)
        return ReinforceState(
            updates=0,
            logits=np.zeros((len(seeds), self.graph.n_entries)),
            baseline=np.zeros(shape),
            visits=np.zeros(shape, dtype=np.int64),
            random=random_words(seeds),
        )

    def update(self, state: ReinforceState, times: int) -> ReinforceState:
        graph = self.graph
        new = ReinforceState(
            state.updates + times,
            state.logits.copy(),
            state.baseline.copy(),
            state.visits.copy(),
            state.random.copy(),
        )

        def work(seed: int) -> None:
            written = (new.logits, new.baseline, new.visits, new.random)
            logits, baseline, visits, random = own_copies(written, seed)
            _kernels.reinforce(
                graph.rows,
                graph.layout,
                graph.first_nodes,
                graph.start,
                self.step_size * self.budgets.size / graph.span,
                self.barrier * graph.span,
                self.episodes,
                times,
                logits,
                baseline,
                visits,
                random,
                graph.payoff,
            )
            write_back(written, (logits, baseline, visits, random), seed)

        for_each_seed(work, len(new.logits))
        return new

    def estimate(self, state: ReinforceState) -> Floats:
        return np.stack([self.graph.start @ baseline[self.graph.first_nodes] for baseline in state.baseline])
