"""Action distributions against SciPy, numerical integration and counted samples."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from scipy import stats
from scipy.integrate import quad

from ocerl.errors import OcerlError
from ocerl.gradient.deep.actions import Gaussian, Softmax, actions_of, as_played

P, Q = np.array([0.1, 0.2, 0.7]), np.array([0.5, 0.25, 0.25])
BOX = Gaussian.on(spaces.Box(np.float32([-2.0, 0.0]), np.float32([4.0, 1.0])))
MEAN, DEVIATION = np.array([0.3, -0.8]), np.array([0.5, 1.5])
OTHER_MEAN, OTHER_DEVIATION = np.array([-0.1, 0.4]), np.array([0.9, 0.7])


def parameters(mean: np.ndarray, deviation: np.ndarray) -> jax.Array:
    return jnp.concatenate([jnp.asarray(mean), jnp.log(jnp.asarray(deviation))])


def integral(function: object, mean: float, deviation: float) -> float:
    return quad(function, mean - 12 * deviation, mean + 12 * deviation, epsabs=1e-10)[0]


def test_softmax_is_the_categorical_distribution() -> None:
    three = Softmax(3)
    p, q = (three.complete(jnp.log(jnp.asarray(x)) + 5.0, jnp.zeros(0)) for x in (P, Q))
    probabilities = [np.exp(three.log_probability(p, jnp.array(a)).item()) for a in range(3)]
    np.testing.assert_allclose(probabilities, P, rtol=1e-5)
    assert three.divergence(p, q).item() == pytest.approx(stats.entropy(P, Q), rel=1e-5)
    assert three.divergence(q, p).item() == pytest.approx(stats.entropy(Q, P), rel=1e-5)
    assert three.entropy(p).item() == pytest.approx(stats.entropy(P), rel=1e-5)
    # The barrier is minus the divergence from the uniform distribution to the policy, up to a constant.
    uniform = np.full(3, 1 / 3)
    apart = three.barrier(p).item() - three.barrier(q).item()
    assert apart == pytest.approx(stats.entropy(uniform, Q) - stats.entropy(uniform, P), rel=1e-4)
    assert three.barrier(p).item() == pytest.approx(np.log(P).mean(), rel=1e-5)


def test_softmax_is_sampled_as_often_as_it_says() -> None:
    """30 000 samples: a chi-square of 2 degrees of freedom beyond 27.6 has probability 1e-6."""
    three = Softmax(3, first=4)
    noise = three.noise(jax.random.key(0), (30_000,))
    p = jnp.broadcast_to(jnp.log(jnp.asarray(P)), noise.shape)
    counts = np.bincount(np.asarray(three.sample(p, noise)), minlength=3)
    assert stats.chisquare(counts, 30_000 * P).statistic < 27.6
    assert three.mode(p[0]).item() == 2
    assert three.to_environment(jnp.array([0, 2])).tolist() == [4, 6]
    assert (three.space.n, three.space.start) == (3, 4)


def test_a_gaussian_has_its_density_entropy_and_divergence() -> None:
    p, q = parameters(MEAN, DEVIATION), parameters(OTHER_MEAN, OTHER_DEVIATION)
    normal, other = stats.norm(MEAN, DEVIATION), stats.norm(OTHER_MEAN, OTHER_DEVIATION)
    at = np.array([0.7, -2.0])
    assert BOX.log_probability(p, jnp.asarray(at)).item() == pytest.approx(normal.logpdf(at).sum(), rel=1e-5)
    assert BOX.entropy(p).item() == pytest.approx(normal.entropy().sum(), rel=1e-5)
    divergence = [
        integral(lambda x, i=i: normal.pdf(x)[i] * (normal.logpdf(x)[i] - other.logpdf(x)[i]), MEAN[i], DEVIATION[i])
        for i in range(2)
    ]
    assert BOX.divergence(p, q).item() == pytest.approx(sum(divergence), rel=1e-5)
    assert BOX.divergence(p, p).item() == pytest.approx(0.0, abs=1e-6)


def test_the_barrier_of_a_gaussian_is_the_mean_log_density_on_the_box() -> None:
    """Per coordinate, over which it is averaged."""
    normal = stats.norm(MEAN, DEVIATION)
    means = [quad(lambda x, i=i: normal.logpdf(x)[i] / 2, -1, 1)[0] for i in range(2)]
    assert BOX.barrier(parameters(MEAN, DEVIATION)).item() == pytest.approx(np.mean(means), rel=1e-5)


def test_a_gaussian_is_sampled_as_it_says() -> None:
    """Kolmogorov-Smirnov on 20 000 samples of each coordinate; a p-value below 1e-6 is a failure."""
    noise = BOX.noise(jax.random.key(1), (20_000,))
    drawn = np.asarray(BOX.sample(jnp.broadcast_to(parameters(MEAN, DEVIATION), (20_000, 4)), noise))
    for i in range(2):
        assert stats.kstest(drawn[:, i], stats.norm(MEAN[i], DEVIATION[i]).cdf).pvalue > 1e-6
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 5 / 20_000**0.5


def test_a_box_is_reached_to_its_ends_and_no_further() -> None:
    ends = jnp.array([[-1.0, -1.0], [0.0, 0.5], [1.0, 1.0], [-9.0, 9.0]])
    np.testing.assert_allclose(BOX.to_environment(ends), [[-2, 0], [1, 0.75], [4, 1], [-2, 1]])
    square = Gaussian.on(spaces.Box(0.0, 2.0, (2, 2)))
    assert square.to_environment(jnp.zeros((5, 4))).shape == (5, 2, 2)
    scalar = Gaussian.on(spaces.Box(0.0, 2.0, ()))
    assert scalar.to_environment(jnp.array([0.5])).tolist() == 1.5
    assert scalar.n == 1


def test_deviations_stay_within_bounds() -> None:
    complete = BOX.complete(jnp.zeros((3, 2)), jnp.array([-50.0, 50.0]))
    assert complete.tolist() == [[0.0, 0.0, -4.0, 1.0]] * 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_action_is_of_the_boxs_type_and_inside(dtype: type) -> None:
    box = spaces.Box(np.array([-0.1], dtype), np.array([0.3], dtype), dtype=dtype)
    kept = actions_of(box).space
    assert kept == box
    for number in (-2.0, 0.123, 2.0):
        action = as_played(actions_of(box).to_environment(jnp.array([number])), kept)
        assert action.dtype == dtype
        assert box.contains(action)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (spaces.Box(-np.inf, 1.0, (2,)), "continuous actions need finite bounds, got"),
        (spaces.MultiDiscrete([2, 2]), "actions must be in a Discrete space or a Box, got MultiDiscrete"),
    ],
)
def test_other_actions_are_refused(space: spaces.Space, message: str) -> None:
    with pytest.raises(OcerlError, match=message):
        actions_of(space)
