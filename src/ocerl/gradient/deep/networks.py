"""The networks: perceptrons and a small convolutional one, on arrays with any leading axes.

Weights are drawn normal, scaled by the fan-in, without the orthogonal initialisation that PPO often comes with: its
QR factorisations, batched over seeds, can hang JAX 0.10 on two cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax


@final
class Dense(eqx.Module):
    """An affine map of the last axis."""

    weight: jax.Array
    bias: jax.Array

    def __init__(self, key: jax.Array, inputs: int, outputs: int, *, scale: float = 1.0) -> None:
        self.weight = jax.random.normal(key, (inputs, outputs)) * scale / max(inputs, 1) ** 0.5
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return x @ self.weight + self.bias


@final
class Perceptron(eqx.Module):
    """Hidden layers with tanh between, and an affine layer at the end.

    >>> Perceptron(jax.random.key(0), 3, (64, 64), 2)(jnp.zeros((5, 4, 3))).shape
    (5, 4, 2)
    """

    hidden: tuple[Dense, ...]
    last: Dense

    def __init__(
        self, key: jax.Array, inputs: int, hidden: Sequence[int], outputs: int, *, last_scale: float = 1.0
    ) -> None:
        sizes = (inputs, *hidden)
        keys = jax.random.split(key, len(sizes))
        # tanh has slope 1 at 0 and less beyond: a factor of √2 keeps the signal's size.
        layers = [Dense(k, m, n, scale=2**0.5) for k, m, n in zip(keys[:-1], sizes[:-1], sizes[1:], strict=True)]
        self.hidden = tuple(layers)
        self.last = Dense(keys[-1], sizes[-1], outputs, scale=last_scale)

    def __call__(self, x: jax.Array) -> jax.Array:
        for layer in self.hidden:
            x = jnp.tanh(layer(x))
        return self.last(x)


@final
class Convolution(eqx.Module):
    """An image `[…, height, width, channels]` to a vector: two strided 3×3 convolutions, then an affine layer.

    >>> Convolution(jax.random.key(0), (10, 12, 3), 32)(jnp.zeros((7, 10, 12, 3))).shape
    (7, 32)
    """

    kernels: tuple[jax.Array, ...]
    biases: tuple[jax.Array, ...]
    last: Dense

    def __init__(self, key: jax.Array, shape: tuple[int, int, int], outputs: int) -> None:
        height, width, channels = shape
        kernels: list[jax.Array] = []
        for k, filters in zip(jax.random.split(key, 3)[:2], (16, 32), strict=True):
            kernels.append(jax.random.normal(k, (3, 3, channels, filters)) * (2 / (9 * channels)) ** 0.5)
            height, width, channels = -(-height // 2), -(-width // 2), filters
        self.kernels = tuple(kernels)
        self.biases = tuple(jnp.zeros(kernel.shape[-1]) for kernel in kernels)
        self.last = Dense(jax.random.split(key, 3)[2], height * width * channels, outputs, scale=2**0.5)

    def __call__(self, image: jax.Array) -> jax.Array:
        lead, x = image.shape[:-3], image.reshape(-1, *image.shape[-3:])
        for kernel, bias in zip(self.kernels, self.biases, strict=True):
            x = lax.conv_general_dilated(x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = jax.nn.relu(x + bias)
        return jnp.tanh(self.last(x.reshape(*lead, -1)))
