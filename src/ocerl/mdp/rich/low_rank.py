r"""Low-rank MDPs (Appendix D.2): :math:`P_h(s' \mid s, a) = \phi_h(s, a)^\top \mu_h(s')` with vectors of length d.

Here :math:`\phi_h(s, a)` are probabilities over `d` latents and :math:`\mu_{h,z}` a distribution over states for
each of them, so a step is `(s, a) → z → s'`. Then :math:`\|\phi\| \le 1` and
:math:`\|\int g\,d\mu\| \le \sqrt d\,\|g\|_\infty`, as the definition asks for. Rewards depend on `(s, a)` and are
multiples of a unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.checks import check_whole
from ocerl.mdp.tabular import Columns, TabularMDP

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MOST_OUTCOMES = 1 << 23
"""A table of the whole world is not made beyond so many outcomes a step."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LowRankMDP:
    """A low-rank MDP that begins in state 0, and candidates for its features and measures."""

    features: Floats
    """`[step, state, action, latent]`: φ, probabilities over the latents."""
    measures: Floats
    """`[step, latent, state]`: μ, the distribution of the next state."""
    rewards: Floats
    """`[step, state, action]`."""
    feature_class: Floats
    """`[candidate, step, state, action, latent]`: what Rep-UCB chooses φ from."""
    measure_class: Floats
    """`[candidate, step, latent, state]`: what it chooses μ from."""
    name: str = "low-rank"

    def __post_init__(self) -> None:
        steps, states, _, rank = self.features.shape
        if self.measures.shape != (steps, rank, states):
            raise OcerlError(f"the measures have shape {self.measures.shape}, expected {(steps, rank, states)}")
        for name, array in (("features", self.features), ("measures", self.measures)):
            if (array < 0).any() or not np.allclose(array.sum(axis=-1), 1.0, atol=1e-8):
                raise OcerlError(f"the {name} must be probabilities that sum to 1")
        if rank > states:
            raise OcerlError(f"the rank {rank} is larger than the number of states, {states}")

    @property
    def horizon(self) -> int:
        return self.features.shape[0]

    @property
    def n_states(self) -> int:
        return self.features.shape[1]

    @property
    def n_actions(self) -> int:
        return self.features.shape[2]

    @property
    def rank(self) -> int:
        return self.features.shape[3]

    def model(self) -> TabularMDP:
        """The world as a table, while it is small enough for one."""
        states, actions = self.n_states, self.n_actions
        if states * actions * states > MOST_OUTCOMES:
            raise OcerlError(f"a table of {states} states has {states * actions * states:.1e} outcomes a step")
        columns: list[Columns] = []
        for step in range(self.horizon):
            joint = self.features[step] @ self.measures[step]
            state, action, target = np.nonzero(joint)
            columns.append((state, action, target, joint[state, action, target], self.rewards[step][state, action]))
        return self._table(columns, states, self.name)

    @cached_property
    def expanded(self) -> TabularMDP:
        """The same world with the latents as states of their own: two steps for one, and few outcomes.

        States `n_states + z` are the latents; they have one action, which pays 0. A return has the same
        distribution as in the world, so this is where policies of large worlds are judged.
        """
        columns: list[Columns] = []
        for step in range(self.horizon):
            state, action, latent = np.nonzero(self.features[step])
            p = self.features[step][state, action, latent]
            columns.append((state, action, latent + self.n_states, p, self.rewards[step][state, action]))
            if step < self.horizon - 1:
                latent, target = np.nonzero(self.measures[step])
                zeros = np.zeros_like(latent)
                emitted = self.measures[step][latent, target]
                columns.append((latent + self.n_states, zeros, target, emitted, zeros))
        return self._table(columns, self.n_states + self.rank, self.name)

    def _table(self, columns: list[Columns], size: int, name: str) -> TabularMDP:
        return TabularMDP.from_indices(
            columns, states=tuple(range(size)), actions=tuple(range(self.n_actions)), horizon=len(columns), name=name
        )


def random_low_rank(seed: int, *, states: int, actions: int = 2, horizon: int = 3, rank: int = 2) -> LowRankMDP:
    """A world of random features and measures, with rewards 0, 1 or 2.

    >>> world = random_low_rank(0, states=6)
    >>> np.linalg.matrix_rank(world.features[0] @ world.measures[0]).max().item()
    2
    """
    for name, value in (("states", states), ("actions", actions), ("horizon", horizon), ("rank", rank)):
        check_whole(f"the number of {name}" if name[-1] == "s" else f"the {name}", value)
    random = np.random.default_rng(seed)
    features = random.dirichlet(np.ones(rank), (horizon, states, actions))
    measures = random.dirichlet(np.full(states, 0.5), (horizon, rank))
    return LowRankMDP(
        features=features,
        measures=measures,
        rewards=random.integers(0, 3, (horizon, states, actions)).astype(np.float64),
        feature_class=features[None],
        measure_class=measures[None],
    )


