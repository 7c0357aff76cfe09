"""Policies on disk: what is read back does the same, and a folder that was damaged is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ocerl.errors import OcerlError
from ocerl.mdp import TabularMDP, zoo
from ocerl.planning import BudgetPolicy, MarkovPolicy, evaluate, load_policy, plan, save_policy, simulate

COIN = TabularMDP.from_outcomes(
    {"s": {"go": [(0.5, "s", 2**0.5), (0.5, "s", 1.0)], "stay": [(1.0, "s", 3**0.5 / 2)]}}, horizon=3, discount=0.9
)
"""No lattice holds these rewards."""
EACH_STEP = TabularMDP.from_outcomes(
    [
        {"s": {"a": [(0.25, "t", 0.0), (0.75, "t", 2.0)], "b": [(1.0, "t", 1.0)]}},
        {"t": {"b": [(0.5, "s", 0.0), (0.5, "s", 4.0)], "c": [(1.0, "s", 1.0)]}, "s": {"a": [(1.0, "s", 0.0)]}},
    ],
    start={"s": 0.75, "t": 0.25},
)


def drawn() -> MarkovPolicy:
    """On the paper's MDP: in s2, a1 with probability 1/4 and a2 with 3/4."""
    model = zoo.make("paper")
    table = np.zeros((2, model.n_states, 2))
    table[..., 0] = 1.0
    table[1, model.states.index("s2")] = 0.25, 0.75
    return MarkovPolicy.from_table(model, table)


POLICIES: dict[str, Callable[[], BudgetPolicy | MarkovPolicy]] = {
    "cvar": lambda: plan(zoo.make("paper"), "cvar:0.25").policy,
    "budget off the lattice": lambda: plan(zoo.make("paper"), "mean-variance:1").policy,
    "rounded rewards": lambda: plan(COIN, "cvar:0.5", resolution=0.01).policy,
    "each step, random start": lambda: plan(EACH_STEP, "mean-cvar:0.5,0.25").policy,
    "markov": lambda: plan(EACH_STEP, "entropic:-1").policy,
    "drawn": drawn,
}


def model_of(policy: BudgetPolicy | MarkovPolicy) -> TabularMDP:
    return policy.lattice.model if isinstance(policy, BudgetPolicy) else policy.model


@pytest.mark.parametrize("name", POLICIES)
def test_the_same_policy_comes_back(name: str, tmp_path: Path) -> None:
    policy = POLICIES[name]()
    save_policy(policy, tmp_path / "new" / "folder")
    again = load_policy(tmp_path / "new" / "folder")
    model = model_of(policy)
    assert type(again) is type(policy)
    assert (model_of(again).states, model_of(again).actions) == (model.states, model.actions)
    for evaluated_on in (model, model_of(again)):
        returns, expected = evaluate(evaluated_on, again), evaluate(model, policy)
        assert returns.values.tolist() == expected.values.tolist()
        assert returns.probabilities.tolist() == expected.probabilities.tolist()
    assert simulate(model, again, 200, seed=3).tolist() == simulate(model, policy, 200, seed=3).tolist()


def test_it_acts_on_its_budget(tmp_path: Path) -> None:
    """On the paper's MDP: a1 in s2 after a reward of 0, a2 after 1."""
    model = zoo.make("paper")
    save_policy(plan(model, "cvar:0.25").policy, tmp_path)
    policy = load_policy(tmp_path)
    first, second = model.states.index("s1"), model.states.index("s2")
    chosen: list[Any] = []
    for reward in (0.0, 1.0, 0.0):
        policy.reset()
        policy.act(first)
        policy.observe(reward)
        chosen.append(model.actions[policy.act(second)])
    assert chosen == ["a1", "a2", "a1"]


def test_drawn_actions_are_drawn_again(tmp_path: Path) -> None:
    """1/4 of (a1: 0, 1, 1.5, 2.5 with 1/8, 1/8, 3/8, 3/8) and 3/4 of (a2: 0.5, 1.5 with 1/2 each)."""
    save_policy(drawn(), tmp_path)
    returns = evaluate(zoo.make("paper"), load_policy(tmp_path))
    assert returns.values.tolist() == [0.0, 0.5, 1.0, 1.5, 2.5]
    assert returns.probabilities == pytest.approx([1 / 32, 3 / 8, 1 / 32, 3 / 32 + 3 / 8, 3 / 32])


