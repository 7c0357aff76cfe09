"""The budget-augmented environment by hand: budgets, pay-offs, resets in the loop, roll-outs and their check."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ocerl.envs import (
    AmericanPut,
    AugmentedEnvironment,
    AugmentedState,
    BettingGame,
    BudgetAmong,
    Environment,
    GuardedMaze,
    RandomPolicy,
    UniformBudget,
    first_budgets,
    make,
    rollout,
    sample_returns,
    telescoping_error,
)
from ocerl.envs.american_put import STOP, PutState
from ocerl.envs.betting import BettingState
from ocerl.errors import OcerlError
from ocerl.risk import CVaR, Entropic, Utility

KEY = jax.random.key(0)
ALWAYS_WIN = BettingGame(win_probability=1.0)


def wealthy(wealth: float, budget: float, step: int = 0) -> AugmentedState[BettingState]:
    return AugmentedState(BettingState(jnp.int32(step), jnp.float32(wealth)), jnp.float32(budget))


def all_in(key: jax.Array, observation: Any) -> jax.Array:
    return jnp.array(8)


def test_a_dense_payoff() -> None:
    # 16 → 32 pays 1/16: the budget goes from 1/2 to 7/16 and u(-b) = -4 b from -2 to -7/4.
    game = AugmentedEnvironment(ALWAYS_WIN, "cvar:0.25")
    taken = game.step(KEY, wealthy(16, 0.5), jnp.array(8))
    assert (taken.reward.item(), taken.budget.item(), taken.payoff.item()) == (1 / 16, 7 / 16, 1 / 4)
    assert taken.observation.observation.item() == 32 / 256
    assert (taken.observation.step.item(), taken.observation.budget.item()) == (1, 7 / 16)


def test_a_terminal_payoff() -> None:
    game = AugmentedEnvironment(ALWAYS_WIN, CVaR(0.25), dense=False)
    assert game.step(KEY, wealthy(16, 0.5), jnp.array(8)).payoff.item() == 0.0
    last = game.step(KEY, wealthy(16, 0.5, step=5), jnp.array(8))
    assert (last.terminated.item(), last.payoff.item()) == (True, -7 / 4)


def test_the_budget_is_in_time_0_units() -> None:
    put = AugmentedEnvironment(AmericanPut(discount=0.5), "mean")
    state = AugmentedState(PutState(jnp.int32(3), jnp.float32(0.5)), jnp.float32(1.0))
    assert put.step(KEY, state, jnp.array(STOP)).budget.item() == 1.0 - 0.5**3 * 0.5


def test_a_reset_in_the_loop_keeps_the_final_budget() -> None:
    game = AugmentedEnvironment(ALWAYS_WIN, "cvar:0.25", first_budget=BudgetAmong([0.25]))
    taken = game.step_or_reset(KEY, wealthy(16, 0.5, step=5), jnp.array(8))
    assert (taken.terminated.item(), taken.budget.item(), taken.payoff.item()) == (True, 7 / 16, 1 / 4)
    assert (taken.state.inner.step.item(), taken.state.inner.wealth.item()) == (0, 16.0)
    assert taken.state.budget.item() == taken.observation.budget.item() == 0.25


def test_without_an_end_there_is_no_reset() -> None:
    game = AugmentedEnvironment(ALWAYS_WIN, "cvar:0.25", first_budget=BudgetAmong([0.25]))
    taken = game.step_or_reset(KEY, wealthy(16, 0.5, step=4), jnp.array(8))
    assert (taken.state.inner.step.item(), taken.state.budget.item()) == (5, 7 / 16)


def test_first_budgets() -> None:
    keys = jax.random.split(KEY, 200)
    among = jax.vmap(first_budgets(make("paper"), CVaR(0.25)))(keys)
    assert set(among.tolist()) == {0.0, 0.5, 1.0, 1.5, 2.5}
    between = jax.vmap(first_budgets(make("paper"), Entropic(-1.0)))(keys)
    assert len(set(between.tolist())) > 190  # a smooth utility's best budget need not be a return
    drawn = np.asarray(jax.vmap(first_budgets(GuardedMaze(), CVaR(0.25)))(keys))
    # 200 uniform draws on [-40, 16] leave out an end of 5.6 with probability 0.9^200 = 7e-10.
    assert -40 <= drawn.min() < -34.4
    assert 10.4 < drawn.max() <= 16
    assert UniformBudget(1.0, 1.0)(KEY).item() == 1.0


def test_a_rollout() -> None:
    game = AugmentedEnvironment(ALWAYS_WIN, "cvar:0.25")
    played = rollout(game, all_in, KEY, 3, 0.5)
    assert played.reward.shape == played.action.shape == (3, 6)
    assert played.reward[0].tolist() == [1 / 16, 1 / 8, 1 / 4, 1 / 2, 0.0, 0.0]
    assert played.observation.budget[0].tolist() == [0.5, 7 / 16, 5 / 16, 1 / 16, -7 / 16, -7 / 16]
    assert played.observation.step[0].tolist() == list(range(6))
    assert played.final_budget.tolist() == [-7 / 16] * 3
    assert played.returns().tolist() == [15 / 16] * 3


def test_a_rollout_stops_with_the_episode() -> None:
    put = AugmentedEnvironment(AmericanPut(drift=-1.0, volatility=0.0, discount=0.5), "mean")

    def stop_third(key: jax.Array, observation: Any) -> jax.Array:
        return (observation.step == 2).astype(jnp.int32)

    played = rollout(put, stop_third, KEY, 2, 0.0)
    assert played.active[0].tolist() == [True] * 3 + [False] * 7
    assert played.terminated[0].tolist() == [False, False, True] + [False] * 7
    paid = 1 - np.exp(-0.2)  # two moves of -1 · 0.1 in the log-price
    np.testing.assert_allclose(played.reward[0], [0, 0, paid, *[0] * 7], atol=1e-6)
    np.testing.assert_allclose(played.returns(0.5), [paid / 4] * 2, atol=1e-6)
    np.testing.assert_allclose(played.final_budget, [-paid / 4] * 2, atol=1e-6)
    np.testing.assert_allclose(sample_returns(put, stop_third, KEY, 2), [paid / 4] * 2, atol=1e-6)


def test_returns_in_batches() -> None:
    game = AugmentedEnvironment(make("paper"), "mean")
    at_once, batched = (sample_returns(game, RandomPolicy(2), KEY, 23, batch=batch).tolist() for batch in (23, 5))
    assert at_once == batched


@pytest.mark.parametrize("risk", ["mean", "cvar:0.2", "entropic:-1", "mean-variance:1", "mean-cvar:0.5,0.1"])
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("environment", [AmericanPut(), make("paper")], ids=["put", "paper"])
def test_payoffs_telescope(environment: Environment[Any], dense: bool, risk: str) -> None:
    augmented = AugmentedEnvironment(environment, risk, dense=dense)
    played = rollout(augmented, RandomPolicy(2), KEY, 64)
    assert telescoping_error(augmented, played).item() < 1e-5


def test_a_wrong_budget_does_not_telescope(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ocerl.envs.augmented.next_budget", lambda budget, reward, *_: budget + reward)
    augmented = AugmentedEnvironment(make("paper"), "cvar:0.2")
    played = rollout(augmented, RandomPolicy(2), KEY, 65)  # a number of its own: nothing compiled is reused
    assert telescoping_error(augmented, played).item() > 1


def test_a_risk_of_ones_own() -> None:
    risk = Utility(lambda t: t - 0.25 * t**2, label="bent")
    game = AugmentedEnvironment(ALWAYS_WIN, risk, dense=False)
    last = game.step(KEY, wealthy(256, 0.5, step=5), jnp.array(0))
    assert last.payoff.item() == -0.5 - 0.25 * 0.25


def test_a_utility_that_cannot_be_compiled() -> None:
    with pytest.raises(OcerlError, match=r"utility:log cannot be compiled, write it with jax\.numpy"):
        AugmentedEnvironment(ALWAYS_WIN, Utility(np.log1p, label="log", low=-0.5))


def test_a_new_level_is_no_new_trace() -> None:
    traces = 0

    @eqx.filter_jit
    def payoff(game: AugmentedEnvironment[BettingState]) -> jax.Array:
        nonlocal traces
        traces += 1
        return game.step(KEY, wealthy(16, 0.5), jnp.array(8)).payoff

    payoffs = [
        payoff(AugmentedEnvironment(ALWAYS_WIN, CVaR(tau), first_budget=UniformBudget(0.0, tau))).item()
        for tau in (0.25, 0.5, 1.0)
    ]
    assert payoffs == [1 / 4, 1 / 8, 1 / 16]
    assert traces == 1
