"""Which returns a tabular model can have at all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ocerl.mdp.lattice import exact_lattice
from ocerl.mdp.tabular import TabularMDP

MOST_CELLS = 1 << 22
"""More states times lattice points than this are not searched."""


def possible_returns(model: TabularMDP) -> NDArray[np.float64] | None:
    """All returns some policy can meet, in increasing order; None without a common lattice, or if too many.

    >>> from ocerl.mdp.tabular import TabularMDP
    >>> coin = TabularMDP.from_outcomes({0: {"flip": [(0.5, 0, 0.0), (0.5, 0, 2.5)]}}, horizon=2)
    >>> possible_returns(coin).tolist()
    [0.0, 2.5, 5.0]
    """
    lattice = exact_lattice(model)
    if lattice is None:
        return None
    most = [int(lattice.shifts(step).max()) for step in range(lattice.length)]
    points = sum(most) + 1
    if points * model.n_states > MOST_CELLS:
        return None
    reached = np.zeros((model.n_states, points), dtype=bool)
    reached[model.start > 0, 0] = True
    for step in range(lattice.length):
        reached = _moved(model, step, lattice.shifts(step), reached)
    steps = np.flatnonzero(reached.any(axis=0)).astype(np.float64)
    return lattice.floor + lattice.unit * steps


def _moved(model: TabularMDP, step: int, shifts: NDArray[np.int32], reached: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The states and lattice points reached after one more step."""
    transitions = model.transitions(step)
    source = transitions.pair_state[transitions.outcome_pair]
    states, points = reached.shape
    after = np.zeros_like(reached)
    for shift in np.unique(shifts):
        chosen = shifts == shift
        ways = (np.ones(chosen.sum(), dtype=bool), (transitions.next_state[chosen], source[chosen]))
        graph = sparse.csr_array(ways, shape=(states, states))
        after[:, shift:] |= graph @ reached[:, : points - shift]
    return after
