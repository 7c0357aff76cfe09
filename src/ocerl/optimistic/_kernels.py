"""The compiled inner loops of UCB-VI: planning on what has been seen, with bonuses, over rows of budgets.

No sum is reordered here (`fastmath` is off), so a loop inside one compiled run and the same loop called from
Python, round by round, give the same bits; and planning again only what changed gives the bits of planning
everything.
"""

# pyright: basic
# Numba types the kernels; names are short where the array is meant, and loops replace comprehensions.
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Told(NamedTuple):
    """What the learner is told. A layer is a step, or all steps at once where they share their counts."""

    pair_start: Integers
    """`[layer, state]`, with an end: the state-action pairs of each state, numbered through all layers."""
    terminal: Flags
    """`[state]`: the episode is over, and nothing more is paid."""
    shift: Integers
    """`[step, atom]`: how many units of the lattice each reward value is above the step's origin."""
    start: Floats
    """`[state]`: the start's distribution, or zeros if it has to be learned."""
    known_start: Integers
    """`[pair]`, with an end: where the known rewards of a pair are listed; empty if they are learned."""
    known_next: Integers
    known_atom: Integers
    known_weight: Floats
    """The probability of the reward given the pair *and* the next state."""


class Counts(NamedTuple):
    """What has been seen: for each pair the outcomes `(s', r)`, in the order of their discovery."""

    visits: Integers
    """`[pair]`."""
    used: Integers
    """`[pair]`: how many different outcomes were seen."""
    next_state: Integers
    """`[pair, outcome]`."""
    atom: Integers
    weight: Floats
    """`[pair, outcome]`: how often; with known rewards, the visits to `s'` times the reward's probability."""
    probability: Floats
    """`weight / visits`, kept up to date."""
    touched: Flags
    """`[pair]`: seen since the last planning."""
    start: Integers
    """`[state]`: how many episodes began there."""


class Rows(NamedTuple):
    """The budgets planned for. Position `x` of a row in step `h` is the lattice position `low[h] + x`.

    Positions are counted in fine units, `refine` to a unit of the rewards' lattice.
    """

    refine: int
    low: Integers
    width: Integers
    pad_low: Integers
    """The padded row of a step begins here: it covers what the step before may read."""
    pad_width: Integers
    ceiling: Floats
    """`[step, x]`: the largest utility that can still be reached."""
    span: Floats
    """`[step, x]`: the largest less the least."""
    unseen: Floats
    """`[step, x]`: what a pair without a visit is worth."""
    slope_left: float
    """Per fine unit; rows are continued with these slopes beyond their windows."""
    slope_right: float
    budgets: Floats
    """`[x]`: the first budget of each position of the first row."""


class Values(NamedTuple):
    """The plan for what has been seen."""

    upper: Floats
    """`[step, state, padded x]`: the optimistic value."""
    lower: Floats
    """The pessimistic value of the same policy; empty unless the bonus needs it."""
    slots: NDArray[np.uint16]
    """`[step, state, x]`: the greedy action."""
    changed: Flags
    """`[step, state]`: whether the row is new since the last planning."""
    scratch: Floats
    """`[8, x]`."""


