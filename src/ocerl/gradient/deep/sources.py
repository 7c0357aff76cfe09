"""What a Gymnasium environment tells of itself: its copies side by side, its horizon, and what it pays."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any, final

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import TimeLimit

from ocerl.envs import CompiledEnv
from ocerl.errors import OcerlError
from ocerl.gradient.deep.actions import actions_of
from ocerl.gradient.deep.driver import Task
from ocerl.gradient.deep.following import Range, guessed_range
from ocerl.gradient.deep.lanes import Lanes
from ocerl.gradient.deep.trials import independent_seeds, trial_returns
from ocerl.mdp.checks import check_horizon

AnyEnv = gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]
PILOT_EPISODES, PILOT_LANES = 64, 8


@final
@dataclass(frozen=True)
class Source:
    """Where environments come from.

    >>> Source.of("CartPole-v1").make().spec.id
    'CartPole-v1'
    """

    make: Callable[[], AnyEnv]

    @classmethod
    def of(cls, make: str | Callable[[], AnyEnv], **parameters: Any) -> Source:
        """From a Gymnasium id with parameters, or from a function without arguments.

        The function gives an environment, of which there will be many copies, or a vector environment.
        """
        if isinstance(make, str):
            return cls(partial(_registered, make, parameters))
        if not callable(make):
            raise OcerlError(
                f"an environment is given by its Gymnasium id or by a function that makes one, got {make!r}: "
                "write `lambda: …` around it"
            )
        return cls(partial(make, **parameters))

    def copies(
        self, number: int, horizon: int, mode: AutoresetMode, *, processes: bool = False
    ) -> VectorEnv[Any, Any, Any]:
        """Copies side by side, all of which end at the horizon; a vector environment stays what it is."""
        first = self.make()
        if isinstance(first, VectorEnv):
            return first
        first.close()
        each = [partial(_limited, self.make, horizon)] * number
        if processes:
            # Not by fork, which does not go with JAX's threads.
            return AsyncVectorEnv(each, autoreset_mode=mode, context="spawn")
        return SyncVectorEnv(each, autoreset_mode=mode)


def gymnasium_task(
    source: Source,
    *,
    horizon: int | None = None,
    discount: float | None = None,
    budget_range: Range | None = None,
    seed: int = 0,
) -> Task:
    """What a learner has to know of a Gymnasium environment.

    The horizon is the environment's own, its time limit, or the one that is given; of two the shorter one. The range
    of first budgets is the one given, that of an environment of this package, or a guess from episodes of random
    actions; a guess follows the returns of training (see `ocerl.gradient.deep.following`).

    >>> task = gymnasium_task(Source.of("ocerl/AmericanPut-v0"))
    >>> task.horizon, task.budget_range, task.guessed
    (10, (0.0, 0.99), False)
    """
    environment = source.make()
    if not isinstance(environment, gymnasium.Env | VectorEnv):
        raise OcerlError(f"the function has to make a Gymnasium environment, it made {environment!r}")
    own = environment.unwrapped if isinstance(environment.unwrapped, CompiledEnv) else None
    vector = isinstance(environment, VectorEnv)
    actions = environment.single_action_space if vector else environment.action_space
    observations = environment.single_observation_space if vector else environment.observation_space
    name = environment.spec.id if environment.spec is not None else type(environment.unwrapped).__name__
    horizon = _horizon(name, environment, horizon)
    if discount is None:
        discount = float(getattr(environment.unwrapped, "discount", 1.0))
    if not 0 < discount <= 1:
        raise OcerlError(f"the discount must be in (0, 1], got {discount}")
    environment.close()
    actions_of(actions)
    if own is not None and (own.horizon, own.discount) != (horizon, discount):
        own = None  # what it says of its returns is of another task
    guessed = budget_range is None and own is None
    if guessed:
        budget_range = _pilot(source, horizon, discount, seed)
    elif budget_range is None:
        assert own is not None
        budget_range = own.environment.budget_range
    return Task(
        name=name,
        observation_space=observations,
        action_space=actions,
        horizon=horizon,
        discount=discount,
        budget_range=budget_range,
        return_support=None if own is None else own.environment.return_support,
        guessed=guessed,
    )


def _pilot(source: Source, horizon: int, discount: float, seed: int) -> Range:
    """A range from episodes of random actions."""
    environment = source.copies(PILOT_LANES, horizon, AutoresetMode.DISABLED)
    space = environment.action_space
    space.seed(seed)
    with closing(environment):
        lanes = Lanes(environment, horizon, cycle(independent_seeds((seed, 2), PILOT_EPISODES)))
        return guessed_range(trial_returns(lanes, lambda seen: space.sample(), np.zeros(1), PILOT_EPISODES, discount))


def _horizon(name: str, environment: AnyEnv, given: int | None) -> int:
    if given is not None:
        check_horizon(given)
    known = [limit for limit in (given, *_limits(environment)) if limit is not None]
    if not known:
        raise OcerlError(
            f"{name} has no time limit, and a static risk needs a horizon: give the largest number of steps "
            "of an episode, horizon=… (--horizon H on the command line)"
        )
    return int(min(known))


def _limits(environment: AnyEnv) -> list[int | None]:
    """The largest number of steps of an episode, where the environment or a wrapper says so."""
    if isinstance(environment, VectorEnv):
        base = environment.unwrapped
        spec = base.get_attr("spec")[0] if isinstance(base, SyncVectorEnv | AsyncVectorEnv) else environment.spec
        return [spec.max_episode_steps if spec is not None else None]
    limits = [environment.spec.max_episode_steps if environment.spec is not None else None]
    if isinstance(environment.unwrapped, CompiledEnv):
        limits.append(environment.unwrapped.horizon)
    inner: Any = environment
    while isinstance(inner, gymnasium.Wrapper):
        if isinstance(inner, TimeLimit):
            limits.append(inner._max_episode_steps)  # pyright: ignore[reportPrivateUsage]
        inner = inner.env
    return limits


def _registered(name: str, parameters: dict[str, Any]) -> AnyEnv:
    try:
        return gymnasium.make(name, **{"disable_env_checker": True, **parameters})
    except (gymnasium.error.Error, ImportError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise OcerlError(f"Gymnasium cannot make {name}: {reason}") from error


def _limited(make: Callable[[], AnyEnv], horizon: int) -> Any:
    return TimeLimit(make(), horizon)  # pyright: ignore[reportArgumentType]
