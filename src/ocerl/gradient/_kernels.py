"""The compiled inner loops: one pass over the augmented graph back or forth, and roll-outs along it.

Each kernel serves one seed and releases the interpreter lock; the caller spreads seeds over threads. Random
numbers come from SplitMix64, whose whole state is one 64-bit word: a checkpoint holds it, and a resumed run
draws the same numbers.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ocerl.gradient.graph import Layout, Rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST_MIX = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_MIX = np.uint64(0x94D049BB133111EB)


@njit(nogil=True, cache=True)
def uniform(random: NDArray[np.uint64]) -> float:
    """The next number in [0, 1) of the stream `random[0]`."""
    random[0] += _GOLDEN
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * _FIRST_MIX
    z = (z ^ (z >> np.uint64(27))) * _SECOND_MIX
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) * 2.0**-53


@njit(nogil=True, cache=True)
def draw(random: NDArray[np.uint64], weights: Floats, first: int, end: int) -> int:
    """An index from `first` to `end - 1`, with probability its weight; they sum to 1."""
    left = uniform(random)
    for index in range(first, end - 1):
        left -= weights[index]
        if left < 0.0:
            return index
    return end - 1


@njit(nogil=True, cache=True)
def softmax(logits: Floats, first: int, count: int, out: Floats) -> None:
    """The probabilities of the entries from `first` on, in the front of `out`."""
    top = logits[first]
    for a in range(1, count):
        top = max(top, logits[first + a])
    total = 0.0
    for a in range(count):
        out[a] = np.exp(logits[first + a] - top)
        total += out[a]
    for a in range(count):
        out[a] /= total


@njit(nogil=True, cache=True)
def back_up(
    rows: Rows,
    layout: Layout,
    probability: Floats,
    seen: NDArray[np.bool_],
    step_size: float,
    logits: Floats,
    value: Floats,
) -> None:
    """Evaluate the softmax policy of all nodes, and add `step_size` times its advantages to the logits.

    `value` holds the pay-offs at the end and receives the values of all other nodes. A pair that is not
    `seen` has no value: its node's value is the mean over the others, and its advantage counts as 0.
    """
    # Fields of a tuple are taken out once: taking them out counts references, in every round of a loop.
    row_of, entry_start, edge_start, successor = layout
    pair_start, outcome_start, _ = rows
    chosen = np.empty(np.diff(entry_start).max())
    quality = np.empty(chosen.size)
    for node in range(row_of.size - 1, -1, -1):
        row, entry = row_of[node], entry_start[node]
        first, count = pair_start[row], entry_start[node + 1] - entry
        shift = edge_start[node] - outcome_start[first]
        softmax(logits, entry, count, chosen)
        mean, mass = 0.0, 0.0
        for a in range(count):
            total = 0.0
            if seen[first + a]:
                for i in range(outcome_start[first + a], outcome_start[first + a + 1]):
                    if probability[i] > 0.0:
                        total += probability[i] * value[successor[shift + i]]
                mean += chosen[a] * total
                mass += chosen[a]
            quality[a] = total
        value[node] = mean / mass if mass > 0.0 else 0.0
        if step_size > 0.0:
            top = -np.inf
            for a in range(count):
                if seen[first + a]:
                    logits[entry + a] += step_size * (quality[a] - value[node])
                top = max(top, logits[entry + a])
            for a in range(count):
                logits[entry + a] -= top


@njit(nogil=True, cache=True)
def improve(rows: Rows, layout: Layout, step_sizes: Floats, logits: Floats, value: Floats) -> None:
    """Exact soft policy iteration, once with each step size."""
    seen = np.ones(rows.outcome_start.size - 1, dtype=np.bool_)
    for step_size in step_sizes:
        back_up(rows, layout, rows.probability, seen, step_size, logits, value)


@njit(nogil=True, cache=True)
def fit(rows: Rows, counts: Ints, probability: Floats, seen: NDArray[np.bool_]) -> None:
    """The frequencies of each pair's outcomes among the transitions collected."""
    for pair in range(seen.size):
        first, last = rows.outcome_start[pair], rows.outcome_start[pair + 1]
        total = counts[first:last].sum()
        seen[pair] = total > 0
        if total:
            probability[first:last] = counts[first:last] / total


