"""Surveys and choices with episodes whose returns are given: a driver that plays nothing."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from ocerl.gradient.deep.driver import Task
from ocerl.gradient.deep.evaluation import Effort, Sample, choose, survey
from ocerl.gradient.deep.judging import KEPT_RETURNS, Judge, _thinned
from ocerl.risk import CVaR, Mean, MeanVariance

EFFORT = Effort(candidates=9, episodes=40, finalists=3, final_episodes=200)


class Known:
    """Its returns are a function of the first budgets and of fresh random numbers of the seed."""

    def __init__(self, returns: Callable[[Any, np.random.Generator], Any], support: Any = None) -> None:
        self.task = Task("known", spaces.Discrete(2), spaces.Discrete(2), 3, 1.0, (-1.0, 3.0), support)
        self._returns = returns
        self.calls: list[tuple[list[float], int, int]] = []

    def returns(self, policy: Any, budgets: Any, episodes: int, seed: int) -> Any:
        self.calls.append((np.asarray(budgets).tolist(), episodes, seed))
        rng = np.random.default_rng(seed)
        return np.stack([np.broadcast_to(self._returns(b, rng), episodes).astype(float) for b in budgets])


POLICY: Any = None


def test_a_survey_covers_the_range_and_is_dense_where_returns_are() -> None:
    driver: Any = Known(lambda b, rng: 0.55)
    sample = survey(driver, POLICY, (-1.0, 3.0), EFFORT, seed=5)
    assert set(np.linspace(-1, 3, 9)) <= set(sample.budgets.tolist())
    assert 0.55 in sample.budgets
    assert (np.diff(sample.budgets) > 0).all()
    assert sample.returns.shape == (sample.budgets.size, EFFORT.episodes)
    # Returns outside the range do not widen it
    driver._returns = lambda b, rng: 1e6
    assert survey(driver, POLICY, (-1.0, 3.0), EFFORT, seed=5).budgets.max() == 3.0


def test_a_small_support_is_surveyed_whole_and_a_large_one_is_not() -> None:
    few = np.array([0.0, 0.25, 7.0])
    assert survey(Known(lambda b, rng: b, few), POLICY, (0.0, 7.0), EFFORT, 0).budgets.tolist() == few.tolist()  # pyright: ignore
    many = np.linspace(0.0, 7.0, 2 * EFFORT.candidates + 1)
    assert survey(Known(lambda b, rng: 1.0, many), POLICY, (0.0, 7.0), EFFORT, 0).budgets.size < many.size  # pyright: ignore


def test_the_best_of_the_finalists_is_chosen_on_new_episodes() -> None:
    """On the survey's episodes the budget 0 looks best; on new ones it is the worst of the finalists."""
    sample = Sample(np.arange(5.0), np.tile([[9.0], [5.0], [6.0], [7.0], [1.0]], 40))
    driver: Any = Known(lambda b, rng: {0.0: 0.0, 2.0: 6.0, 3.0: 5.0}[b])
    assert choose(driver, POLICY, CVaR(0.5), sample, EFFORT, seed=3) == 2.0
    assert driver.calls == [([0.0, 2.0, 3.0], EFFORT.final_episodes, 3)]


def test_ties_go_to_the_better_mean() -> None:
    """CVaR at 1/2 is 0 for all three, exactly; their means are 1/2, 2 and 1."""
    half = np.arange(100) % 2
    sample = Sample(np.array([0.0, 1.0, 2.0]), np.array([half * 1.0, half * 4.0, half * 2.0]))
    assert sample.best(CVaR(0.5)) == 1
    assert sample.best(Mean()) == 1


