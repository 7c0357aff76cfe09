"""States on disk: every array comes back, random keys as keys."""

from __future__ import annotations

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ocerl.errors import OcerlError
from ocerl.gradient.checkpoint import NAME, Checkpoint
from ocerl.gradient.deep.saving import arrays_of, restored

STATE = {
    "numbers": jnp.array([[1.5, -0.0], [jnp.inf, jnp.nan]]),
    "count": (jnp.int32(7), jnp.array([True, False])),
    "keys": jax.random.split(jax.random.key(3), (2, 3)),
    "static": "stays",
    "nothing": None,
    "empty": jnp.zeros((0, 2)),
}


def _like() -> dict[str, object]:
    return {**STATE, "keys": jax.random.split(jax.random.key(0), (2, 3))}


def test_a_round_trip_through_a_file(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, {"tau": 0.25})
    checkpoint.save(arrays_of(STATE), {"update": np.array([0, 5])})
    arrays, history = checkpoint.load()
    found = restored(_like(), arrays)
    assert found["static"] == "stays"
    assert jax.random.key_data(found["keys"]).tolist() == jax.random.key_data(STATE["keys"]).tolist()
    draw = jax.vmap(jax.vmap(jax.random.uniform))
    assert draw(found["keys"]).tolist() == draw(STATE["keys"]).tolist()
    for name in ("numbers", "count", "empty"):
        same = jax.tree.map(lambda a, b: np.asarray(a).tobytes() == np.asarray(b).tobytes(), found[name], STATE[name])
        assert jax.tree.all(same)
        assert eqx.filter(found[name], eqx.is_array) is not None
    assert history["update"].tolist() == [0, 5]
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.popitem(),
        lambda arrays: arrays.update({"0": arrays["0"].astype(np.float64)}),
        lambda arrays: arrays.update({"1": np.zeros(3, dtype=bool)}),
    ],
)
def test_arrays_of_something_else_are_refused(change: object) -> None:
    arrays = arrays_of(STATE)
    change(arrays)  # pyright: ignore
    with pytest.raises(OcerlError, match="the checkpoint does not belong to this run"):
        restored(_like(), arrays)


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9])
def test_a_damaged_file_is_one_line(tmp_path: Path, part: float) -> None:
    checkpoint = Checkpoint(tmp_path, {})
    checkpoint.save(arrays_of(STATE), {})
    whole = (tmp_path / NAME).read_bytes()
    (tmp_path / NAME).write_bytes(whole[: int(part * len(whole))])
    with pytest.raises(OcerlError, match="is not a checkpoint") as told:
        checkpoint.load()
    assert "\n" not in str(told.value)


def test_other_settings_are_named(tmp_path: Path) -> None:
    Checkpoint(tmp_path, {"steps": 100, "tau": 0.5}).save({}, {})
    with pytest.raises(OcerlError, match="has steps 100, not 200: resume it as it was begun"):
        Checkpoint(tmp_path, {"steps": 200, "tau": 0.5}).load()
