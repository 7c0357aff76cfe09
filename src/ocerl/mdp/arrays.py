"""Models from arrays of transition probabilities `P` and rewards `R`, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.tabular import Columns, Label, TabularMDP
from ocerl.mdp.transitions import SUM_TOLERANCE, Transitions

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def from_arrays(
    P: Any,
    R: Any,
    *,
    horizon: int | None = None,
    start: Label | Mapping[Label, float] = 0,
    discount: float = 1.0,
    name: str = "arrays",
) -> TabularMDP:
    """The model with transition probabilities `P[s, a, s']` and rewards `R`; its names are positions.

    `P` has shape `(S, A, S)`, or is a list of one sparse `S × S` matrix for each action, or has shape `(H, S,
    A, S)` for a model of its own in every step. A row of zeros says that the action does not exist in that
    state; a state without actions is absorbing.

    `R` is one of

    - an array of shape `(S,)` (paid where the action is taken), `(S, A)` or `(S, A, S)`;
    - a pair of `values (K,)` and `probabilities (S, A, K)`: random rewards, independent of the next state.

    With a model for every step, all of them but `values` have a first axis of length `H` too.

    >>> walk = from_arrays([[[0.5, 0.5]], [[0.0, 1.0]]], [1.0, 0.0], horizon=3)
    >>> walk.return_range()
    (1.0, 3.0)
    """
    tables, rewards, per_step = _steps(P, R)
    n_states, n_actions = _shape(tables[0])
    columns = [
        _with_rewards(_successors(table), reward, n_states, n_actions)
        for table, reward in zip(tables, rewards, strict=True)
    ]
    return TabularMDP.from_indices(
        columns,
        states=tuple(range(n_states)),
        actions=tuple(range(n_actions)),
        start=start,
        horizon=len(tables) if per_step and horizon is None else horizon,
        discount=discount,
        name=name,
    )


def to_arrays(model: TabularMDP) -> tuple[Floats, Floats]:
    """The transition probabilities `P[s, a, s']` and the mean rewards `R[s, a]` of a model.

    A first axis of steps is added where every step has a model of its own. Rows of actions that a state does
    not have are zeros. Of a random reward only the mean is kept, so this is for risk-neutral tools.

    >>> walk = from_arrays([[[0.5, 0.5]], [[0.0, 1.0]]], [1.0, 0.0], horizon=3)
    >>> P, R = to_arrays(walk)
    >>> P[:, 0].tolist(), R[:, 0].tolist()
    ([[0.5, 0.5], [0.0, 1.0]], [1.0, 0.0])
    """
    if model.stationary:
        return _dense(model.steps[0], model.n_actions)
    tables, rewards = zip(*(_dense(step, model.n_actions) for step in model.steps), strict=True)
    return np.stack(tables), np.stack(rewards)


def _dense(step: Transitions, n_actions: int) -> tuple[Floats, Floats]:
    table = np.zeros((step.n_states, n_actions, step.n_states))
    rewards = np.zeros((step.n_states, n_actions))
    pair = step.outcome_pair
    np.add.at(table, (step.pair_state[pair], step.action[pair], step.next_state), step.probability)
    rewards[step.pair_state, step.action] = step.expected(step.reward)
    return table, rewards


def _steps(P: Any, R: Any) -> tuple[list[Any], list[Any], bool]:
    """The transitions and the rewards of each step, as arrays or lists of sparse matrices."""
    random = isinstance(R, tuple) and len(R) == 2 and _numbers("R", R[1]).ndim >= 3
    rewards: Any = tuple(_numbers("R", part) for part in R) if random else _numbers("R", R)
    if isinstance(P, Sequence) and P and all(hasattr(matrix, "tocsr") for matrix in P):
        return [P], [rewards], False
    table = _numbers("P", P)
    if table.ndim < 4:
        return [table], [rewards], False
    by_step = [(rewards[0], weights) for weights in rewards[1]] if random else list(rewards)
    if len(by_step) != len(table):
        raise OcerlError(f"P has {len(table)} steps and R {len(by_step)}, every step needs its own rewards")
    return list(table), by_step, True


def _numbers(symbol: str, values: Any) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise OcerlError(f"{symbol} is not an array of numbers: {error}") from None


def _shape(table: Any) -> tuple[int, int]:
    """The numbers of states and actions."""
    if isinstance(table, Sequence):
        shapes = {tuple(matrix.shape) for matrix in table}
        rows, columns = shapes.pop()
        if shapes or rows != columns:
            raise OcerlError("the sparse matrices of P must all have one shape S × S, one for each action")
        return rows, len(table)
    if table.ndim != 3 or table.shape[0] != table.shape[2]:
        hint = "; np.moveaxis(P, 0, 1) turns (A, S, S) round" if table.shape[1:2] == table.shape[2:] else ""
        raise OcerlError(f"P has shape {table.shape}, it must be (S, A, S) or (H, S, A, S){hint}")
    return table.shape[0], table.shape[1]


def _successors(table: Any) -> tuple[Indices, Indices, Indices, Floats]:
    """The columns state, action, next state and probability of all transitions that are not 0."""
    if isinstance(table, Sequence):
        matrices = [matrix.tocsr().tocoo() for matrix in table]  # by way of CSR, which adds up duplicates
        action = np.repeat(np.arange(len(matrices)), [matrix.nnz for matrix in matrices])
        state, successor, probability = (
            np.concatenate([getattr(matrix, part) for matrix in matrices]) for part in ("row", "col", "data")
        )
    else:
        state, action, successor = np.nonzero(table)
        probability = table[state, action, successor]
    wrong = np.flatnonzero(~((probability >= 0) & (probability <= 1 + SUM_TOLERANCE)))
    if wrong.size:
        where = ", ".join(str(index[wrong[0]]) for index in (state, action, successor))
        raise OcerlError(f"P[{where}] is {probability[wrong[0]]:g}, a probability must be between 0 and 1")
    return state, action, successor, probability


def _with_rewards(
    successors: tuple[Indices, Indices, Indices, Floats], rewards: Any, n_states: int, n_actions: int
) -> Columns:
    """The joint outcomes: one for each successor or, in this order, for each successor and random reward."""
    state, action, successor, probability = successors
    if isinstance(rewards, tuple):
        values, weights = rewards
        _expect_shape("R[1]", weights, (n_states, n_actions, values.size))
        _check_weights(weights, state, action)
        joint = probability[:, np.newaxis] * weights[state, action]
        state, action, successor = (np.repeat(column, values.size) for column in (state, action, successor))
        return state, action, successor, joint.ravel(), np.tile(values, probability.size)
    _expect_shape("R", rewards, (n_states,), (n_states, n_actions), (n_states, n_actions, n_states))
    reward = rewards[(state, action, successor)[: rewards.ndim]]
    if not np.isfinite(reward).all():
        row = int(np.argmin(np.isfinite(reward)))
        where = f"state {state[row]}, action {action[row]}, next state {successor[row]}"
        raise OcerlError(f"R is {reward[row]} for {where}, a reward must be a finite number")
    return state, action, successor, probability, reward


def _check_weights(weights: Floats, state: Indices, action: Indices) -> None:
    used = weights[state, action]
    right = (used >= 0).all(axis=1) & (np.abs(used.sum(axis=1) - 1.0) <= SUM_TOLERANCE)
    if not right.all():
        row = int(np.argmin(right))
        raise OcerlError(
            f"the probabilities in R[1] of state {state[row]}, action {action[row]} are "
            f"{used[row].tolist()}, they must not be negative and sum to 1"
        )


def _expect_shape(symbol: str, array: Floats, *shapes: tuple[int, ...]) -> None:
    if array.shape not in shapes:
        raise OcerlError(f"{symbol} has shape {array.shape}, it must be {' or '.join(map(str, shapes))}")
