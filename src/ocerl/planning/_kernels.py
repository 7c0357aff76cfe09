# pyright: basic, reportArgumentType=false
"""The compiled inner loops: dynamic programming over rows of budgets.

A state owns a contiguous row of values, one for each lattice position `y`. An outcome `(p, s', k)` reads the
successor's row *shifted* by `k` units, so a backup is a weighted sum of contiguous slices: no gather, and
the compiler vectorises it. Each kernel works on a range of tasks and releases the interpreter lock, so the
caller spreads tasks over threads.
"""

# Numba compiles plain loops; names are short where the array is meant, and loops replace comprehensions.
import numpy as np
from numba import njit

BLOCK = 512
"""How many positions are worked on at once: a few rows of this many float64 fit the first-level cache."""

_FAST = {"contract", "reassoc", "nsz", "arcp"}
"""Sums may be reordered and fused; infinities stay what they are, since a utility may be minus infinity."""


@njit(nogil=True, cache=True, fastmath=_FAST)
def backup(
    states,
    pair_start,
    outcome_start,
    probability,
    next_state,
    shift,
    following,
    following_low,
    out,
    out_low,
    out_width,
    slots,
    low,
    high,
    slope_left,
    slope_right,
    first_task,
    last_task,
):
    """One step of the Bellman equation, `V(s, y) = max_a sum_p p * V'(s', y + k)`, for a range of tasks.

    A task is a state and a block of positions. `following` and `out` are padded rows that begin at position
    `following_low` and `out_low`; positions `low … high` are computed, and the padding of `out`, up to
    `out_width`, continues them linearly. `slots` receives the first best slot, unless it is empty.
    """
    width = high - low + 1
    blocks = (width + BLOCK - 1) // BLOCK
    unused = np.empty(BLOCK, dtype=slots.dtype)
    total = np.empty(BLOCK, dtype=out.dtype)
    for task in range(first_task, last_task):
        s = states[task // blocks]
        offset = (task % blocks) * BLOCK
        n = min(BLOCK, width - offset)
        begin = low + offset - out_low
        best = out[s, begin : begin + n]
        slot = slots[s, offset : offset + n] if slots.size else unused[:n]
        from_ = low + offset - following_low
        best[:] = -np.inf
        slot[:] = 0
        for pair in range(pair_start[s], pair_start[s + 1]):
            i, end = outcome_start[pair], outcome_start[pair + 1]
            number = pair - pair_start[s]
            if end - i <= 5:
                _choose(best, slot, number, i, end, probability, next_state, shift, following, from_)
                continue
            total[:n] = 0.0
            while end - i >= 4:
                _add(total[:n], i, probability, next_state, shift, following, from_)
                i += 4
            while i < end:
                row = following[next_state[i], from_ + shift[i] : from_ + shift[i] + n]
                for x in range(n):
                    total[x] += probability[i] * row[x]
                i += 1
            for x in range(n):
                slot[x] = number if total[x] > best[x] else slot[x]
                best[x] = max(total[x], best[x])
        if offset == 0:
            for position in range(begin):
                out[s, position] = best[0] - slope_left * (begin - position)
        if offset + n == width:
            for position in range(begin + n, out_width):
                out[s, position] = best[n - 1] + slope_right * (position - (begin + n - 1))


@njit(nogil=True, cache=True, fastmath=_FAST, inline="always")
def _add(total, i, probability, next_state, shift, following, from_):
    n = total.size
    p0, p1, p2, p3 = probability[i], probability[i + 1], probability[i + 2], probability[i + 3]
    b0, b1, b2, b3 = from_ + shift[i], from_ + shift[i + 1], from_ + shift[i + 2], from_ + shift[i + 3]
    r0 = following[next_state[i], b0 : b0 + n]
    r1 = following[next_state[i + 1], b1 : b1 + n]
    r2 = following[next_state[i + 2], b2 : b2 + n]
    r3 = following[next_state[i + 3], b3 : b3 + n]
    for x in range(n):
        total[x] += p0 * r0[x] + p1 * r1[x] + p2 * r2[x] + p3 * r3[x]


@njit(nogil=True, cache=True, fastmath=_FAST, inline="always")
def _choose(best, slot, number, i, end, probability, next_state, shift, following, from_):
    """Sum one to five outcomes and keep the action where it is better: one pass for both."""
    n = best.size
    p0, b0 = probability[i], from_ + shift[i]
    r0 = following[next_state[i], b0 : b0 + n]
    if end - i == 1:
        for x in range(n):
            q = p0 * r0[x]
            slot[x] = number if q > best[x] else slot[x]
            best[x] = max(q, best[x])
        return
    p1, b1 = probability[i + 1], from_ + shift[i + 1]
    r1 = following[next_state[i + 1], b1 : b1 + n]
    if end - i == 2:
        for x in range(n):
            q = p0 * r0[x] + p1 * r1[x]
            slot[x] = number if q > best[x] else slot[x]
            best[x] = max(q, best[x])
        return
    p2, b2 = probability[i + 2], from_ + shift[i + 2]
    r2 = following[next_state[i + 2], b2 : b2 + n]
    if end - i == 3:
        for x in range(n):
            q = p0 * r0[x] + p1 * r1[x] + p2 * r2[x]
            slot[x] = number if q > best[x] else slot[x]
            best[x] = max(q, best[x])
        return
    p3, b3 = probability[i + 3], from_ + shift[i + 3]
    r3 = following[next_state[i + 3], b3 : b3 + n]
    if end - i == 4:
        for x in range(n):
            q = p0 * r0[x] + p1 * r1[x] + p2 * r2[x] + p3 * r3[x]
            slot[x] = number if q > best[x] else slot[x]
            best[x] = max(q, best[x])
        return
    p4, b4 = probability[i + 4], from_ + shift[i + 4]
    r4 = following[next_state[i + 4], b4 : b4 + n]
    for x in range(n):
        q = p0 * r0[x] + p1 * r1[x] + p2 * r2[x] + p3 * r3[x] + p4 * r4[x]
        slot[x] = number if q > best[x] else slot[x]
        best[x] = max(q, best[x])


SMALLEST_MASS = 1e-200
SMALLEST_SINGLE = 1e-30
"""Less probability is dropped: it is nothing, and subnormal numbers are a hundred times slower."""


@njit(nogil=True, cache=True, fastmath=_FAST)
def forward(
    states,
    pair_start,
    outcome_start,
    probability,
    next_state,
    shift,
    mass,
    mass_low,
    first,
    last,
    out,
    out_low,
    slots,
    low,
    outside,
):
    """Move the probability mass of every `(s, y)` on by one step under a deterministic policy.

    Column `c` of `mass` is position `mass_low + c`; mass is in the columns `first … last - 1`. At positions the
    table does not cover, the action is `outside[s]`. Positions with the same action are moved together, as one
    slice.
    """
    smallest = SMALLEST_MASS if mass.itemsize == 8 else SMALLEST_SINGLE
    for s in states:
        row = mass[s, first:last]
        for c in range(row.size):
            row[c] = row[c] if row[c] > smallest else row.dtype.type(0.0)
        table = slots[s] if slots.size else slots.ravel()
        begin = mass_low + first - low
        c = 0
        while c < row.size:
            if row[c] == 0.0:
                c += 1
                continue
            inside = 0 <= c + begin < table.size
            slot = table[c + begin] if inside else outside[s]
            end = c + 1
            if inside:
                while end < row.size and end + begin < table.size and table[end + begin] == slot:
                    end += 1
            elif c + begin < 0:
                end = min(row.size, -begin)
            else:
                end = row.size
            moved = row[c:end]
            pair = pair_start[s] + slot
            for i in range(outcome_start[pair], outcome_start[pair + 1]):
                to = c + first + mass_low + shift[i] - out_low
                into = out[next_state[i], to : to + moved.size]
                weight = probability[i]
                for x in range(moved.size):
                    into[x] += weight * moved[x]
            c = end


@njit(nogil=True, cache=True, fastmath=_FAST)
def forward_mixed(
    states,
    pair_start,
    outcome_start,
    probability,
    next_state,
    shift,
    mass,
    mass_low,
    first,
    last,
    out,
    out_low,
    choice,
    low,
):
    """As `forward`, for a policy that draws its action: `choice[pair, y - low]`, constant beyond the edges."""
    edge = choice.shape[1] - 1
    for s in states:
        for c in range(first, last):
            if mass[s, c] < SMALLEST_MASS:
                continue
            column = min(max(c + mass_low - low, 0), edge)
            for pair in range(pair_start[s], pair_start[s + 1]):
                weight = mass[s, c] * choice[pair, column]
                if weight == 0.0:
                    continue
                for i in range(outcome_start[pair], outcome_start[pair + 1]):
                    out[next_state[i], c + mass_low + shift[i] - out_low] += weight * probability[i]


@njit(nogil=True, cache=True)
def remaining_range(pair_start, outcome_start, next_state, shift, low, high, low_out, high_out):
    """The least and most units that can still be earned from each state, one step back."""
    for s in range(low.size):
        least, most = np.iinfo(np.int64).max, np.iinfo(np.int64).min
        for i in range(outcome_start[pair_start[s]], outcome_start[pair_start[s + 1]]):
            least = min(least, shift[i] + low[next_state[i]])
            most = max(most, shift[i] + high[next_state[i]])
        low_out[s], high_out[s] = least, most


@njit(nogil=True, cache=True)
def earned_range(states, pair_start, outcome_start, next_state, shift, low, high, low_out, high_out, reached):
    """The least and most units that can have been earned in each state, one step on; marks reached states."""
    for s in states:
        for i in range(outcome_start[pair_start[s]], outcome_start[pair_start[s + 1]]):
            after = next_state[i]
            if not reached[after]:
                reached[after] = True
                low_out[after], high_out[after] = low[s] + shift[i], high[s] + shift[i]
            else:
                low_out[after] = min(low_out[after], low[s] + shift[i])
                high_out[after] = max(high_out[after], high[s] + shift[i])


@njit(nogil=True, cache=True, fastmath=_FAST)
def improve_markov(
    states, pair_start, outcome_start, probability, next_state, shift, mass, offset, following, out, slots
):
    """Choose each state's action for the mass that reaches it; `out` receives the values under the choice.

    Position `y` of `mass` and `out` meets position `y + offset + shift` of `following`; what lies beyond its
    edges has no mass.
    """
    width = mass.shape[1]
    last = following.shape[1]
    total = np.empty(width)
    for s in states:
        best = -np.inf
        for pair in range(pair_start[s], pair_start[s + 1]):
            total[:] = 0.0
            for i in range(outcome_start[pair], outcome_start[pair + 1]):
                move = offset + shift[i]
                for y in range(max(0, -move), min(width, last - move)):
                    total[y] += probability[i] * following[next_state[i], y + move]
            worth = 0.0
            for y in range(width):
                if mass[s, y] > 0.0:
                    worth += mass[s, y] * total[y]
            if worth > best:
                best = worth
                slots[s] = pair - pair_start[s]
                out[s, :] = total


@njit(nogil=True, cache=True, fastmath=_FAST)
def mean_backup(pair_start, outcome_start, probability, next_state, reward, weight, value, out, slots):
    """One step of the risk-neutral Bellman equation, the reward counted with a weight."""
    for s in range(value.size):
        out[s] = -np.inf
        for pair in range(pair_start[s], pair_start[s + 1]):
            worth = 0.0
            for i in range(outcome_start[pair], outcome_start[pair + 1]):
                worth += probability[i] * (weight * reward[i] + value[next_state[i]])
            if worth > out[s]:
                out[s] = worth
                slots[s] = pair - pair_start[s]
