"""GOLF: exact over finite classes, as brute force has it; its form over decoders, against the exact one."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from ocerl.errors import OcerlError
from ocerl.mdp import TabularMDP, random_mdp
from ocerl.mdp.rich import exogenous_lock
from ocerl.optimistic import finite_golf, golf
from ocerl.optimistic.blocks import BlockJudge, BlockWorld, block_problem
from ocerl.optimistic.finite_golf import FiniteGolf, incompleteness
from ocerl.optimistic.golf import GolfConfig, incomplete_decoders
from ocerl.optimistic.meta import optimism
from ocerl.optimistic.problem import Problem, learning_lattice, problem_of_model
from ocerl.optimistic.rows import rows_of
from ocerl.optimistic.worlds import Episode, TabularWorld, collect
from ocerl.planning import plan
from ocerl.risk import Risk, parse_risk

COIN = TabularMDP.from_outcomes(
    {
        "one": {"a": [(0.5, "one", 0.0), (0.5, "two", 1.0)], "b": [(1.0, "two", 0.0)]},
        "two": {"a": [(0.5, "two", 0.0), (0.5, "one", 1.0)], "b": [(1.0, "one", 0.0)]},
    },
    horizon=2,
    name="coin",
)


def setting(model: TabularMDP, risk: str) -> tuple[Problem, Risk, TabularWorld]:
    problem = problem_of_model(learning_lattice(model), per_step=True)
    world = TabularWorld(learning_lattice(model), problem.terminal, np.random.default_rng(0))
    return problem, parse_risk(risk), world


def random_classes(problem: Problem, risk: Risk, members: int, seed: int) -> list[np.ndarray]:
    widths = rows_of(problem, risk, 1).arrays.width[:-1]
    random = np.random.default_rng(seed)
    return [random.uniform(-4, 0, (members, problem.n_states, int(width), 2)) for width in widths]


def episodes(problem: Problem, budgets: np.ndarray, world: TabularWorld, count: int) -> list[Episode]:
    random, found = np.random.default_rng(1), []
    for _ in range(count):
        state, shown = world.reset(), Episode([], [], [], float(random.choice(budgets)))
        shown.states.append(state)
        for _ in range(problem.horizon):
            action = int(random.integers(2))
            state, reward, _ = world.step(action)
            shown.states.append(state)
            shown.actions.append(action)
            shown.rewards.append(reward)
        found.append(shown)
    return found


def brute_force(
    classes: list[np.ndarray], shown: list[Episode], beta: float, groups: list[np.ndarray]
) -> dict[float, float]:
    """All pairs (f1, f2), with budgets and the pay-off written out: CVaR_.25 of at most two rewards of 0 or 1.

    The columns of step 1 are the budgets 2, 1, 0 (from the left: what is earned less the budget is -2 … 0), of step
    2 the budgets 1, 0. Above a row's largest budget values fall by 4 for each unit; below 0 they are 0 in the table.
    """
    utility = lambda t: 4 * min(t, 0.0)  # noqa: E731

    def read(table: np.ndarray, most: int, state: int, budget: float) -> np.ndarray:
        column = min(max(most - round(budget), 0), most)
        return table[state, column] - 4 * max(budget - most, 0.0)

    losses = np.zeros((2, len(classes[0]), len(classes[1])))
    for (i, f1), (j, f2) in itertools.product(enumerate(classes[0]), enumerate(classes[1])):
        for e in shown:
            b1 = e.budget
            b2 = min(max(b1, 0.0), 2.0) - e.rewards[0]
            losses[0, i, j] += (read(f1, 2, e.states[0], b1)[e.actions[0]] - read(f2, 1, e.states[1], b2).max()) ** 2
            b = b1 - e.rewards[0]
            end = utility(-(min(max(b, 0.0), 1.0) - e.rewards[1]))
            inside = f2[e.states[1], min(max(1 - round(b), 0), 1)][e.actions[1]]
            losses[1, i, j] += (inside - end) ** 2
    last = losses[1][0]
    best = {float(b): -np.inf for b in (0.0, 1.0, 2.0)}
    for i, j in itertools.product(range(len(classes[0])), range(len(classes[1]))):
        if (
            groups[0][i] == groups[1][j]
            and losses[0, i, j] <= losses[0, :, j].min() + beta
            and last[j] <= last.min() + beta
        ):
            for b in best:
                best[b] = max(best[b], float(read(classes[0][i], 2, 0, b).max()))
    return best


@pytest.mark.parametrize("kinds", [1, 2], ids=["product", "groups"])
@pytest.mark.parametrize("beta", [5.0, 50.0, 500.0])
@pytest.mark.parametrize("seed", range(3))
def test_two_steps_are_brute_force(seed: int, beta: float, kinds: int) -> None:
    problem, risk, world = setting(COIN, "cvar:0.25")
    classes, groups = random_classes(problem, risk, 6, seed), [np.arange(6) % kinds] * 2
    oracle = finite_golf.init(problem, risk, classes, beta=beta, start=0, groups=groups)
    shown = episodes(problem, oracle.rows.arrays.budgets, world, 40)
    for episode in shown:
        oracle.update(episode)
    expected = brute_force(classes, shown, beta, groups)
    if np.isinf(list(expected.values())).any():
        with pytest.raises(OcerlError, match=r"version space is empty at beta=\d+: at least"):
            oracle.values()
        oracle.beta = oracle.threshold
        expected = brute_force(classes, shown, oracle.threshold + 1e-9, groups)
    budgets, values = oracle.values()
    assert dict(zip(budgets.tolist(), values.tolist(), strict=True)) == pytest.approx(expected)


def test_the_threshold_is_the_least_that_admits() -> None:
    problem, risk, _ = setting(COIN, "cvar:0.25")
    groups = [np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])]
    oracle = finite_golf.init(problem, risk, random_classes(problem, risk, 4, 4), beta=0.0, start=0, groups=groups)
    # By hand: the paths within a group are (0, 0), (2, 1), (2, 2), (2, 3) and those of 1 and 3, which are alike.
    oracle.losses = [
        np.array([[9.0, 1.0, 1.0, 1.0], [9.0, 1.0, 1.0, 1.0], [2.0, 4.0, 5.0, 8.0], [3.0, 5.0, 6.0, 9.0]]),
        np.array([[0.0], [6.0], [3.0], [2.5]]),
    ]
    # Above the least of their columns: 7 and 0; 3 and 6; 4 and 3; 7 and 2.5. The largest of a pair counts.
    assert oracle.threshold == 4.0
    oracle.beta = oracle.threshold * (1 - 1e-9)
    with pytest.raises(OcerlError, match="is empty"):
        oracle.policy(0.0)
    oracle.beta = oracle.threshold
    assert np.isfinite(oracle.values()[1]).all()
    oracle.groups = None
    assert oracle.threshold == 0.0, "a product class always has the path of least losses"


def complete_classes(problem: Problem, risk: Risk) -> list[np.ndarray]:
    """The class of the optimum and, at each step, all its backups: made from the planner's own tables."""
    rows, lattice = rows_of(problem, risk, 1), learning_lattice(COIN)
    classes: list[np.ndarray] = []
    ahead = rows.empty_values(pessimistic=False).upper[-1][None]
    for step in (1, 0):
        t, width = COIN.transitions(step), int(rows.arrays.width[step])
        backup = np.zeros((len(ahead), t.n_pairs, width))
        for i in range(t.probability.size):
            at = rows.after(step, 0, int(lattice.shifts(step)[i])) + np.arange(width)
            backup[:, t.outcome_pair[i]] += t.probability[i] * ahead[:, t.next_state[i], at]
        tables = np.moveaxis(backup.reshape(len(ahead), 2, 2, width), 2, 3)
        classes.insert(0, np.concatenate([tables, tables - 0.5]))
        ahead = rows.extended(step, classes[0].max(axis=3))
    return classes


