"""Games of money: how much to bet, and when to stop."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.checks import check_horizon, check_probability, check_whole
from ocerl.mdp.tabular import Label, Outcome, TabularMDP

PARTS = 8
"""The betting game's stakes are eighths of the money."""


def betting_chain(*, wealth: int = 10, bet: int = 3, horizon: int = 3, win_probability: float = 0.7) -> TabularMDP:
    """In each round stop, or bet a fixed amount; the return is the final wealth.

    A state is `(round, wealth)`, which only matters to the reader: all is paid when the game ends, by
    stopping or after the last round. A bet needs the money.

    Known: to bet always has CVaR 13.6, 13.0, 10.99, 8.99, 5.59 at levels 1, .9, .674, .364, .115 (published).
    The best policies stop in time: by enumeration they have 13.6, 13.0, 11.57, 10.03 and 10.
    """
    check_horizon(horizon)
    check_whole("the bet", bet)
    check_whole("the wealth", wealth, least=0)
    check_probability("the win probability", win_probability)
    game: dict[Label, dict[Label, list[Outcome]]] = {}
    reached = {wealth}
    for number in range(1, horizon + 1):
        for money in sorted(reached):
            game[number, money] = {"stop": [(1.0, "end", float(money))]}
            if money >= bet:
                after = ((win_probability, money + bet), (1.0 - win_probability, money - bet))
                game[number, money]["bet"] = [
                    (probability, (number + 1, left), 0.0) if number < horizon else (probability, "end", float(left))
                    for probability, left in after
                ]
        reached = {money + change for money in reached if money >= bet for change in (bet, -bet)}
    return TabularMDP.from_outcomes(game, start=(1, wealth), horizon=horizon, name="betting-chain")


def betting_game(*, wealth: int = 16, cap: int = 256, horizon: int = 6, win_probability: float = 0.8) -> TabularMDP:
    """In each round bet any number of eighths of the money; the wealth is capped, and 0 is the end.

    A state is a wealth: all that can be reached before the last round, enumerated exactly (a wealth is a
    binary fraction, so a float holds it), and `"end"` for what only the last round reaches: ask for a longer
    game by `horizon` here. An action is the number of eighths that are bet. The reward is the change of
    wealth over the cap.

    Source: a betting game like that of Bäuerle and Ott, "Markov Decision Processes with Average-Value-at-Risk
    Criteria" (2011).
    """
    check_whole("the wealth", wealth)
    check_whole("the cap", cap, least=wealth)
    check_horizon(horizon)
    check_probability("the win probability", win_probability)
    unit = PARTS ** int(horizon)  # in units of 1 / unit every reachable wealth is whole
    if cap * unit > 2**53:
        raise OcerlError(f"the wealth of a betting game of {horizon} rounds is beyond 53 bits, play fewer")
    stakes = np.arange(PARTS + 1)

    def after(units: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        stake = units[:, np.newaxis] // PARTS * stakes
        return np.minimum(units[:, np.newaxis] + stake, cap * unit), units[:, np.newaxis] - stake

    reached = [np.array([wealth * unit])]
    for _ in range(horizon - 1):
        reached.append(np.unique(np.concatenate(after(reached[-1]))))
    units = np.unique(np.concatenate(reached))
    moving = units[units > 0]
    win, lose = after(moving)
    next_units = np.stack((win, lose), axis=-1)
    place = np.searchsorted(units, next_units).clip(max=units.size - 1)
    place[units[place] != next_units] = units.size
    shape = next_units.shape
    columns = (
        np.broadcast_to(np.searchsorted(units, moving)[:, np.newaxis, np.newaxis], shape).ravel(),
        np.broadcast_to(stakes[:, np.newaxis], shape).ravel(),
        place.ravel(),
        np.broadcast_to([win_probability, 1.0 - win_probability], shape).ravel(),
        ((next_units - moving[:, np.newaxis, np.newaxis]) / (unit * cap)).ravel(),
    )
    names = [int(money) if money.is_integer() else money for money in (units / unit).tolist()]
    return TabularMDP.from_indices(
        [columns],
        states=(*names, "end"),
        actions=tuple(stakes.tolist()),
        start=wealth,
        horizon=horizon,
        name="betting-game",
    )


def gambler(*, wealth: int = 8, goal: int = 16, horizon: int = 10, win_probability: float = 0.55) -> TabularMDP:
    """Bet any part of the capital at even money until it is lost or has reached the goal.

    A state is the capital and an action the stake, at most what is there and what is missing to the goal.

    Source: the gambler's problem, Example 4.3 of Sutton and Barto, "Reinforcement Learning: An Introduction"
    (2018). Deviation: the reward is the change of capital instead of 1 at the goal, since a return of 0 or 1
    has no risk to trade; and the default coin favours the gambler, since it is best not to bet on any other.
    """
    check_whole("the goal", goal, least=2)
    check_whole("the wealth", wealth)
    check_probability("the win probability", win_probability)
    if wealth >= goal:
        raise OcerlError(f"the wealth must be below the goal of {goal}, got {wealth}")
    game: dict[Label, dict[Label, list[Outcome]]] = {capital: {} for capital in range(goal + 1)}
    for capital in range(1, goal):
        for stake in range(min(capital, goal - capital) + 1):
            game[capital][stake] = [
                (win_probability, capital + stake, float(stake)),
                (1.0 - win_probability, capital - stake, float(-stake)),
            ]
    return TabularMDP.from_outcomes(game, start=wealth, horizon=horizon, name="gambler")
