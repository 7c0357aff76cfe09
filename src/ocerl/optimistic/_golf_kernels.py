"""The compiled inner loops of GOLF over decoders: regression on what was seen, optimism, and the test of decoders."""

# pyright: basic
# Numba types the kernels.
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ocerl.optimistic._kernels import extend

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Seen(NamedTuple):
    """The episodes, as the regression reads them; there is room for more than were played."""

    latent: NDArray[np.int16]
    """`[decoder, step, episode]`, with the state after the last step; the last latent is the end of an episode."""
    column: NDArray[np.int32]
    """`[step, episode]`: where in the step's row of budgets."""
    after: NDArray[np.int32]
    """`[step, episode]`: where in the padded row of the next step."""
    slot: NDArray[np.int32]
    """`[step, episode]`: the action."""


@njit(nogil=True, cache=True)
def fit(seen, episodes, actions, rows, bonus, unseen, upper, slots, statistic):
    """Plan for every decoder, optimistically with a positive bonus, and test each against all others.

    `upper[decoder, step, latent, padded column]` has the pay-off in its last step and for the last latent.
    `unseen` says what a cell without a visit is worth: 1 the most that can be reached, 0 the least.
    """
    decoders, horizon = seen.latent.shape[0], seen.column.shape[0]
    ends = upper.shape[2] - 1
    target = np.empty(episodes)
    width = rows.width[:-1].max()
    total, count = np.empty((ends, width, actions)), np.empty((ends, width, actions), dtype=np.int64)
    statistic[:] = 0.0
    for d in range(decoders):
        for h in range(horizon - 1, -1, -1):
            for i in range(episodes):
                target[i] = upper[d, h + 1, seen.latent[d, h + 1, i], seen.after[h, i]]
            collect(seen, d, h, episodes, target, total, count)
            look_ahead(h, rows, bonus, unseen, total, count, upper[d, h], slots[d, h])
            found = excess(seen, d, h, episodes, ends, target, rows.span[h], total, count)
            statistic[d] = max(statistic[d], found)


@njit(nogil=True, cache=True)
def collect(seen, d, h, episodes, target, total, count):
    """Sums and counts of the targets in the cells (latent, budget, action) of a decoder."""
    total[:], count[:] = 0.0, 0
    ends = total.shape[0]
    for i in range(episodes):
        z = seen.latent[d, h, i]
        if z < ends:
            total[z, seen.column[h, i], seen.slot[h, i]] += target[i]
            count[z, seen.column[h, i], seen.slot[h, i]] += 1


@njit(nogil=True, cache=True)
def look_ahead(h, rows, bonus, unseen, total, count, upper, slots):
    """`V(z, x) = max_a min { mean + bonus / sqrt(N) · span, ceiling }`, continued beyond the window."""
    begin, width = rows.low[h] - rows.pad_low[h], rows.width[h]
    for z in range(total.shape[0]):
        row = upper[z]
        for x in range(width):
            ceiling, span = rows.ceiling[h, x], rows.span[h, x]
            best = -np.inf
            for a in range(total.shape[2]):
                n = count[z, x, a]
                if n == 0:
                    q = ceiling - (1.0 - unseen) * span
                else:
                    q = min(total[z, x, a] / n + bonus / np.sqrt(n) * span, ceiling)
                if q > best:
                    best, slots[z, x] = q, a
            row[begin + x] = max(best, ceiling - span)
        extend(row, begin, width, rows.pad_width[h], rows.slope_left, rows.slope_right)


@njit(nogil=True, cache=True)
def excess(seen, d, h, episodes, ends, target, span, total, count):
    """`RSS_d - min_e RSS_e` for the targets of decoder `d`, each error in parts of its budget's span.

    A decoder that splits cells explains noise: from what each explains, the noise's variance is subtracted for
    every cell it uses, as estimated with decoder `d` itself.
    """
    squares, used = 0.0, 0
    for i in range(episodes):
        unit = span[seen.column[h, i]]
        if seen.latent[d, h, i] < ends and unit > 0.0:
            squares += (target[i] / unit) ** 2
            used += 1
    explained, cells = _explained(span, total, count)
    noise = max(squares - explained, 0.0) / max(used - cells, 1)
    own = explained - noise * cells
    most = own
    for e in range(seen.latent.shape[0]):
        if e != d:
            collect(seen, e, h, episodes, target, total, count)
            explained, cells = _explained(span, total, count)
            most = max(most, explained - noise * cells)
    return most - own


@njit(nogil=True, cache=True)
def _explained(span, total, count):
    """The sum of squares that the cells' means explain, and how many cells there are."""
    explained, cells = 0.0, 0
    for z in range(total.shape[0]):
        for x in range(total.shape[1]):
            if span[x] > 0.0:
                for a in range(total.shape[2]):
                    if count[z, x, a] > 0:
                        explained += total[z, x, a] ** 2 / (count[z, x, a] * span[x] ** 2)
                        cells += 1
    return explained, cells
