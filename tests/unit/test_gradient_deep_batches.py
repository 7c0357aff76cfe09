"""The order in which the steps of a batch are learned from."""

import jax
import numpy as np
import pytest

from ocerl.gradient.deep.learner import shuffled_steps


@pytest.mark.parametrize(("times", "environments"), [(8, 6), (1, 5), (7, 3), (128, 1)])
def test_the_order_has_every_step_once(times: int, environments: int) -> None:
    order = shuffled_steps(jax.random.key(0), times, environments)
    assert sorted(order.tolist()) == list(range(times * environments))


def test_every_piece_has_as_many_steps_of_each_environment() -> None:
    pieces = np.asarray(shuffled_steps(jax.random.key(3), 32, 5)).reshape(4, -1)
    for piece in pieces:
        assert np.bincount(piece % 5).tolist() == [8] * 5


def test_every_step_is_as_often_in_the_first_piece() -> None:
    """2000 orders: each step is in the first quarter with probability 1/4, within 5 standard deviations."""
    firsts = jax.vmap(lambda key: shuffled_steps(key, 8, 3)[:6])(jax.random.split(jax.random.key(0), 2000))
    shares = np.bincount(np.asarray(firsts).ravel(), minlength=24) / 2000
    assert np.abs(shares - 0.25).max() < 5 * (0.25 * 0.75 / 2000) ** 0.5