ON, FALLEN, REST = range(3)
BRIGHT, EXIT, EARLY_EXIT, PRIZE = 0.25, 0.75, 0.25, 1.5
SLIP, GAMBLE, BLUR = 0.02, 0.4, 0.02


def low_rank_lock(
    *, states: int = 100, horizon: int = 5, actions: int = 4, candidates: int = 20, seed: int = 0
) -> LowRankMDP:
    """A risky lock of rank 3 with any number of states, each with a right action of its own in every step.

    The latents are *on*, *fallen* and *rest*. Half of the states are on the way, a quarter fallen and a quarter
    at rest. On the way, the right action goes on (2% fall, 40% before the last step) and pays 0.25 in every
    other, *bright* state; another one leaves for good with 0.25 (0.75 in the step before the last); the others
    fall for good. In the last step the right action pays 1.5. Measures are random over the latent's states,
    and 2% of *on* are emitted as fallen, so the state does not tell the latent it came from.

    The candidates have other states' kinds and right actions, and other weights; the true ones are among them.

    >>> from ocerl.planning import plan
    >>> world = low_rank_lock(states=20)
    >>> round(plan(world.expanded, "cvar:0.25").value, 4), world.feature_class.shape
    (0.4475, (20, 5, 20, 4, 3))
    """
    check_whole("the number of states", states, least=8)
    check_whole("the horizon", horizon, least=3)
    check_whole("the number of actions", actions, least=2)
    check_whole("the number of candidates", candidates)
    random = np.random.default_rng([seed, states])
    drawn = [_draw(random, states, horizon, actions) for _ in range(candidates)]
    features = np.stack([_features(kinds, right, leave) for kinds, right, leave in drawn])
    measures = np.stack([_measures(random, kinds, horizon) for kinds, _, _ in drawn])
    places = random.integers(candidates, size=2)
    for array, place in zip((features, measures), places, strict=True):
        array[[0, place]] = array[[place, 0]]
    return LowRankMDP(
        features=features[places[0]],
        measures=measures[places[1]],
        rewards=_rewards(*drawn[0]),
        feature_class=features,
        measure_class=measures,
        name="low-rank",
    )


def _draw(random: np.random.Generator, states: int, horizon: int, actions: int) -> tuple[Ints, Ints, Ints]:
    """The kind of every state, and in every step its right action and the one that leaves."""
    kinds = np.where(np.arange(states) % 4 < 2, ON, np.where(np.arange(states) % 4 == 2, FALLEN, REST))
    kinds[1:] = random.permutation(kinds[1:])  # state 0, the start, is on the way
    orders = random.permuted(np.tile(np.arange(actions), (horizon, states, 1)), axis=2)
    return kinds, orders[..., 0], orders[..., 1]


def _features(kinds: Ints, right: Ints, leave: Ints) -> Floats:
    horizon, states = right.shape
    actions = int(max(right.max(), leave.max())) + 1
    chosen = np.full((horizon, states, actions), FALLEN)
    steps, numbers = np.indices(right.shape)
    chosen[steps, numbers, right], chosen[steps, numbers, leave] = ON, REST
    chosen = np.where((kinds == ON)[None, :, None], chosen, kinds[None, :, None])
    features = np.eye(3)[chosen]
    slip = np.where(np.arange(horizon) == horizon - 2, GAMBLE, SLIP)[:, None, None]
    features[..., FALLEN] += slip * features[..., ON]
    features[..., ON] *= 1 - slip
    return features


def _measures(random: np.random.Generator, kinds: Ints, horizon: int) -> Floats:
    weights = random.exponential(size=(horizon, 3, kinds.size)) * (kinds == np.arange(3)[:, None])
    pure = weights / weights.sum(axis=-1, keepdims=True)
    pure[:, ON] = (1 - BLUR) * pure[:, ON] + BLUR * pure[:, FALLEN]
    return pure


def _rewards(kinds: Ints, right: Ints, leave: Ints) -> Floats:
    horizon, states = right.shape
    actions = int(max(right.max(), leave.max())) + 1
    rewards = np.zeros((horizon, states, actions))
    steps, numbers = np.indices(right.shape)
    late = np.arange(horizon)[:, None]
    rewards[steps, numbers, right] = np.where(late == horizon - 1, PRIZE, BRIGHT * (numbers % 2))
    rewards[steps, numbers, leave] = np.where(late == horizon - 2, EXIT, np.where(late < horizon - 2, EARLY_EXIT, 0))
    return rewards * (kinds == ON)[None, :, None]
