"""Deep runs on disk: every array of a state by its place in the tree, random keys as their words."""

from __future__ import annotations

from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError

Tree = TypeVar("Tree")


def arrays_of(tree: Any) -> dict[str, NDArray[Any]]:
    """The arrays of a tree.

    >>> arrays_of((jnp.arange(2), "static", {"key": jax.random.key(7)}))
    {'0': array([0, 1], dtype=int32), '1': array([0, 7], dtype=uint32)}
    """
    leaves = jax.tree.leaves(eqx.filter(tree, eqx.is_array))
    return {str(number): np.asarray(_words(leaf)) for number, leaf in enumerate(leaves)}


def restored(blank: Tree, arrays: dict[str, NDArray[Any]]) -> Tree:
    """The tree with these arrays in place of its own."""
    held, rest = eqx.partition(blank, eqx.is_array)
    leaves, structure = jax.tree.flatten(held)
    try:
        new = [_like(leaf, arrays[str(number)]) for number, leaf in enumerate(leaves)]
    except (KeyError, ValueError) as error:
        raise OcerlError(f"the checkpoint does not belong to this run ({type(error).__name__}: {error})") from error
    return eqx.combine(jax.tree.unflatten(structure, new), rest)


def _words(leaf: jax.Array) -> jax.Array:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _like(leaf: jax.Array, stored: NDArray[Any]) -> jax.Array:
    wanted = _words(leaf)
    if stored.shape != wanted.shape or stored.dtype != wanted.dtype:
        raise ValueError(f"{stored.dtype} {stored.shape} in place of {wanted.dtype} {wanted.shape}")
    return jax.random.wrap_key_data(jnp.asarray(stored)) if _is_key(leaf) else jnp.asarray(stored)


def _is_key(leaf: jax.Array) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
