"""One seed's run of Algorithm 1 with UCB-VI: in stretches, judged on the way, and resumed after a kill."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.optimistic._episodes import run
from ocerl.optimistic.checkpoint import Checkpoint, load_checkpoint
from ocerl.optimistic.meta import optimism
from ocerl.optimistic.recommend import recommend
from ocerl.optimistic.result import SeedRun
from ocerl.optimistic.rewards import known_rewards
from ocerl.optimistic.table import TablePolicy
from ocerl.optimistic.task import Task
from ocerl.optimistic.ucbvi import UcbVi, UcbViConfig, init, plan_everything
from ocerl.optimistic.worlds import GymnasiumWorld, TabularWorld, collect
from ocerl.planning import evaluate
from ocerl.planning.policy import Policy
from ocerl.risk import Risk, estimate

STRETCH_SECONDS = 1.0
"""A stretch of compiled rounds is about this long, so that a run can be stopped in between."""
CHECKPOINT_SECONDS = 5.0
FRESH_EPISODES = 1000
"""Without a model, a policy is judged by so many fresh episodes, or more where the tail needs them."""


@dataclass(eq=False)
class Runner:
    """A seed's oracle and world, with the curve so far."""

    task: Task
    risk: Risk
    seed: int
    world: TabularWorld | GymnasiumWorld
    oracle: UcbVi
    settings: dict[str, Any]
    path: Path | None
    played: int = 0
    rounds: list[int] = field(default_factory=list[int])
    values: list[float] = field(default_factory=list[float])
    returns: list[float] = field(default_factory=list[float])
    judged: dict[bytes, float] = field(default_factory=dict[bytes, float])
    """OCEs by policy: most rounds play one that was judged before."""

    def advance(self, rounds: int) -> None:
        """Play some rounds: compiled for a tabular model, else by the meta-algorithm's own loop."""
        if isinstance(self.world, TabularWorld):
            oracle, episode = self.oracle, np.zeros((self.task.problem.horizon, 4), dtype=np.int64)
            learner = (oracle.told, oracle.counts, oracle.rows.arrays, oracle.plan, oracle.log_term)
            run(self.world.outcomes, *learner, self.world.random, episode, rounds)
            self.played += rounds
            return
        for _ in range(rounds):
            before, returns = self.world.random.bit_generator.state, len(self.returns)
            try:
                optimism(self.oracle, self._play, 1)
            except OcerlError:
                # The round did not count: it is played again when the run goes on.
                self.world.random.bit_generator.state = before
                del self.returns[returns:]
                raise
            self.played += 1

    def _play(self, policy: Policy) -> Any:
        episode = collect(self.world, policy, self.task.problem.horizon)
        weight = self.task.problem.discount ** np.arange(len(episode.rewards))
        self.returns.append(float(weight @ np.array(episode.rewards)))
        return episode

    def record(self) -> None:
        """Judge the policy that the next round plays; without a model, the returns since the last record."""
        number = self.played + 1
        if self.task.lattice is not None:
            budgets, values = self.oracle.values()
            value = self.judge(self.oracle.policy(float(budgets[np.argmax(values + budgets)])))
        elif len(self.returns) > (since := self.rounds[-1] - 1 if self.rounds else 0):
            value = self.risk.certainty_equivalent(self.returns[since:]).value
        else:
            return
        self.rounds.append(number)
        self.values.append(value)

    def judge(self, policy: TablePolicy) -> float:
        """The exact OCE of a policy on the known model."""
        assert self.task.lattice is not None
        if policy.key not in self.judged:
            returns = evaluate(self.task.lattice.model, policy.on(self.task.lattice))
            self.judged[policy.key] = returns.certainty_equivalent(self.risk)
        return self.judged[policy.key]

    def finish(self) -> SeedRun:
        """The recommended policy with its value."""
        policy = recommend(self.oracle)
        if self.task.lattice is not None:
            value, kept = self.judge(policy), policy.on(self.task.lattice)
        else:
            episodes = max(FRESH_EPISODES, int(20 / (self.risk.tail or 1.0)))
            kept = policy
            # Apart from the run, whose returns stay those of its rounds.
            fresh = [collect(self.world, policy, policy.problem.horizon).rewards for _ in range(episodes)]
            weights = policy.problem.discount ** np.arange(policy.problem.horizon)
            value = estimate([float(weights[: len(paid)] @ np.array(paid)) for paid in fresh], self.risk).value
        return SeedRun(
            seed=self.seed,
            value=value,
            budget=policy.budget,
            policy=kept,
            rounds=np.array(self.rounds, dtype=np.int64),
            values=np.array(self.values, dtype=np.float64),
            played=self.played,
        )

    def save(self) -> None:
        """Write a checkpoint, if there is a folder for it."""
        if self.path is None:
            return
        Checkpoint(
            settings=self.settings,
            played=self.played,
            counts=self.oracle.counts,
            atoms=np.array(list(self.oracle.atoms), dtype=np.float64),
            random=self.world.random.bit_generator.state,  # pyright: ignore[reportArgumentType]
            rounds=self.rounds,
            values=self.values,
            returns=self.returns,
        ).save(self.path)

    def resume(self) -> None:
        """Go back to the checkpoint, if there is one."""
        found = None if self.path is None else load_checkpoint(self.path, self.settings)
        if found is None:
            return
        self.played, self.rounds, self.values = found.played, found.rounds, found.values
        self.returns = found.returns
        self.world.random.bit_generator.state = found.random
        self.oracle.counts = found.counts
        self.oracle.atoms = {float(value): number for number, value in enumerate(found.atoms)}
        self.oracle.told = self.oracle.told._replace(shift=self.task.problem.shifts(found.atoms))
        plan_everything(self.oracle)

    def run(self, schedule: NDArray[np.int64], rounds: int, report: Callable[[int], None]) -> SeedRun:
        """Play all rounds, judging the policies of the scheduled ones and saving now and then.

        `report` is told of the rounds played; what it raises stops the run, which is then saved.
        """
        saved, pace = time.monotonic(), 1.0
        stops = [int(number) - 1 for number in schedule if number > (self.rounds[-1] if self.rounds else 0)]
        for stop in [*stops, rounds]:
            while self.played < stop:
                began, stretch = time.monotonic(), min(stop - self.played, max(1, int(pace)))
                self._advance_or_save(stretch)
                pace = min(2 * pace, stretch * STRETCH_SECONDS / max(time.monotonic() - began, 1e-9))
                self._report_or_save(report, stretch)
            if stop < rounds:
                self.record()
            if time.monotonic() - saved > CHECKPOINT_SECONDS:
                self.save()
                saved = time.monotonic()
        self.save()
        return self.finish()

    def _advance_or_save(self, rounds: int) -> None:
        try:
            self.advance(rounds)
        except OcerlError as error:
            self.save()
            kept = "" if self.path is None else f"; the {self.played} rounds before it are kept in {self.path}"
            raise OcerlError(f"round {self.played + 1}: {error}{kept}") from error

    def _report_or_save(self, report: Callable[[int], None], rounds: int) -> None:
        try:
            report(rounds)
        except BaseException:
            self.save()
            raise


def start(
    task: Task,
    risk: Risk,
    config: UcbViConfig,
    seed: int,
    *,
    learn_rewards: bool,
    settings: dict[str, Any],
    path: Path | None,
) -> Runner:
    """A runner that has not played yet."""
    world = task.world(seed)
    if isinstance(world, TabularWorld):
        known = None if learn_rewards else known_rewards(world.lattice, world.rewards, task.problem.layers)
        room = world.most_outcomes
        oracle = init(config, task.problem, risk, atoms=world.rewards, room=room, known=known)
    else:
        if not learn_rewards:
            raise OcerlError(f"known_rewards needs a model, and {task.name} is played as an environment")
        oracle = init(config, task.problem, risk)
    return Runner(task, risk, seed, world, oracle, {**settings, "seed": seed}, path)