def test_completeness_is_checked() -> None:
    problem, risk, _ = setting(COIN, "cvar:0.25")
    classes = complete_classes(problem, risk)
    oracle = finite_golf.init(problem, risk, classes, beta=1.0, start=0)
    assert incompleteness(oracle, learning_lattice(COIN)) == pytest.approx([0.0, 0.0], abs=1e-12)
    # Without the one backup that the last step has, 0.5 is missing everywhere.
    broken = finite_golf.init(problem, risk, [classes[0], classes[1][1:]], beta=1.0, start=0)
    assert incompleteness(broken, learning_lattice(COIN))[1] == pytest.approx(0.5)


def test_a_complete_class_learns_the_optimum() -> None:
    problem, risk, world = setting(COIN, "cvar:0.25")
    oracle = finite_golf.init(problem, risk, complete_classes(problem, risk), beta=30.0, start=0)
    optimism(oracle, lambda policy: collect(world, policy, 2), 400)
    budgets, values = oracle.values()
    assert (values + budgets).max() == pytest.approx(plan(COIN, risk).value)


def grid_class(oracle: golf.Golf, count: int) -> list[np.ndarray]:
    """All tables over one state whose visited cells run over a grid from the least to the most that can be reached."""
    arrays, classes = oracle.rows.arrays, []
    for step in range(2):
        width, seen = int(arrays.width[step]), oracle.seen
        visited = sorted({(int(seen.column[step, i]), int(seen.slot[step, i])) for i in range(oracle.episodes)})
        choices = []
        for column, _ in visited:
            high, span = arrays.ceiling[step, column], arrays.span[step, column]
            choices.append(np.unique(np.linspace(high - span, high, count)))
        base = np.tile(arrays.ceiling[step, :width, None], (1, 2))
        tables = []
        for picked in itertools.product(*choices):
            table = base.copy()
            for (column, slot), value in zip(visited, picked, strict=True):
                table[column, slot] = value
            tables.append(np.stack([table, np.zeros_like(table)]))
        classes.append(np.array(tables))
    return classes


