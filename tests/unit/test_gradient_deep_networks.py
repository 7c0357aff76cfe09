"""The networks and their gradients against the formula."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ocerl.gradient.deep.networks import Convolution, Perceptron


def formula(network: Perceptron, x: jax.Array) -> jax.Array:
    for layer in network.hidden:
        x = jnp.tanh(x @ layer.weight.T + layer.bias)
    return x @ network.last.weight.T + network.last.bias


def close(found: Any, expected: Any) -> bool:
    return jax.tree.all(jax.tree.map(lambda a, b: np.allclose(a, b, rtol=1e-4, atol=1e-5), found, expected))


@pytest.mark.parametrize("lead", [(), (7,), (3, 5)])
def test_a_perceptron_and_its_gradients_are_the_formulas(lead: tuple[int, ...]) -> None:
    network = Perceptron(jax.random.key(0), 4, (8, 6), 3)
    # biases that are not 0
    network = jax.tree.map(lambda w: w + 0.1 * jax.random.normal(jax.random.key(1), w.shape), network)
    x = jax.random.normal(jax.random.key(2), (*lead, 4))
    assert network(x).shape == (*lead, 3)
    assert close(network(x), formula(network, x))

    def gradients(function: Any) -> Any:
        return jax.grad(lambda at: (function(*at) ** 2).sum())((network, x))

    assert close(gradients(lambda network, x: network(x)), gradients(formula))


def test_gradients_of_many_networks_at_once() -> None:
    networks = eqx.filter_vmap(lambda key: Perceptron(key, 4, (8,), 2))(jax.random.split(jax.random.key(0), 3))
    x = jax.random.normal(jax.random.key(1), (3, 5, 4))

    def gradients(function: Any) -> Any:
        return jax.vmap(jax.grad(lambda network, x: (function(network, x) ** 2).sum()))(networks, x)

    assert close(gradients(lambda network, x: network(x)), gradients(formula))


def test_a_convolution_treats_images_one_by_one() -> None:
    network = Convolution(jax.random.key(0), (6, 5, 2), 4)
    images = jax.random.normal(jax.random.key(1), (2, 3, 6, 5, 2))
    found = network(images)
    assert found.shape == (2, 3, 4)
    assert close(found[1, 2], network(images[1, 2]))
