"""The compiled inner loops of Rep-UCB: planning in a learned low-rank model, and its factorisation by EM."""

# pyright: basic
# Numba types the kernels.
import numpy as np
from numba import njit

from ocerl.optimistic._kernels import extend


@njit(nogil=True, cache=True)
def plan_step(h, features, bonus, shifts, weights, ahead, rows, upper, slots):
    """One step of backward induction, `Q = E_r sum_z φ_z(s, a) W(z, y + r) + bonus · span`.

    `ahead[latent, padded column]` is W, the next step's value in expectation over each latent's measure;
    `shifts[atom]` and `weights[state, action, atom]` are the known rewards.
    """
    begin, width = rows.low[h] - rows.pad_low[h], rows.width[h]
    base = rows.low[h] - rows.pad_low[h + 1]
    states, actions, rank = features.shape
    q, best = np.empty(width), np.empty(width)
    for s in range(states):
        for a in range(actions):
            q[:] = 0.0
            for k in range(shifts.size):
                if weights[s, a, k] > 0.0:
                    first = base + rows.refine * shifts[k]
                    for z in range(rank):
                        p = weights[s, a, k] * features[s, a, z]
                        if p > 0.0:
                            for x in range(width):
                                q[x] += p * ahead[z, first + x]
            for x in range(width):
                value = q[x] + bonus[s, a] * rows.span[h, x]
                if a == 0 or value > best[x]:
                    best[x], slots[s, x] = value, a
        row = upper[s]
        for x in range(width):
            ceiling = rows.ceiling[h, x]
            row[begin + x] = min(max(best[x], ceiling - rows.span[h, x]), ceiling)
        extend(row, begin, width, rows.pad_width[h], rows.slope_left, rows.slope_right)


@njit(nogil=True, cache=True)
def em_step(pair, target, weight, features, measures, prior, known):
    """One step of expectation maximisation for `P(s' | pair) = sum_z φ_z(pair) μ_z(s')`; the log-likelihood before.

    `prior` is added to every count: half-seen pairs stay near the uniform distribution. With `known`, φ stays.
    """
    pairs, rank = features.shape
    states = measures.shape[1]
    by_pair, by_state = np.full((pairs, rank), prior), np.full((rank, states), prior)
    share, total = np.empty(rank), 0.0
    for i in range(pair.size):
        sum_ = 0.0
        for z in range(rank):
            share[z] = features[pair[i], z] * measures[z, target[i]]
            sum_ += share[z]
        total += weight[i] * np.log(sum_)
        for z in range(rank):
            part = weight[i] * share[z] / sum_
            by_pair[pair[i], z] += part
            by_state[z, target[i]] += part
    for p in range(0 if known else pairs):
        features[p] = by_pair[p] / by_pair[p].sum()
    for z in range(rank):
        measures[z] = by_state[z] / by_state[z].sum()
    return total
