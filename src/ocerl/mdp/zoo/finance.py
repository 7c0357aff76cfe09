"""When to exercise an option."""

from __future__ import annotations

from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.checks import check_horizon, check_number, check_whole
from ocerl.mdp.tabular import TabularMDP, start_distribution
from ocerl.mdp.transitions import Transitions

REACH = 5.0
"""The grid spans so many standard deviations of the final log-price to either side."""


def american_put(
    *,
    levels: int = 201,
    horizon: int = 10,
    drift: float = -0.3,
    volatility: float = 0.3,
    time_step: float = 0.1,
    discount: float = 0.99,
) -> TabularMDP:
    r"""An American put at the money on a geometric Brownian motion: go on, or stop for `max(1 - S, 0)`.

    The price starts at 1. There are `horizon` decisions, the last of which can only stop. Between two of them

    .. math:: \log S' = \log S + (\mu - \sigma^2 / 2)\,\Delta t + \sigma \sqrt{\Delta t}\, N(0, 1).

    The log-price is quantised to `levels` evenly spaced values, 0 among them, and the normal increment to a
    *discrete* normal on that grid, `p(k) ∝ exp(-(k·spacing - mean)² / (2·variance))`. With a spacing of at
    most one standard deviation (fewer levels are refused), its mean and variance are those of the normal to a
    millionth (by Poisson summation): the grid adds no variance. What passes the grid's ends, a probability of
    about 1e-6, stays there. What is left is the error of stopping at the prices of the grid only.

    Known for the continuous price, at discount .99: mean .2369; CVaR_.6 .1396, CVaR_.5 .1169, CVaR_.2 .0452,
    CVaR_.1 .0153 (by another discretisation). On this grid, by optimal stopping for each first budget:

    ======  =====  ========  ========  ========  ========
    levels  mean   CVaR_.6   CVaR_.5   CVaR_.2   CVaR_.1
    ======  =====  ========  ========  ========  ========
    51      .2367  .1403     .1185     .0501     .0214
    201     .2369  .1393     .1168     .0448     .0158
    801     .2369  .1393     .1168     .0444     .0152
    ======  =====  ========  ========  ========  ========

    A coarse grid overstates the small levels; what it tends to is within .0008 of the figures above.
    """
    check_whole("the number of price levels", levels, least=2)
    check_horizon(horizon)
    check_number("the drift", drift)
    check_number("the volatility", volatility, above=0.0)
    check_number("the time step", time_step, above=0.0)
    mean, deviation = (drift - volatility**2 / 2) * time_step, volatility * sqrt(time_step)
    position, spacing = _grid(levels, horizon, mean, deviation)
    price = np.exp(position * spacing)
    reach = ceil((6 * deviation + abs(mean)) / spacing)
    move = np.arange(-reach, reach + 1)
    weight = np.exp(-0.5 * ((move * spacing - mean) / deviation) ** 2)
    level = np.arange(levels)
    stop = (
        level,
        np.zeros(levels, int),
        np.full(levels, levels),
        np.ones(levels),
        np.maximum(1.0 - price, 0.0),
    )
    after = (level[:, np.newaxis] + move).clip(0, levels - 1)
    go_on = (
        np.repeat(level, move.size),
        np.ones(after.size, int),
        after.ravel(),
        np.tile(weight / weight.sum(), levels),
        np.zeros(after.size),
    )
    either = [np.concatenate(columns) for columns in zip(stop, go_on, strict=True)]
    choice, last = Transitions.from_rows(levels + 1, *either), Transitions.from_rows(levels + 1, *stop)
    states = (*price.round(6).tolist(), "end")
    return TabularMDP(
        steps=(choice,) * (horizon - 1) + (last,),
        states=states,
        actions=("stop", "go on"),
        start=start_distribution(states, 1.0),
        horizon=horizon,
        discount=discount,
        name="american-put",
    )


def _grid(levels: int, horizon: int, mean: float, deviation: float) -> tuple[NDArray[np.int64], float]:
    """The grid of log-prices as multiples of a spacing, 0 among them."""
    moves = max(horizon - 1, 1)
    spread = REACH * deviation
    low = min(moves * mean - spread * sqrt(moves), -spread)
    high = max(moves * mean + spread * sqrt(moves), spread)
    spacing = (high - low) / (levels - 1)
    if spacing > deviation:
        least = ceil((high - low) / deviation) + 1
        raise OcerlError(f"these prices need at least {least} levels, got {levels}")
    return np.arange(levels) + ceil(low / spacing), spacing
