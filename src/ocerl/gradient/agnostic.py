r"""Agnostic natural policy gradient (Appendix E): log-linear policies over a user's features of `(s, b)`.

.. math:: \pi^\theta_h(a \mid s, b) \propto \exp(\phi_h(s, b) \cdot \theta_{h,a}), \qquad
          \theta^{(k+1)}_h = \theta^{(k)}_h + \eta\, w^{(k)}_h,

where :math:`w^{(k)}_h` is the compatible function approximation of the advantages under the policy's own visits,

.. math:: w^{(k)}_h = \arg\min_{\|w\|_2 \le W}
          \mathbb E_{\pi^k}\big[ (A^{\pi^k}_h(s, b, a) - w \cdot \nabla \log \pi^k_h(a \mid s, b))^2 \big].

The step is the lemma's, :math:`\eta = \sqrt{2 \log A / (\beta K W^2)}`. The log-probabilities of these policies
are smooth with :math:`\beta = \max \|\phi\|^2 / 2`: their Hessian is minus the covariance of one of `A` disjoint
copies of :math:`\phi`, and that of a one-hot vector is at most 1/2.

With `episodes` the expectation is over roll-outs of an unknown model, whose pay-offs, less a linear baseline, stand
for the advantages; without, it is exact. With one-hot features the exact form is `npg.ExactNPG`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.gradient import _kernels
from ocerl.gradient.graph import AugmentedGraph
from ocerl.gradient.npg_sampled import check_episodes
from ocerl.gradient.rollouts import roll_out
from ocerl.gradient.tables import node_values, probabilities, values

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Features = Callable[[int, Ints, Floats], Floats]
"""From a step (from 0), states (positions in `model.states`) and budgets `[n]` to features `[n, d]`; each step may
have its own `d`."""


@dataclass(frozen=True, eq=False)
class AgnosticState:
    """Parameters of each run, and the logits they give on the graph."""

    updates: int
    seeds: Ints
    theta: Floats
    """`[seeds, steps, d, actions]`."""
    logits: Floats


@dataclass(frozen=True, eq=False)
class AgnosticNPG:
    """The oracle.

    >>> from ocerl.gradient.budgets import first_budgets
    >>> from ocerl.gradient.graph import augmented_graph
    >>> from ocerl.mdp import zoo
    >>> from ocerl.risk import parse_risk
    >>> risk = parse_risk("cvar:0.25")
    >>> graph = augmented_graph(risk, first_budgets(zoo.make("paper"), risk))
    >>> def features(step, states, budgets):  # of the budget: one for each half
    ...     return np.eye(11)[np.rint(2 * budgets).astype(int) + 5]
    >>> oracle = AgnosticNPG(graph, features, planned_updates=200, norm_bound=4.0)
    >>> state = oracle.update(oracle.init([0]), 200)
    >>> round(float((oracle.budgets + oracle.estimate(state)).max()), 2)
    0.74
    """

    graph: AugmentedGraph
    features: Features
    planned_updates: int
    """The `K` of the lemma's step size."""
    norm_bound: float
    """`W`, the largest norm of a step's update vector."""
    episodes: int | None = None
    """Episodes for each update; None for exact expectations on a known model."""

    def __post_init__(self) -> None:
        if self.planned_updates < 1:
            raise OcerlError(f"planned_updates must be at least 1, got {self.planned_updates}")
        if not (np.isfinite(self.norm_bound) and self.norm_bound > 0):
            raise OcerlError(f"norm_bound must be a positive number, got {self.norm_bound}")
        if self.episodes is not None:
            check_episodes(self.episodes)

    @property
    def budgets(self) -> Floats:
        return self.graph.budgets.values

    @cached_property
    def smoothness(self) -> float:
        r""":math:`\beta = \max \|\phi\|^2 / 2`."""
        return max(float((phi**2).sum(axis=1).max()) for phi in self._phi) / 2

    @cached_property
    def eta(self) -> float:
        """The lemma's step size."""
        scale = self.smoothness * self.planned_updates * self.norm_bound**2
        return float(np.sqrt(2 * np.log(max(self.graph.most_actions, 2)) / scale))

    def init(self, seeds: Sequence[int]) -> AgnosticState:
        width, actions = self._phi[0].shape[1], self.graph.budgets.lattice.model.n_actions
        theta = np.zeros((len(seeds), self.graph.length, width, actions))
        return AgnosticState(0, np.array(seeds), theta, np.zeros((len(seeds), self.graph.n_entries)))

    def update(self, state: AgnosticState, times: int) -> AgnosticState:
        theta, logits = state.theta.copy(), state.logits.copy()
        for number in range(state.updates, state.updates + times):
            for run, seed in enumerate(state.seeds):
                directions = self._directions(logits[run], np.random.default_rng([int(seed), number, 0]))
                theta[run] += self.eta * np.stack(directions)
                logits[run] = self._logits(theta[run])
        return AgnosticState(state.updates + times, state.seeds, theta, logits)

    def estimate(self, state: AgnosticState) -> Floats:
        return np.stack([self._estimate(int(seed), state, run) for run, seed in enumerate(state.seeds)])

    def _estimate(self, seed: int, state: AgnosticState, run: int) -> Floats:
        """Exact, or the linear fit to the pay-offs of fresh roll-outs."""
        graph = self.graph
        if self.episodes is None:
            return values(graph, state.logits[run])
        random = np.random.default_rng([seed, state.updates, 1])
        nodes, _, payoff = roll_out(graph, state.logits[run], self.episodes, random)
        fitted = np.linalg.lstsq(self._phi[0][nodes[0]], payoff, rcond=None)[0]
        return graph.start @ (self._phi[0] @ fitted)[graph.first_nodes]

    @cached_property
    def _phi(self) -> list[Floats]:
        """The features of every layer's nodes, filled up with zeros to one length."""
        graph, lattice = self.graph, self.graph.budgets.lattice
        remaining = np.append(np.cumsum(lattice.origins[::-1])[::-1], 0.0) + lattice.tail
        result: list[Floats] = []
        for step in range(graph.length):
            own = slice(graph.layer_start[step], graph.layer_start[step + 1])
            budgets = remaining[step] - lattice.unit * graph.positions[own]
            phi = np.asarray(self.features(step, graph.states[own].astype(np.int64), budgets), np.float64)
            if phi.ndim != 2 or len(phi) != budgets.size or not np.isfinite(phi).all():
                raise OcerlError(
                    f"features must give finite numbers of shape [{budgets.size}, d] for {budgets.size} "
                    f"pairs of state and budget, got shape {list(phi.shape)} in step {step}"
                )
            result.append(phi)
        width = max(phi.shape[1] for phi in result)
        return [np.pad(phi, ((0, 0), (0, width - phi.shape[1]))) for phi in result]

    @cached_property
    def _entries(self) -> list[tuple[slice, Ints, Ints]]:
        """For each layer its entries, their nodes (counted within the layer) and their actions."""
        graph, model = self.graph, self.graph.budgets.lattice.model
        result: list[tuple[slice, Ints, Ints]] = []
        for step in range(graph.length):
            begin, end = graph.layer_start[step], graph.layer_start[step + 1]
            starts = graph.layout.entry_start[begin : end + 1]
            t, states = model.transitions(step), graph.states[begin:end]
            node = np.repeat(np.arange(end - begin), np.diff(starts))
            slot = np.arange(starts[0], starts[-1]) - np.repeat(starts[:-1], np.diff(starts))
            action = t.action[t.pair_start[states[node]] + slot].astype(np.int64)
            result.append((slice(int(starts[0]), int(starts[-1])), node, action))
        return result

    def _logits(self, theta: Floats) -> Floats:
        layers = zip(self._phi, theta, self._entries, strict=True)
        return np.concatenate([(phi @ own)[node, action] for phi, own, (_, node, action) in layers])

    def _directions(self, logits: Floats, random: np.random.Generator) -> list[Floats]:
        r""":math:`w^{(k)}_h` for every step."""
        graph = self.graph
        chosen = probabilities(graph, logits)
        if self.episodes is None:
            weight, advantage = _exact_advantages(graph, logits, chosen)
            return [
                self._fit(step, chosen, np.arange(node.size), weight[own], advantage[own])
                for step, (own, node, _) in enumerate(self._entries)
            ]
        nodes, entries, payoff = roll_out(graph, logits, self.episodes, random)
        directions: list[Floats] = []
        for step, (own, _, _) in enumerate(self._entries):
            phi = self._phi[step][nodes[step] - graph.layer_start[step]]
            baseline = phi @ np.linalg.lstsq(phi, payoff, rcond=None)[0]
            weight = np.full(payoff.size, 1.0 / payoff.size)
            directions.append(self._fit(step, chosen, entries[step] - own.start, weight, payoff - baseline))
        return directions

    def _fit(self, step: int, chosen: Floats, entry: Ints, weight: Floats, advantage: Floats) -> Floats:
        """Regress advantages at some entries of a layer on the gradients of their log-probabilities."""
        own, node, action = self._entries[step]
        phi, actions = self._phi[step], self.graph.budgets.lattice.model.n_actions
        policy = np.zeros((len(phi), actions))
        policy[node, action] = chosen[own]
        score = np.eye(actions)[action[entry]] - policy[node[entry]]
        gradient = (phi[node[entry]][:, :, None] * score[:, None, :]).reshape(entry.size, -1)
        gram = gradient.T @ (weight[:, None] * gradient)
        solution = least_squares_in_ball(gram, gradient.T @ (weight * advantage), self.norm_bound)
        return solution.reshape(phi.shape[1], actions)


