r"""What a learner is told before its first episode, and what it is not.

It is told the states and each state's actions, which states end the episode (nothing is paid there), the horizon,
and for each step the least and the largest reward and the unit in between. It is *not* told which next states
and which rewards are possible where, nor their probabilities, nor (unless the start is certain) where episodes
begin. Rewards that are no multiples of the unit are counted to the nearest one: a return is then off by at most
`binning`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.lattice import Lattice, exact_lattice, rounded_lattice
from ocerl.mdp.tabular import TabularMDP
from ocerl.mdp.transitions import Transitions

BINS = 500
"""Without a common lattice, returns are counted on this many steps of their range unless a resolution is given."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """A world of finitely many states and actions, as the learner is told of it."""

    horizon: int
    pair_start: NDArray[np.int64]
    """`[layer, state]`, with an end: which state-action pairs each state owns; one layer if all steps are alike."""
    actions: NDArray[np.int64]
    """`[pair]`: which action it is."""
    terminal: NDArray[np.bool_]
    start: NDArray[np.float64]
    """Where episodes begin: one state with probability 1, or zeros if that has to be learned."""
    unit: float
    origins: NDArray[np.float64]
    """The least reward of each step, in time-0 units."""
    most: NDArray[np.int64]
    """The largest reward of each step, in units above its origin."""
    discount: float = 1.0
    tail: float = 0.0
    """What steps beyond the learner's horizon, each worth less than a unit, are counted as."""
    binning: tuple[float, float] = (0.0, 0.0)
    """How far a true return can be below and above the one it is counted as."""

    @property
    def n_states(self) -> int:
        return self.terminal.size

    @property
    def layers(self) -> int:
        return self.pair_start.shape[0]

    @property
    def n_pairs(self) -> int:
        """The pairs of all layers."""
        return int(self.pair_start[-1, -1])

    @property
    def floor(self) -> float:
        """The return if every step paid its origin."""
        return float(self.origins.sum()) + self.tail

    @cached_property
    def remaining(self) -> NDArray[np.int64]:
        """`[step]`, and at the end: the most units that can still be earned."""
        return np.append(np.cumsum(self.most[::-1])[::-1], 0)

    @cached_property
    def earned(self) -> NDArray[np.int64]:
        """`[step]`, and at the end: the most units that can have been earned."""
        return np.append(0, np.cumsum(self.most))

    @cached_property
    def nothing(self) -> NDArray[np.int64]:
        """`[step]`, and at the end: the units that rewards of 0 from here on come to."""
        zeros = self.shifts([0.0])[:, 0]
        return np.append(np.cumsum(zeros[::-1])[::-1], 0)

    def pairs(self, step: int, state: int) -> slice:
        """The pairs of a state."""
        start = self.pair_start[min(step, self.layers - 1)]
        return slice(int(start[state]), int(start[state + 1]))

    def shifts(self, rewards: ArrayLike) -> NDArray[np.int64]:
        """`[step, reward]`: how many units above the step's origin each reward is."""
        weight = self.discount ** np.arange(self.horizon)
        height = np.asarray(rewards, dtype=np.float64)[None, :] * weight[:, None] - self.origins[:, None]
        return np.rint(height / self.unit).astype(np.int64)

    def check_reward(self, step: int, reward: float) -> None:
        """Refuse a reward outside the range that was declared."""
        weight = self.discount**step
        low = float(self.origins[step])
        high = low + self.unit * float(self.most[step])
        # Half a unit of slack: the range's upper end need not be a multiple of the unit.
        if not low - self.unit / 2 <= reward * weight <= high + self.unit / 2:
            raise OcerlError(
                f"the reward {reward:g} is outside the declared range [{low / weight:g}, {high / weight:g}]: "
                "declare one that holds every reward (reward_range=(low, high))"
            )


def learning_lattice(model: TabularMDP, resolution: float | None = None) -> Lattice:
    """The lattice a model is learned on: the exact one, or one to whose nearest points rewards are rounded.

    Only rewards that can be met from the start count; where states are out of reach, the lattice's model pays
    something that is in reach in their stead.
    """
    model = _within_reach(model)
    exact = exact_lattice(model)
    if exact is not None and (resolution is None or resolution <= exact.unit):
        return exact
    low, high = model.return_range()
    unit = max(high - low, 1e-12) / BINS if resolution is None else resolution
    return rounded_lattice(model, unit, "nearest")


