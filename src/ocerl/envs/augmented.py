r"""The budget-augmented environment (Section 2.1): state :math:`(s, b)`, and a pay-off instead of rewards.

A risk-neutral learner that maximises the expected sum of pay-offs from every first budget, followed by the
choice of the first budget, maximises the risk. The budget arithmetic is that of `ocerl.mdp.augmentation`.

Deviation from the paper, where :math:`u(-b_{H+1})` is paid at the end: by default the pay-off is dense,
:math:`u(-b_{h+1}) - u(-b_h)` in every step, which has the same sum but for a constant of the first budget.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Generic, NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ocerl.envs._base import Environment, Number, StateT
from ocerl.errors import OcerlError
from ocerl.mdp.augmentation import dense_payoff, next_budget, terminal_utility
from ocerl.risk import Risk, parse_risk


class AugmentedState(NamedTuple, Generic[StateT]):
    inner: StateT
    budget: jax.Array


class AugmentedObservation(NamedTuple):
    """What a budget policy may look at; how the three become features is the learner's choice."""

    observation: jax.Array
    step: jax.Array
    budget: jax.Array


class AugmentedStep(NamedTuple, Generic[StateT]):
    """What a step brings."""

    state: AugmentedState[StateT]
    observation: AugmentedObservation
    payoff: jax.Array
    """What a learner maximises."""
    reward: jax.Array
    """What the environment paid."""
    budget: jax.Array
    """The budget after the reward: of the ended episode, also where `step_or_reset` began another."""
    terminated: jax.Array


@final
class UniformBudget(eqx.Module):
    """First budgets uniform between two numbers."""

    low: Number = eqx.field(converter=jnp.float32)
    high: Number = eqx.field(converter=jnp.float32)

    def __call__(self, key: jax.Array) -> jax.Array:
        return jax.random.uniform(key, dtype=jnp.float32, minval=self.low, maxval=self.high)


@final
class BudgetAmong(eqx.Module):
    """First budgets drawn from a list, each as likely as any other; a list of one fixes the budget."""

    budgets: jax.Array = eqx.field(converter=lambda budgets: jnp.asarray(budgets, dtype=jnp.float32))

    def __call__(self, key: jax.Array) -> jax.Array:
        return jax.random.choice(key, self.budgets)


@final
class SpreadBudget(eqx.Module):
    """First budgets between two numbers, even between knots: where knots are dense, so are the budgets."""

    knots: jax.Array = eqx.field(converter=lambda knots: jnp.asarray(knots, dtype=jnp.float32))
    low: Number = eqx.field(converter=jnp.float32)
    high: Number = eqx.field(converter=jnp.float32)

    def __call__(self, key: jax.Array) -> jax.Array:
        place = jnp.arange(self.knots.size, dtype=jnp.float32)
        low, high = (jnp.interp(end, self.knots, place) for end in (self.low, self.high))
        return jnp.interp(jax.random.uniform(key, minval=low, maxval=high), place, self.knots)


FirstBudget = UniformBudget | BudgetAmong | SpreadBudget


def first_budgets(environment: Environment[Any], risk: Risk) -> FirstBudget:
    """Unif(B) (Algorithm 2): over the possible returns where one of them is optimal, else over a range.

    The best first budget of a utility with a single kink (CVaR, mean-CVaR) is a return; that of a smooth one
    (entropic, mean-variance) lies anywhere between the returns.
    """
    if environment.return_support is not None and risk.slopes is not None:
        return BudgetAmong(environment.return_support)
    return UniformBudget(*environment.budget_range)


