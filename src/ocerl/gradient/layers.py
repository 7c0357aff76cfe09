"""One step of the augmented MDP at a time: from the nodes (state and position) of one layer to the next."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ocerl.mdp.lattice import Lattice

Ints = NDArray[np.int64]
Layer = tuple[Ints, Ints]
"""States and positions of distinct nodes, ordered by state, then by position."""


def first_layer(lattice: Lattice, positions: Ints) -> Layer:
    """Every state an episode can start in, with every first position."""
    states = np.flatnonzero(lattice.model.start > 0)
    return np.repeat(states, positions.size), np.tile(np.sort(positions), states.size)


def next_layer(lattice: Lattice, step: int, layer: Layer) -> tuple[Layer, Ints]:
    """The next layer, and the number in it of the node that each outcome of each node leads to."""
    states, positions = layer
    t, shift = lattice.model.transitions(step), lattice.shifts(step)
    first = t.outcome_start[t.pair_start[states]]
    count = t.outcome_start[t.pair_start[states + 1]] - first
    outcome = np.repeat(first, count) + np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return join(t.next_state[outcome].astype(np.int64), np.repeat(positions, count) + shift[outcome])


def join(states: Ints, positions: Ints) -> tuple[Layer, Ints]:
    """The distinct nodes among these, and the number of each one's node."""
    low = positions.min()
    width = int(positions.max() - low) + 1
    keys, inverse = np.unique(states * width + (positions - low), return_inverse=True)
    return (keys // width, keys % width + low), inverse