BET = TabularMDP.from_outcomes(
    {0: {"safe": [(1.0, 0, 0.5)], "bet": [(0.5, 0, 0.0), (0.5, 0, 1.0)]}}, horizon=2, name="bet"
)


@pytest.mark.parametrize("seed", range(4))
def test_the_relaxation_is_above_the_exact_form(seed: int) -> None:
    """Same β, one decoder, all tables on a grid as the class: exact <= relaxed, up to a grid that misses means."""
    problem, risk, world = setting(BET, "mean")
    world.random = np.random.default_rng(seed)
    for beta in (0.0, 0.05, 0.2):
        oracle = golf.init(GolfConfig(beta=beta, growth=0.0), problem, risk, np.zeros((1, 1), dtype=np.int8))
        for episode in episodes(problem, oracle.rows.arrays.budgets, world, 12):
            oracle.update(episode)
        exact = FiniteGolf(oracle.rows, 0, grid_class(oracle, 25), beta, weighted=True)
        exact.losses = losses_of(exact, oracle)
        # Means lie between the grid's points: at beta = 0 the nearest point is all that is left.
        exact.beta = max(beta, exact.threshold)
        gap = float((oracle.values()[1] - exact.values()[1]).min())
        assert gap >= -2.0 / 24
        assert beta == 0.0 or gap > 0.0


def losses_of(exact: FiniteGolf, oracle: golf.Golf) -> list[np.ndarray]:
    """The weighted losses of what the oracle has seen."""
    found = []
    for step in range(2):
        seen, loss = oracle.seen, 0.0
        for i in range(oracle.episodes):
            column, span = seen.column[step, i], exact.rows.arrays.span[step, seen.column[step, i]]
            own = exact.classes[step][:, 0, column, seen.slot[step, i]]
            target = exact.ahead[step + 1][:, 0, seen.after[step, i]]
            loss = loss + ((own[:, None] - target[None]) / span) ** 2
        found.append(np.asarray(loss))
    return found


