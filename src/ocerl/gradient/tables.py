"""What the tabular oracles share: logits over the graph, many seeds at once, and their exact judgement."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ocerl.gradient import _kernels
from ocerl.gradient.graph import AugmentedGraph
from ocerl.gradient.meta import Judgement

Floats = NDArray[np.float64]


class TableState(Protocol):
    """The state of a tabular oracle, as far as judging it needs to know."""

    @property
    def logits(self) -> Floats:
        """`[seeds, entries of the graph]`."""
        ...


def for_each_seed(work: Callable[[int], None], seeds: int) -> None:
    """Run a compiled loop for every seed, on all cores."""
    threads = min(seeds, len(os.sched_getaffinity(0)))
    if threads == 1:
        for seed in range(seeds):
            work(seed)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(seeds)))


def own_copies(arrays: Sequence[NDArray[Any]], seed: int) -> list[NDArray[Any]]:
    """A seed's rows, away from those of other seeds: threads that write to one cache line wait for each other."""
    return [array[seed].copy() for array in arrays]


def write_back(arrays: Sequence[NDArray[Any]], rows: Sequence[NDArray[Any]], seed: int) -> None:
    """Put a seed's rows back."""
    for array, row in zip(arrays, rows, strict=True):
        array[seed] = row


def values(
    graph: AugmentedGraph,
    logits: Floats,
    probability: Floats | None = None,
    seen: NDArray[np.bool_] | None = None,
    start: Floats | None = None,
) -> Floats:
    r""":math:`V^\pi_1(s_1, b)` for every first budget, of the softmax policy of one seed's logits.

    Exact, unless other outcome probabilities (of the pairs `seen`) and starts are given in place of the
    model's.
    """
    probability = graph.rows.probability if probability is None else probability
    seen = np.ones(graph.rows.outcome_start.size - 1, dtype=np.bool_) if seen is None else seen
    value = node_values(graph)
    _kernels.back_up(graph.rows, graph.layout, probability, seen, 0.0, logits, value)
    return (graph.start if start is None else start) @ value[graph.first_nodes]


def node_values(graph: AugmentedGraph) -> Floats:
    """An array for the value of every node, with the pay-offs at the end filled in."""
    value = np.zeros(graph.states.size)
    value[graph.layout.row.size :] = graph.payoff
    return value


def probabilities(graph: AugmentedGraph, logits: Floats) -> Floats:
    """The softmax of the logits, node by node."""
    begin = graph.layout.entry_start[:-1]
    count = np.diff(graph.layout.entry_start)
    weights = np.exp(logits - np.repeat(np.maximum.reduceat(logits, begin), count))
    return weights / np.repeat(np.add.reduceat(weights, begin), count)


def random_words(seeds: Sequence[int]) -> NDArray[np.uint64]:
    """The first word of each seed's stream of random numbers, `[seeds, 1]`."""
    words = [np.random.SeedSequence(seed).generate_state(1, np.uint64) for seed in seeds]
    return np.array(words, dtype=np.uint64)


class ExactJudge:
    """The exact OCE and risk lower bound of softmax policies on a known model."""

    def __init__(self, graph: AugmentedGraph) -> None:
        self.graph = graph

    def __call__(self, state: TableState, chosen: NDArray[np.intp]) -> Judgement:
        """Judge each seed's policy, begun with its chosen first budget."""
        seeds = len(state.logits)
        value, bound = np.empty((2, seeds))

        def judge(seed: int) -> None:
            value[seed] = self.certainty_equivalent(state.logits[seed], int(chosen[seed]))
            bound[seed] = (self.graph.budgets.values + values(self.graph, state.logits[seed])).max()

        for_each_seed(judge, seeds)
        return Judgement(value, bound)

    def certainty_equivalent(self, logits: Floats, chosen: int) -> float:
        """The OCE of the return when the policy begins with first budget number `chosen`."""
        graph, lattice = self.graph, self.graph.budgets.lattice
        mass = np.zeros(graph.states.size)
        mass[graph.first_nodes[:, chosen]] = graph.start
        _kernels.spread(graph.rows, graph.layout, logits, mass)
        ended = mass[graph.layout.row.size :]
        earned = graph.positions[graph.layout.row.size :] - graph.budgets.positions[chosen]
        returns = lattice.floor + lattice.unit * earned
        return graph.risk.certainty_equivalent(returns[ended > 0], ended[ended > 0]).value
