"""Many episodes of a policy at once, and what they are checked by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from numpy.typing import ArrayLike

from ocerl.envs.augmented import AugmentedEnvironment, AugmentedObservation, AugmentedState
from ocerl.mdp.augmentation import terminal_utility

PolicyFunction = Callable[[jax.Array, AugmentedObservation], jax.Array]
"""An action from a key and an observation: a function, or an Equinox module, whose weights are traced."""


class Episodes(NamedTuple):
    """Episodes as arrays `[episodes, horizon, …]`; steps after the end are not `active` and pay nothing."""

    observation: AugmentedObservation
    """Before the action."""
    action: jax.Array
    payoff: jax.Array
    reward: jax.Array
    terminated: jax.Array
    active: jax.Array
    first_budget: jax.Array
    """`[episodes]`"""
    final_budget: jax.Array
    """`[episodes]`"""

    def returns(self, discount: float = 1.0) -> jax.Array:
        r"""The returns :math:`\sum_h \gamma^h r_h`, from the rewards (not from the budgets)."""
        return self.reward @ discount ** jnp.arange(self.reward.shape[1])


@eqx.filter_jit
def rollout(
    environment: AugmentedEnvironment[Any],
    policy: PolicyFunction,
    key: jax.Array,
    episodes: int,
    budget: ArrayLike | jax.Array | None = None,
) -> Episodes:
    """Play episodes, each from a first budget of its own or from the one given, and keep every step.

    >>> from ocerl.envs import BettingGame
    >>> game = AugmentedEnvironment(BettingGame(), "cvar:0.25")
    >>> def all_in(key, observation):
    ...     return jnp.array(8)
    >>> played = rollout(game, all_in, jax.random.key(0), 100)
    >>> sorted(set(played.returns().tolist()))
    [-0.0625, 0.9375]
    """

    def episode(key: jax.Array) -> Episodes:
        reset_key, key = jax.random.split(key)
        state, observation = environment.reset(reset_key, budget)

        def move(carry: Any, key: jax.Array) -> tuple[Any, Any]:
            state, observation, active = carry
            policy_key, step_key = jax.random.split(key)
            action = policy(policy_key, observation)
            taken = environment.step(step_key, state, action)
            after = _where(active, taken.state, state)
            pays = (jnp.where(active, pay, 0.0) for pay in (taken.payoff, taken.reward))
            record = (observation, action, *pays, taken.terminated & active, active)
            return (after, taken.observation, active & ~taken.terminated), record

        carry = (state, observation, jnp.bool_(True))
        (end, _, _), record = lax.scan(move, carry, jax.random.split(key, environment.horizon))
        return Episodes(*record, first_budget=state.budget, final_budget=end.budget)

    return jax.vmap(episode)(jax.random.split(key, episodes))


@eqx.filter_jit
def sample_returns(
    environment: AugmentedEnvironment[Any],
    policy: PolicyFunction,
    key: jax.Array,
    episodes: int,
    budget: ArrayLike | jax.Array | None = None,
    *,
    batch: int = 8192,
) -> jax.Array:
    """The returns of episodes, a batch at a time and no longer than its longest: for evaluation.

    >>> from ocerl.envs import BettingGame
    >>> game = AugmentedEnvironment(BettingGame(), "mean")
    >>> def careful(key, observation):
    ...     return jnp.array(0)
    >>> sample_returns(game, careful, jax.random.key(0), 3).tolist()
    [0.0, 0.0, 0.0]
    """
    discount = environment.environment.discount

    def episode(key: jax.Array) -> jax.Array:
        reset_key, key = jax.random.split(key)
        state, observation = environment.reset(reset_key, budget)

        def move(carry: Any) -> Any:
            key, state, observation, earned, _ = carry
            key, policy_key, step_key = jax.random.split(key, 3)
            taken = environment.step(step_key, state, policy(policy_key, observation))
            earned += discount**state.inner.step * taken.reward
            return key, taken.state, taken.observation, earned, taken.terminated

        start = (key, state, observation, jnp.float32(0.0), jnp.bool_(False))
        return lax.while_loop(lambda carry: ~carry[-1], move, start)[3]

    return lax.map(episode, jax.random.split(key, episodes), batch_size=batch)


@final
class RandomPolicy(eqx.Module):
    """Actions uniform over a discrete action space."""

    actions: int = eqx.field(static=True)

    def __call__(self, key: jax.Array, observation: AugmentedObservation) -> jax.Array:
        return jax.random.randint(key, (), 0, self.actions)


def telescoping_error(environment: AugmentedEnvironment[Any], episodes: Episodes) -> jax.Array:
    r"""How far pay-offs and budgets are from what the rewards alone say, in the worst episode.

    The returns :math:`Z = \sum_h \gamma^h r_h` are summed up from the rewards. Dense pay-offs have to sum to
    :math:`u(Z - b_1) - u(-b_1)`, a terminal one has to be :math:`u(Z - b_1)`, and :math:`b_1 - b_{H+1} = Z`.
    Beyond rounding, any difference is a wrong budget.

    >>> from ocerl.envs import AmericanPut
    >>> put = AugmentedEnvironment(AmericanPut(), "cvar:0.2")
    >>> played = rollout(put, RandomPolicy(2), jax.random.key(0), 100)
    >>> telescoping_error(put, played).item() < 1e-5
    True
    """
    earned = episodes.returns(environment.environment.discount)
    expected = terminal_utility(environment.risk, episodes.first_budget - earned)
    if environment.dense:
        expected -= terminal_utility(environment.risk, episodes.first_budget)
    of_payoffs = jnp.abs(episodes.payoff.sum(axis=1) - expected)
    of_budgets = jnp.abs(episodes.first_budget - episodes.final_budget - earned)
    return jnp.maximum(of_payoffs, of_budgets).max()


def _where(condition: jax.Array, new: AugmentedState[Any], old: AugmentedState[Any]) -> AugmentedState[Any]:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)
