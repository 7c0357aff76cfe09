"""`TabularMDP`: a finite-horizon model with joint outcomes `(p, s', r)`, as in Gymnasium's `env.P`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.checks import check_horizon, check_names, check_sums
from ocerl.mdp.transitions import SUM_TOLERANCE, Transitions

Label = Hashable
Outcome = tuple[float, Label, float]
Columns = tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike, ArrayLike]
"""`(state, action, next state, probability, reward)`, states and actions by their positions."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TabularMDP:
    r"""A tabular Markov decision process, stationary or with a model of its own for every step.

    In step `h = 1 … horizon` an action `a` in state `s` draws one outcome `(p, s', r)`: reward and next
    state *jointly*. The return is :math:`Z = \sum_h \gamma^{h-1} r_h`, with no end before the horizon:
    a state that ends the episode is one that returns to itself and pays 0.

    Most models come from a reader (`read_csv`, `from_gymnasium`, `from_arrays`), the `zoo`, or
    `from_outcomes`:

    >>> bet = [(0.5, "play", 1.0), (0.5, "play", -1.0)]
    >>> coin = TabularMDP.from_outcomes({"play": {"bet": bet}}, horizon=3)
    >>> coin.return_range()
    (-3.0, 3.0)
    """

    steps: tuple[Transitions, ...]
    """One `Transitions` for all steps, or one for each."""
    states: tuple[Label, ...]
    """The states' names, as the user wrote them."""
    actions: tuple[Label, ...]
    """The actions' names."""
    start: NDArray[np.float64]
    """The distribution of the first state."""
    horizon: int | None = None
    """The number of steps; a model on file may leave it open until it is planned in."""
    discount: float = 1.0
    name: str = "model"

    def __post_init__(self) -> None:
        if not self.steps:
            raise OcerlError("a model needs the transitions of at least one step")
        check_names("state", self.states)
        check_names("action", self.actions)
        if self.horizon is not None:
            check_horizon(self.horizon)
            if len(self.steps) not in (1, self.horizon):
                raise OcerlError(
                    f"the model has {len(self.steps)} steps of its own, so its horizon must be "
                    f"{len(self.steps)}, got {self.horizon}"
                )
        elif len(self.steps) > 1:
            object.__setattr__(self, "horizon", len(self.steps))
        if not (0.0 < self.discount <= 1.0):
            raise OcerlError(f"the discount must be in (0, 1], got {self.discount}")
        for step in self.steps:
            if step.n_states != len(self.states):
                raise OcerlError(f"transitions over {step.n_states} states for {len(self.states)} state names")
        if self.start.shape != (len(self.states),):
            raise OcerlError(f"the start distribution has shape {self.start.shape}, expected ({len(self.states)},)")
        if not np.isfinite(self.start).all() or (self.start < 0).any():
            raise OcerlError("the start distribution must have no negative or missing probability")
        if abs(float(self.start.sum()) - 1.0) > SUM_TOLERANCE:
            raise OcerlError(f"the start distribution sums to {self.start.sum():.9g}, it must sum to 1")

    @classmethod
    def from_outcomes(
        cls,
        outcomes: Mapping[Label, Mapping[Label, Iterable[Outcome]]]
        | Sequence[Mapping[Label, Mapping[Label, Iterable[Outcome]]]],
        *,
        start: Label | Mapping[Label, float] | None = None,
        horizon: int | None = None,
        discount: float = 1.0,
        name: str = "model",
    ) -> TabularMDP:
        """Build a model from `{state: {action: [(p, next_state, reward), …]}}`, or a list, one for each step.

        States that are only reached are absorbing. The start is the first state unless given.
        """
        tables = [outcomes] if isinstance(outcomes, Mapping) else list(outcomes)
        rows: list[list[tuple[Label, Label, Label, float, float]]] = [
            [
                (state, action, next_state, probability, reward)
                for state, by_action in table.items()
                for action, listed in by_action.items()
                for probability, next_state, reward in listed
            ]
            for table in tables
        ]
        named = [state for table in tables for state in table]
        states = tuple(dict.fromkeys(named + [row[2] for step in rows for row in step]))
        actions = tuple(dict.fromkeys(row[1] for step in rows for row in step))
        return cls.from_rows(
            [tuple(zip(*step, strict=True)) or ((),) * 5 for step in rows],
            states=states,
            actions=actions,
            start=start,
            horizon=horizon,
            discount=discount,
            name=name,
        )

    @classmethod
    def from_rows(
        cls,
        rows: Sequence[Sequence[Sequence[Any]]],
        *,
        states: tuple[Label, ...],
        actions: tuple[Label, ...],
        start: Label | Mapping[Label, float] | None = None,
        horizon: int | None = None,
        discount: float = 1.0,
        name: str = "model",
    ) -> TabularMDP:
        """Build a model from names in columns `(state, action, next state, probability, reward)` a step."""
        state_index = {label: index for index, label in enumerate(states)}
        action_index = {label: index for index, label in enumerate(actions)}
        columns = [
            (
                [state_index[label] for label in state],
                [action_index[label] for label in action],
                [state_index[label] for label in next_state],
                probability,
                reward,
            )
            for state, action, next_state, probability, reward in rows
        ]
        return cls.from_indices(
            columns,
            states=states,
            actions=actions,
            start=start,
            horizon=horizon,
            discount=discount,
            name=name,
        )

    @classmethod
    def from_indices(
        cls,
        columns: Sequence[Columns],
        *,
        states: tuple[Label, ...],
        actions: tuple[Label, ...],
        start: Label | Mapping[Label, float] | None = None,
        horizon: int | None = None,
        discount: float = 1.0,
        name: str = "model",
    ) -> TabularMDP:
        """Build a model from columns like those of `from_rows`, of positions in `states` and `actions`."""
        check_names("state", states)
        check_names("action", actions)
        for number, (state, action, _, probability, _) in enumerate(columns):
            where = "" if len(columns) == 1 else f" in step {number + 1}"
            check_sums(state, action, probability, states, actions, where)
        return cls(
            steps=tuple(Transitions.from_rows(len(states), *step) for step in columns),
            states=states,
            actions=actions,
            start=start_distribution(states, states[0] if start is None else start),
            horizon=horizon,
            discount=discount,
            name=name,
        )

    def with_(
        self,
        *,
        horizon: int | None = None,
        discount: float | None = None,
        start: Label | Mapping[Label, float] | None = None,
    ) -> TabularMDP:
        """The same model with another horizon, discount or start (a name, or a distribution over names)."""
        changes: dict[str, Any] = {}
        if horizon is not None:
            changes["horizon"] = horizon
        if discount is not None:
            changes["discount"] = discount
        if start is not None:
            changes["start"] = start_distribution(self.states, start)
        return replace(self, **changes)

    @property
    def n_states(self) -> int:
        return len(self.states)

    @property
    def n_actions(self) -> int:
        return len(self.actions)

    @property
    def stationary(self) -> bool:
        return len(self.steps) == 1

    def transitions(self, step: int) -> Transitions:
        """The outcomes of step `0 … horizon - 1`."""
        return self.steps[0] if self.stationary else self.steps[step]

    def require_horizon(self) -> int:
        """The horizon, or an error that says how to give one: a static risk needs a true end."""
        if self.horizon is None:
            raise OcerlError(
                f"{self.name} has no horizon: a risk of the total reward needs one "
                "(horizon=…, --horizon on the command line)"
            )
        return self.horizon

    def reachable(self) -> list[NDArray[np.bool_]]:
        """For each step, and after the last, the states that some policy reaches from the start."""
        reached = [self.start > 0]
        for step in range(self.require_horizon()):
            transitions = self.transitions(step)
            source = transitions.pair_state[transitions.outcome_pair]
            after = np.zeros(self.n_states, dtype=bool)
            after[transitions.next_state[reached[-1][source]]] = True
            reached.append(after)
        return reached

    def remaining_range(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The least and most, in time-0 units, that can still be earned: arrays `[horizon + 1, states]`."""
        return self._remaining_range

    @cached_property
    def _remaining_range(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        horizon = self.require_horizon()
        low, high = np.zeros((2, horizon + 1, self.n_states))
        for step in reversed(range(horizon)):
            transitions = self.transitions(step)
            reward = self.discount**step * transitions.reward
            for bound, reducer in ((low, np.minimum), (high, np.maximum)):
                worth = reward + bound[step + 1][transitions.next_state]
                per_pair = transitions.over_outcomes(reducer, worth)
                bound[step] = transitions.over_actions(reducer, per_pair)
        return low, high

    def return_range(self) -> tuple[float, float]:
        """The least and largest return that any policy can meet: the paper's [0, 1], in the model's units."""
        low, high = self._remaining_range
        started = self.start > 0
        return float(low[0][started].min()), float(high[0][started].max())


def start_distribution(states: tuple[Label, ...], start: Label | Mapping[Label, float]) -> NDArray[np.float64]:
    """The start as an array over states: all on one state, or as a mapping of names to probabilities says."""
    wanted: Mapping[Label, float] = start if isinstance(start, Mapping) else {start: 1.0}
    position = {label: index for index, label in enumerate(states)}
    distribution = np.zeros(len(states))
    for label, probability in wanted.items():
        if label not in position:
            shown = ", ".join(map(str, states[:8])) + (" …" if len(states) > 8 else "")
            raise OcerlError(f"there is no state {label!r} to start in; the model has {len(states)} states: {shown}")
        distribution[position[label]] = probability
    return distribution
