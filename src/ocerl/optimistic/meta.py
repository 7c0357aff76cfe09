r"""Algorithm 1: optimism about the first budget, over any oracle of Definition 3.1.

In round `k` the oracle values every first budget optimistically; the budget

.. math:: \hat b_k = \arg\max_b \{\, b + \hat V_{1,k}(s_1, b) \,\}

is played with the oracle's policy for one episode, which the oracle then learns from. Theorem 3.2 bounds the OCE
regret of this loop by the oracle's regret in the augmented MDP plus the slack of its optimism.

Deviations: the maximum is over the oracle's own finite set of first budgets (all that matter for CVaR and
mean-CVaR, a grid of stated spacing for other risks). Where the start is random, one budget is chosen before it
is seen and the oracle's values are expectations over the start: the OCE of the whole return needs one budget.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ocerl.planning.policy import Policy

FloatArray = NDArray[np.float64]
Experience = TypeVar("Experience")
ExperienceIn = TypeVar("ExperienceIn", contravariant=True)
Observer = Callable[[int, float, FloatArray, FloatArray], None]
"""Called in every round, before its episode, with the round, the budget chosen, all first budgets and their values."""


class OptimisticOracle(Protocol[ExperienceIn]):
    """An oracle of Definition 3.1 in the augmented MDP."""

    def values(self) -> tuple[FloatArray, FloatArray]:
        r"""First budgets `b` and their optimistic values :math:`\hat V_{1,k}(s_1, b)`."""
        ...

    def policy(self, budget: float) -> Policy:
        """The policy to play from one of these first budgets; later updates leave it as it is."""
        ...

    def update(self, episode: ExperienceIn) -> None:
        """Learn from what the policy's episode showed."""
        ...


def optimism(
    oracle: OptimisticOracle[Experience],
    play: Callable[[Policy], Experience],
    rounds: int,
    *,
    observe: Observer | None = None,
) -> None:
    """Run Algorithm 1 for a number of rounds; `play` collects one episode with a policy."""
    for number in range(rounds):
        budgets, values = oracle.values()
        budget = float(budgets[np.argmax(values + budgets)])
        if observe:
            observe(number, budget, budgets, values)
        oracle.update(play(oracle.policy(budget)))
