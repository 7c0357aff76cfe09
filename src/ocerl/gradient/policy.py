"""Policies of the augmented MDP that draw actions from a table of probabilities and carry their budget."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.gradient.forward import forward
from ocerl.gradient.graph import AugmentedGraph
from ocerl.gradient.layers import Ints
from ocerl.mdp.lattice import Lattice
from ocerl.mdp.tabular import TabularMDP
from ocerl.planning import storage
from ocerl.planning.distribution import ReturnDistribution
from ocerl.planning.evaluate import _evaluate  # pyright: ignore[reportPrivateUsage]
from ocerl.planning.policy import Policy

Floats = NDArray[np.float64]

FORMAT = 1


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the table's probabilities belong: all steps' nodes one after the other, each step's in order."""

    layer_start: Ints
    states: Ints
    positions: Ints
    entry_start: Ints

    def find(self, step: int, states: Ints, positions: Ints) -> Ints:
        """The numbers of some nodes of a step; -1 for one that the table does not hold."""
        own = slice(self.layer_start[step], self.layer_start[step + 1])
        low = min(int(self.positions[own].min()), int(positions.min()))
        width = max(int(self.positions[own].max()), int(positions.max())) - low + 1
        keys = self.states[own] * width + (self.positions[own] - low)
        wanted = states * width + (positions - low)
        place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        return np.where(keys[place] == wanted, place + int(self.layer_start[step]), -1)


@dataclass(eq=False)
class StochasticBudgetPolicy(Policy):
    r"""A table :math:`\pi_h(a \mid s, b)` with its first budget: it carries its position along.

    At a pair the table does not hold, which no episode from a first budget of :math:`\mathcal B` meets,
    actions are drawn uniformly.
    """

    lattice: Lattice
    first_position: int
    budget: float
    layout: Layout
    probabilities: Floats
    seed: int = 0
    _step: int = field(default=0, init=False)
    _position: int = field(default=0, init=False)
    _random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        # Not the stream that an environment of the same seed draws from.
        self._random = np.random.default_rng([self.seed, 1])
        self.reset()

    @classmethod
    def of(cls, graph: AugmentedGraph, probabilities: Floats, chosen: int) -> StochasticBudgetPolicy:
        """The policy of a table over a graph's entries, begun with first budget number `chosen`."""
        inner = graph.layout.row.size
        layout = Layout(
            graph.layer_start[:-1],
            graph.states[:inner].astype(np.int64),
            graph.positions[:inner],
            graph.layout.entry_start,
        )
        position, budget = int(graph.budgets.positions[chosen]), float(graph.budgets.values[chosen])
        return cls(graph.budgets.lattice, position, budget, layout, probabilities)

    def from_budget(self, budget: float) -> StochasticBudgetPolicy:
        """The same policy, begun with another first budget."""
        position = round((self.lattice.floor - budget) / self.lattice.unit)
        return replace(self, first_position=position, budget=budget)

    def rounded(self) -> StochasticBudgetPolicy:
        """The deterministic policy that takes the most probable action, the first of equals."""
        begin, count = self.layout.entry_start[:-1], np.diff(self.layout.entry_start)
        top = np.repeat(np.maximum.reduceat(self.probabilities, begin), count)
        candidates = np.where(self.probabilities == top, np.arange(top.size), top.size)
        certain = np.zeros(top.size)
        certain[np.minimum.reduceat(candidates, begin)] = 1.0
        return replace(self, probabilities=certain)

    def choices(self, step: int, states: Ints, positions: Ints) -> Floats:
        """The probabilities of all actions at some nodes, one after the other."""
        t = self.lattice.model.transitions(step)
        count = t.pair_start[states + 1] - t.pair_start[states]
        result = np.repeat(1.0 / count, count)
        if step < self.lattice.length:
            node = self.layout.find(step, states, positions)
            known = np.repeat(node >= 0, count)
            offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
            entry = np.repeat(self.layout.entry_start[node], count) + offset
            result[known] = self.probabilities[entry[known]]
        return result

    def reset(self) -> None:
        self._step, self._position = 0, self.first_position

    def act(self, state: int) -> int:
        t = self.lattice.model.transitions(self._step)
        first, last = t.pair_start[state], t.pair_start[state + 1]
        choice = self.choices(self._step, np.array([state]), np.array([self._position]))
        return int(self._random.choice(t.action[first:last], p=choice))

    def observe(self, reward: float) -> None:
        if self._step < self.lattice.length:
            self._position += int(self.lattice.round_reward(self._step, reward))
        self._step += 1

    def save(self, folder: Path | str) -> None:
        """Write the policy and its model into a folder of plain arrays and JSON."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        lattice, model = self.lattice, self.lattice.model
        about = {
            "format": FORMAT,
            "kind": "stochastic-budget",
            "budget": self.budget,
            "first_position": self.first_position,
            "seed": self.seed,
            "lattice": {
                "unit": lattice.unit,
                "rounding": lattice.rounding,
                "length": lattice.length,
                "tail": lattice.tail,
                "tail_error": list(lattice.tail_error),
            },
            "model": storage.describe_model(model),
        }
        arrays: dict[str, Any] = {**vars(self.layout), "probabilities": self.probabilities}
        np.savez_compressed(folder / "policy.npz", **arrays)
        np.savez_compressed(folder / "model.npz", **storage.model_arrays(model))  # pyright: ignore[reportArgumentType]
        (folder / "policy.json").write_text(json.dumps(about, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path | str) -> StochasticBudgetPolicy:
        """Read a policy back from a folder that `save` wrote; nothing in it is executed."""
        folder = Path(folder)
        try:
            about = json.loads((folder / "policy.json").read_text())
            if about["kind"] != "stochastic-budget" or about["format"] != FORMAT:
                raise ValueError(f"kind {about['kind']}, format {about['format']}")
            with (folder / "policy.npz").open("rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            model = storage.read_model(about["model"], folder)
            grid = about["lattice"]
            tail_error = (float(grid["tail_error"][0]), float(grid["tail_error"][1]))
            lattice = Lattice(model, grid["unit"], grid["rounding"], grid["length"], grid["tail"], tail_error)
            probabilities = arrays.pop("probabilities")
            layout = Layout(**arrays)
            return cls(lattice, about["first_position"], about["budget"], layout, probabilities, about["seed"])
        except (OSError, KeyError, ValueError, TypeError, BadZipFile) as error:
            raise OcerlError(
                f"{folder} does not hold a saved stochastic policy ({type(error).__name__}: {error})"
            ) from error


@_evaluate.register
def _(policy: StochasticBudgetPolicy, model: TabularMDP, resolution: float | None) -> ReturnDistribution:
    return forward(policy.lattice.on(model), policy.first_position, policy.choices)
