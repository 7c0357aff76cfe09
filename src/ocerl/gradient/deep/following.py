r"""First budgets whose range is a guess, and follows the returns that training meets.

A Gymnasium environment does not tell its returns. The first guess comes from episodes of random actions, widened;
a trained policy may earn far more. So **when a batch has returns near the upper end or beyond the lower one, the range
grows towards that side by half its span**, once in a batch: a single freak return costs a factor of 1.5, and lasting
ones are caught up with in a few batches, as the growth is geometric. (Doubling overshoots more: where returns are at
most 0, half of the first budgets would soon be above.) The range never shrinks.

*Near* and not beyond, because a utility that is flat above the budget, such as that of CVaR, asks for no more than the
first budget: a policy that always earns what it is asked for never gets beyond the range, and would stay there.

The knots at which the networks see a budget follow. New knots give the inputs a new meaning, and a network that knows
nothing of it would forget what it learned. But as a piecewise linear function of the budget enters the first layer
linearly, the same function on other knots has weights

.. math:: w'_j = \sum_k \mathrm{hat}_k(x'_j)\, w_k,

which `carried` puts in their place. What was learned is kept, and beyond the old ends it goes on as it was there.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ocerl.gradient.deep.agent import Agent
from ocerl.gradient.deep.inputs import Inputs, hats
from ocerl.gradient.deep.networks import Dense

Range = tuple[float, float]
AHEAD = 1 / 8
"""The part of its span by which the upper end of the range stays ahead of the returns."""


def guessed_range(returns: NDArray[np.floating]) -> Range:
    """The range of some returns, widened on both sides by half its span, or by something positive.

    >>> guessed_range(np.array([1.0, 3.0])), guessed_range(np.array([-200.0])), guessed_range(np.array([0.0]))
    ((0.0, 4.0), (-300.0, -100.0), (-0.5, 0.5))
    """
    finite = returns[np.isfinite(returns)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    more = (high - low) / 2 or abs(high) / 2 or 0.5
    return low - more, high + more


def followed(budgets: Range, returns: NDArray[np.floating]) -> Range:
    """The range, grown by half its span towards a side that the returns have come to.

    >>> followed((0.0, 4.0), np.array([0.0, 3.4])), followed((0.0, 4.0), np.array([-1.0, 3.6]))
    ((0.0, 4.0), (-2.0, 6.0))
    """
    low, high = budgets
    span = high - low
    below, above = bool((returns < low).any()), bool((returns > high - AHEAD * span).any())
    return low - span / 2 * below, high + span / 2 * above


def carried(agent: Agent, inputs: Inputs, knots: NDArray[np.floating]) -> tuple[Agent, Inputs]:
    """An agent and its inputs on other knots, with the same answers (as far as these knots can tell them)."""
    new = jnp.asarray(knots, dtype=inputs.budget_knots.dtype)
    if not inputs.hide_budget:
        deep = bool(agent.actor.body.hidden)

        def first_layers(agent: Agent) -> list[Dense]:
            return [body.hidden[0] if deep else body.last for body in (agent.actor.body, agent.critic.body)]

        agent = eqx.tree_at(first_layers, agent, [_on_knots(layer, inputs, new) for layer in first_layers(agent)])
    return agent, eqx.tree_at(lambda inputs: inputs.budget_knots, inputs, new)


def _on_knots(layer: Dense, inputs: Inputs, new: jax.Array) -> Dense:
    old = inputs.budget_knots
    begin = len(inputs.groups) + len(inputs.time_knots)
    end = begin + old.size
    # The number beside the hats is scaled to [-1, 1] over the knots: old = stretch · new + shift.
    stretch = (new[-1] - new[0]) / (old[-1] - old[0])
    shift = (new[-1] + new[0] - old[-1] - old[0]) / (old[-1] - old[0])
    number = layer.weight[:, end]
    weight = layer.weight.at[:, begin:end].set(layer.weight[:, begin:end] @ hats(new, old).T)
    weight = weight.at[:, end].set(stretch * number)
    return eqx.tree_at(lambda layer: (layer.weight, layer.bias), layer, (weight, layer.bias + shift * number))
