"""Roll-outs of a softmax policy along the augmented graph, all episodes together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ocerl.gradient.graph import AugmentedGraph
from ocerl.gradient.tables import probabilities

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def roll_out(
    graph: AugmentedGraph, logits: Floats, episodes: int, random: np.random.Generator
) -> tuple[list[Ints], list[Ints], Floats]:
    """For each step the nodes met and the entries played, and the pay-offs; first budgets are uniform on B."""
    rows, layout = graph.rows, graph.layout
    chosen = np.cumsum(probabilities(graph, logits))
    outcomes = np.cumsum(rows.probability)
    begun = random.choice(graph.start.size, episodes, p=graph.start)
    node = graph.first_nodes[begun, random.integers(graph.first_nodes.shape[1], size=episodes)]
    nodes: list[Ints] = []
    entries: list[Ints] = []
    for _ in range(graph.length):
        entry = _pick(random, chosen, layout.entry_start[node], layout.entry_start[node + 1])
        pair = rows.pair_start[layout.row[node]] + entry - layout.entry_start[node]
        outcome = _pick(random, outcomes, rows.outcome_start[pair], rows.outcome_start[pair + 1])
        nodes.append(node)
        entries.append(entry)
        shift = layout.edge_start[node] - rows.outcome_start[rows.pair_start[layout.row[node]]]
        node = layout.successor[shift + outcome].astype(np.int64)
    return nodes, entries, graph.payoff[node - layout.row.size]


def _pick(random: np.random.Generator, cumulative: Floats, first: Ints, end: Ints) -> Ints:
    """An index from each range, by the differences of the cumulative weights over it."""
    base = np.where(first > 0, cumulative[first - 1], 0.0)
    level = base + random.random(first.size) * (cumulative[end - 1] - base)
    return np.clip(np.searchsorted(cumulative, level, side="right"), first, end - 1)
