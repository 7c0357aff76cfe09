"""Discrete distributions: from a user's values and weights to a sorted support, and its quantiles."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ocerl.errors import OcerlError

FloatArray: TypeAlias = npt.NDArray[np.float64]


def sorted_distribution(
    values: npt.ArrayLike, probabilities: npt.ArrayLike | None = None
) -> tuple[FloatArray, FloatArray]:
    """The support in increasing order, without null atoms, and its probabilities, which sum to 1.

    >>> sorted_distribution([3, 1, 2], [1, 2, 0])
    (array([1., 3.]), array([0.66666667, 0.33333333]))
    """
    support = _finite_vector("values", values)
    if support.size == 0:
        raise OcerlError("values are empty: a distribution needs at least one value")
    if probabilities is None:
        return np.sort(support), np.full(support.size, 1.0 / support.size)
    weights = _finite_vector("probabilities", probabilities)
    if weights.size != support.size:
        raise OcerlError(f"values and probabilities must have one length, got {support.size} and {weights.size}")
    if weights.min() < 0:
        worst = int(weights.argmin())
        raise OcerlError(f"probabilities[{worst}] is {weights[worst]}: probabilities must not be negative")
    largest = weights.max()
    if largest == 0:
        raise OcerlError("probabilities sum to 0: at least one must be positive")
    weights = weights / largest  # so that the sum cannot overflow
    weights = weights / weights.sum()
    order = np.argsort(support, kind="stable")
    order = order[weights[order] > 0]
    return support[order], weights[order]


def lower_quantile(support: FloatArray, probabilities: FloatArray, tau: float) -> float:
    """`F†(τ) = inf{x : F(x) >= τ}` of a sorted distribution, right at atoms.

    Sums of n probabilities carry a relative rounding error of up to n·ε, so F counts as having reached τ when
    it is within that of τ (at least 1e-12, for probabilities that were computed): ten times 0.1 reaches 0.3
    with the third.

    >>> lower_quantile(np.arange(10.0), np.full(10, 0.1), 0.3)
    2.0
    """
    slack = max(1e-12, support.size * float(np.finfo(float).eps))
    index = int(np.searchsorted(np.cumsum(probabilities), tau * (1 - slack)))
    return float(support[min(index, support.size - 1)])


def _finite_vector(what: str, numbers: npt.ArrayLike) -> FloatArray:
    try:
        vector = np.asarray(numbers, dtype=float)
    except (TypeError, ValueError) as error:
        raise OcerlError(f"{what} must be numbers: {error}") from error
    if vector.ndim != 1:
        raise OcerlError(f"{what} must be a one-dimensional sequence, got an array of shape {vector.shape}")
    if not np.isfinite(vector).all():
        where = int(np.flatnonzero(~np.isfinite(vector))[0])
        raise OcerlError(f"{what}[{where}] is {vector[where]}: {what} must be finite")
    return vector
