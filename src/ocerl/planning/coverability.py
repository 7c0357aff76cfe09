r"""Coverability (Appendix D.3): how well one distribution can cover what all policies reach, for known models.

.. math:: \mathrm{Cov} = \min_\mu \max_{\pi, h} \|d^\pi_h / \mu_h\|_\infty
          = \max_h \sum_{s,a} \max_\pi d^\pi_h(s, a)

The second form, the cumulative reachability (Lemma 3 of Xie et al., "The Role of Coverage in Online Reinforcement
Learning", 2023), is what is computed: the largest probability of being in `s` at step `h` by dynamic programming,
times the number of the state's actions. In the augmented MDP the state is `(s, b)`, and :math:`\mathrm{Cov}_{aug}`
also has the maximum over first budgets inside of the sum.

**How the bound reads.** For one first budget, a state `s` is met with at most :math:`|\mathcal B|` budgets in a step:
from all of them the rest of the episode may go on alike, and ends in different returns. Hence
:math:`\mathrm{Cov}_{aug} \le |\mathcal B|\,\mathrm{Cov}`. With a *set* of first budgets the number is that of all
budgets which can be met, up to :math:`|\mathcal B - \mathcal B|` for first budgets in :math:`\mathcal B`; over all
first budgets in [0, 1], as the paper's definition has it, the sum is infinite. Its lemma counts
:math:`|\mathcal B|` budgets in all cases; `tests/unit/test_coverability.py` has a counterexample by hand. Algorithm 1
plays few first budgets, and from each the bound holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ocerl.errors import OcerlError
from ocerl.mdp.lattice import Lattice, exact_lattice
from ocerl.mdp.tabular import TabularMDP

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Coverability:
    """Cov and Cov_aug of a model, with the counts that their bounds have."""

    original: float
    """Cov."""
    augmented: float
    """Cov_aug for the first budgets asked for."""
    returns: int
    """|B|: how many returns some policy can meet."""
    budgets: int
    """The most budgets with which one state can be met in one step: |B| at most for a single first budget."""


def coverability(model: TabularMDP, first_budgets: Sequence[float] = (0.0,)) -> Coverability:
    """Cov and Cov_aug; the latter is the same for every single first budget.

    >>> from ocerl.mdp import zoo
    >>> found = coverability(zoo.make("paper"))
    >>> found.original, found.augmented, found.returns
    (2.0, 2.0, 5)
    """
    lattice = _lattice(model)
    reached = [states.sum(axis=1) for states in _reach(lattice, budgets=False)]
    augmented = _reach(lattice, budgets=True)
    moves = np.rint((lattice.floor - np.asarray(first_budgets, dtype=np.float64)) / lattice.unit).astype(np.int64)
    met = [_from_all(reach, moves) for reach in augmented[:-1]]
    actions = [np.diff(model.transitions(step).pair_start) for step in range(lattice.length)]
    return Coverability(
        original=max(float(n @ reach) for n, reach in zip(actions, reached, strict=False)),
        augmented=max(float(n @ reach.sum(axis=1)) for n, reach in zip(actions, met, strict=True)),
        returns=int((augmented[-1].max(axis=0) > 0).sum()),
        budgets=max(int((reach > 0).sum(axis=1).max()) for reach in met),
    )


def _lattice(model: TabularMDP) -> Lattice:
    lattice = exact_lattice(model)
    if lattice is None:
        raise OcerlError(
            f"{model.name}: rewards have no common unit, so returns are not discrete and Cov_aug has no bound "
            "(round the rewards first)"
        )
    return lattice


def _from_all(reach: Floats, positions: NDArray[np.int64]) -> Floats:
    """`[state, position]`: the best over first budgets of getting to a state at a position."""
    moves = positions - positions.min()
    best = np.zeros((reach.shape[0], reach.shape[1] + int(moves.max())))
    for move in np.unique(moves):
        columns = best[:, move : move + reach.shape[1]]
        np.maximum(columns, reach, out=columns)
    return best


def _reach(lattice: Lattice, *, budgets: bool) -> list[Floats]:
    r"""For each step, and at the end, `[state, units earned]`: :math:`\max_\pi P(s_h = s, \text{earned})`.

    Without `budgets`, a single column: :math:`\max_\pi P(s_h = s)`.
    """
    ways = [_ways(lattice, step, budgets) for step in range(lattice.length)]
    found: list[Floats] = []
    for target in range(lattice.length + 1):
        most = sum(max(by_units) for by_units in ways[:target])
        # [state, units still to earn, target state]: the probability of getting to the target with just these.
        ahead = np.zeros((lattice.model.n_states, most + 1, lattice.model.n_states))
        ahead[:, 0, :] = np.eye(lattice.model.n_states)
        for step in reversed(range(target)):
            ahead = _one_step(lattice, step, ways[step], ahead)
        found.append(np.tensordot(lattice.model.start, ahead, axes=1).T)
    return found


def _ways(lattice: Lattice, step: int, budgets: bool) -> dict[int, sparse.csr_array]:
    """For each reward in units, the probabilities `[pair, next state]` of getting it."""
    t = lattice.model.transitions(step)
    units = lattice.shifts(step) if budgets else np.zeros(t.probability.size, dtype=np.int64)
    shape = (t.n_pairs, t.n_states)
    return {
        int(k): sparse.csr_array((t.probability[at], (t.outcome_pair[at], t.next_state[at])), shape=shape)
        for k in np.unique(units)
        for at in [units == k]
    }


def _one_step(lattice: Lattice, step: int, ways: dict[int, sparse.csr_array], ahead: Floats) -> Floats:
    t = lattice.model.transitions(step)
    states, width, targets = ahead.shape
    flat = ahead.reshape(states, -1)
    worth = np.zeros((t.n_pairs, width, targets))
    for units, probability in ways.items():
        moved = (probability @ flat).reshape(-1, width, targets)
        worth[:, units:] += moved[:, : width - units]
    return np.maximum.reduceat(worth, t.pair_start[:-1], axis=0)
