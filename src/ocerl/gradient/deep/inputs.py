r"""What the networks see of :math:`(s, b)` and the time: numbers for the observation, hats for time and budget.

**Hats.** A number `x` is shown as its weights in the piecewise linear interpolation between fixed knots, at most two
of which are above 0. At a knot this is one-hot, so for discrete returns whose budgets are the knots it *is* the
paper's one-hot encoding (Appendix C); between knots it is its smooth form. The number itself is shown as well, scaled.

**Time** is part of the state (Pardo et al., 2018): a static risk has a true horizon.

**Observations.** Vectors are normalised by the mean and deviation of all that has been seen (bounds say little: a
number that stays near 0 within its bounds would not be seen). The numbers of a box with the same finite bounds for all
are in the same units and share theirs: an encoding of a position must not be blown up where it is seldom. What is
discrete becomes one-hot; of dictionaries and tuples all parts are taken; images go through a convolution.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ocerl.envs import AugmentedObservation
from ocerl.errors import OcerlError

MOST_NORMALISED = 10.0


class Features(NamedTuple):
    """What the networks take in; any leading axes."""

    numbers: jax.Array
    """Observation and time."""
    budget: jax.Array
    images: tuple[jax.Array, ...]


class Moments(NamedTuple):
    """The running mean and variance of the observation's numbers."""

    number: jax.Array
    mean: jax.Array
    variance: jax.Array

    def including(self, numbers: jax.Array) -> Moments:
        """With a batch more, by the parallel form of the variance (Chan et al.)."""
        new = numbers.reshape(-1, numbers.shape[-1])
        count = self.number + new.shape[0]
        shift = new.mean(axis=0) - self.mean
        share = new.shape[0] / count
        variance = (1 - share) * self.variance + share * new.var(axis=0) + share * (1 - share) * shift**2
        return Moments(count, self.mean + share * shift, variance)


def even_knots(low: float, high: float, number: int) -> NDArray[np.float32]:
    """Knots from `low` to `high`, at even distances.

    >>> even_knots(0.0, 1.0, 3).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.linspace(low, high, number, dtype=np.float32)


def hats(x: jax.Array, knots: jax.Array) -> jax.Array:
    """The weights of `x` in the piecewise linear interpolation between increasing knots; constant beyond them.

    >>> hats(jnp.array([0.0, 0.25, 5.0]), jnp.array([0.0, 1.0, 3.0])).tolist()
    [[1.0, 0.0, 0.0], [0.75, 0.25, 0.0], [0.0, 0.0, 1.0]]
    """
    x = jnp.clip(x, knots[0], knots[-1])[..., None]
    gap = jnp.diff(knots)
    rising = jnp.concatenate([jnp.ones_like(x), (x - knots[:-1]) / gap], axis=-1)
    falling = jnp.concatenate([(knots[1:] - x) / gap, jnp.ones_like(x)], axis=-1)
    return jnp.clip(jnp.minimum(rising, falling), 0.0, 1.0)


@final
class Inputs(eqx.Module):
    """From an observation to features.

    >>> inputs = Inputs.of(spaces.Discrete(3), time_knots=np.arange(2.0), knots=np.array([0.0, 0.5, 1.0]))
    >>> seen = AugmentedObservation(jnp.array(1), jnp.array(0), jnp.array(0.5))
    >>> features = inputs(seen, inputs.no_moments())
    >>> features.numbers.tolist(), features.budget.tolist()
    ([0.0, 1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0])
    """

    space: Any = eqx.field(static=True)
    groups: tuple[int, ...] = eqx.field(static=True)
    """For each number of the observation, the first of the numbers it is normalised with; -1 if it is not."""
    time_knots: tuple[float, ...] = eqx.field(static=True)
    budget_knots: jax.Array
    hide_budget: bool = eqx.field(static=True)

    @classmethod
    def of(
        cls,
        space: Any,
        *,
        time_knots: NDArray[np.floating],
        knots: NDArray[np.floating],
        hide_budget: bool = False,
    ) -> Inputs:
        groups: list[int] = []
        for leaf in _leaves(space):
            if not _is_image(leaf):
                own = _groups(leaf)
                groups += np.where(own < 0, -1, own + len(groups)).tolist()
        return cls(space, tuple(groups), tuple(time_knots.tolist()), jnp.asarray(knots, dtype=jnp.float32), hide_budget)

    @property
    def image_shapes(self) -> tuple[tuple[int, int, int], ...]:
        return tuple(leaf.shape for leaf in _leaves(self.space) if _is_image(leaf))

    @property
    def size(self) -> int:
        """How many numbers a network takes in, images aside."""
        return len(self.groups) + len(self.time_knots) + self.budget_knots.size + 1

    @property
    def any_normalised(self) -> bool:
        return any(group >= 0 for group in self.groups)

    def no_moments(self) -> Moments:
        """The moments before anything has been seen."""
        size = len(self.groups)
        return Moments(jnp.float32(0.0), jnp.zeros(size), jnp.ones(size))

    def vector(self, observation: Any) -> jax.Array:
        """The observation's numbers, images left out, before they are normalised."""
        parts = [_numbers(leaf, part) for leaf, part in _pairs(self.space, observation) if not _is_image(leaf)]
        return jnp.concatenate(parts, axis=-1) if parts else jnp.zeros((*self._lead(observation), 0))

    def __call__(self, seen: AugmentedObservation, moments: Moments) -> Features:
        vector = self.vector(seen.observation)
        if self.any_normalised:
            mean, deviation = self._scales(moments)
            vector = jnp.clip((vector - mean) / deviation, -MOST_NORMALISED, MOST_NORMALISED)
        images = (part for leaf, part in _pairs(self.space, seen.observation) if _is_image(leaf))
        time = hats(seen.step.astype(jnp.float32), jnp.asarray(self.time_knots))
        numbers = jnp.concatenate([vector, time], axis=-1)
        return Features(numbers, self._budget(seen.budget), tuple(_image(part) for part in images))

    def _scales(self, moments: Moments) -> tuple[jax.Array, jax.Array]:
        """What is taken off each number, and what it is then divided by."""
        groups, alone = np.maximum(self.groups, 0), np.array(self.groups) < 0

        def shared(x: jax.Array) -> jax.Array:
            total = jax.ops.segment_sum(jnp.where(alone, 0.0, x), groups, groups.size)
            return (total / np.maximum(np.bincount(groups[~alone], minlength=groups.size), 1))[groups]

        mean, square = shared(moments.mean), shared(moments.variance + moments.mean**2)
        deviation = jnp.sqrt(jnp.maximum(square - mean**2, 0.0)) + 1e-6
        return jnp.where(alone, 0.0, mean), jnp.where(alone, 1.0, deviation)

    def _budget(self, budget: jax.Array) -> jax.Array:
        low, high = self.budget_knots[0], self.budget_knots[-1]
        scaled = (2 * budget - low - high) / (high - low)
        shown = jnp.concatenate([hats(budget, self.budget_knots), jnp.clip(scaled, -5.0, 5.0)[..., None]], axis=-1)
        return jnp.zeros_like(shown) if self.hide_budget else shown

    def _lead(self, observation: Any) -> tuple[int, ...]:
        leaf, part = next(_pairs(self.space, observation))
        return part.shape[: part.ndim - len(leaf.shape)]


