"""The agent: a policy network and a value network over the same features (Appendix C).

The paper describes softmax policies and Q-values, each by a perceptron with two hidden layers of 64. Here the critic
gives either Q-values, whose mean under the policy is the value, or the value itself; continuous actions need the
second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, final

import equinox as eqx
import jax
import jax.numpy as jnp

from ocerl.gradient.deep.actions import Actions, Softmax
from ocerl.gradient.deep.inputs import Features, Inputs
from ocerl.gradient.deep.networks import Convolution, Perceptron

Critic = Literal["q", "value"]
IMAGE_FEATURES = 64


@final
class Network(eqx.Module):
    """A perceptron on features, with a convolution for each image."""

    images: tuple[Convolution, ...]
    body: Perceptron

    def __init__(
        self, key: jax.Array, inputs: Inputs, hidden: Sequence[int], outputs: int, *, last_scale: float
    ) -> None:
        shapes = inputs.image_shapes
        keys = jax.random.split(key, len(shapes) + 1)
        self.images = tuple(Convolution(k, shape, IMAGE_FEATURES) for k, shape in zip(keys[1:], shapes, strict=True))
        size = inputs.size + IMAGE_FEATURES * len(shapes)
        self.body = Perceptron(keys[0], size, hidden, outputs, last_scale=last_scale)

    def __call__(self, features: Features) -> jax.Array:
        images = [layer(image) for layer, image in zip(self.images, features.images, strict=True)]
        return self.body(jnp.concatenate([features.numbers, features.budget, *images], axis=-1))


@final
class Agent(eqx.Module):
    """The weights that are trained.

    >>> import numpy as np
    >>> from gymnasium import spaces
    >>> inputs = Inputs.of(spaces.Discrete(3), time_knots=np.arange(2.0), knots=np.array([0.0, 1.0]))
    >>> agent = Agent(jax.random.key(0), inputs, Softmax(2), hidden=(8,), critic="q")
    >>> features = Features(jnp.zeros((5, 5)), jnp.zeros((5, 3)), ())
    >>> agent.parameters(features).shape, agent.value(features, agent.parameters(features)).shape
    ((5, 2), (5,))
    """

    actor: Network
    critic: Network
    free: jax.Array
    """Parameters of the action distribution that no network computes: log-deviations."""
    actions: Actions
    kind: Critic = eqx.field(static=True)
    hidden: tuple[int, ...] = eqx.field(static=True)

    def __init__(
        self, key: jax.Array, inputs: Inputs, actions: Actions, *, hidden: Sequence[int], critic: Critic
    ) -> None:
        actor_key, critic_key = jax.random.split(key)
        # A small last layer: the first policy is uniform, whatever it sees.
        self.actor = Network(actor_key, inputs, hidden, actions.outputs, last_scale=0.01)
        self.critic = Network(critic_key, inputs, hidden, actions.n if critic == "q" else 1, last_scale=1.0)
        self.free = jnp.full(actions.n, -0.5, jnp.float32) if not isinstance(actions, Softmax) else jnp.zeros(0)
        self.actions = actions
        self.kind = critic
        self.hidden = tuple(hidden)

    def parameters(self, features: Features) -> jax.Array:
        """The parameters of the distribution over actions."""
        return self.actions.complete(self.actor(features), self.free)

    def value(self, features: Features, parameters: jax.Array) -> jax.Array:
        """The value of the policy with these parameters, in units of the pay-off's scale."""
        out = self.critic(features)
        return jnp.sum(jnp.exp(parameters) * out, axis=-1) if self.kind == "q" else out[..., 0]

    def prediction(self, features: Features, action: jax.Array) -> jax.Array:
        """What the critic says of the actions taken; this is fitted to what they brought."""
        out = self.critic(features)
        return jnp.sum(out * jax.nn.one_hot(action, out.shape[-1]), axis=-1) if self.kind == "q" else out[..., 0]
