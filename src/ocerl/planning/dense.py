"""The backup of models whose transitions are dense: a matrix product, then a short sum over rewards.

Where the reward of a state and action is independent of the next state (or certain), a backup splits into
`G = P V`, one large matrix product, and `Q(s, a, y) = sum_k w_k G[(s, a), y + k]` over the few rewards `k`. The
second has the form of the sparse backup with `G` for `V`, so the same kernel does it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocerl.mdp.transitions import Transitions

LEAST_DENSITY = 0.1
"""The share of states among the successors of a pair from which on a matrix product is faster …"""
LEAST_STATES = 64
"""… in models of at least this size."""
MOST_REWARDS = 64
PAIRS_AT_ONCE = 2048


@dataclass(frozen=True, eq=False)
class Factored:
    """Transitions as `P[pair, next state]` and, for each pair, rewards with their probabilities."""

    matrix: NDArray[np.floating]
    reward_start: NDArray[np.int64]
    reward: NDArray[np.float64]
    probability: NDArray[np.floating]
    blocks: list[tuple[NDArray[np.int64], slice]]
    """States to be worked on together, and their pairs."""
    row: NDArray[np.int32]
    """The row of each reward's pair within its block."""


def factor(t: Transitions, dtype: type[np.floating]) -> Factored | None:
    """Split transitions into a dense matrix and independent rewards, or None where that does not hold or not pay."""
    if t.n_states < LEAST_STATES or t.probability.size < LEAST_DENSITY * t.n_pairs * t.n_states:
        return None
    rewards, which = np.unique(t.reward, return_inverse=True)
    if rewards.size > MOST_REWARDS:
        return None
    pair = t.outcome_pair
    matrix = _scatter(pair, t.next_state, t.probability, (t.n_pairs, t.n_states))
    weight = _scatter(pair, which, t.probability, (t.n_pairs, rewards.size))
    product = matrix[pair, t.next_state] * weight[pair, which]
    if t.probability.size < LEAST_DENSITY * matrix.size or not np.allclose(product, t.probability, 1e-12, 1e-15):
        return None
    owner, reward = np.nonzero(weight)
    starts = np.searchsorted(owner, np.arange(t.n_pairs + 1))
    blocks, row = _blocks(t, owner)
    return Factored(
        matrix.astype(dtype, copy=False), starts, rewards[reward], weight[owner, reward].astype(dtype), blocks, row
    )


def _scatter(
    row: NDArray[np.integer], column: NDArray[np.integer], weight: NDArray[np.float64], shape: tuple[int, int]
) -> NDArray[np.float64]:
    flat = np.asarray(np.bincount(row * shape[1] + column, weight, shape[0] * shape[1]), dtype=np.float64)
    return flat.reshape(shape)


def _blocks(
    t: Transitions, owner: NDArray[np.integer]
) -> tuple[list[tuple[NDArray[np.int64], slice]], NDArray[np.int32]]:
    blocks: list[tuple[NDArray[np.int64], slice]] = []
    row = owner.astype(np.int32)
    first = 0
    while first < t.n_states:
        pairs_before = t.pair_start[first]
        last = int(np.searchsorted(t.pair_start, pairs_before + PAIRS_AT_ONCE, side="right")) - 1
        last = min(max(last, first + 1), t.n_states)
        pairs = slice(int(pairs_before), int(t.pair_start[last]))
        blocks.append((np.arange(first, last), pairs))
        row[(owner >= pairs.start) & (owner < pairs.stop)] -= pairs.start
        first = last
    return blocks, row
