"""Training as a whole, with negative controls: the wrong method has to lose.

Seeds are fixed and values exact, so that nothing fails by chance; on the paper's MDP (Section 5) the best policy that
does not see its budget is worth 0.5 for CVaR at 1/4, the best one that does 0.75.
"""

from __future__ import annotations

from typing import Any

import pytest

from ocerl.gradient.deep import train

SHORT: dict[str, Any] = {"steps": 300_000, "episodes": 1000}


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ["ppo-forward", "ppo-backward"])
@pytest.mark.parametrize("dense", [True, False])
def test_dense_and_sparse_payoffs_have_the_same_optimum(oracle: Any, dense: bool) -> None:
    assert train("paper", "cvar:0.25", oracle=oracle, dense=dense, **SHORT).best.value == 0.75


@pytest.mark.slow
def test_without_the_budget_the_optimum_is_out_of_reach() -> None:
    """The same settings in everything else; the second action depends on the first reward only through the budget."""
    blind = train("paper", "cvar:0.25", hide_budget=True, seeds=3, **SHORT)
    assert [run.value <= 0.5 for run in blind.runs] == [True] * 3
    assert blind.values.max() <= 0.5
    assert max(run.value for run in blind.runs) == 0.5
    assert [run.value for run in train("paper", "cvar:0.25", seeds=3, **SHORT).runs] == [0.75] * 3


@pytest.mark.slow
def test_a_fixed_first_budget_keeps_to_the_short_way() -> None:
    """The budget 16 asks for the largest return, so that all that counts is the mean.

    The short way through the guarded maze has the better mean and a tail that costs dearly.
    """
    trained = train(
        "guarded-maze", "cvar:0.05", first_budget=(16.0, 16.0), steps=3_000_000, episodes=20_000, hidden=(32, 32)
    )
    assert trained.best.mean > 3
    assert trained.best.value < -20