@final
class AugmentedEnvironment(eqx.Module, Generic[StateT]):
    """An environment whose state carries the budget, for a risk.

    `reset` draws the first budget, or takes one. The risk's numbers are leaves: a new τ is no new trace.

    >>> from ocerl.envs import BettingGame
    >>> game = AugmentedEnvironment(BettingGame(), "cvar:0.25")
    >>> state, observation = game.reset(jax.random.key(0), budget=0.5)
    >>> game.step(jax.random.key(1), state, jnp.array(0)).payoff.item()
    0.0
    """

    environment: Environment[StateT]
    first_budget: FirstBudget
    _risk: _TracedRisk
    dense: bool = eqx.field(static=True)

    def __init__(
        self,
        environment: Environment[StateT],
        risk: Risk | str,
        *,
        first_budget: FirstBudget | None = None,
        dense: bool = True,
    ) -> None:
        risk = parse_risk(risk)
        self.environment = environment
        self.first_budget = first_budgets(environment, risk) if first_budget is None else first_budget
        self._risk = _traced(risk)
        self.dense = dense

    @property
    def horizon(self) -> int:
        return self.environment.horizon

    @property
    def risk(self) -> Risk:
        """The risk, with arrays for parameters: for its utility inside compiled code."""
        return self._risk.risk

    def reset(
        self, key: jax.Array, budget: ArrayLike | jax.Array | None = None
    ) -> tuple[AugmentedState[StateT], AugmentedObservation]:
        """The start of an episode, from a budget that is given or drawn."""
        draw, key = jax.random.split(key)
        first = self.first_budget(draw) if budget is None else jnp.asarray(budget, dtype=jnp.float32)
        inner, observation = self.environment.reset(key)
        return AugmentedState(inner, first), AugmentedObservation(observation, inner.step, first)

    def step(self, key: jax.Array, state: AugmentedState[StateT], action: jax.Array) -> AugmentedStep[StateT]:
        """Take an action: the environment's step, the next budget and the pay-off."""
        inner, observation, reward, terminated = self.environment.step(key, state.inner, action)
        budget = next_budget(state.budget, reward, state.inner.step, self.environment.discount)
        if self.dense:
            payoff = dense_payoff(self.risk, state.budget, budget)
        else:
            payoff = jnp.where(terminated, terminal_utility(self.risk, budget), 0.0)
        return AugmentedStep(
            state=AugmentedState(inner, budget),
            observation=AugmentedObservation(observation, inner.step, budget),
            payoff=payoff,
            reward=reward,
            budget=budget,
            terminated=terminated,
        )

    def step_or_reset(self, key: jax.Array, state: AugmentedState[StateT], action: jax.Array) -> AugmentedStep[StateT]:
        """As `step`, but where the episode ended, `state` and `observation` are the start of the next one.

        `payoff`, `reward`, `budget` and `terminated` still tell of the step that was taken. The last
        observation is dropped: an episode has truly ended, so no value is bootstrapped from it.
        """
        step_key, reset_key = jax.random.split(key)
        taken = self.step(step_key, state, action)
        fresh = self.reset(reset_key)
        state, observation = jax.tree.map(
            lambda new, old: jnp.where(taken.terminated, new, old), fresh, (taken.state, taken.observation)
        )
        return taken._replace(state=state, observation=observation)


@final
class _TracedRisk(eqx.Module):
    """A risk, taken apart into numbers to trace and the rest."""

    kind: type[Risk] = eqx.field(static=True)
    numbers: dict[str, jax.Array]
    rest: tuple[tuple[str, Any], ...] = eqx.field(static=True)

    @property
    def risk(self) -> Risk:
        # Not through __init__: it checks its parameters, and a traced number has no value to check.
        risk = object.__new__(self.kind)
        for name, value in (*self.numbers.items(), *self.rest):
            object.__setattr__(risk, name, value)
        return risk


def _traced(risk: Risk) -> _TracedRisk:
    values = {field.name: getattr(risk, field.name) for field in fields(risk)}  # pyright: ignore[reportArgumentType]
    numbers = {name: jnp.float32(value) for name, value in values.items() if isinstance(value, float)}
    rest = tuple((name, value) for name, value in values.items() if name not in numbers)
    try:
        jax.eval_shape(risk.utility, jax.ShapeDtypeStruct((), np.float32))
    except Exception as error:
        raise OcerlError(
            f"the utility of {risk.name} cannot be compiled, write it with jax.numpy: {type(error).__name__}"
        ) from error
    return _TracedRisk(type(risk), numbers, rest)
