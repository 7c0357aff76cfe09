"""GOLF and Rep-UCB in their worlds: an oracle, who plays it, who judges it, and a run as `explore` reports it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp import TabularMDP
from ocerl.mdp.lattice import Lattice
from ocerl.mdp.rich import ExogenousBlockMDP, LowRankMDP, RichWorld, VectorMDP
from ocerl.mdp.tabular import Columns
from ocerl.optimistic import golf, repucb
from ocerl.optimistic.blocks import BlockJudge, BlockWorld, block_problem
from ocerl.optimistic.golf import GolfConfig
from ocerl.optimistic.low_rank import LowRankJudge, LowRankWorld, low_rank_problem, low_rank_rewards
from ocerl.optimistic.meta import optimism
from ocerl.optimistic.model_class import FactorClass, FiniteClass, ModelClass
from ocerl.optimistic.problem import Problem, learning_lattice, problem_of_model
from ocerl.optimistic.repucb import RepUcbConfig, gather, rewards_of
from ocerl.optimistic.result import SeedRun
from ocerl.optimistic.table import DecodedPolicy, TablePolicy
from ocerl.optimistic.worlds import TabularWorld, World, collect
from ocerl.planning import ReturnDistribution, evaluate
from ocerl.planning.policy import Policy
from ocerl.risk import Risk

RICH_ORACLES = ("golf", "repucb")


@dataclass(frozen=True, eq=False, kw_only=True)
class Learner:
    """An oracle in a world."""

    oracle: Any
    play: Callable[[Policy], Any]
    judge: Callable[[Any], ReturnDistribution]
    recommend: Callable[[Any], Any]
    risk: Risk
    episodes_per_round: int = 1

    def next_policy(self) -> tuple[Any, float]:
        """The policy that the next round plays, and what is claimed for it, `max_b b + V̂(b)`."""
        budgets, values = self.oracle.values()
        best = int(np.argmax(budgets + values))
        return self.oracle.policy(float(budgets[best])), float((budgets + values)[best])

    def worth(self, policy: Any) -> float:
        """The exact OCE of a policy."""
        return self.judge(policy).certainty_equivalent(self.risk)

    def step(self) -> None:
        """One round of Algorithm 1."""
        optimism(self.oracle, self.play, 1)


def judged_model(environment: TabularMDP | RichWorld) -> TabularMDP:
    """A small model with the same optimum."""
    if isinstance(environment, ExogenousBlockMDP):
        return environment.endogenous
    if isinstance(environment, VectorMDP):
        environment = environment.inner
    return environment.expanded if isinstance(environment, LowRankMDP) else environment


def learner(
    environment: TabularMDP | RichWorld,
    oracle: str,
    risk: Risk,
    seed: int,
    *,
    config: Any = None,
    rank: int | None = None,
    models: ModelClass | None = None,
) -> Learner:
    """GOLF or Rep-UCB with what the world offers to choose from.

    On an exogenous block MDP GOLF has its candidate decoders; on a low-rank MDP Rep-UCB has its candidates, or with a
    `rank` any factorisation of that rank; behind vectors it learns the neural class, with 6 latents unless told
    otherwise. On a plain table GOLF takes each state for itself, and Rep-UCB learns a
    factorisation of rank 3 unless told otherwise. `models` is a class of one's own for Rep-UCB.
    """
    if oracle == "golf" and rank is not None:
        raise OcerlError("a rank is for repucb, golf has none")
    if isinstance(environment, VectorMDP):
        return _vectors(environment, oracle, risk, seed, config, rank, models)
    if oracle == "golf":
        if isinstance(environment, LowRankMDP):
            environment = environment.model()
        return _golf(environment, risk, seed, config or GolfConfig())
    if isinstance(environment, ExogenousBlockMDP):
        environment = environment.model()
    return _repucb(environment, risk, seed, config or RepUcbConfig(), rank, models)


def _vectors(
    world: VectorMDP, oracle: str, risk: Risk, seed: int, config: Any, rank: int | None, models: Any
) -> Learner:
    from ocerl.optimistic import vectors  # JAX is for this class only

    if oracle == "golf" or models is not None:
        raise OcerlError(
            f"{world.name} is seen in vectors: explore it with repucb, whose class there is the neural one"
        )
    config = config or vectors.VectorConfig()
    random = np.random.default_rng(seed)
    made = vectors.init(config if rank is None else replace(config, rank=rank), world, risk, random, seed)
    inside = vectors.VectorWorld(world, random)

    def played(policy: Any) -> Any:
        return vectors.gather(inside, policy, made.rows.problem, random)

    return Learner(
        oracle=made,
        play=played,
        judge=vectors.VectorJudge(world),
        recommend=vectors.recommend,
        risk=risk,
        episodes_per_round=world.inner.horizon - 1,
    )


def _golf(environment: TabularMDP | ExogenousBlockMDP, risk: Risk, seed: int, config: GolfConfig) -> Learner:
    random = np.random.default_rng(seed)
    if isinstance(environment, ExogenousBlockMDP):
        judge: Callable[[DecodedPolicy], ReturnDistribution] = BlockJudge(environment)
        world: World = BlockWorld(environment, random)
        problem, decoders, start = block_problem(environment), environment.decoders, world.reset()
    else:
        problem, lattice, world = _table(environment, random)
        decoders, start = np.arange(environment.n_states)[None], None
        judge = _table_judge(lattice)
    return Learner(
        oracle=golf.init(config, problem, risk, decoders, start=start),
        play=lambda policy: collect(world, policy, problem.horizon),
        judge=judge,
        recommend=golf.recommend,
        risk=risk,
    )


def _repucb(
    environment: TabularMDP | LowRankMDP,
    risk: Risk,
    seed: int,
    config: RepUcbConfig,
    rank: int | None,
    models: ModelClass | None,
) -> Learner:
    random = np.random.default_rng(seed)
    if isinstance(environment, LowRankMDP):
        problem, rewards = low_rank_problem(environment), low_rank_rewards(environment)
        world: World = LowRankWorld(environment, random)
        judge: Callable[[TablePolicy], ReturnDistribution] = LowRankJudge(environment)
    else:
        problem, lattice, world = _table(environment, random)
        rewards, judge = rewards_of(lattice), _table_judge(lattice)
    if not problem.start.any():
        raise OcerlError("Rep-UCB needs a certain start: its values are read at the first state")
    if models is None and isinstance(environment, LowRankMDP) and rank is None:
        models = FiniteClass(environment.feature_class, environment.measure_class)
    if models is None:
        actions = int(problem.pair_start[0, 1])
        models = FactorClass(problem.horizon, problem.n_states, actions, 3 if rank is None else rank, seed)
    return Learner(
        oracle=repucb.init(config, problem, risk, models, rewards, start=int(np.flatnonzero(problem.start)[0])),
        play=lambda policy: gather(world, policy, problem, random),
        judge=judge,
        recommend=repucb.recommend,
        risk=risk,
        episodes_per_round=max(1, problem.horizon - 1),
    )


def run_rich(
    learner: Learner, seed: int, rounds: int, schedule: NDArray[np.int64], report: Callable[[int], None]
) -> SeedRun:
    """Play all rounds, judging the policies of the scheduled ones; `report` is told of the rounds played."""
    schedule = schedule[schedule <= rounds]
    values, judged = list[float](), set(schedule.tolist())
    for number in range(1, rounds + 1):
        if number in judged:
            values.append(learner.worth(learner.next_policy()[0]))
        learner.step()
        report(1)
    policy = learner.recommend(learner.oracle)
    return SeedRun(
        seed=seed,
        value=learner.worth(policy),
        budget=policy.budget,
        policy=policy,
        rounds=schedule,
        values=np.array(values, dtype=np.float64),
        played=rounds,
    )


def _table(model: TabularMDP, random: np.random.Generator) -> tuple[Problem, Lattice, TabularWorld]:
    """A plain table as these oracles take it: all actions in every state, and no state said to end the episode."""
    lattice = learning_lattice(with_all_actions(model))
    problem = problem_of_model(lattice, per_step=True)
    none = np.zeros_like(problem.terminal)
    return replace(problem, terminal=none), lattice, TabularWorld(lattice, none, random)


def _table_judge(lattice: Lattice) -> Callable[[TablePolicy | DecodedPolicy], ReturnDistribution]:
    judged: dict[bytes, ReturnDistribution] = {}

    def judge(policy: TablePolicy | DecodedPolicy) -> ReturnDistribution:
        if policy.key not in judged:
            judged[policy.key] = evaluate(lattice.model, policy.on(lattice))
        return judged[policy.key]

    return judge


def with_all_actions(model: TabularMDP) -> TabularMDP:
    """The same model with every action in every state: one that a state lacks acts as the state's first."""
    columns: list[Columns] = []
    for t in model.steps:
        table = np.repeat(t.pair_start[:-1, None], model.n_actions, axis=1)
        table[t.pair_state, t.action] = np.arange(t.n_pairs)
        pairs = table.ravel()
        lengths = np.diff(t.outcome_start)[pairs]
        owner = np.repeat(np.arange(pairs.size), lengths)
        within = np.arange(owner.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        at = t.outcome_start[pairs[owner]] + within
        state, action = np.divmod(owner, model.n_actions)
        columns.append((state, action, t.next_state[at], t.probability[at], t.reward[at]))
    return TabularMDP.from_indices(
        columns,
        states=model.states,
        actions=model.actions,
        start=dict(zip(model.states, model.start.tolist(), strict=True)),
        horizon=model.horizon,
        discount=model.discount,
        name=model.name,
    )
