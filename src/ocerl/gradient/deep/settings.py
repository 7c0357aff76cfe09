"""The settings of a run where none are given: they depend on where episodes are played."""

from __future__ import annotations

from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from ocerl.errors import OcerlError
from ocerl.gradient.deep.actions import actions_of
from ocerl.gradient.deep.config import DeepConfig
from ocerl.gradient.deep.world import World

APPENDIX_C: dict[str, Any] = {
    "steps": 8000 * 256,
    "environments": 64,
    "group": 1,
    "learning_rate": 5e-3,
    "epochs": 4,
    "minibatches": 1,
    "barrier": 0.1,
    "kl_weight": 0.1,
}
"""For tabular models of few budgets: the paper's settings, with batches of 256 steps for its two-step MDP."""

SIMULATOR: dict[str, Any] = {"steps": 6_000_000}
GYMNASIUM: dict[str, Any] = {
    "steps": 500_000,
    "environments": 16,
    "group": 1,
    "rollout": 128,
    "epochs": 10,
    "minibatches": 8,
    "gae_lambda": 0.9,
    "kl_weight": 1.0,
    "kl_target": 0.02,
}
"""For Gymnasium's environments, which are slow: small batches, used often."""


def settings_for(world: World, given: dict[str, Any]) -> DeepConfig:
    """The settings given, completed.

    >>> from ocerl.gradient.deep.world import open_world
    >>> settings_for(open_world("paper"), {}).batch, settings_for(open_world("guarded-maze"), {}).batch
    (256, 16384)
    """
    names = [field.name for field in fields(DeepConfig)]
    for name in given:
        if name not in names:
            close = get_close_matches(name, names, n=1)
            raise OcerlError(
                f"there is no setting {name!r}" + (f", did you mean {close[0]}?" if close else f"; there are {names}")
            )
    horizon = world.task.horizon
    base: dict[str, Any]
    if world.model is not None:
        base = {**APPENDIX_C, "rollout": min(64, 2 * horizon)}
    elif world.compiled:
        base = {**SIMULATOR, "rollout": min(64, 4 * horizon)}
    else:
        base = GYMNASIUM | ({"barrier": 0.0} if actions_of(world.task.action_space).continuous else {})
    chosen = {name: value for name, value in given.items() if value is not None}
    if not world.compiled and chosen.get("group", 1) != 1:
        raise OcerlError("Gymnasium's environments have no chance in common: group has to be 1")
    return DeepConfig(**{**base, **chosen})
