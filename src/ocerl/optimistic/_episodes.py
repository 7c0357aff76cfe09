"""The compiled inner loops around the planning: an episode on a tabular model, learning from it, a whole run."""

# pyright: basic
# Numba types the kernels.
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ocerl.optimistic._kernels import first_values, replan

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Outcomes(NamedTuple):
    """A tabular model to draw from, with cumulative probabilities."""

    pair_start: Integers
    """`[layer, state]`, with an end; one layer if all steps are alike."""
    outcome_start: Integers
    """`[pair]`, with an end."""
    cumulative: Floats
    """`[outcome]`, within each pair."""
    next_state: Integers
    atom: Integers
    """`[outcome]`: the number of the reward value."""
    start_cumulative: Floats


@njit(nogil=True, cache=True)
def draw(cumulative, first, last, random):
    """The outcome in `first … last - 1` that a uniform number selects."""
    i = first
    while i < last - 1 and random >= cumulative[i]:
        i += 1
    return i


@njit(nogil=True, cache=True)
def simulate(outcomes, told, rows, values, position, random, episode):
    """Play the planned policy from a first position; `episode` receives rows `(s, slot, s', atom)`.

    Returns the number of steps taken.
    """
    s = draw(outcomes.start_cumulative, 0, outcomes.start_cumulative.size, random.random())
    episode[0, 0] = s
    y = rows.low[0] + position
    for h in range(rows.low.size - 1):
        if told.terminal[s]:
            return h
        x = min(max(y - rows.low[h], 0), rows.width[h] - 1)
        slot = np.int64(values.slots[h, s, x])
        pair = outcomes.pair_start[min(h, outcomes.pair_start.shape[0] - 1), s] + slot
        first, last = outcomes.outcome_start[pair], outcomes.outcome_start[pair + 1]
        i = draw(outcomes.cumulative, first, last, random.random())
        after, atom = outcomes.next_state[i], outcomes.atom[i]
        episode[h, 0], episode[h, 1], episode[h, 2], episode[h, 3] = s, slot, after, atom
        y += rows.refine * told.shift[h, atom]
        s = after
    return rows.low.size - 1


@njit(nogil=True, cache=True)
def learn(told, counts, episode, length):
    """Count what an episode showed."""
    counts.start[episode[0, 0]] += 1
    for h in range(length):
        s, slot, after, atom = episode[h, 0], episode[h, 1], episode[h, 2], episode[h, 3]
        pair = told.pair_start[min(h, told.pair_start.shape[0] - 1), s] + slot
        counts.visits[pair] += 1
        counts.touched[pair] = True
        if told.known_start.size:
            for i in range(told.known_start[pair], told.known_start[pair + 1]):
                if told.known_next[i] == after:
                    _count(counts, pair, after, told.known_atom[i], told.known_weight[i])
        else:
            _count(counts, pair, after, atom, 1.0)
        for i in range(counts.used[pair]):
            counts.probability[pair, i] = counts.weight[pair, i] / counts.visits[pair]


@njit(nogil=True, cache=True)
def _count(counts, pair, after, atom, weight):
    n = counts.used[pair]
    for i in range(n):
        if counts.next_state[pair, i] == after and counts.atom[pair, i] == atom:
            counts.weight[pair, i] += weight
            return
    counts.next_state[pair, n], counts.atom[pair, n], counts.weight[pair, n] = after, atom, weight
    counts.used[pair] = n + 1


@njit(nogil=True, cache=True)
def run(outcomes, told, counts, rows, values, log_term, random, episode, rounds):
    """Algorithm 1 over the planned state, for some rounds at once: choose `b`, play, learn, plan again."""
    ahead, budgets = values.scratch[6, : rows.width[0]], rows.budgets
    for _ in range(rounds):
        first_values(told, counts, rows, values, log_term, ahead)
        # A loop: `argmax` and an addition of arrays would take longer than the whole round.
        best, position = -np.inf, 0
        for x in range(ahead.size):
            if ahead[x] + budgets[x] > best:
                best, position = ahead[x] + budgets[x], x
        length = simulate(outcomes, told, rows, values, position, random, episode)
        learn(told, counts, episode, length)
        replan(told, counts, rows, values, log_term, False)
