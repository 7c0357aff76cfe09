"""The baseline for many states: the values of UCB-VI, and exact judgement of what it plays on raw observations."""

from __future__ import annotations

import numpy as np
import pytest

from ocerl.mdp.rich import exogenous_lock, low_rank_lock
from ocerl.optimistic import ucbvi
from ocerl.optimistic.blocks import BlockWorld
from ocerl.optimistic.lazy import LazyUcbVi, RawJudge, RawWorld, most_states, raw_problem
from ocerl.optimistic.low_rank import LowRankWorld, low_rank_problem
from ocerl.optimistic.meta import optimism
from ocerl.optimistic.rows import rows_of
from ocerl.optimistic.ucbvi import UcbViConfig
from ocerl.optimistic.worlds import Episode, collect
from ocerl.planning import evaluate
from ocerl.planning.policy import MarkovPolicy
from ocerl.risk import parse_risk


@pytest.mark.parametrize("risk", ["cvar:0.25", "entropic:-1"])
def test_it_has_the_values_of_ucbvi(risk: str) -> None:
    """With the same bonus, planned after every episode: sqrt(L / 2n) = 0.3 / sqrt(n)."""
    lock = low_rank_lock(states=12)
    problem, world = low_rank_problem(lock), LowRankWorld(lock, np.random.default_rng(0))
    mine = LazyUcbVi(rows_of(problem, parse_risk(risk), 1), 0.3, growth=0.0)
    other = ucbvi.init(UcbViConfig(rounds=1, first_budgets=1), problem, parse_risk(risk))
    other.log_term = 2 * 0.3**2
    ucbvi.plan_everything(other)

    def play(policy: object) -> Episode:
        episode = collect(world, policy, 5)  # type: ignore[arg-type]
        other.update(episode)
        return episode

    for _ in range(200):
        optimism(mine, play, 1)
        for one, two in zip(mine.values(), other.values(), strict=True):
            np.testing.assert_allclose(one, two, atol=1e-9)


def test_raw_policies_are_judged_as_on_the_table() -> None:
    """A learned policy in the table of all observations, against the passes over single bits."""
    lock = exogenous_lock(bits=2, horizon=3)
    raw = RawWorld(BlockWorld(lock, np.random.default_rng(0)), most_states(lock, 300))
    oracle = LazyUcbVi(rows_of(raw_problem(lock, raw.states), parse_risk("mean"), 1), 0.3)
    optimism(oracle, lambda policy: collect(raw, policy, 3), 300)
    policy = oracle.policy(float(oracle.values()[0][0]))
    judged = RawJudge(raw)(policy)
    # For the mean there is one budget: the policy looks at the observation only.
    slots = np.stack([policy.tables[step][raw.numbers[step], 0] for step in range(3)])
    model = lock.model()
    exact = evaluate(model, MarkovPolicy.from_table(model, slots.astype(np.int64)))
    np.testing.assert_allclose(judged.values, exact.values)
    np.testing.assert_allclose(judged.probabilities, exact.probabilities, atol=1e-12)
