"""A run from its first update to its last: records, checkpoints, logs, and the stop at a number that is none."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.gradient.checkpoint import Arrays, Checkpoint
from ocerl.gradient.deep.actions import actions_of
from ocerl.gradient.deep.agent import Agent
from ocerl.gradient.deep.config import DeepConfig
from ocerl.gradient.deep.driver import Driver, Report, RunState
from ocerl.gradient.deep.inputs import Inputs
from ocerl.gradient.deep.judging import Judge
from ocerl.gradient.deep.learner import LearnerState, init
from ocerl.gradient.deep.saving import arrays_of, restored
from ocerl.gradient.events import EventWriter

EARLY_RECORDS = 60
"""How many records there are besides the even ones, evenly over the logarithm of the updates, where they are exact."""
CHECKPOINT_SECONDS = 5.0
"""A checkpoint is written at most so often, and at the end."""

Progress = Callable[[int, int, str], None]
"""Told of the updates made, of how many there are, and how the policies do."""


@final
@dataclass
class Run:
    """Seeds that are trained together."""

    driver: Driver
    config: DeepConfig
    judge: Judge
    seeds: range
    folder: Path | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    """What a run that goes on has to share with the one that began."""
    progress: Progress | None = None

    def begun(self) -> tuple[RunState, Arrays]:
        """The state before any update, and no records."""
        task, config = self.driver.task, self.config
        actions = actions_of(task.action_space)
        critic = config.critic or ("value" if actions.continuous else "q")

        def learner(key: jax.Array, inputs: Inputs) -> LearnerState:
            weights, rest = jax.random.split(key)
            agent = Agent(weights, inputs, actions, hidden=config.hidden, critic=critic)
            return init(rest, inputs, agent, config)

        keys = jnp.stack([jax.random.key(seed) for seed in self.seeds])
        learners = eqx.filter_vmap(learner, in_axes=(0, None))(keys, self.driver.inputs)
        return self.driver.begin(learners, self.seeds[0]), {}

    def resumed(self) -> tuple[RunState, Arrays]:
        """The state and the records of the last checkpoint."""
        arrays, history = self._checkpoint().load()
        blank, _ = self.begun()
        kept = restored(self.driver.kept(blank), arrays)
        return self.driver.resumed(kept, self.seeds[0]), history

    def play(self, state: RunState, history: Arrays) -> tuple[RunState, Arrays]:
        """All updates that are left, and the records of the whole run."""
        with ExitStack() as files:
            logs: list[EventWriter] = []
            if self.folder is not None:
                logs = [files.enter_context(EventWriter(self.folder / f"log/seed-{seed}")) for seed in self.seeds]
            return self._play(state, history, logs)

    def _play(self, state: RunState, history: Arrays, logs: list[EventWriter]) -> tuple[RunState, Arrays]:
        marks = record_marks(self.config.updates, self.judge.records(self.config.steps), self.judge.exact)
        made, written = int(state.learner.updates[0]), time.monotonic()
        if not history:
            history = self._recorded(state, history, made, logs)
        while made < self.config.updates:
            until = int(marks[marks > made][0])
            before = state
            state, report = self.driver.advance(state, min(until - made, self.driver.room))
            self._require_finite(report, made, before, history)
            made += int(report.broken.shape[0])
            self._log(report, made, logs)
            if made == until:
                history = self._recorded(state, history, made, logs)
            if self.folder and (made == self.config.updates or time.monotonic() - written > CHECKPOINT_SECONDS):
                self._checkpoint().save(arrays_of(self.driver.kept(state)), history)
                written = time.monotonic()
            if self.progress:
                self.progress(made, self.config.updates, self._status(history))
        return state, history

    def _checkpoint(self) -> Checkpoint:
        assert self.folder is not None
        # As it comes back from a file: tuples are lists there.
        return Checkpoint(self.folder, json.loads(json.dumps(self.settings)))

    def _recorded(self, state: RunState, history: Arrays, made: int, logs: list[EventWriter]) -> Arrays:
        values = np.array([self._value(state, number, made) for number in range(len(self.seeds))])
        for log, value in zip(logs, values, strict=False):
            log.scalars(made * self.config.batch, {f"value/{self.judge.risk.name}": float(value)})
        record = {"update": np.array([made]), "value": values[None]}
        return {name: np.concatenate([history[name], new]) for name, new in record.items()} if history else record

    def _value(self, state: RunState, number: int, made: int) -> float:
        try:
            return self.judge.value(state, number, self.seeds[number])
        except OcerlError as error:
            raise OcerlError(f"seed {self.seeds[number]}, judged after update {made}: {error}") from error

    def _log(self, report: Report, made: int, logs: list[EventWriter]) -> None:
        for number, log in enumerate(logs):
            means = {name: float(np.mean(values[:, number])) for name, values in report.metrics._asdict().items()}
            means["payoff"] = float(np.mean(report.payoff[:, number]))
            log.scalars(made * self.config.batch, {f"train/{name}": value for name, value in means.items()})

    def _status(self, history: Arrays) -> str:
        return f"{self.judge.risk.name} {float(np.mean(history['value'][-1])):.4g}"

    def _require_finite(self, report: Report, made: int, before: RunState, history: Arrays) -> None:
        """Stop at a reward or a weight that is not finite, and leave the state before as the last checkpoint."""
        broken, finite = np.asarray(report.broken), np.asarray(report.finite)
        if (broken < 0).all() and finite.all():
            return
        update, number = np.argwhere((broken >= 0) | ~finite)[0]
        if broken[update, number] >= 0:
            step, environment = divmod(int(broken[update, number]), self.config.environments)
            what = f"a reward is not finite: step {step} of environment {environment}"
            advice = "the environment has to pay finite rewards"
        else:
            what = f"the weights are not finite (gradient {float(report.metrics.gradient[update, number]):.3g})"
            advice = f"try a learning_rate below {self.config.learning_rate:g}"
        kept = ""
        if self.folder is not None:
            self._checkpoint().save(arrays_of(self.driver.kept(before)), history)
            kept = f"; {self.folder} has the checkpoint of update {made}"
        raise OcerlError(f"seed {self.seeds[number]}, update {made + update + 1}: {what}: {advice}{kept}")


def record_marks(updates: int, records: int, exact: bool) -> NDArray[np.int64]:
    """After which updates policies are judged: exact records are many at the beginning, where most is learned.

    >>> record_marks(8000, 50, exact=True)[:20].tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 16, 18, 21, 25, 29, 33, 39, 45]
    >>> record_marks(40, 4, exact=False).tolist()
    [0, 10, 20, 30, 40]
    """
    even = np.linspace(0, updates, records + 1)
    early = np.geomspace(1, updates, EARLY_RECORDS) if exact else np.empty(0)
    return np.unique(np.rint(np.concatenate([even, early])).astype(np.int64))