def _within_reach(model: TabularMDP) -> TabularMDP:
    reached = np.stack(model.reachable()[:-1])
    masks: list[NDArray[np.bool_]] = [np.any(reached, axis=0)] if model.stationary else list(reached)
    steps: list[Transitions] = []
    for t, mask in zip(model.steps, masks, strict=True):
        met = mask[t.pair_state[t.outcome_pair]]
        steps.append(replace(t, reward=np.where(met, t.reward, t.reward[met][0])))
    return replace(model, steps=tuple(steps))


def problem_of_model(lattice: Lattice, *, per_step: bool) -> Problem:
    """The problem that a tabular model poses to a learner.

    States that only return to themselves and pay 0 end the episode. A model with steps of its own needs counts
    for every step.
    """
    model, horizon = lattice.model, lattice.length
    layers = horizon if per_step else 1
    if not (per_step or model.stationary):
        raise OcerlError(f"{model.name} differs from step to step: it needs counts for every step (per_step=True)")
    starts = [model.transitions(step).pair_start for step in range(layers)]
    ends = np.cumsum([0, *(int(start[-1]) for start in starts[:-1])])
    certain = (model.start > 0).sum() == 1
    return Problem(
        horizon=horizon,
        pair_start=np.stack([start + end for start, end in zip(starts, ends, strict=True)]),
        actions=np.concatenate([model.transitions(step).action for step in range(layers)]).astype(np.int64),
        terminal=ending_states(model),
        start=model.start if certain else np.zeros(model.n_states),
        unit=lattice.unit,
        origins=lattice.origins,
        most=np.array([int(lattice.shifts(step).max()) for step in range(horizon)]),
        discount=model.discount,
        tail=lattice.tail,
        binning=lattice.error,
    )


def latent_problem(problem: Problem, latents: int) -> Problem:
    """The same problem over so many latents, each with the actions that all states share; one more is the end."""
    owned = np.diff(problem.pair_start[0])[~problem.terminal]
    if not (owned == owned[0]).all():
        raise OcerlError("states have different actions: latents, which stand for many states, need the same for all")
    first = int(problem.pair_start[0][np.flatnonzero(~problem.terminal)[0]])
    n_actions, layers = int(owned[0]), problem.horizon
    pairs = np.append(np.arange(latents + 1), latents) * n_actions
    return replace(
        problem,
        pair_start=pairs[None, :] + latents * n_actions * np.arange(layers)[:, None],
        actions=np.tile(problem.actions[first : first + n_actions], latents * layers),
        terminal=np.arange(latents + 1) == latents,
        start=np.zeros(latents + 1),
    )


def ending_states(model: TabularMDP) -> NDArray[np.bool_]:
    """The states that in every step only return to themselves and pay 0."""
    ends = np.ones(model.n_states, dtype=np.bool_)
    for t in model.steps:
        source = t.pair_state[t.outcome_pair]
        ends[source[(t.next_state != source) | (t.reward != 0.0)]] = False
    return ends


def problem_of_spaces(
    n_states: int,
    n_actions: int,
    *,
    horizon: int,
    reward_range: tuple[float, float],
    resolution: float,
    discount: float = 1.0,
    per_step: bool = False,
) -> Problem:
    """The problem of an environment with `Discrete` spaces; one state more, the last, is the end.

    Nothing is paid once an episode has ended, so the range of rewards is made to hold 0.
    """
    low, high = min(reward_range[0], 0.0), max(reward_range[1], 0.0)
    weight = np.power(discount, np.arange(horizon), dtype=np.float64)
    layers, n_pairs = horizon if per_step else 1, n_states * n_actions
    pairs = np.append(np.arange(n_states + 1) * n_actions, n_pairs)
    off = float(resolution / 2 * horizon)
    return Problem(
        horizon=horizon,
        pair_start=pairs[None, :] + n_pairs * np.arange(layers)[:, None],
        actions=np.tile(np.arange(n_actions), n_states * layers),
        terminal=np.arange(n_states + 1) == n_states,
        start=np.zeros(n_states + 1),
        unit=resolution,
        origins=low * weight,
        most=np.ceil((high - low) * weight / resolution - 1e-9).astype(np.int64),
        discount=discount,
        binning=(-off, off),
    )