def least_squares_in_ball(gram: Floats, moment: Floats, radius: float) -> Floats:
    r"""The shortest minimiser of :math:`w^\top G w - 2 w^\top m` with :math:`\|w\| \le` `radius`.

    On the boundary it is :math:`(G + \lambda I)^{-1} m`, for the multiplier :math:`\lambda` of that norm.

    >>> least_squares_in_ball(np.eye(2), np.array([3.0, 4.0]), 10.0).tolist()
    [3.0, 4.0]
    >>> np.round(least_squares_in_ball(np.eye(2), np.array([3.0, 4.0]), 1.0), 6).tolist()
    [0.6, 0.8]
    """
    scale, basis = np.linalg.eigh(gram)
    kept = scale > scale[-1] * scale.size * np.finfo(np.float64).eps
    scale, basis = scale[kept], basis[:, kept]
    target = basis.T @ moment
    if np.linalg.norm(target / scale) <= radius:
        return basis @ (target / scale)
    low, high = 0.0, float(np.linalg.norm(target)) / radius
    for _ in range(100):
        middle = (low + high) / 2
        too_long = np.linalg.norm(target / (scale + middle)) > radius
        low, high = (middle, high) if too_long else (low, middle)
    return basis @ (target / (scale + high))


def _exact_advantages(graph: AugmentedGraph, logits: Floats, chosen: Floats) -> tuple[Floats, Floats]:
    """Each entry's probability of being played, under first budgets from Unif(B), and its advantage."""
    rows, layout = graph.rows, graph.layout
    mass = np.zeros(graph.states.size)
    mass[graph.first_nodes] = graph.start[:, None] / graph.budgets.values.size
    _kernels.spread(rows, layout, logits, mass)
    value = node_values(graph)
    seen = np.ones(rows.outcome_start.size - 1, dtype=np.bool_)
    _kernels.back_up(rows, layout, rows.probability, seen, 0.0, logits.copy(), value)
    node = np.repeat(np.arange(layout.row.size), np.diff(layout.entry_start))
    pair = rows.pair_start[layout.row[node]] + np.arange(node.size) - layout.entry_start[node]
    count = rows.outcome_start[pair + 1] - rows.outcome_start[pair]
    first = np.cumsum(count) - count
    outcome = np.repeat(rows.outcome_start[pair] - first, count) + np.arange(count.sum())
    quality = np.add.reduceat(rows.probability[outcome] * value[layout.successor], first)
    return mass[node] * chosen, quality - value[node]
