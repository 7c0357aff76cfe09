r"""Distributions over actions: softmax over finitely many, Gaussian over a box.

Both are described by an array of parameters, which a network computes and a batch stores, and work on any leading
axes. Noise is drawn apart from the parameters, for a whole roll-out at once.

The *log-barrier* (Appendix C) of a softmax is the mean of :math:`\log \pi(a \mid s, b)` over all actions, that is, up
to a constant, minus the divergence from the uniform distribution to the policy. The same definition serves the
Gaussian, whose uniform distribution is that on the box.
"""

from __future__ import annotations

from math import log, pi
from typing import Any, TypeAlias, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from ocerl.errors import OcerlError

LEAST_LOG_STD, MOST_LOG_STD = -4.0, 1.0


@final
class Softmax(eqx.Module):
    """`n` actions, counted from `first`; the parameters are logits.

    >>> two = Softmax(2)
    >>> two.mode(jnp.array([0.0, 1.0])).item()
    1
    """

    continuous = False

    n: int = eqx.field(static=True)
    first: int = eqx.field(static=True, default=0)

    @property
    def space(self) -> spaces.Discrete:
        return spaces.Discrete(self.n, start=self.first)

    @property
    def outputs(self) -> int:
        """How many numbers the actor's network puts out."""
        return self.n

    def complete(self, outputs: jax.Array, free: jax.Array) -> jax.Array:
        """The parameters from a network's outputs and from free ones."""
        return jax.nn.log_softmax(outputs)

    def noise(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return jax.random.gumbel(key, (*shape, self.n))

    def sample(self, parameters: jax.Array, noise: jax.Array) -> jax.Array:
        return jnp.argmax(parameters + noise, axis=-1)

    def mode(self, parameters: jax.Array) -> jax.Array:
        return jnp.argmax(parameters, axis=-1)

    def log_probability(self, parameters: jax.Array, action: jax.Array) -> jax.Array:
        # A sum over a one-hot vector: gathers are slow on processors.
        return jnp.sum(parameters * jax.nn.one_hot(action, self.n), axis=-1)

    def divergence(self, p: jax.Array, q: jax.Array) -> jax.Array:
        """The Kullback-Leibler divergence KL(p ‖ q)."""
        return jnp.sum(jnp.exp(p) * (p - q), axis=-1)

    def entropy(self, parameters: jax.Array) -> jax.Array:
        return -jnp.sum(jnp.exp(parameters) * parameters, axis=-1)

    def barrier(self, parameters: jax.Array) -> jax.Array:
        return parameters.mean(axis=-1)

    def to_environment(self, action: jax.Array) -> jax.Array:
        """The action as the environment wants it."""
        return action + self.first


@final
class Gaussian(eqx.Module):
    """Independent Gaussians in coordinates in which the box is [-1, 1]; the parameters are means and log-deviations.

    Actions are clipped to the box on their way to the environment. The deviations are free parameters, the same in
    every state.

    >>> box = Gaussian.on(spaces.Box(-2.0, 4.0, (1,)))
    >>> box.to_environment(jnp.array([0.5])).tolist(), box.to_environment(jnp.array([7.0])).tolist()
    ([2.5], [4.0])
    """

    continuous = True

    low: tuple[float, ...] = eqx.field(static=True)
    high: tuple[float, ...] = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    dtype: str = eqx.field(static=True, default="float32")

    @classmethod
    def on(cls, box: spaces.Box) -> Gaussian:
        """The distribution on a bounded box."""
        if not (np.isfinite(box.low).all() and np.isfinite(box.high).all()):
            raise OcerlError(
                f"continuous actions need finite bounds, got {box}: wrap the environment to give them some"
            )
        return cls(tuple(box.low.ravel().tolist()), tuple(box.high.ravel().tolist()), box.shape, str(box.dtype))

    @property
    def n(self) -> int:
        return len(self.low)

    @property
    def space(self) -> spaces.Box:
        dtype: Any = np.dtype(self.dtype)
        low, high = (np.array(bound, dtype).reshape(self.shape) for bound in (self.low, self.high))
        return spaces.Box(low, high, self.shape, dtype.type)

    @property
    def outputs(self) -> int:
        return self.n

    def complete(self, outputs: jax.Array, free: jax.Array) -> jax.Array:
        deviation = jnp.broadcast_to(jnp.clip(free, LEAST_LOG_STD, MOST_LOG_STD), outputs.shape)
        return jnp.concatenate([outputs, deviation], axis=-1)

    def noise(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return jax.random.normal(key, (*shape, self.n))

    def sample(self, parameters: jax.Array, noise: jax.Array) -> jax.Array:
        mean, log_std = jnp.split(parameters, 2, axis=-1)
        return mean + jnp.exp(log_std) * noise

    def mode(self, parameters: jax.Array) -> jax.Array:
        return parameters[..., : self.n]

    def log_probability(self, parameters: jax.Array, action: jax.Array) -> jax.Array:
        mean, log_std = jnp.split(parameters, 2, axis=-1)
        z = (action - mean) * jnp.exp(-log_std)
        return jnp.sum(-0.5 * z**2 - log_std - 0.5 * log(2 * pi), axis=-1)

    def divergence(self, p: jax.Array, q: jax.Array) -> jax.Array:
        """The Kullback-Leibler divergence KL(p ‖ q)."""
        (mean_p, log_p), (mean_q, log_q) = jnp.split(p, 2, axis=-1), jnp.split(q, 2, axis=-1)
        scaled = (jnp.exp(2 * log_p) + (mean_p - mean_q) ** 2) * jnp.exp(-2 * log_q)
        return jnp.sum(log_q - log_p + 0.5 * scaled - 0.5, axis=-1)

    def entropy(self, parameters: jax.Array) -> jax.Array:
        return jnp.sum(parameters[..., self.n :] + 0.5 * log(2 * pi) + 0.5, axis=-1)

    def barrier(self, parameters: jax.Array) -> jax.Array:
        mean, log_std = jnp.split(parameters, 2, axis=-1)
        # E (a - mean)² = mean² + 1/3 for a uniform on [-1, 1]
        square = (mean**2 + 1 / 3) * jnp.exp(-2 * log_std)
        return jnp.mean(-log_std - 0.5 * square - 0.5 * log(2 * pi), axis=-1)

    def to_environment(self, action: jax.Array) -> jax.Array:
        low, high = jnp.array(self.low), jnp.array(self.high)
        inside = low + (high - low) * (jnp.clip(action, -1.0, 1.0) + 1.0) / 2
        return inside.reshape(*action.shape[:-1], *self.shape)


Actions: TypeAlias = Softmax | Gaussian


def actions_of(space: Any) -> Actions:
    """The distribution for an action space: `Discrete` or a bounded `Box`."""
    if isinstance(space, spaces.Discrete):
        return Softmax(int(space.n), int(space.start))
    if isinstance(space, spaces.Box):
        return Gaussian.on(space)
    raise OcerlError(f"actions must be in a Discrete space or a Box, got {space}")


def as_played(action: jax.Array, space: Any) -> Any:
    """Actions of the type that an environment wants, and within its bounds to the last bit."""
    actions = np.asarray(action)
    if hasattr(space, "low"):
        actions = np.asarray(np.clip(actions, space.low, space.high))
    return actions.astype(space.dtype)
