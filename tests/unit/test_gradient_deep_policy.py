"""Network policies: their exact returns against brute force and episodes, on disk and back, at other levels."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from ocerl.errors import OcerlError
from ocerl.gradient.deep.actions import actions_of
from ocerl.gradient.deep.agent import Agent
from ocerl.gradient.deep.config import DeepConfig
from ocerl.gradient.deep.driver import Greedy
from ocerl.gradient.deep.evaluation import Sample
from ocerl.gradient.deep.inputs import Inputs, Moments
from ocerl.gradient.deep.policy import NetworkPolicy
from ocerl.gradient.deep.world import driver_of, open_world
from ocerl.mdp import TabularMDP, random_mdp, zoo
from ocerl.planning import evaluate
from ocerl.risk import CVaR

SURVEY = Sample(
    np.array([0.0, 1.0, 2.0]), np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 2.0, 2.0, 2.0], [-4.0, 0.0, 4.0, 8.0]])
)
"""CVaR at 1/4: 1, 0 and -4; at 1/2: 1, 1 and -2; the means 1, 1.5 and 2."""


def random_policy(observations: Any, actions: Any, seed: int = 0, horizon: int = 3, discount: float = 1.0) -> Any:
    """Large random weights, so that what is done depends on state, time and budget."""
    inputs = Inputs.of(observations, time_knots=np.arange(float(horizon)), knots=np.array([-1.0, 0.0, 1.0, 4.0]))
    distribution = actions_of(actions)
    critic = "value" if distribution.continuous else "q"
    agent = Agent(jax.random.key(seed), inputs, distribution, hidden=(8,), critic=critic)
    keys = iter(jax.random.split(jax.random.key(seed + 1), 100))
    agent = jax.tree.map(lambda w: w + jax.random.normal(next(keys), w.shape) if eqx.is_inexact_array(w) else w, agent)
    size = len(inputs.groups)
    moments = Moments(jnp.float32(9.0), jnp.linspace(-0.5, 0.5, size), jnp.linspace(1.0, 2.0, size))
    return NetworkPolicy(Greedy(agent, inputs, moments), horizon, discount, 1.25, "cvar:0.25", SURVEY)


def on(model: TabularMDP, seed: int = 0) -> NetworkPolicy:
    spaces_of = spaces.Discrete(model.n_states), spaces.Discrete(model.n_actions)
    return random_policy(*spaces_of, seed, model.require_horizon(), model.discount)


def enumerated(model: TabularMDP, policy: NetworkPolicy) -> dict[float, float]:
    """The distribution of the return by playing every sequence of outcomes with `reset`, `act` and `observe`."""
    found: dict[float, float] = defaultdict(float)

    def play(state: int, rewards: tuple[float, ...], actions: tuple[tuple[int, float], ...], chance: float) -> None:
        step = len(actions)
        if step == model.require_horizon():
            total = sum(model.discount**k * reward for k, reward in enumerate(rewards))
            found[round(total, 9)] += chance
            return
        policy.reset()
        for seen, reward in actions:
            policy.act(seen)
            policy.observe(reward)
        action = policy.act(state)
        t = model.transitions(step)
        own = range(t.pair_start[state], t.pair_start[state + 1])
        pair = next((p for p in own if t.action[p] == action), own[0])
        for outcome in range(t.outcome_start[pair], t.outcome_start[pair + 1]):
            reward = float(t.reward[outcome])
            play(
                int(t.next_state[outcome]),
                (*rewards, reward),
                (*actions, (state, reward)),
                chance * float(t.probability[outcome]),
            )

    for state in np.flatnonzero(model.start):
        play(int(state), (), (), float(model.start[state]))
    return {value: chance for value, chance in sorted(found.items()) if chance > 0}


MODELS: dict[str, Callable[[], TabularMDP]] = {
    "paper": lambda: zoo.make("paper"),
    "lacking actions": lambda: random_mdp(
        3, states=4, actions=3, horizon=3, successors=2, action_sets=True, random_start=True
    ),
    "discounted": lambda: random_mdp(5, states=3, actions=2, horizon=3, successors=2, discount=0.5),
    "per step": lambda: random_mdp(8, states=3, actions=2, horizon=3, per_step=True, successors=2, rewards=(-1, 0, 2)),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("budget", [1.25, -0.5])
def test_exact_returns_are_those_of_every_sequence_of_outcomes(name: str, budget: float) -> None:
    model = MODELS[name]()
    policy = on(model).from_budget(budget)
    found, expected = evaluate(model, policy), enumerated(model, policy)
    np.testing.assert_allclose(found.values, list(expected), atol=1e-8)
    np.testing.assert_allclose(found.probabilities, list(expected.values()), atol=1e-9)


def test_the_policies_of_these_tests_look_at_everything() -> None:
    """Otherwise they could not fail: actions differ with the state, the time and the budget."""
    model = MODELS["per step"]()
    network = on(model).network
    table = np.array(
        [
            [[_act(network, s, t, b) for b in np.linspace(-2.0, 5.0, 15)] for t in range(3)]
            for s in range(model.n_states)
        ]
    )
    for axis in range(3):
        assert (np.diff(table, axis=axis) != 0).any()


def _act(network: Greedy, state: int, step: int, budget: float) -> int:
    from ocerl.envs import AugmentedObservation

    seen = AugmentedObservation(jnp.array(state), jnp.array(step), jnp.float32(budget))
    return int(network(jax.random.key(0), seen))


@pytest.mark.parametrize("name", ["lacking actions", "discounted"])
def test_exact_returns_are_those_of_compiled_episodes(name: str) -> None:
    """200 000 episodes: every frequency within 5 standard errors (a false failure in fewer than 1e-5 runs)."""
    model = MODELS[name]()
    policy, number = on(model), 200_000
    driver = driver_of(open_world(model), CVaR(0.25), DeepConfig(environments=4, rollout=2, minibatches=1))
    played = driver.returns(policy.network, np.array([policy.budget]), number, 0)[0]
    exact = evaluate(model, policy)
    assert exact.values.size > 2
    for value, chance in zip(exact.values, exact.probabilities, strict=True):
        frequency = (np.abs(played - value) < 1e-4).mean()
        assert abs(frequency - chance) <= 5 * (chance * (1 - chance) / number) ** 0.5 + 1e-6


def test_another_model_is_refused() -> None:
    policy = on(zoo.make("paper"))
    others = (zoo.make("chow"), zoo.make("paper", horizon=3), zoo.make("paper").with_(discount=0.9))
    for other in others:
        with pytest.raises(OcerlError, match="belongs to another model: it is for the states Discrete\\(3\\), 2 act"):
            evaluate(other, policy)


def test_after_the_horizon_there_is_no_action() -> None:
    policy = on(zoo.make("paper"))
    for _ in range(2):
        policy.act(0)
        policy.observe(0.0)
    with pytest.raises(OcerlError, match=r"at its horizon of 2 steps: call reset\(\) before act\(\)"):
        policy.act(0)
    policy.reset()
    assert policy.act(0) in (0, 1)


def test_the_budget_is_carried_in_units_of_the_first_step() -> None:
    policy = random_policy(spaces.Discrete(2), spaces.Discrete(2), discount=0.5)
    for reward in (1.0, 1.0, 4.0):
        policy.observe(reward)
    assert policy._budget == 1.25 - 1 - 0.5 - 1
    policy.reset()
    assert policy._budget == 1.25
    assert policy.from_budget(3)._budget == 3.0


def test_the_frontier_and_other_levels_by_hand() -> None:
    policy = on(zoo.make("paper"))
    assert [policy.at(tau=tau).budget for tau in (0.25, 1.0)] == [0.0, 2.0]
    assert policy.at("mean").budget == policy.at(CVaR(1.0)).budget == 2.0
    # At 1/2 both of the first have 1, and the second has the better mean.
    assert policy.frontier([0.25, 0.5, 1.0]) == [
        ("cvar:0.25", 0.0, 1.0, 1.0),
        ("cvar:0.5", 1.0, 1.0, 1.5),
        ("cvar:1", 2.0, 2.0, 2.0),
    ]
    for wrong in ({}, {"risk": "mean", "tau": 0.5}):
        with pytest.raises(OcerlError, match=r"at\('cvar:0.1'\) or at\(tau=0.1\)"):
            policy.at(**wrong)  # pyright: ignore
    for tau in (0.0, 1.5):
        with pytest.raises(OcerlError, match="0 < tau <= 1"):
            policy.at(tau=tau)


SPACES = {
    "discrete": (spaces.Discrete(3, start=2), spaces.Discrete(2, start=1)),
    "box": (spaces.Box(np.float32([-1, -np.inf]), np.float32([1, np.inf])), spaces.Box(-0.1, 0.3, (2, 1))),
    "scalar": (spaces.Box(0.0, 1.0, (2,)), spaces.Box(-2.0, 2.0, ())),
    "double": (spaces.MultiDiscrete([2, 3], start=[1, 1]), spaces.Box(-0.1, 0.3, (1,), dtype=np.float64)),
    "nested": (
        spaces.Dict(
            a=spaces.Tuple((spaces.MultiBinary(2), spaces.Discrete(2))), b=spaces.Box(0, 255, (4, 4, 1), np.uint8)
        ),
        spaces.Discrete(4),
    ),
}


@pytest.mark.parametrize("name", SPACES)
def test_a_policy_on_disk_acts_the_same(tmp_path: Path, name: str) -> None:
    observations, actions = SPACES[name]
    policy: NetworkPolicy = random_policy(observations, actions)
    policy.save(tmp_path)
    again = NetworkPolicy.load(tmp_path)
    assert (again.horizon, again.discount, again.budget, again.risk) == (3, 1.0, 1.25, "cvar:0.25")
    observations.seed(0)
    for _ in range(3):
        seen = observations.sample()
        mine, theirs = policy.act(seen), again.act(seen)
        np.testing.assert_array_equal(mine, theirs)
        assert actions.contains(mine)
        assert actions.contains(theirs)
        for one in (policy, again):
            one.observe(0.75)
    assert again.survey.budgets.tolist() == SURVEY.budgets.tolist()
    assert again.survey.returns.tolist() == SURVEY.returns.tolist()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["policy.json", "policy.npz"]
    # Plain arrays: nothing is unpickled.
    with np.load(tmp_path / "policy.npz", allow_pickle=False) as stored:
        assert all(stored[name].dtype != object for name in stored.files)


def test_a_scalar_action_keeps_its_fraction() -> None:
    found = [random_policy(*SPACES["scalar"], seed).act(np.float32([0.2, 0.9])) for seed in range(5)]
    assert all(action.dtype == np.float32 for action in found)
    assert any(float(action) != round(float(action)) for action in found)


def _arrays(**changes: Any) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        with np.load(folder / "policy.npz") as stored:
            arrays = {name: stored[name] for name in stored.files}
        for name, to in changes.items():
            key = name.replace("_", "-") if name.startswith("weight") else name
            if to is None:
                del arrays[key]
            else:
                arrays[key] = to(arrays[key])
        np.savez(folder / "policy.npz", **arrays)

    return change


def _about(**changes: Any) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        about = json.loads((folder / "policy.json").read_text())
        (folder / "policy.json").write_text(json.dumps({**about, **changes}))

    return change


def _cut(part: float) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        whole = (folder / "policy.npz").read_bytes()
        (folder / "policy.npz").write_bytes(whole[: int(len(whole) * part)])

    return change


def _flip(folder: Path) -> None:
    """Every byte of the middle third, over compressed arrays."""
    whole = bytearray((folder / "policy.npz").read_bytes())
    third = len(whole) // 3
    whole[third : 2 * third] = bytes(255 - byte for byte in whole[third : 2 * third])
    (folder / "policy.npz").write_bytes(whole)


def _one_array() -> bytes:
    file = BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


def _nan(values: Any) -> Any:
    return np.where(np.arange(values.size).reshape(values.shape) == 0, np.nan, values)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no json": lambda folder: (folder / "policy.json").unlink(),
    "no arrays": lambda folder: (folder / "policy.npz").unlink(),
    "empty json": lambda folder: (folder / "policy.json").write_text(""),
    "a list": lambda folder: (folder / "policy.json").write_text("[]"),
    "binary json": lambda folder: (folder / "policy.json").write_bytes(b"\xff\xfe\x00"),
    "empty arrays": _cut(0.0),
    "cut arrays": _cut(0.5),
    "nearly whole arrays": _cut(0.98),
    "flipped": _flip,
    "a single array": lambda folder: (folder / "policy.npz").write_bytes(_one_array()),
    "pickles": lambda folder: np.savez(folder / "policy.npz", mean=np.array([{}], dtype=object)),
    "a missing weight": _arrays(weight_1=None),
    "another shape": _arrays(weight_0=lambda w: w[:, 1:]),
    "nan weights": _arrays(weight_0=_nan),
    "nan knots": _arrays(budget_knots=_nan),
    "unsorted knots": _arrays(budget_knots=lambda k: k[::-1]),
    "nan moments": _arrays(mean=_nan),
    "negative variance": _arrays(variance=lambda v: -v),
    "moments of something else": _arrays(mean=lambda m: m[1:]),
    "nan returns": _arrays(survey_returns=_nan),
    "another survey": _arrays(survey_budgets=lambda b: b[1:]),
    "another kind": _about(kind="table"),
    "a later format": _about(format=99),
    "a nan budget": _about(budget=float("nan")),
    "no horizon": _about(horizon=0),
    "a horizon in words": _about(horizon="long"),
    "a discount above 1": _about(discount=2.0),
    "no such risk": _about(risk="cvar:7"),
    "no such space": _about(observation_space={"kind": "Sphere"}),
    "an impossible space": _about(action_space={"kind": "Discrete", "n": -2, "start": 0}),
    "other layers": _about(hidden=[9]),
    "layers in words": _about(hidden="wide"),
    "another critic": _about(critic="value"),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy")
    random_policy(spaces.Box(0.0, 1.0, (2,)), spaces.Discrete(2)).save(folder)
    return folder


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_folder_is_told_in_one_line(saved: Path, tmp_path: Path, damage: str) -> None:
    for name in ("policy.json", "policy.npz"):
        (tmp_path / name).write_bytes((saved / name).read_bytes())
    assert NetworkPolicy.load(tmp_path).budget == 1.25
    DAMAGES[damage](tmp_path)
    with pytest.raises(OcerlError, match="does not hold a saved network policy") as told:
        NetworkPolicy.load(tmp_path)
    assert "\n" not in str(told.value)


def test_saving_twice_leaves_the_second(tmp_path: Path) -> None:
    policy = on(zoo.make("paper"))
    policy.save(tmp_path)
    replace(policy, budget=0.5).save(tmp_path)
    assert NetworkPolicy.load(tmp_path).budget == 0.5
