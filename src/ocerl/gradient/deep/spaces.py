"""Observation and action spaces as plain JSON, so that a policy loads without executing anything."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from ocerl.errors import OcerlError


def to_json(space: Any) -> dict[str, Any]:
    """A space as JSON.

    >>> to_json(spaces.Discrete(3, start=1))
    {'kind': 'Discrete', 'n': 3, 'start': 1}
    """
    if isinstance(space, spaces.Discrete):
        return {"kind": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        return {"kind": "MultiDiscrete", "nvec": space.nvec.tolist(), "start": space.start.tolist()}
    if isinstance(space, spaces.MultiBinary):
        return {"kind": "MultiBinary", "shape": list(space.shape)}
    if isinstance(space, spaces.Box):
        bounds = {name: _bound(np.asarray(getattr(space, name))) for name in ("low", "high")}
        return {"kind": "Box", "shape": list(space.shape), "dtype": str(space.dtype), **bounds}
    if isinstance(space, spaces.Dict):
        return {"kind": "Dict", "parts": [[name, to_json(part)] for name, part in space.spaces.items()]}
    if isinstance(space, spaces.Tuple):
        return {"kind": "Tuple", "parts": [to_json(part) for part in space.spaces]}
    raise OcerlError(f"a policy on {space} cannot be saved")


def from_json(about: Any) -> Any:
    """The space that `to_json` described.

    >>> from_json(to_json(spaces.Box(0.0, 1.0, (2,))))
    Box(0.0, 1.0, (2,), float32)
    """
    match about["kind"]:
        case "Discrete":
            return spaces.Discrete(about["n"], start=about["start"])
        case "MultiDiscrete":
            return spaces.MultiDiscrete(np.array(about["nvec"]), start=np.array(about["start"]))
        case "MultiBinary":
            return spaces.MultiBinary(about["shape"])
        case "Box":
            shape, dtype = tuple(about["shape"]), np.dtype(about["dtype"])
            low, high = (np.broadcast_to(np.array(about[name], dtype), shape).copy() for name in ("low", "high"))
            return spaces.Box(low, high, shape, dtype.type)
        case "Dict":
            return spaces.Dict([(name, from_json(part)) for name, part in about["parts"]])
        case "Tuple":
            return spaces.Tuple([from_json(part) for part in about["parts"]])
        case kind:
            raise OcerlError(f"there is no space of the kind {kind!r}")


def _bound(values: np.ndarray[Any, Any]) -> Any:
    """One number where all are the same; infinities as text, which JSON has no number for."""
    if values.size and (values == values.flat[0]).all():
        only = values.flat[0].item()
        return str(only) if not np.isfinite(only) else only
    return [_bound(row) for row in values] if values.ndim > 1 else [_bound(np.array([value])) for value in values]
