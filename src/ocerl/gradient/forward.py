"""The return distribution of a policy that draws actions: its mass moved forward over the pairs that it reaches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ocerl.gradient.layers import Ints, first_layer, next_layer
from ocerl.mdp.lattice import Lattice
from ocerl.planning.distribution import ReturnDistribution

Choices = Callable[[int, Ints, Ints], NDArray[np.floating]]
"""From a step and some nodes, states and positions: the probabilities of all their actions, one after the other."""


def forward(lattice: Lattice, first_position: int, choices: Choices) -> ReturnDistribution:
    """The distribution of the return from a first position; positions may lie far apart."""
    model = lattice.model
    layer = first_layer(lattice, np.array([first_position]))
    mass = model.start[layer[0]]
    for step in range(lattice.length):
        t, (states, positions) = model.transitions(step), layer
        pairs = t.pair_start[states + 1] - t.pair_start[states]
        pair = np.repeat(t.pair_start[states] - (np.cumsum(pairs) - pairs), pairs) + np.arange(pairs.sum())
        played = np.repeat(mass, pairs) * choices(step, states, positions)
        count = t.outcome_start[pair + 1] - t.outcome_start[pair]
        outcome = np.repeat(t.outcome_start[pair] - (np.cumsum(count) - count), count)
        outcome += np.arange(count.sum())
        layer, successor = next_layer(lattice, step, layer)
        mass = np.bincount(successor, np.repeat(played, count) * t.probability[outcome], layer[0].size)
    earned, place = np.unique(layer[1] - first_position, return_inverse=True)
    total = np.bincount(place, mass)
    met = total > 0
    values = lattice.floor + lattice.unit * earned[met]
    return ReturnDistribution(values.astype(np.float64), total[met] / total.sum(), lattice.error)
