"""Models from Gymnasium environments that carry their table, `P[s][a] = [(p, s', r, terminated), …]`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ocerl.errors import OcerlError
from ocerl.mdp.tabular import Label, Outcome, TabularMDP

if TYPE_CHECKING:
    import gymnasium

END = "end"
"""The name of the state that every terminated episode ends in, and that pays nothing."""


def from_gymnasium(
    environment: str | gymnasium.Env[Any, Any],
    *,
    horizon: int | None = None,
    discount: float = 1.0,
    start: Label | Mapping[Label, float] | None = None,
    **make_arguments: Any,
) -> TabularMDP:
    """The model behind a Gymnasium environment that has a table (FrozenLake, Taxi, CliffWalking, …).

    - `environment` is an id, made with `make_arguments`, or an environment. Its table is read from the
      innermost environment: wrappers that change rewards or actions are not seen.
    - An outcome that terminates leads to a state `"end"`, whatever its `s'`: nothing is earned afterwards.
    - The horizon is the environment's time limit unless given: for a risk of the total reward, the time limit
      is the end of the episode, not a truncation.
    - The start is the environment's own distribution (`initial_state_distrib`) unless given.

    >>> lake = from_gymnasium("FrozenLake-v1", is_slippery=False)
    >>> lake.n_states, lake.horizon, lake.return_range()
    (17, 100, (0.0, 1.0))
    """
    if isinstance(environment, str):
        made = _make(environment, make_arguments)
        try:
            return from_gymnasium(made, horizon=horizon, discount=discount, start=start)
        finally:
            made.close()
    if make_arguments:
        given = ", ".join(make_arguments)
        raise OcerlError(f"{given}: arguments of an environment go with its id, this one is already made")
    name = environment.spec.id if environment.spec else type(environment.unwrapped).__name__
    outcomes = _outcomes(_table(environment.unwrapped, name), name)
    limit = environment.spec.max_episode_steps if environment.spec else None
    if horizon is None and limit is None:
        raise OcerlError(f"{name} has no time limit: give a horizon (horizon=…, --horizon on the command line)")
    return TabularMDP.from_outcomes(
        outcomes,
        start=_start(environment.unwrapped, name) if start is None else start,
        horizon=limit if horizon is None else horizon,
        discount=discount,
        name=name,
    )


def _make(name: str, arguments: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    import gymnasium

    try:
        with warnings.catch_warnings():
            # What Gymnasium warns of (an old version, …) it also raises, where it stops us.
            warnings.simplefilter("ignore")
            return gymnasium.make(name, **arguments)
    except (gymnasium.error.Error, ImportError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise OcerlError(f"Gymnasium cannot make {name!r}: {reason}") from None


def _table(environment: gymnasium.Env[Any, Any], name: str) -> Any:
    table = getattr(environment, "P", None)
    if not isinstance(table, Mapping | Sequence) or not table:
        raise OcerlError(
            f"{name} has no table of its transitions (env.unwrapped.P), so it cannot be planned in; "
            f"FrozenLake-v1, Taxi-v4 and CliffWalking-v1 have one"
        )
    if getattr(environment, "fickle_passenger", False):
        raise OcerlError(f"{name} with fickle_passenger moves otherwise than its table says: switch it off")
    return table


def _outcomes(table: Any, name: str) -> dict[Label, dict[Label, list[Outcome]]]:
    try:
        return {
            int(state): {
                int(action): [
                    (float(probability), END if terminated else int(next_state), float(reward))
                    for probability, next_state, reward, terminated in outcomes
                ]
                for action, outcomes in _items(by_action)
            }
            for state, by_action in _items(table)
        }
    except (TypeError, ValueError) as error:
        raise OcerlError(f"the table of {name} is not P[s][a] = [(p, s', r, terminated), …]: {error}") from None


def _items(table: Any) -> Iterable[tuple[Any, Any]]:
    return table.items() if isinstance(table, Mapping) else enumerate(table)


def _start(environment: gymnasium.Env[Any, Any], name: str) -> Mapping[Label, float]:
    """The distribution of the first state, as the environment states it or as its resets agree on one."""
    stated = getattr(environment, "initial_state_distrib", None)
    if stated is not None:
        return {state: float(p) for state, p in enumerate(np.asarray(stated)) if p > 0}
    seen = {int(environment.reset(seed=seed)[0]) for seed in range(64)}
    if len(seen) > 1:
        raise OcerlError(f"{name} starts at random and does not say how: give start={{state: probability}}")
    return dict.fromkeys(seen, 1.0)
