r"""Algorithm 2: from any risk-neutral policy-optimization oracle to the OCE.

The oracle (Definition 4.1) is trained on first budgets drawn from :math:`\mathrm{Unif}(\mathcal B)`. After
each round, the first budget is chosen greedily by its value estimate (Equation 2),

.. math:: \hat b_k = \arg\max_{b \in \mathcal B} \{\, b + \hat V^{\pi^k}_1(s_1, b) \,\},

and the maximum is the estimate of the *risk lower bound* (Equation 3) :math:`\mathrm{RLB}(\pi) = \max_{b
\in \mathcal B} \{ b + V^{\pi}_1(s_1, b) \} \le \mathrm{OCE}_u(\pi, \hat b)`.

Deviations: a state holds several independent runs (seeds), which the oracle advances together; and a round
of the loop may stand for several updates of the oracle, since nothing an oracle does depends on :math:`\hat
b_k`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class RunState(Protocol):
    """What an oracle carries from update to update: immutable and complete, so that runs resume from it."""

    @property
    def updates(self) -> int:
        """How many updates have been made."""
        ...


State = TypeVar("State", bound=RunState)


class PolicyOracle(Protocol[State]):
    """Definition 4.1: a policy that approximately improves, with an estimate of its value."""

    @property
    def budgets(self) -> Floats:
        r"""The set :math:`\mathcal B` of first budgets, trained on its uniform distribution."""
        ...

    def init(self, seeds: Sequence[int]) -> State:
        """The state of one run for each seed, before any update."""
        ...

    def update(self, state: State, times: int) -> State:
        r"""So many steps from :math:`\pi^k` to :math:`\pi^{k+1}`."""
        ...

    def estimate(self, state: State) -> Floats:
        r""":math:`\hat V^{\pi^k}_1(s_1, b)` for each run and first budget, `[seeds, |B|]`."""
        ...


@dataclass(frozen=True, eq=False)
class Judgement:
    """What is true of a round's policies, each begun with its first budget: arrays `[seeds]`."""

    value: Floats
    r"""The exact :math:`\mathrm{OCE}_u(\pi^k, \hat b_k)`."""
    lower_bound: Floats
    r"""The exact :math:`\mathrm{RLB}(\pi^k)`."""


Judge = Callable[[State, NDArray[np.intp]], Judgement]
"""From a state and the number of each run's first budget."""


@dataclass(frozen=True, eq=False)
class Round:
    """One round of Algorithm 2, for all seeds."""

    update: int
    chosen: NDArray[np.intp]
    r"""The number of :math:`\hat b_k` in :math:`\mathcal B`."""
    estimated_bound: Floats
    """The risk lower bound by the oracle's own value estimate."""
    judgement: Judgement | None


def optimise_policies(
    oracle: PolicyOracle[State], state: State, *, updates: int, every: int, judge: Judge[State] | None = None
) -> Iterator[tuple[State, Round]]:
    """Algorithm 2, from a state on (a new or a resumed one) until so many updates have been made."""
    if state.updates == 0:
        yield state, _round(oracle, state, judge)
    while state.updates < updates:
        times = min(every - state.updates % every, updates - state.updates)
        state = oracle.update(state, times)
        yield state, _round(oracle, state, judge)


def _round(oracle: PolicyOracle[State], state: State, judge: Judge[State] | None) -> Round:
    bound = oracle.budgets + oracle.estimate(state)
    chosen = bound.argmax(axis=1)
    return Round(state.updates, chosen, bound.max(axis=1), judge(state, chosen) if judge else None)
