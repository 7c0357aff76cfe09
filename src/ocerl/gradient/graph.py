r"""The augmented MDP of Section 2.1 as a layered graph: the pairs `(s, b)` met from :math:`\mathcal B`.

A node is a step, a state and a position on the lattice (minus the budget, in units, see `planning.grid`);
layer `h` holds the nodes of step `h`. A node owns one *entry* for each action, where tables of logits and
probabilities live, and one *edge* for each outcome of its state, which leads to a node of the next layer.
The budget's move is known and deterministic, so a learner may use all of the graph but the probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.gradient.budgets import FirstBudgets
from ocerl.gradient.layers import Ints, Layer, first_layer, next_layer
from ocerl.mdp.augmentation import terminal_utility
from ocerl.planning.memory import available_memory
from ocerl.risk import Risk

Floats = NDArray[np.float64]


class Rows(NamedTuple):
    """The model's transitions joined to one table: row `number of the step's table · states + s`."""

    pair_start: Ints
    outcome_start: Ints
    probability: Floats


class Layout(NamedTuple):
    """The arrays the compiled loops walk along."""

    row: NDArray[np.int32]
    """The row of `Rows` that each node (but the last layer's) plays."""
    entry_start: Ints
    edge_start: Ints
    successor: NDArray[np.int32]
    """The node each edge leads to."""


@dataclass(frozen=True, eq=False)
class AugmentedGraph:
    """The augmented MDP of a model, a risk and a set of first budgets."""

    risk: Risk
    budgets: FirstBudgets
    rows: Rows
    layout: Layout
    layer_start: Ints
    """The nodes of layer `h` are `layer_start[h] : layer_start[h + 1]`; the last layer is the end."""
    states: NDArray[np.int32]
    positions: Ints
    payoff: Floats
    r""":math:`u(-b_{H+1})` at the nodes of the last layer."""
    start: Floats
    """The distribution over the states of the first layer."""

    @property
    def length(self) -> int:
        return self.layer_start.size - 2

    @property
    def n_entries(self) -> int:
        return int(self.layout.entry_start[-1])

    @cached_property
    def first_nodes(self) -> NDArray[np.int64]:
        """`[start states, first budgets]`: where an episode begins."""
        return np.ascontiguousarray(np.arange(self.layer_start[1]).reshape(self.start.size, -1)[:, ::-1])

    @cached_property
    def most_actions(self) -> int:
        return int(np.diff(self.layout.entry_start).max())

    @cached_property
    def span(self) -> float:
        """The width of the range of returns: 1 in the paper's units."""
        low, high = self.budgets.lattice.model.return_range()
        return max(high - low, self.budgets.lattice.unit)


def augmented_graph(risk: Risk, budgets: FirstBudgets) -> AugmentedGraph:
    """Build the graph, layer by layer.

    >>> from ocerl.gradient.budgets import first_budgets
    >>> from ocerl.mdp import zoo
    >>> from ocerl.risk import parse_risk
    >>> risk = parse_risk("cvar:0.25")
    >>> graph = augmented_graph(risk, first_budgets(zoo.make("paper"), risk))
    >>> graph.layer_start.tolist()  # five first budgets; less 0 or 1, seven are left
    [0, 5, 12, 23]
    """
    lattice, model = budgets.lattice, budgets.lattice.model
    layers = [first_layer(lattice, budgets.positions)]
    edges: list[Ints] = []
    room = available_memory() // 2
    for step in range(lattice.length):
        layer, successor = next_layer(lattice, step, layers[-1])
        room -= 40 * successor.size
        if room < 0:
            raise OcerlError(
                f"{budgets.values.size} first budgets over {model.n_states} states and {lattice.length} "
                "steps do not fit into memory: fewer first budgets or a coarser resolution would"
            )
        edges.append(successor)
        layers.append(layer)
    layer_start = _starts(np.array([states.size for states, _ in layers]))
    with np.errstate(over="ignore"):
        payoff = np.asarray(terminal_utility(risk, -lattice.unit * layers[-1][1]), dtype=np.float64)
    if not np.isfinite(payoff).all():
        raise OcerlError(
            f"the utility of {risk.name} is not finite on the returns of {model.name} minus the first "
            "budgets: policy gradients need finite pay-offs"
        )
    return AugmentedGraph(
        risk=risk,
        budgets=budgets,
        rows=_rows(budgets),
        layout=_layout(budgets, layers, edges, layer_start),
        layer_start=layer_start,
        states=np.concatenate([states for states, _ in layers]).astype(np.int32),
        positions=np.concatenate([positions for _, positions in layers]),
        payoff=payoff,
        start=model.start[model.start > 0],
    )


def _rows(budgets: FirstBudgets) -> Rows:
    tables = budgets.lattice.model.steps
    pairs = _starts(np.array([t.n_pairs for t in tables]))
    outcomes = _starts(np.array([t.probability.size for t in tables]))
    return Rows(
        pair_start=np.concatenate(
            [t.pair_start[:-1] + pair for t, pair in zip(tables, pairs, strict=False)] + [pairs[-1:]]
        ),
        outcome_start=np.concatenate(
            [t.outcome_start[:-1] + outcome for t, outcome in zip(tables, outcomes, strict=False)] + [outcomes[-1:]]
        ),
        probability=np.concatenate([t.probability for t in tables]),
    )


def _layout(budgets: FirstBudgets, layers: list[Layer], edges: list[Ints], layer_start: Ints) -> Layout:
    model = budgets.lattice.model
    rows, entries, out = [], [], []
    for step, (states, _) in enumerate(layers[:-1]):
        t = model.transitions(step)
        rows.append(states + (0 if model.stationary else step * model.n_states))
        entries.append(t.pair_start[states + 1] - t.pair_start[states])
        out.append(t.outcome_start[t.pair_start[states + 1]] - t.outcome_start[t.pair_start[states]])
    return Layout(
        row=np.concatenate(rows).astype(np.int32),
        entry_start=_starts(np.concatenate(entries)),
        edge_start=_starts(np.concatenate(out)),
        successor=np.concatenate([successor + layer_start[step + 1] for step, successor in enumerate(edges)]).astype(
            np.int32
        ),
    )


def _starts(counts: Ints) -> Ints:
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