@pytest.mark.parametrize(("loss", "expected"), [(0.05, 1), (0.4, 0)])
def test_a_tie_is_one_standard_error_of_the_difference(loss: float, expected: int) -> None:
    """CVaR at 1/2 of 50 returns each of -1 and 1 and 100 of 10: `b + u(Z - b)` is -3, 1 and 1, with b = 1.

    In the other row 25 of the worst episodes earn 0.5 more, 25 earn 0.5 + loss less, and the best earn far more: its
    differences are -1, 1 + 2 loss and 0, with the mean loss / 4 and an error, their deviation over √200, to
    compare it with: 0.0125 against 0.037 for 0.05, and 0.1 against 0.051 for 0.4.
    """
    returns = np.array([-1.0] * 50 + [1.0] * 50 + [10.0] * 100)
    other = returns + np.repeat([0.5, -0.5 - loss, 0.0, 10.0], [25, 25, 50, 100])
    sample = Sample(np.array([0.0, 1.0]), np.stack([returns, other]))
    assert sample.values(CVaR(0.5)) == pytest.approx([0.0, -loss / 4])
    assert sample.best(CVaR(0.5)) == expected


def test_values_are_those_of_the_returns() -> None:
    sample = Sample(np.array([0.0, 1.0]), np.array([[0.0, 2.0], [1.0, 1.0]]))
    values = sample.values(MeanVariance(0.25))  # E X - c Var X
    assert values == pytest.approx([1 - 0.25, 1.0])


def judge_on(driver: Any, **parts: Any) -> Judge:
    judge = Judge(SimpleNamespace(model=None, compiled=False), driver, CVaR(0.5), 300)  # pyright: ignore
    judge._full = judge._quick = EFFORT
    for name, value in parts.items():
        setattr(judge, name, value)
    return judge


def test_survey_choice_and_estimate_share_no_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    driver: Any = Known(lambda b, rng: rng.normal(b, 1.0))
    judge = judge_on(driver)
    state: Any = SimpleNamespace(learner=SimpleNamespace(updates=np.array([7])))
    monkeypatch.setattr(Judge, "_network", lambda *_: (POLICY, (-1.0, 3.0)))
    told: list[list[int]] = []
    for ask in (
        lambda seed: judge.value(state, 0, seed),
        lambda seed: judge.final(state, 0, seed),
        lambda seed: judge.chosen(judge.final(state, 0, seed).policy, seed),
    ):
        for seed in (0, 1):
            driver.calls.clear()
            ask(seed)
            told.append([call[-1] for call in driver.calls])
    words = {tuple(seeds) for seeds in told}
    # Every question draws its own seeds, with none in common inside it.
    assert all(len(set(seeds)) == len(seeds) for seeds in words)
    quick, final = told[0], told[2]
    assert not set(quick) & set(final)
    assert not set(told[0]) & set(told[1])
    again = told[4][len(final) :]
    assert again
    assert not set(again) & set(final)


def test_the_estimate_is_of_the_episodes_asked_for() -> None:
    """Returns of the first budget ± 1/2, half each: the worse half has b - 1/2, so the largest budget is best."""
    driver: Any = Known(lambda b, rng: b)
    driver.returns = lambda policy, budgets, episodes, seed: np.array(
        [b + np.resize([-0.5, 0.5], episodes) for b in budgets]
    )
    judge = judge_on(driver)
    policy = judge._chosen(POLICY, (-1.0, 3.0), EFFORT, [1, 2, 3])
    found = judge.judged(policy, 4, 9)
    assert policy.budget == 3.0
    assert (found.value, found.mean, found.estimate.n, found.seed, found.exact) == (2.5, 3.0, 300, 4, False)


def test_a_policy_keeps_even_quantiles_of_a_large_survey() -> None:
    driver: Any = Known(lambda b, rng: b)
    driver.returns = lambda policy, budgets, episodes, seed: np.array([b + np.arange(episodes)[::-1] for b in budgets])
    judge = judge_on(driver)
    large = EFFORT._replace(episodes=4 * KEPT_RETURNS)
    kept = _thinned(judge._chosen(POLICY, (-1.0, 3.0), large, [1, 2, 3])).survey
    assert kept.returns.shape == (kept.budgets.size, KEPT_RETURNS)
    # The j-th of 2048 quantiles of 0 … 8191 is at (j + 1/2) / 2048 of the way.
    expected = kept.budgets[0] + (np.arange(KEPT_RETURNS) + 0.5) / KEPT_RETURNS * (4 * KEPT_RETURNS - 1)
    np.testing.assert_allclose(kept.returns[0], expected, rtol=1e-9)