def _leaves(space: Any) -> list[Any]:
    """The simple spaces that a space consists of."""
    if isinstance(space, spaces.Dict):
        return [leaf for part in space.spaces.values() for leaf in _leaves(part)]
    if isinstance(space, spaces.Tuple):
        return [leaf for part in space.spaces for leaf in _leaves(part)]
    known = (spaces.Box, spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete)
    if not isinstance(space, known):
        raise OcerlError(
            f"observations must be made of Box, Discrete, MultiBinary and MultiDiscrete spaces, got {space}"
        )
    return [space]


def _pairs(space: Any, observation: Any) -> Any:
    """The simple spaces, each with its part of an observation."""
    if isinstance(space, spaces.Dict):
        assert isinstance(observation, Mapping)
        for name, part in space.spaces.items():
            yield from _pairs(part, observation[name])
    elif isinstance(space, spaces.Tuple):
        for part, value in zip(space.spaces, observation, strict=True):
            yield from _pairs(part, value)
    else:
        yield space, jnp.asarray(observation)


def _is_image(space: Any) -> bool:
    return isinstance(space, spaces.Box) and len(space.shape) == 3


def _groups(space: Any) -> NDArray[np.int64]:
    """For each number of a space, the first of those it is normalised with; -1 for what is discrete."""
    if isinstance(space, spaces.Discrete):
        return np.full(int(space.n), -1)
    if isinstance(space, spaces.MultiDiscrete):
        return np.full(int(space.nvec.sum()), -1)
    size = int(np.prod(space.shape))
    if not isinstance(space, spaces.Box):
        return np.full(size, -1)
    low, high = space.low.ravel(), space.high.ravel()
    alike = np.isfinite(low).all() and np.isfinite(high).all() and (low == low[0]).all() and (high == high[0]).all()
    return np.zeros(size, dtype=np.int64) if alike else np.arange(size)


def _numbers(space: Any, part: jax.Array) -> jax.Array:
    if isinstance(space, spaces.Discrete):
        return jax.nn.one_hot(part - int(space.start), int(space.n))
    if isinstance(space, spaces.MultiDiscrete):
        digits = (part - space.start).reshape(*part.shape[: part.ndim - space.nvec.ndim], -1)
        return jnp.concatenate(
            [jax.nn.one_hot(digits[..., i], int(n)) for i, n in enumerate(space.nvec.ravel())], axis=-1
        )
    lead = part.shape[: part.ndim - len(space.shape)]
    return part.reshape(*lead, -1).astype(jnp.float32)


def _image(part: jax.Array) -> jax.Array:
    return part.astype(jnp.float32) / 255.0 - 0.5 if part.dtype == jnp.uint8 else part.astype(jnp.float32)