def lock_oracle(config: GolfConfig, seed: int = 0, **world: Any) -> tuple[BlockWorld, golf.Golf, Any]:
    lock = exogenous_lock(**{"bits": 3, "horizon": 3, **world})
    played = BlockWorld(lock, np.random.default_rng(seed))
    oracle = golf.init(config, block_problem(lock), parse_risk("cvar:0.25"), lock.decoders, start=played.reset())
    return played, oracle, lambda policy: collect(played, policy, 3)


def test_the_true_decoder_stays_and_the_lock_is_learned() -> None:
    world, oracle, play = lock_oracle(GolfConfig())
    optimism(oracle, play, 1500)
    assert oracle.survivors[world.world.truth]
    assert oracle.survivors.sum() < 20
    judge = BlockJudge(world.world)
    value = judge(golf.recommend(oracle)).certainty_equivalent("cvar:0.25")
    assert value >= 0.95 * plan(world.world.endogenous, "cvar:0.25").value


def test_without_optimism_about_the_unseen_it_is_not() -> None:
    """Negative control."""
    world, oracle, play = lock_oracle(GolfConfig(unseen=0.0, beta=0.0))
    optimism(oracle, play, 1500)
    value = BlockJudge(world.world)(golf.recommend(oracle)).certainty_equivalent("cvar:0.25")
    assert value < 0.6 * plan(world.world.endogenous, "cvar:0.25").value


def test_an_empty_version_space_says_what_would_admit_one() -> None:
    """Every candidate wrong: the class does not realise the world, and says so."""
    world, oracle, play = lock_oracle(GolfConfig(beta_decoder=1e-6))
    with pytest.raises(OcerlError, match=r"version space is empty after \d+ episodes.*would admit one"):
        optimism(oracle, play, 500)
    needed = float(oracle.statistic.min())
    oracle.config = GolfConfig(beta_decoder=needed)
    oracle.replan()
    assert oracle.survivors.any()
    assert world.world.n_candidates == 20


def test_only_wrong_decoders_are_incomplete() -> None:
    lock = exogenous_lock(bits=2, horizon=3, candidates=6)
    assert incomplete_decoders(lock.model(), lock.decoders) == [e for e in range(6) if e != lock.truth]


def test_a_start_and_a_budget_are_needed() -> None:
    problem, risk, _ = setting(random_mdp(1, states=3, actions=2, horizon=2, random_start=True), "mean")
    with pytest.raises(OcerlError, match="GOLF needs a certain start"):
        golf.init(GolfConfig(), problem, risk, np.arange(3)[None])
    _, oracle, _ = lock_oracle(GolfConfig())
    with pytest.raises(OcerlError, match="the first budget of the policy that played"):
        oracle.update(Episode([0, 0, 0, 0], [0, 0, 0], [0.0, 0.0, 0.0]))


def test_wrong_decoders_are_refused() -> None:
    problem, risk, _ = setting(COIN, "mean")
    with pytest.raises(OcerlError, match=r"table \[decoder, observation\]"):
        golf.init(GolfConfig(), problem, risk, np.zeros(2, dtype=np.int8))
    with pytest.raises(OcerlError, match="beta must be a number of at least 0"):
        GolfConfig(beta=-1.0)
    uneven = TabularMDP.from_outcomes(
        {0: {"a": [(1.0, 1, 0.0)]}, 1: {"a": [(1.0, 0, 1.0)], "b": [(1.0, 0, 0.0)]}}, horizon=2
    )
    with pytest.raises(OcerlError, match="different actions"):
        golf.init(GolfConfig(), setting(uneven, "mean")[0], risk, np.eye(1, 2, dtype=np.int8))
