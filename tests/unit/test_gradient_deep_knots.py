"""Knots against the documented density, inverted numerically; first budgets against the knots."""

from __future__ import annotations

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

from ocerl.envs import SpreadBudget
from ocerl.gradient.deep.knots import knots_over, spread

RANGES = [(0.0, 1.0), (-3.0, 1.0), (-200.0, 0.0), (-45.0, 16.0), (2.0, 5.0), (-7.0, -5.0), (-0.001, 1000.0)]


def mass(low: float, high: float, begin: float, end: float) -> float:
    """The documented density's mass between two budgets, by adaptive quadrature."""
    scale = (high - low) / 100

    def logarithmic(b: float) -> float:
        return 1 / np.sqrt(b * b + scale * scale)

    inside = sorted({begin, end, *(b for b in (-scale, 0.0, scale) if begin < b < end)})
    whole = sorted({low, high, *(b for b in (-scale, 0.0, scale) if low < b < high)})

    def total(points: list[float]) -> float:
        return sum(quad(logarithmic, a, b, epsabs=1e-12)[0] for a, b in pairwise(points))

    return (end - begin) / (2 * (high - low)) + total(inside) / (2 * total(whole))


@pytest.mark.parametrize("budgets", RANGES)
def test_between_neighbours_there_is_the_same_mass(budgets: tuple[float, float]) -> None:
    low, high = min(budgets[0], 0.0), max(budgets[1], 0.0)
    number = 33
    knots = knots_over(budgets, number).tolist()
    masses = np.array([mass(low, high, a, b) for a, b in pairwise(knots)]) * (number - 1)
    # The knot nearest to 0 was moved there: its two neighbours share what was theirs.
    moved = knots.index(0.0)
    if 0 < moved < number - 1:
        masses[moved - 1 : moved + 1] = masses[moved - 1 : moved + 1].mean()
    np.testing.assert_allclose(masses, 1.0, atol=2e-3)


@pytest.mark.parametrize("budgets", [*RANGES, (0.0, 0.0), (4.0, 4.0)])
@pytest.mark.parametrize("number", [2, 3, 5, 65])
def test_knots_increase_over_the_range_and_zero_is_one(budgets: tuple[float, float], number: int) -> None:
    knots = knots_over(budgets, number)
    assert knots.size == number
    assert (np.diff(knots) > 0).all()
    assert knots[0] == min(budgets[0], 0.0)
    assert knots[-1] == (max(budgets[1], 0.0) or (0.0 if budgets[0] < 0 else 1.0))
    if number > 2:
        assert 0.0 in knots


def test_budgets_are_even_between_knots() -> None:
    """Over [1, 7] of the knots 0, 2, 4, 10: half a gap, a gap and half a gap, so 1/4, 1/2 and 1/4 of the mass."""
    knots = np.array([0.0, 2.0, 4.0, 10.0])
    drawn = spread(knots, (1.0, 7.0), (np.arange(4000) + 0.5) / 4000)
    assert (np.diff(drawn) > 0).all()
    assert np.histogram(drawn, [1, 1.5, 2, 3, 4, 5.5, 7])[0].tolist() == [500, 500, 1000, 1000, 500, 500]
    assert spread(knots, (3.0, 3.0), np.array([0.0, 0.5])).tolist() == [3.0, 3.0]


@pytest.mark.parametrize("budgets", RANGES)
def test_at_least_half_of_first_budgets_are_uniform(budgets: tuple[float, float]) -> None:
    """Each part of the whole range has at least half of its uniform weight, as documented."""
    low, high = min(budgets[0], 0.0), max(budgets[1], 0.0)
    drawn = spread(knots_over(budgets, 65), (low, high), (np.arange(100_000) + 0.5) / 100_000)
    shares = np.histogram(drawn, np.linspace(low, high, 11))[0] / 100_000
    assert shares.min() > 0.1 / 2 - 0.005


@pytest.mark.parametrize("budgets", [(-45.0, 16.0), (2.0, 5.0)])
def test_compiled_first_budgets_are_the_same(budgets: tuple[float, float]) -> None:
    """From the same uniform numbers, which are recovered from a draw on the places of the knots."""
    knots = knots_over(budgets, 65)
    keys = jax.random.split(jax.random.key(0), 500)
    found = jax.vmap(SpreadBudget(knots, *budgets))(keys)
    uniform = np.asarray(jax.vmap(lambda key: jax.random.uniform(key, dtype=jnp.float32))(keys), dtype=np.float64)
    span = budgets[1] - budgets[0]
    np.testing.assert_allclose(found, spread(knots, budgets, uniform), atol=1e-4 * span)
    assert float(found.min()) >= budgets[0] - 1e-4
    assert float(found.max()) <= budgets[1] + 1e-4
