"""What the networks see, number by number."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from ocerl.envs import AugmentedObservation
from ocerl.errors import OcerlError
from ocerl.gradient.deep.inputs import Features, Inputs, Moments
from ocerl.gradient.deep.spaces import from_json, to_json

KNOTS = np.array([-1.0, 0.0, 2.0, 3.0])


def inputs_of(space: Any, **options: Any) -> Inputs:
    return Inputs.of(space, time_knots=np.arange(3.0), knots=KNOTS, **options)


def seen(inputs: Inputs, observation: Any, step: int = 0, budget: float = 0.0, moments: Moments | None = None) -> Any:
    shown = AugmentedObservation(observation, jnp.array(step), jnp.array(budget))
    return inputs(shown, inputs.no_moments() if moments is None else moments)


def numbers(space: Any, observation: Any) -> list[float]:
    """Those of the observation, without the time."""
    return seen(inputs_of(space), observation).numbers[..., :-3].tolist()


def test_time_and_budget_are_one_hot_at_knots_and_weights_between() -> None:
    inputs = inputs_of(spaces.Discrete(2))
    for number, knot in enumerate(KNOTS):
        assert seen(inputs, 0, budget=knot).budget[:-1].tolist() == np.eye(4)[number].tolist()
    between = seen(inputs, 1, step=2, budget=0.5)
    assert between.budget[:-1].tolist() == [0.0, 0.75, 0.25, 0.0]
    assert between.numbers.tolist() == [0, 1, 0, 0, 1]
    # The number itself, so scaled that the knots are over [-1, 1]
    assert [seen(inputs, 0, budget=b).budget[-1].item() for b in (-1.0, 1.0, 3.0, 5.0)] == [-1, 0, 1, 2]
    beyond = seen(inputs, 0, budget=100.0).budget
    assert beyond.tolist() == [0, 0, 0, 1, 5]


def test_a_hidden_budget_is_zeros() -> None:
    hidden = inputs_of(spaces.Discrete(2), hide_budget=True)
    for budget in (-1.0, 0.3, 7.0):
        assert seen(hidden, 0, budget=budget).budget.tolist() == [0.0] * 5
    assert hidden.size == inputs_of(spaces.Discrete(2)).size == 2 + 3 + 5


@pytest.mark.parametrize(
    ("space", "observation", "expected"),
    [
        (spaces.Discrete(3, start=5), np.int64(6), [0, 1, 0]),
        (spaces.MultiBinary(3), np.array([1, 0, 1], dtype=np.int8), [1, 0, 1]),
        (spaces.MultiBinary((2, 2)), np.array([[1, 0], [0, 1]], dtype=np.int8), [1, 0, 0, 1]),
        (spaces.MultiDiscrete([2, 3]), np.array([1, 2]), [0, 1, 0, 0, 1]),
        (spaces.MultiDiscrete(np.array([[2], [2]])), np.array([[1], [0]]), [0, 1, 1, 0]),
        (spaces.MultiDiscrete([2, 3], start=[4, -1]), np.array([4, 0]), [1, 0, 0, 1, 0]),
        (
            spaces.Tuple((spaces.Discrete(2), spaces.MultiBinary(1))),
            (np.int64(0), np.array([1], dtype=np.int8)),
            [1, 0, 1],
        ),
        (
            spaces.Dict(b=spaces.Discrete(2), a=spaces.Tuple((spaces.Discrete(3),))),
            {"b": np.int64(1), "a": (np.int64(2),)},
            None,
        ),
    ],
)
def test_what_is_discrete_becomes_one_hot(space: Any, observation: Any, expected: list[float] | None) -> None:
    if expected is None:  # in the order of the dictionary's own keys
        parts = {"a": [0, 0, 1], "b": [0, 1]}
        expected = [number for name in space.spaces for number in parts[name]]
    assert numbers(space, observation) == expected
    assert numbers(from_json(to_json(space)), observation) == expected
    assert inputs_of(space).groups == (-1,) * len(expected)
    batch = {"Dict": lambda x: {name: _two(part) for name, part in x.items()}}.get(type(space).__name__, _two)
    assert inputs_of(space).vector(batch(observation)).tolist() == [expected, expected]


def _two(observation: Any) -> Any:
    if isinstance(observation, tuple):
        return tuple(_two(part) for part in observation)
    return np.stack([observation, observation])


def test_every_number_of_a_box_is_in_its_own_units() -> None:
    space = spaces.Box(np.float32([-1, -8]), np.float32([1, 8]))
    moments = Moments(jnp.float32(4.0), jnp.array([1.0, 10.0]), jnp.array([4.0, 25.0]))
    found = seen(inputs_of(space), np.float32([2.0, 0.0]), moments=moments).numbers
    np.testing.assert_allclose(found[:2], [0.5, -2.0], rtol=1e-5)
    # A number far out is cut off
    far = seen(inputs_of(space), np.float32([1e6, -1e6]), moments=moments).numbers
    assert far[:2].tolist() == [10.0, -10.0]


def test_numbers_of_a_box_with_equal_bounds_share_their_units() -> None:
    """Means 1 and 3, variances 0 and 4: all numbers together have the mean 2 and E x² = (1 + 0 + 9 + 4) / 2 = 7."""
    space = spaces.Box(0.0, 9.0, (2,))
    moments = Moments(jnp.float32(4.0), jnp.array([1.0, 3.0]), jnp.array([0.0, 4.0]))
    found = seen(inputs_of(space), np.float32([1.0, 5.0]), moments=moments).numbers
    np.testing.assert_allclose(found[:2], np.array([-1.0, 3.0]) / 3**0.5, rtol=1e-5)
    endless = seen(inputs_of(spaces.Box(-np.inf, np.inf, (2,))), np.float32([1.0, 5.0]), moments=moments).numbers
    np.testing.assert_allclose(endless[:2], [0.0, 1.0], rtol=1e-5)


def test_groups_do_not_mix_what_belongs_to_different_parts() -> None:
    space = spaces.Tuple((spaces.Discrete(2), spaces.Box(0.0, 1.0, (2,)), spaces.Box(0.0, 1.0, (2,))))
    assert inputs_of(space).groups == (-1, -1, 2, 2, 4, 4)
    moments = Moments(jnp.float32(1.0), jnp.array([9.0, 9.0, 0.0, 2.0, 5.0, 5.0]), jnp.array([9.0, 9, 3, 3, 1, 1]))
    observation = (np.int64(1), np.float32([1, 3]), np.float32([5, 7]))
    # The first box: mean 1, E x² = (3 + 3 + 4) / 2 = 5, deviation 2; the second: mean 5, deviation 1.
    np.testing.assert_allclose(
        seen(inputs_of(space), observation, moments=moments).numbers[:6], [0, 1, 0, 1, 0, 2], atol=1e-5
    )


def test_moments_are_those_of_all_that_was_seen() -> None:
    rng = np.random.default_rng(0)
    batches = [rng.normal(3.0, 2.0, (number, 4, 2)).astype(np.float32) for number in (3, 1, 7)]
    moments = inputs_of(spaces.Box(-1.0, 1.0, (2,))).no_moments()
    for batch in batches:
        moments = moments.including(jnp.asarray(batch))
    whole = np.concatenate(batches).reshape(-1, 2)
    assert moments.number.item() == whole.shape[0]
    np.testing.assert_allclose(moments.mean, whole.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(moments.variance, whole.var(axis=0), rtol=1e-5)


def test_images_go_apart_and_bytes_are_scaled() -> None:
    space = spaces.Dict(
        picture=spaces.Box(0, 255, (2, 2, 1), dtype=np.uint8),
        field=spaces.Box(-1.0, 1.0, (1, 2, 3)),
        x=spaces.Discrete(2),
    )
    picture = np.array([0, 255, 51, 102], dtype=np.uint8).reshape(2, 2, 1)
    field = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    found: Features = seen(inputs_of(space), {"picture": picture, "field": field, "x": np.int64(1)})
    assert found.numbers.tolist() == [0, 1, 1, 0, 0]
    by_shape = {image.shape: np.asarray(image) for image in found.images}
    np.testing.assert_allclose(by_shape[2, 2, 1].ravel(), [-0.5, 0.5, -0.3, -0.1], atol=1e-6)
    assert by_shape[1, 2, 3].tolist() == field.tolist()
    assert set(inputs_of(space).image_shapes) == {(2, 2, 1), (1, 2, 3)}


def test_images_alone_leave_only_the_time_and_the_budget() -> None:
    space = spaces.Box(0, 255, (2, 2, 1), dtype=np.uint8)
    found = seen(inputs_of(space), np.zeros((4, 5, 2, 2, 1), dtype=np.uint8)[0, 0], step=1)
    assert found.numbers.tolist() == [0, 1, 0]


@pytest.mark.parametrize("space", [spaces.Text(3), spaces.Dict(a=spaces.Sequence(spaces.Discrete(2)))])
def test_other_spaces_are_refused_with_what_is_known(space: Any) -> None:
    with pytest.raises(OcerlError, match="made of Box, Discrete, MultiBinary and MultiDiscrete spaces, got"):
        inputs_of(space)
