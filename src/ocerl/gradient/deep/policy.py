r"""Trained networks as policies that carry their budget: `reset()`, `act(observation)`, `observe(reward)`.

One network serves every first budget. For CVaR and mean-CVaR the pay-off depends on :math:`\tau` by a factor only,
so that a policy trained for one level is a policy for every level: `at` chooses its first budget for another one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ocerl.envs import AugmentedObservation
from ocerl.errors import OcerlError
from ocerl.gradient.checkpoint import UNREADABLE
from ocerl.gradient.deep import spaces
from ocerl.gradient.deep.actions import Softmax, actions_of, as_played
from ocerl.gradient.deep.agent import Agent
from ocerl.gradient.deep.driver import Greedy
from ocerl.gradient.deep.evaluation import Sample
from ocerl.gradient.deep.inputs import Inputs, Moments
from ocerl.gradient.forward import forward
from ocerl.gradient.layers import Ints
from ocerl.mdp.augmentation import next_budget
from ocerl.mdp.checks import check_horizon
from ocerl.mdp.lattice import Lattice
from ocerl.mdp.tabular import TabularMDP
from ocerl.planning.distribution import ReturnDistribution
from ocerl.planning.evaluate import (
    _evaluate,  # pyright: ignore[reportPrivateUsage]
    evaluation_lattice,
)
from ocerl.planning.policy import Policy
from ocerl.risk import CVaR, Risk, parse_risk

FORMAT = 1


class FrontierPoint(NamedTuple):
    """What a policy is worth for a risk, by the returns it was surveyed with."""

    risk: str
    budget: float
    value: float
    mean: float


@dataclass(eq=False)
class NetworkPolicy(Policy):
    """The greedy policy of a trained agent with its first budget."""

    network: Greedy
    horizon: int
    discount: float
    budget: float
    """The first budget."""
    risk: str
    """The risk it was trained for."""
    survey: Sample
    """Returns of fresh episodes from first budgets over the whole range: what `at` chooses by."""
    _step: int = field(default=0, init=False)
    _budget: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._step, self._budget = 0, self.budget

    def act(self, state: Any) -> Any:
        """The action at an observation, as the environment wants it."""
        if self._step >= self.horizon:
            raise OcerlError(f"the episode is at its horizon of {self.horizon} steps: call reset() before act()")
        observation = jax.tree.map(np.asarray, state)
        action = _act(self.network, observation, np.int32(self._step), np.float32(self._budget))
        actions = self.network.agent.actions
        return int(action) if isinstance(actions, Softmax) else as_played(action, actions.space)

    def observe(self, reward: float) -> None:
        self._budget = float(next_budget(self._budget, reward, self._step, self.discount))
        self._step += 1

    def from_budget(self, budget: float) -> NetworkPolicy:
        """The same policy, begun with another first budget."""
        return replace(self, budget=float(budget))

    def at(self, risk: Risk | str | None = None, *, tau: float | None = None) -> NetworkPolicy:
        """The same policy with the best first budget for another level: `at(tau=0.1)`, or any risk."""
        wanted = _wanted(risk, tau)
        return self.from_budget(self.survey.budgets[self.survey.best(wanted)])

    def frontier(self, levels: Sequence[float]) -> list[FrontierPoint]:
        """Every CVaR level from one survey: the first budget, the CVaR and the mean."""
        return [self._point(CVaR(level)) for level in levels]

    def _point(self, risk: Risk) -> FrontierPoint:
        number = self.survey.best(risk)
        returns = self.survey.returns[number]
        value = risk.certainty_equivalent(returns).value
        return FrontierPoint(risk.name, float(self.survey.budgets[number]), value, float(returns.mean()))

    def choices(self, lattice: Lattice, step: int, states: Ints, positions: Ints) -> NDArray[np.float64]:
        """On a tabular model: 1 for the action taken at each node, 0 for its others, one node after the other.

        Positions are the units earned so far. An action that a state does not have acts as its first.
        """
        budgets = self.budget - lattice.origins[:step].sum() - lattice.unit * positions
        # A power of two, so that few sizes are compiled.
        room = 1 << int(states.size - 1).bit_length()
        padded = [np.resize(values, room) for values in (states.astype(np.int32), budgets.astype(np.float32))]
        action = np.asarray(_act(self.network, padded[0], np.full(room, step, np.int32), padded[1]))[: states.size]
        t = lattice.model.transitions(step)
        count = t.pair_start[states + 1] - t.pair_start[states]
        first = np.cumsum(count) - count
        pair = np.repeat(t.pair_start[states] - first, count) + np.arange(count.sum())
        taken = t.action[pair] == np.repeat(action, count)
        lacking = np.add.reduceat(taken, first) == 0
        taken[first[lacking]] = True
        return taken.astype(np.float64)

    def save(self, folder: Path | str) -> None:
        """Write the policy into a folder of plain arrays and JSON."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        inputs, agent = self.network.inputs, self.network.agent
        about = {
            "format": FORMAT,
            "kind": "network",
            "risk": self.risk,
            "budget": self.budget,
            "horizon": self.horizon,
            "discount": self.discount,
            "observation_space": spaces.to_json(inputs.space),
            "action_space": spaces.to_json(agent.actions.space),
            "time_knots": list(inputs.time_knots),
            "hide_budget": inputs.hide_budget,
            "hidden": list(agent.hidden),
            "critic": agent.kind,
        }
        weights = {f"weight-{number}": np.asarray(leaf) for number, leaf in enumerate(_weights(agent))}
        np.savez_compressed(
            folder / "policy.npz",
            allow_pickle=False,
            budget_knots=np.asarray(inputs.budget_knots),
            mean=np.asarray(self.network.moments.mean),
            variance=np.asarray(self.network.moments.variance),
            survey_budgets=self.survey.budgets,
            survey_returns=self.survey.returns.astype(np.float32),
            **weights,
        )
        (folder / "policy.json").write_text(json.dumps(about, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path | str) -> NetworkPolicy:
        """Read a policy back from a folder that `save` wrote; nothing in it is executed."""
        folder = Path(folder)
        try:
            about = json.loads((folder / "policy.json").read_text())
            if about["kind"] != "network" or about["format"] != FORMAT:
                raise ValueError(f"kind {about['kind']}, format {about['format']}")
            with (folder / "policy.npz").open("rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            _require_finite(arrays)
            survey = Sample(arrays.pop("survey_budgets"), arrays.pop("survey_returns").astype(np.float64))
            if survey.budgets.ndim != 1 or survey.returns.shape[:-1] != survey.budgets.shape or not survey.returns.size:
                raise ValueError(f"survey of shapes {survey.budgets.shape} and {survey.returns.shape}")
            network, (horizon, discount, budget) = _read_network(about, arrays), _read_numbers(about)
            return cls(network, horizon, discount, budget, parse_risk(about["risk"]).name, survey)
        except (*UNREADABLE, AssertionError, OcerlError) as error:
            reason = str(error).splitlines()[0] if str(error) else "nothing more is known"
            raise OcerlError(
                f"{folder} does not hold a saved network policy ({type(error).__name__}: {reason})"
            ) from error


@_evaluate.register
def _(policy: NetworkPolicy, model: TabularMDP, resolution: float | None) -> ReturnDistribution:
    lattice, actions = evaluation_lattice(model, resolution), policy.network.agent.actions
    space = policy.network.inputs.space
    fits = isinstance(actions, Softmax) and getattr(space, "n", None) == model.n_states and actions.n == model.n_actions
    if not fits or (policy.horizon, policy.discount) != (model.require_horizon(), model.discount):
        raise OcerlError(
            f"the policy belongs to another model: it is for the states {space}, {actions.n} actions, "
            f"{policy.horizon} steps and the discount {policy.discount:g}"
        )
    return forward(lattice, 0, lambda step, states, positions: policy.choices(lattice, step, states, positions))


@eqx.filter_jit
def _act(network: Greedy, observation: Any, step: Any, budget: Any) -> jax.Array:
    return network(jax.random.key(0), AugmentedObservation(observation, jnp.asarray(step), jnp.asarray(budget)))


def _wanted(risk: Risk | str | None, tau: float | None) -> Risk:
    if (risk is None) == (tau is None):
        raise OcerlError("say for which risk: at('cvar:0.1') or at(tau=0.1)")
    return CVaR(tau) if tau is not None else parse_risk(risk)  # pyright: ignore[reportArgumentType]


def _weights(agent: Agent) -> list[jax.Array]:
    return jax.tree.leaves(eqx.filter(agent, eqx.is_array))


def _require_finite(arrays: dict[str, NDArray[Any]]) -> None:
    for name, values in arrays.items():
        if not np.isfinite(values).all():
            raise ValueError(f"{name} has numbers that are not finite")


def _read_numbers(about: dict[str, Any]) -> tuple[int, float, float]:
    horizon, discount, budget = about["horizon"], float(about["discount"]), float(about["budget"])
    check_horizon(horizon)
    if not (0 < discount <= 1 and np.isfinite(budget)):
        raise ValueError(f"discount {discount}, budget {budget}")
    return horizon, discount, budget


def _read_network(about: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Greedy:
    knots = arrays["budget_knots"]
    if knots.ndim != 1 or knots.size < 2 or (np.diff(knots) <= 0).any():
        raise ValueError("budget_knots have to increase")
    inputs = Inputs.of(
        spaces.from_json(about["observation_space"]),
        time_knots=np.array(about["time_knots"]),
        knots=knots,
        hide_budget=about["hide_budget"],
    )
    actions = actions_of(spaces.from_json(about["action_space"]))
    hidden = tuple(about["hidden"])
    blank = eqx.filter_eval_shape(
        lambda: Agent(jax.random.key(0), inputs, actions, hidden=hidden, critic=about["critic"])
    )
    moments = Moments(jnp.float32(1.0), jnp.asarray(arrays["mean"]), jnp.asarray(arrays["variance"]))
    if {moments.mean.shape, moments.variance.shape} != {(len(inputs.groups),)} or (arrays["variance"] < 0).any():
        raise ValueError(f"moments of {moments.mean.shape} and {moments.variance.shape} for {inputs.space}")
    held, rest = eqx.partition(blank, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    shapes, structure = jax.tree.flatten(held)
    leaves = [arrays[f"weight-{number}"] for number in range(len(shapes))]
    for leaf, blank_leaf in zip(leaves, shapes, strict=True):
        if leaf.shape != blank_leaf.shape:
            raise ValueError(f"a weight of shape {leaf.shape} where {blank_leaf.shape} belongs")
    agent = eqx.combine(jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in leaves]), rest)
    return Greedy(agent, inputs, moments)
