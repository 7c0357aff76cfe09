"""A low-rank MDP behind vectors: each state is a point in space, seen with noise on each coordinate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.checks import check_whole
from ocerl.mdp.rich.low_rank import LowRankMDP, low_rank_lock

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class VectorMDP:
    """A low-rank MDP whose observations are the state's point and uniform noise on each coordinate.

    The noise is less than half of the least distance between points, so an observation still determines the
    state, the rank stays what it is, and so does the optimum.
    """

    inner: LowRankMDP
    points: Floats
    """`[state, coordinate]`."""
    noise: float
    name: str = "low-rank-vectors"

    def __post_init__(self) -> None:
        states, dimension = self.points.shape
        apart = np.abs(self.points[:, None] - self.points[None]).max(axis=2) + np.where(np.eye(states), np.inf, 0.0)
        if not 0 <= self.noise < apart.min() / 2:
            raise OcerlError(
                f"with {states} states in {dimension} coordinates the noise must be at least 0 and below "
                f"{apart.min() / 2:.3g}, or an observation does not determine the state; got {self.noise}"
            )

    def observe(self, states: NDArray[np.integer], random: np.random.Generator) -> Floats:
        """An observation of each state."""
        shape = (*states.shape, self.points.shape[1])
        return self.points[states] + self.noise * random.uniform(-1.0, 1.0, shape)

    def rewards(self, step: int, observations: Floats) -> Floats:
        """`[observation, action]`: the rewards, a known function of what is observed."""
        apart = np.abs(observations[:, None] - self.points[None]).max(axis=2)
        return self.inner.rewards[step][apart.argmin(axis=1)]


def low_rank_vectors(
    *, states: int = 20, dimension: int = 8, noise: float = 0.1, horizon: int = 5, actions: int = 4, seed: int = 0
) -> VectorMDP:
    """`low_rank_lock` with points in `dimension` coordinates, drawn from a normal distribution.

    >>> world = low_rank_vectors()
    >>> world.observe(np.array([0, 3]), np.random.default_rng(0)).shape
    (2, 8)
    """
    check_whole("the dimension", dimension)
    inner = low_rank_lock(states=states, horizon=horizon, actions=actions, candidates=1, seed=seed)
    points = np.random.default_rng([seed, dimension]).normal(size=(states, dimension))
    return VectorMDP(inner=inner, points=points, noise=noise)