@njit(nogil=True, cache=True)
def replan(told, counts, rows, values, log_term, everything):
    """Backward induction `V(s, y) = min(max_a { E^ V(s', y + k) + bonus }, ceiling)` on the empirical model.

    Unless `everything` is asked for, a row is planned again only if one of its pairs was seen since the last
    time, or a row that it reads has changed: all others would come out the same.
    """
    # The inner loops get plain arrays: a tuple of them costs more to hand over than a short row to plan.
    pair_start, terminal, shift = told.pair_start, told.terminal, told.shift
    visits, used, next_state, atom, probability, touched = (
        counts.visits,
        counts.used,
        counts.next_state,
        counts.atom,
        counts.probability,
        counts.touched,
    )
    low, all_widths, pad_low, pad_width = rows.low, rows.width, rows.pad_low, rows.pad_width
    all_ceilings, all_spans, all_unseen = rows.ceiling, rows.span, rows.unseen
    refine, left, right = rows.refine, rows.slope_left, rows.slope_right
    upper, lower, slots, changed, scratch = (
        values.upper,
        values.lower,
        values.slots,
        values.changed,
        values.scratch,
    )
    best, best_lower, spread, gap = scratch[0], scratch[1], scratch[4], scratch[5]
    q, q_lower = scratch[2], scratch[3]
    pessimistic = lower.size > 0
    for h in range(low.size - 2, -1, -1):
        layer = min(h, pair_start.shape[0] - 1)
        width, base, begin = all_widths[h], low[h] - pad_low[h + 1], low[h] - pad_low[h]
        ceiling, span, unseen = all_ceilings[h], all_spans[h], all_unseen[h]
        ahead, ahead_changed, units = upper[h + 1], changed[h + 1], shift[h]
        for s in range(terminal.size):
            first, last = pair_start[layer, s], pair_start[layer, s + 1]
            if terminal[s] or not (everything or _stale(first, last, touched, used, next_state, ahead_changed)):
                changed[h, s] = False
                continue
            for pair in range(first, last):
                n = visits[pair]
                if n == 0:
                    _look_nowhere(width, unseen, span, ceiling, q, q_lower)
                elif pessimistic:
                    _look_bernstein(
                        width, base, refine, n, used[pair], next_state[pair], atom[pair], probability[pair],
                        units, ahead, lower[h + 1], span, log_term, q, q_lower, spread, gap,
                    )  # fmt: skip
                elif width == 1:
                    _look_single(
                        base, refine, n, used[pair], next_state[pair], atom[pair], probability[pair],
                        units, ahead, span, log_term, q,
                    )  # fmt: skip
                else:
                    _look_hoeffding(
                        width, base, refine, n, used[pair], next_state[pair], atom[pair], probability[pair],
                        units, ahead, span, log_term, q,
                    )  # fmt: skip
                _keep_better(width, pair - first, q, q_lower, best, best_lower, slots[h, s])
            changed[h, s] = _store(width, begin, pad_width[h], best, ceiling, span, left, right, upper[h, s])
            if pessimistic:
                changed[h, s] |= _store(width, begin, pad_width[h], best_lower, ceiling, span, left, right, lower[h, s])
    touched[:] = False


@njit(nogil=True, cache=True)
def _stale(first, last, touched, used, next_state, changed):
    """Whether a state's pairs were seen, or lead to a row that changed."""
    for pair in range(first, last):
        if touched[pair]:
            return True
        for i in range(used[pair]):
            if changed[next_state[pair, i]]:
                return True
    return False


@njit(nogil=True, cache=True)
def _look_nowhere(width, unseen, span, ceiling, q, q_lower):
    """A pair without a visit: what it is taken to be worth, and the largest bonus there is."""
    for x in range(width):
        q[x] = unseen[x] + span[x]
        q_lower[x] = ceiling[x] - span[x]


@njit(nogil=True, cache=True)
def _look_hoeffding(width, base, refine, n, used, next_state, atom, probability, units, ahead, span, log_term, q):
    """One pair's expected value ahead, and `span sqrt(L / 2n)` (at most the span)."""
    for x in range(width):
        q[x] = 0.0
    for i in range(used):
        begin = base + refine * units[atom[i]]
        row = ahead[next_state[i], begin : begin + width]
        p = probability[i]
        for x in range(width):
            q[x] += p * row[x]
    factor = min(1.0, np.sqrt(log_term / (2.0 * n)))
    for x in range(width):
        q[x] += factor * span[x]


@njit(nogil=True, cache=True)
def _look_single(base, refine, n, used, next_state, atom, probability, units, ahead, span, log_term, q):
    """As `_look_hoeffding`, for rows of a single position (the mean): the same sums without the rows."""
    total = 0.0
    for i in range(used):
        total += probability[i] * ahead[next_state[i], base + refine * units[atom[i]]]
    q[0] = total + min(1.0, np.sqrt(log_term / (2.0 * n))) * span[0]