def test_a_policy_read_back_can_be_saved_where_it_lies(tmp_path: Path) -> None:
    save_policy(POLICIES["cvar"](), tmp_path)
    save_policy(load_policy(tmp_path), tmp_path)
    assert evaluate(zoo.make("paper"), load_policy(tmp_path)).certainty_equivalent("cvar:0.25") == 0.75


def test_names(tmp_path: Path) -> None:
    """Numbers, text and tuples of them come back as they are, anything else as its text."""
    labels = [(1, ("x", 2.5)), 7, "seven", 0.5, None, np.int64(3), Fraction(1, 3)]
    model = TabularMDP.from_outcomes({label: {("go", 1): [(1.0, label, 1.0)]} for label in labels}, horizon=1)
    save_policy(plan(model, "cvar:0.5").policy, tmp_path)
    again = model_of(load_policy(tmp_path))
    assert again.states == ((1, ("x", 2.5)), 7, "seven", 0.5, None, 3, "1/3")
    assert again.actions == (("go", 1),)


class Executed:
    """Unpickling this makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("file", ["policy.npz", "model.npz", "slots-0001.npy"])
def test_nothing_is_executed(file: str, tmp_path: Path) -> None:
    save_policy(POLICIES["cvar"](), tmp_path)
    trap = np.array([Executed(tmp_path / "executed")], dtype=object)
    if file.endswith(".npz"):
        with np.load(tmp_path / file) as stored:
            names = stored.files
        np.savez(tmp_path / file, **dict.fromkeys(names, trap))
    else:
        np.save(tmp_path / file, trap, allow_pickle=True)
    with pytest.raises(OcerlError, match="does not hold a saved policy"):
        load_policy(tmp_path)
    assert not (tmp_path / "executed").exists()
    np.load(tmp_path / file, allow_pickle=True)[names[0] if file.endswith(".npz") else 0]
    assert (tmp_path / "executed").exists(), "the trap is one"


def edit_json(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        about = json.loads((folder / "policy.json").read_text())
        change(about)
        (folder / "policy.json").write_text(json.dumps(about))

    return edit


def edit_arrays(file: str, change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        with np.load(folder / file) as stored:
            arrays = {name: stored[name] for name in stored.files}
        change(arrays)
        np.savez(folder / file, **arrays)

    return edit


def edit_table(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        np.save(folder / "slots-0001.npy", change(np.load(folder / "slots-0001.npy")))

    return edit


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no policy.json": lambda folder: (folder / "policy.json").unlink(),
    "no model.npz": lambda folder: (folder / "model.npz").unlink(),
    "no table": lambda folder: (folder / "slots-0000.npy").unlink(),
    "no json": lambda folder: (folder / "policy.json").write_text('{"format": 1,'),
    "no text": lambda folder: (folder / "policy.json").write_bytes(b"\xff\xfe\xfd"),
    "a list": lambda folder: (folder / "policy.json").write_text("[1, 2]"),
    "another format": edit_json(lambda about: about.update(format=2)),
    "another kind": edit_json(lambda about: about.update(kind="forest")),
    "no lattice": edit_json(lambda about: about.pop("lattice")),
    "a unit of nan": edit_json(lambda about: about["lattice"].update(unit=float("nan"))),
    "a unit of 0": edit_json(lambda about: about["lattice"].update(unit=0)),
    "another rounding": edit_json(lambda about: about["lattice"].update(rounding="sideways")),
    "too long": edit_json(lambda about: about["lattice"].update(length=3)),
    "a budget of text": edit_json(lambda about: about.update(budget="much")),
    "no positions": edit_json(lambda about: about.update(low=[])),
    "a state twice": edit_json(lambda about: about["model"].update(states=["s1", "s1", "end"])),
    "a state less": edit_json(lambda about: about["model"].update(states=["s1", "s2"])),
    "an action less": edit_json(lambda about: about["model"].update(actions=["a1"])),
    "half a horizon": edit_json(lambda about: about["model"].update(horizon=1.5)),
    "no horizon": edit_json(lambda about: about["model"].update(horizon=None)),
    "a discount of 2": edit_json(lambda about: about["model"].update(discount=2)),
    "cut": lambda folder: (folder / "policy.npz").write_bytes((folder / "policy.npz").read_bytes()[:-40]),
    "empty arrays": lambda folder: (folder / "policy.npz").write_bytes(b""),
    "empty table": lambda folder: (folder / "slots-0001.npy").write_bytes(b""),
    "cut table": lambda folder: (folder / "slots-0001.npy").write_bytes((folder / "slots-0001.npy").read_bytes()[:-2]),
    "no mean's policy": edit_arrays("policy.npz", lambda arrays: arrays.pop("outside")),
    "the mean's slots": edit_arrays("policy.npz", lambda arrays: arrays["outside"].fill(2)),
    "probabilities": edit_arrays("model.npz", lambda arrays: arrays["probability-0"].fill(0.3)),
    "nan": edit_arrays("model.npz", lambda arrays: arrays["reward-0"].fill(np.nan)),
    "next states": edit_arrays("model.npz", lambda arrays: arrays["next_state-0"].fill(3)),
    "negative states": edit_arrays("model.npz", lambda arrays: arrays["state-0"].fill(-1)),
    "actions": edit_arrays("model.npz", lambda arrays: arrays["action-0"].fill(2)),
    "start": edit_arrays("model.npz", lambda arrays: arrays["start"].fill(0.2)),
    "slots": edit_table(lambda table: table + 2),
    "negative slots": edit_table(lambda table: table.astype(np.int8) - 1),
    "slots that are numbers": edit_table(lambda table: table + 0.5),
    "rows": edit_table(lambda table: table[:-1]),
    "dimensions": edit_table(lambda table: table.ravel()),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_folder_is_refused(name: str, tmp_path: Path) -> None:
    save_policy(POLICIES["cvar"](), tmp_path)
    assert load_policy(tmp_path)
    DAMAGES[name](tmp_path)
    with pytest.raises(OcerlError) as error:
        load_policy(tmp_path)
    message = str(error.value)
    assert message.startswith(f"{tmp_path} does not hold a saved policy")
    assert "\n" not in message


@pytest.mark.parametrize(
    "damage",
    [
        edit_arrays("policy.npz", lambda arrays: arrays.pop("choice-1")),
        edit_arrays("policy.npz", lambda arrays: arrays.update({"choice-1": arrays["choice-1"][:-1]})),
        edit_arrays("policy.npz", lambda arrays: arrays["choice-1"].fill(0.3)),
        edit_arrays("policy.npz", lambda arrays: arrays["choice-1"].fill(np.nan)),
        edit_arrays("policy.npz", lambda arrays: arrays["slots"].fill(2)),
    ],
    ids=["missing", "short", "sum", "nan", "slots"],
)
def test_damaged_probabilities_are_refused(damage: Callable[[Path], None], tmp_path: Path) -> None:
    save_policy(drawn(), tmp_path)
    damage(tmp_path)
    with pytest.raises(OcerlError, match="does not hold a saved policy"):
        load_policy(tmp_path)


@pytest.mark.parametrize("name", ["", "nowhere"])
def test_no_policy_there(name: str, tmp_path: Path) -> None:
    with pytest.raises(OcerlError, match=r"does not hold a saved policy.*policy\.json"):
        load_policy(tmp_path / name)


def test_a_policy_is_not_evaluated_on_another_model() -> None:
    """Positions are counted from the model's own rewards: on others they would mean something else."""
    paper = zoo.make("paper")
    policy = plan(paper, "cvar:0.25").policy
    assert evaluate(paper.with_(start="s1"), policy).certainty_equivalent("cvar:0.25") == 0.75
    for other in (paper.with_(horizon=3), zoo.make("chow")):
        with pytest.raises(OcerlError, match="another model"):
            evaluate(other, policy)
