"""Chains and grids to walk in."""

from __future__ import annotations

from ocerl.mdp.checks import check_number, check_probability, check_whole
from ocerl.mdp.tabular import Label, Outcome, TabularMDP

MOVES = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}


def riverswim(*, states: int = 6, small: float = 0.005, large: float = 1.0, horizon: int = 20) -> TabularMDP:
    """Swim against a river towards a large reward, or stay at the bank for a small one.

    States are 1, 2, … from the left. `left` moves with the current and never fails; at the left bank it pays
    `small`. `right` moves right with probability .35, stays with .6 and drifts left with .05 (at the left
    bank .6 and .4, at the right one stays with .6 and drifts with .4, where it pays `large`).

    Source: Strehl and Littman, "An Analysis of Model-Based Interval Estimation for Markov Decision Processes"
    (2008), with the probabilities and rewards of Osband, Russo and Van Roy, "(More) Efficient Reinforcement
    Learning via Posterior Sampling" (2013).
    """
    check_whole("the number of states", states, least=2)
    check_number("the small reward", small)
    check_number("the large reward", large)

    def right(state: int) -> list[Outcome]:
        if state == 1:
            return [(0.4, 1, 0.0), (0.6, 2, 0.0)]
        if state == states:
            return [(0.4, state - 1, large), (0.6, state, large)]
        return [(0.05, state - 1, 0.0), (0.6, state, 0.0), (0.35, state + 1, 0.0)]

    river: dict[Label, dict[Label, list[Outcome]]] = {
        state: {
            "left": [(1.0, max(state - 1, 1), small if state == 1 else 0.0)],
            "right": right(state),
        }
        for state in range(1, states + 1)
    }
    return TabularMDP.from_outcomes(river, start=1, horizon=horizon, name="riverswim")


def cliff(
    *, rows: int = 4, columns: int = 12, slip: float = 0.1, fall: float = -100.0, horizon: int = 50
) -> TabularMDP:
    """Walk along a cliff to the goal: close to the edge is short, further away is safe.

    A state is `(row, column)`, the start the lowest left and the goal the lowest right cell, and between them
    the cliff. A step pays -1; one into the cliff pays `fall` and leads back to the start. A step off the grid
    stays. With probability `slip` the step goes to one of the two sides instead.

    Source: Example 6.6 of Sutton and Barto, "Reinforcement Learning: An Introduction" (2018). Deviation:
    `slip`, without which there is no risk.
    """
    check_whole("the number of rows", rows, least=2)
    check_whole("the number of columns", columns, least=3)
    check_probability("the slip", slip)
    check_number("the reward of a fall", fall)
    start, goal = (rows - 1, 0), (rows - 1, columns - 1)
    cells = [(row, column) for row in range(rows) for column in range(columns)]
    edge = {cell for cell in cells if start < cell < goal}

    def move(cell: tuple[int, int], direction: str, probability: float) -> Outcome:
        row, column = cell[0] + MOVES[direction][0], cell[1] + MOVES[direction][1]
        aim = (min(max(row, 0), rows - 1), min(max(column, 0), columns - 1))
        return (probability, start, fall) if aim in edge else (probability, aim, -1.0)

    def walk(cell: tuple[int, int], index: int) -> list[Outcome]:
        names = list(MOVES)
        sides = (names[index - 1], names[(index + 1) % 4])
        return [move(cell, names[index], 1.0 - slip), *(move(cell, side, slip / 2) for side in sides)]

    grid: dict[Label, dict[Label, list[Outcome]]] = {
        cell: {} if cell == goal else {name: walk(cell, index) for index, name in enumerate(MOVES)}
        for cell in cells
        if cell not in edge
    }
    return TabularMDP.from_outcomes(grid, start=start, horizon=horizon, name="cliff")