@njit(nogil=True, cache=True)
def improve_from_samples(
    rows: Rows,
    layout: Layout,
    first_nodes: Ints,
    start: Floats,
    step_sizes: Floats,
    exploration: float,
    episodes: int,
    logits: Floats,
    counts: Ints,
    start_counts: Ints,
    random: NDArray[np.uint64],
    value: Floats,
) -> None:
    """With each step size: collect episodes, fit Q to all transitions so far, iterate the soft policy."""
    probability = np.zeros(rows.probability.size)
    seen = np.zeros(rows.outcome_start.size - 1, dtype=np.bool_)
    chosen = np.empty(np.diff(layout.entry_start).max())
    for step_size in step_sizes:
        for _ in range(episodes):
            begun = draw(random, start, 0, start.size)
            start_counts[begun] += 1
            node = first_nodes[begun, int(uniform(random) * first_nodes.shape[1])]
            while node < layout.row.size:
                pair = _choose(rows, layout, node, exploration, logits, chosen, random)
                i = draw(random, rows.probability, rows.outcome_start[pair], rows.outcome_start[pair + 1])
                counts[i] += 1
                node = _after(rows, layout, node, i)
        fit(rows, counts, probability, seen)
        back_up(rows, layout, probability, seen, step_size, logits, value)


@njit(nogil=True, cache=True)
def _choose(
    rows: Rows,
    layout: Layout,
    node: int,
    exploration: float,
    logits: Floats,
    chosen: Floats,
    random: NDArray[np.uint64],
) -> int:
    """The pair played at a node: the policy's, or with probability `exploration` any."""
    entry = layout.entry_start[node]
    count = layout.entry_start[node + 1] - entry
    first = int(rows.pair_start[layout.row[node]])
    if exploration > 0.0 and uniform(random) < exploration:
        return first + int(uniform(random) * count)
    softmax(logits, entry, count, chosen)
    return first + draw(random, chosen, 0, count)


@njit(nogil=True, cache=True)
def _after(rows: Rows, layout: Layout, node: int, outcome: int) -> int:
    """The node an outcome leads to."""
    first = rows.outcome_start[rows.pair_start[layout.row[node]]]
    return int(layout.successor[layout.edge_start[node] + outcome - first])


@njit(nogil=True, cache=True)
def reinforce(
    rows: Rows,
    layout: Layout,
    first_nodes: Ints,
    start: Floats,
    step_size: float,
    barrier: float,
    episodes: int,
    times: int,
    logits: Floats,
    baseline: Floats,
    visits: Ints,
    random: NDArray[np.uint64],
    payoff: Floats,
) -> None:
    """So many times: play a batch of episodes and follow the gradient that its pay-offs estimate.

    `baseline` and `visits` hold each node's mean pay-off and how often it was met.
    """
    inner = layout.row.size
    chosen = np.empty(np.diff(layout.entry_start).max())
    gradient = np.zeros(logits.size)
    path = np.empty(inner, dtype=np.int64)
    entries = np.empty(inner, dtype=np.int64)
    for _ in range(times):
        gradient[:] = 0.0
        for _ in range(episodes):
            node = first_nodes[draw(random, start, 0, start.size), int(uniform(random) * first_nodes.shape[1])]
            length = 0
            while node < inner:
                pair = _choose(rows, layout, node, 0.0, logits, chosen, random)
                path[length] = node
                entries[length] = layout.entry_start[node] + pair - rows.pair_start[layout.row[node]]
                length += 1
                i = draw(random, rows.probability, rows.outcome_start[pair], rows.outcome_start[pair + 1])
                node = _after(rows, layout, node, i)
            for h in range(length):
                met = path[h]
                earned = payoff[node - inner]
                visits[met] += 1
                advantage = earned - baseline[met] if visits[met] > 1 else 0.0
                baseline[met] += (earned - baseline[met]) / min(visits[met], 1000)
                begin, end = int(layout.entry_start[met]), int(layout.entry_start[met + 1])
                softmax(logits, begin, end - begin, chosen)
                for a in range(end - begin):
                    gradient[begin + a] += barrier * (1.0 / (end - begin) - chosen[a]) - advantage * chosen[a]
                gradient[entries[h]] += advantage
        logits += step_size / episodes * gradient


@njit(nogil=True, cache=True)
def spread(rows: Rows, layout: Layout, logits: Floats, mass: Floats) -> None:
    """Move the mass on the first nodes on to the end, under the softmax policy."""
    row_of, entry_start, edge_start, successor = layout
    pair_start, outcome_start, probability = rows
    chosen = np.empty(np.diff(entry_start).max())
    for node in range(row_of.size):
        if mass[node] == 0.0:
            continue
        entry, first = entry_start[node], pair_start[row_of[node]]
        count = entry_start[node + 1] - entry
        softmax(logits, entry, count, chosen)
        shift = edge_start[node] - outcome_start[first]
        for a in range(count):
            weight = mass[node] * chosen[a]
            if weight > 0.0:
                for i in range(outcome_start[first + a], outcome_start[first + a + 1]):
                    mass[successor[shift + i]] += weight * probability[i]
