r"""Sampled natural policy gradient: the step of `npg`, with Q fitted to roll-outs of an unknown model.

Each update plays `episodes` episodes with first budgets from :math:`\mathrm{Unif}(\mathcal B)` and fits Q
to all transitions collected so far, backwards from the known pay-off at the end:

.. math:: \hat Q_h(s, b, a) = \frac{1}{n(s, a)} \sum_{(s, a, r, s')} \hat V_{h+1}(s', b - r), \qquad
          \hat V_h(s, b) = \sum_a \pi^k_h(a \mid s, b)\, \hat Q_h(s, b, a).

The budget's move is known, so a transition seen at one budget serves all of them (Section 2.1, "the AugMDP
is easy to simulate"); where the model has one table for all steps it serves them all, too. An action never
tried has advantage 0. :math:`\hat V_1(s_1, \cdot)` is the oracle's value estimate.

Deviations from the appendix: the fit uses all data instead of the last batch, so its error goes to 0; and
each action is drawn uniformly with probability `exploration`, so that no action's estimate is left behind
when the softmax has all but ruled it out. Neither biases the fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.gradient import _kernels
from ocerl.gradient.graph import AugmentedGraph
from ocerl.gradient.npg import check_step_size, step_sizes
from ocerl.gradient.tables import for_each_seed, node_values, own_copies, random_words, values, write_back

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SampledNPGState:
    """Logits, what has been seen, and the random stream of each run."""

    updates: int
    logits: Floats
    counts: NDArray[np.int64]
    """How often each outcome of the model occurred."""
    start_counts: NDArray[np.int64]
    random: NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class SampledNPG:
    """The oracle that needs samples only.

    >>> from ocerl.gradient.budgets import first_budgets
    >>> from ocerl.gradient.graph import augmented_graph
    >>> from ocerl.mdp import zoo
    >>> from ocerl.risk import parse_risk
    >>> risk = parse_risk("cvar:0.25")
    >>> oracle = SampledNPG(augmented_graph(risk, first_budgets(zoo.make("paper"), risk)))
    >>> state = oracle.update(oracle.init([1, 2]), 100)
    >>> state.counts.sum(axis=1).tolist()  # two steps in each of 100 times 32 episodes
    [6400, 6400]
    """

    graph: AugmentedGraph
    step_size: float = 1.0
    r"""The multiple of :math:`H \log A / (z_{hi} - z_{lo})`; 1 in the paper."""
    growth: float = 1.0
    """The factor from one update's step to the next."""
    episodes: int = 32
    """Episodes for each update."""
    exploration: float = 0.1
    """The probability of drawing an action uniformly."""

    def __post_init__(self) -> None:
        check_step_size(self.step_size, self.growth)
        check_episodes(self.episodes)
        if not 0.0 <= self.exploration <= 1.0:
            raise OcerlError(f"exploration must be a probability in [0, 1], got {self.exploration}")

    @property
    def budgets(self) -> Floats:
        return self.graph.budgets.values

    def init(self, seeds: Sequence[int]) -> SampledNPGState:
        return SampledNPGState(
            updates=0,
            logits=np.zeros((len(seeds), self.graph.n_entries)),
            counts=np.zeros((len(seeds), self.graph.rows.probability.size), dtype=np.int64),
            start_counts=np.zeros((len(seeds), self.graph.start.size), dtype=np.int64),
            random=random_words(seeds),
        )

    def update(self, state: SampledNPGState, times: int) -> SampledNPGState:
        graph = self.graph
        steps = step_sizes(graph, self.step_size, self.growth, state.updates, times)
        new = SampledNPGState(
            state.updates + times,
            state.logits.copy(),
            state.counts.copy(),
            state.start_counts.copy(),
            state.random.copy(),
        )

        def work(seed: int) -> None:
            written = (new.logits, new.counts, new.start_counts, new.random)
            logits, counts, start_counts, random = own_copies(written, seed)
            _kernels.improve_from_samples(
                graph.rows,
                graph.layout,
                graph.first_nodes,
                graph.start,
                steps,
                self.exploration,
                self.episodes,
                logits,
                counts,
                start_counts,
                random,
                node_values(graph),
            )
            write_back(written, (logits, counts, start_counts, random), seed)

        for_each_seed(work, len(new.logits))
        return new

    def estimate(self, state: SampledNPGState) -> Floats:
        seeds = zip(state.logits, state.counts, state.start_counts, strict=True)
        return np.stack([self._estimate(*seed) for seed in seeds])

    def _estimate(self, logits: Floats, counts: NDArray[np.int64], start_counts: NDArray[np.int64]) -> Floats:
        rows = self.graph.rows
        probability = np.zeros(rows.probability.size)
        seen = np.zeros(rows.outcome_start.size - 1, dtype=np.bool_)
        _kernels.fit(rows, counts, probability, seen)
        return values(self.graph, logits, probability, seen, start_counts / max(int(start_counts.sum()), 1))


def check_episodes(episodes: int) -> None:
    """Refuse an update without data."""
    if episodes < 1:
        raise OcerlError(f"an update needs at least 1 episode, got {episodes}")