@njit(nogil=True, cache=True)
def _look_bernstein(
    width, base, refine, n, used, next_state, atom, probability,
    units, ahead, ahead_lower, span, log_term, q, q_lower, spread, gap,
):  # fmt: skip
    """One pair's expected value ahead with the Bernstein bonus, and its pessimistic value."""
    for x in range(width):
        q[x], q_lower[x], spread[x], gap[x] = 0.0, 0.0, 0.0, 0.0
    for i in range(used):
        begin = base + refine * units[atom[i]]
        row = ahead[next_state[i], begin : begin + width]
        row_lower = ahead_lower[next_state[i], begin : begin + width]
        p = probability[i]
        for x in range(width):
            q[x] += p * row[x]
            q_lower[x] += p * row_lower[x]
            gap[x] += p * (row[x] - row_lower[x]) ** 2
    for i in range(used):
        begin = base + refine * units[atom[i]]
        row = ahead[next_state[i], begin : begin + width]
        p = probability[i]
        for x in range(width):
            spread[x] += p * (row[x] - q[x]) ** 2
    if n == 1:
        steepness, rest = 0.0, 1.0 if log_term > 0.0 else 0.0
    else:
        steepness, rest = np.sqrt(2.0 * log_term / (n - 1)), 7.0 * log_term / (3.0 * (n - 1))
    for x in range(width):
        bonus = steepness * (np.sqrt(spread[x]) + np.sqrt(gap[x])) + rest * span[x]
        bonus = min(bonus, span[x])
        q[x] += bonus
        q_lower[x] -= bonus


@njit(nogil=True, cache=True)
def _keep_better(width, number, q, q_lower, best, best_lower, slots):
    """Take the action where it is better than those before it."""
    for x in range(width):
        better = number == 0 or q[x] > best[x]
        slots[x] = number if better else slots[x]
        best_lower[x] = q_lower[x] if better else best_lower[x]
        best[x] = q[x] if better else best[x]


@njit(nogil=True, cache=True)
def _store(width, begin, pad_width, planned, ceiling, span, slope_left, slope_right, row):
    """Clip the row to what can be reached, continue it beyond its window, and see whether it is new."""
    changed = False
    for x in range(width):
        value = min(max(planned[x], ceiling[x] - span[x]), ceiling[x])
        changed |= value != row[begin + x]
        row[begin + x] = value
    extend(row, begin, width, pad_width, slope_left, slope_right)
    return changed


@njit(nogil=True, cache=True)
def extend(row, begin, width, pad_width, slope_left, slope_right):
    """Continue a row beyond its window, where values are linear."""
    for x in range(begin):
        row[x] = row[begin] - slope_left * (begin - x)
    last = begin + width - 1
    for x in range(last + 1, pad_width):
        row[x] = row[last] + slope_right * (x - last)


@njit(nogil=True, cache=True)
def first_values(told, counts, rows, values, log_term, out):
    """The optimistic value of every first budget, `E V_1(s_1, b)` over the start as told or as seen."""
    width = rows.width[0]
    begin = rows.low[0] - rows.pad_low[0]
    episodes, known = 0, 0.0
    for s in range(told.start.size):
        episodes += counts.start[s]
        known += told.start[s]
    if known == 0.0 and episodes == 0:
        out[:] = rows.ceiling[0, :width]
        return
    out[:] = 0.0
    for s in range(told.start.size):
        p = told.start[s] if known > 0.0 else counts.start[s] / episodes
        if p > 0.0:
            for x in range(width):
                out[x] += p * values.upper[0, s, begin + x]
    if known == 0.0:
        factor = min(1.0, np.sqrt(log_term / (2.0 * episodes)))
        for x in range(width):
            out[x] = min(out[x] + factor * rows.span[0, x], rows.ceiling[0, x])
