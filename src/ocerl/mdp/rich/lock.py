"""The risky combination lock: a small world in which every step has its right action, and luck and a way out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ocerl.mdp.checks import check_probability, check_whole
from ocerl.mdp.tabular import Columns, TabularMDP

LEFT, RIGHT, FALLEN, REST = range(4)
STATES = ("left", "right", "fallen", "rest")
ACTIONS = 4
BONUS, EXIT, SAFE, PRIZE = 0.25, 0.25, 0.5, 1.0
GAMBLE = 0.5
"""The probability with which the last gamble pays."""


def risky_lock(*, horizon: int = 5, slip: float = 0.02, seed: int = 0) -> TabularMDP:
    """A lock with four states; in `left` and `right`, in every step, the seed hides what the four actions are.

    - *advance* falls with probability `slip`, else leads to `left`, or to `right` with a pay of 0.25, with equal
      probabilities: luck that a later choice should take into account;
    - *leave* pays 0.25 at once and leads to `rest`, for good;
    - the two others lead to `fallen`, for good.

    In the last step *advance* pays a safe 0.5, *leave* is a gamble that pays 1 with probability 0.5, the others
    pay nothing. After Du et al., "Provably Efficient RL with Rich Observations via Latent State Decoding" (2019),
    whose lock has no luck, no way out and no gamble.

    >>> from ocerl.planning import best_markov, plan
    >>> lock = risky_lock()
    >>> round(plan(lock, "cvar:0.25").value, 4), round(best_markov(lock, "cvar:0.25").value, 4)
    (0.5286, 0.4261)
    """
    check_whole("the horizon", horizon, least=2)
    check_probability("the slip", slip)
    roles = lock_roles(horizon, seed)
    return TabularMDP.from_indices(
        [_step(roles[step], slip, last=step == horizon - 1) for step in range(horizon)],
        states=STATES,
        actions=tuple(range(ACTIONS)),
        horizon=horizon,
        name="risky-lock",
    )


def lock_roles(horizon: int, seed: int) -> NDArray[np.int64]:
    """`[step, left or right, role]`: which action advances, which one leaves, and which two fall."""
    random = np.random.default_rng(seed)
    return random.permuted(np.tile(np.arange(ACTIONS), (horizon, 2, 1)), axis=2)


def _step(roles: NDArray[np.int64], slip: float, *, last: bool) -> Columns:
    rows: list[tuple[int, int, int, float, float]] = []
    for state in (LEFT, RIGHT):
        advance, leave, *falls = (int(action) for action in roles[state])
        rows += [(state, action, FALLEN, 1.0, 0.0) for action in falls]
        if last:
            rows += [(state, advance, REST, 1.0, SAFE)]
            rows += [(state, leave, REST, GAMBLE, PRIZE), (state, leave, FALLEN, 1 - GAMBLE, 0.0)]
        else:
            go_on = (1 - slip) / 2
            rows += [(state, advance, LEFT, go_on, 0.0), (state, advance, RIGHT, go_on, BONUS)]
            rows += [(state, advance, FALLEN, slip, 0.0), (state, leave, REST, 1.0, EXIT)]
    rows += [(state, action, state, 1.0, 0.0) for state in (FALLEN, REST) for action in range(ACTIONS)]
    columns = tuple(np.array(column) for column in zip(*rows, strict=True))
    return columns[0], columns[1], columns[2], columns[3], columns[4]
