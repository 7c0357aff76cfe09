"""Any `TabularMDP` as an environment: its joint outcomes, drawn in compiled code."""

from __future__ import annotations

from typing import NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ocerl.envs._base import Environment, TimeStep
from ocerl.envs._returns import possible_returns
from ocerl.mdp.tabular import TabularMDP
from ocerl.mdp.transitions import Transitions


class TabularState(NamedTuple):
    step: jax.Array
    state: jax.Array


@final
class TabularEnvironment(Environment[TabularState]):
    """A tabular model as an environment: states and actions are their positions in `states` and `actions`.

    - Reward and next state are drawn jointly, by bisection of the pair's cumulative probabilities, with
      32-bit floats: every probability is kept to within 1.2e-7.
    - An action that a state does not have acts as the state's first one, so all action sets have one size.
      The policies that can be expressed, and so the optimum, stay the same; `pair` says what acts as what.
    - An episode ends at the horizon, or as soon as nothing can be earned or lost any more.

    Its tables are leaves: models of equal sizes, with equally many possible returns, share compiled code.

    >>> from ocerl.mdp.tabular import TabularMDP
    >>> model = TabularMDP.from_outcomes({"now": {"take": [(1.0, "done", 2.0)]}}, horizon=3)
    >>> environment = TabularEnvironment(model)
    >>> state, observation = environment.reset(jax.random.key(0))
    >>> step = environment.step(jax.random.key(1), state, jnp.array(0))
    >>> observation.item(), step.observation.item(), step.reward.item(), step.terminated.item()
    (0, 1, 2.0, True)
    """

    horizon: int = eqx.field(static=True)
    discount: float = eqx.field(static=True)
    pair: jax.Array
    """The row of `outcome_start` for `[step or 0, state, action]`: pairs of all steps, one after another."""
    start: jax.Array
    """The cumulative distribution of the first state."""
    outcome_start: jax.Array
    cumulative: jax.Array
    """For each outcome, the probability of its pair's outcomes up to it."""
    next_state: jax.Array
    reward: jax.Array
    settled: jax.Array
    """For `[step, state]`, whether all that is left is worth 0."""
    _range: NDArray[np.float64]
    _support: NDArray[np.float64] | None
    _halvings: int = eqx.field(static=True)

    def __init__(self, model: TabularMDP) -> None:
        self.horizon, self.discount = model.require_horizon(), model.discount
        steps = model.steps
        outcomes = np.concatenate([np.diff(step.outcome_start) for step in steps])
        self.pair = jnp.asarray(_pair_table(model), dtype=jnp.int32)
        self.start = _numbers(_first_states(model.start))
        self.outcome_start = jnp.asarray(np.concatenate(([0], np.cumsum(outcomes))), dtype=jnp.int32)
        self.cumulative = _numbers(np.concatenate([_cumulative(step) for step in steps]))
        self.next_state = jnp.asarray(np.concatenate([step.next_state for step in steps]))
        self.reward = _numbers(np.concatenate([step.reward for step in steps]))
        low, high = model.remaining_range()
        self.settled = jnp.asarray((low == 0) & (high == 0))
        self._range = np.array(model.return_range())
        self._support = possible_returns(model)
        self._halvings = int(outcomes.max() - 1).bit_length()

    def reset(self, key: jax.Array) -> tuple[TabularState, jax.Array]:
        state = jnp.searchsorted(self.start, jax.random.uniform(key), side="right").astype(jnp.int32)
        return TabularState(jnp.int32(0), state), state

    def step(self, key: jax.Array, state: TabularState, action: jax.Array) -> TimeStep[TabularState]:
        model_of = jnp.minimum(state.step, self.pair.shape[0] - 1)
        outcome = self._draw(key, self.pair[model_of, state.state, action])
        after = TabularState(state.step + 1, self.next_state[outcome])
        terminated = self.settled[after.step, after.state] | (after.step >= self.horizon)
        return TimeStep(after, after.state, self.reward[outcome], terminated)

    def _draw(self, key: jax.Array, pair: jax.Array) -> jax.Array:
        """The first outcome of a pair whose cumulative probability exceeds a uniform draw."""
        drawn = jax.random.uniform(key)
        first, last = self.outcome_start[pair], self.outcome_start[pair + 1] - 1
        for _ in range(self._halvings):
            middle = (first + last) // 2
            beyond = self.cumulative[middle] <= drawn
            first, last = jnp.where(beyond, middle + 1, first), jnp.where(beyond, last, middle)
        return first

    @property
    def observation_space(self) -> spaces.Discrete:
        return spaces.Discrete(self.pair.shape[1])

    @property
    def action_space(self) -> spaces.Discrete:
        return spaces.Discrete(self.pair.shape[2])

    @property
    def return_range(self) -> tuple[float, float]:
        return float(self._range[0]), float(self._range[1])

    @property
    def budget_range(self) -> tuple[float, float]:
        return self.return_range

    @property
    def return_support(self) -> NDArray[np.float64] | None:
        return self._support


def _pair_table(model: TabularMDP) -> NDArray[np.int64]:
    """The pair of every `[step or 0, state, action]`; where a state lacks the action, its first pair."""
    table = np.empty((len(model.steps), model.n_states, model.n_actions), dtype=np.int64)
    before = 0
    for number, step in enumerate(model.steps):
        table[number] = before + step.pair_start[:-1, None]
        table[number, step.pair_state, step.action] = before + np.arange(step.n_pairs)
        before += step.n_pairs
    return table


def _cumulative(step: Transitions) -> NDArray[np.float64]:
    """The cumulative probabilities of each pair's outcomes; the last is above every draw, rounded or not."""
    total = np.cumsum(step.probability)
    before = (total - step.probability)[step.outcome_start[:-1]]
    cumulative = total - np.repeat(before, np.diff(step.outcome_start))
    cumulative[step.outcome_start[1:] - 1] = np.inf
    return cumulative


def _first_states(start: NDArray[np.float64]) -> NDArray[np.float64]:
    """The cumulative distribution of the first state; above every draw from the last possible state on."""
    cumulative = np.cumsum(start)
    cumulative[np.flatnonzero(start)[-1] :] = np.inf
    return cumulative


def _numbers(values: NDArray[np.float64]) -> jax.Array:
    return jnp.asarray(values, dtype=jnp.float32)
