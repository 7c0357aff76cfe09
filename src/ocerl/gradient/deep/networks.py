"""The networks: perceptrons and a small convolutional one, on arrays with any leading axes.

Inside, samples are the columns of a matrix. A weight's gradient is then a product along rows, for which processors take
half the time of one along columns.

Weights are drawn normal, scaled by the fan-in, without the orthogonal initialisation that PPO often comes with: its
QR factorisations, batched over seeds, can hang JAX 0.10 on two cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax


@jax.custom_vjp
def _affine(weight: jax.Array, bias: jax.Array, columns: jax.Array) -> jax.Array:
    """An affine map of columns; its gradients are spelled out, as those derived from it are slower products."""
    return weight @ columns + bias[:, None]


def _affine_forward(weight: jax.Array, bias: jax.Array, columns: jax.Array) -> Any:
    return _affine(weight, bias, columns), (weight, columns)


def _affine_backward(kept: tuple[jax.Array, jax.Array], back: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    weight, columns = kept
    along_rows = lax.dot_general(back, columns, (((1,), (1,)), ((), ())))
    return along_rows, back.sum(axis=1), weight.T @ back


_affine.defvjp(_affine_forward, _affine_backward)


def _to_columns(x: jax.Array) -> jax.Array:
    # Without the barrier, the transposition would be put off to each product.
    return lax.optimization_barrier(x.reshape(-1, x.shape[-1]).T)


def _from_columns(columns: jax.Array, lead: tuple[int, ...]) -> jax.Array:
    return lax.optimization_barrier(columns).T.reshape(*lead, -1)


@final
class Dense(eqx.Module):
    """An affine map of columns."""

    weight: jax.Array
    """`[outputs, inputs]`"""
    bias: jax.Array

    def __init__(self, key: jax.Array, inputs: int, outputs: int, *, scale: float = 1.0) -> None:
        self.weight = jax.random.normal(key, (outputs, inputs)) * scale / max(inputs, 1) ** 0.5
        self.bias = jnp.zeros(outputs)

    def __call__(self, columns: jax.Array) -> jax.Array:
        return _affine(self.weight, self.bias, columns)


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
        columns = _to_columns(x)
        for layer in self.hidden:
            columns = jnp.tanh(layer(columns))
        return _from_columns(self.last(columns), x.shape[:-1])


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
        return _from_columns(jnp.tanh(self.last(_to_columns(x.reshape(x.shape[0], -1)))), lead)
