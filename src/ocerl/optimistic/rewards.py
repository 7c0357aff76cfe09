"""The paper's setting: reward distributions are known, and only transitions are learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocerl.mdp.lattice import Lattice


@dataclass(frozen=True, eq=False)
class KnownRewards:
    """For each pair, its possible `(s', r)` with the probability of `r` given the pair and `s'`.

    Rewards and next states may depend on each other: a visit that leads to `s'` counts for all rewards that
    come with `s'`, in their known proportions, instead of for the one that was drawn.
    """

    start: NDArray[np.int64]
    """`[pair]`, with an end."""
    next_state: NDArray[np.int64]
    atom: NDArray[np.int64]
    weight: NDArray[np.float64]


def known_rewards(lattice: Lattice, rewards: NDArray[np.float64], layers: int) -> KnownRewards:
    """Read off a model what the learner may know; `rewards` number the reward values."""
    starts, columns, pairs_before, listed_before = [np.zeros(1, dtype=np.int64)], [], 0, 0
    for step in range(layers):
        t = lattice.model.transitions(step)
        key = np.stack([t.outcome_pair, t.next_state, np.searchsorted(rewards, t.reward)])
        listed, inverse = np.unique(key, axis=1, return_inverse=True)
        joint = np.bincount(inverse.ravel(), weights=t.probability)
        _, arrival = np.unique(listed[:2], axis=1, return_inverse=True)
        weight = joint / np.bincount(arrival.ravel(), weights=joint)[arrival.ravel()]
        ends = np.searchsorted(listed[0], np.arange(t.n_pairs), side="right")
        starts.append(ends + listed_before)
        columns.append((listed[1], listed[2], weight))
        pairs_before, listed_before = pairs_before + t.n_pairs, listed_before + listed.shape[1]
    next_state, atom, weight = (np.concatenate(column) for column in zip(*columns, strict=True))
    return KnownRewards(np.concatenate(starts).astype(np.int64), next_state, atom, weight)
