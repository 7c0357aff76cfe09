"""Environments written in JAX, the budget-augmented environment around them, and their Gymnasium ids.

| name | Gymnasium | what |
|---|---|---|
| `paper`, any model | `ocerl/Paper-v0`, `ocerl/Tabular-v0` | `TabularEnvironment`: a `TabularMDP` |
| `betting-game` | `ocerl/BettingGame-v0` | `BettingGame`: six bets on a favourable coin |
| `american-put` | `ocerl/AmericanPut-v0` | `AmericanPut`: optimal stopping |
| `guarded-maze` | `ocerl/GuardedMaze-v0` | `GuardedMaze`: a short way that may cost dearly |
| `risky-lock` | `ocerl/RiskyLock-v0` | `ExogenousEnvironment`: a lock behind bits that move by themselves |
| `low-rank` | `ocerl/LowRank-v0` | `TabularEnvironment`: a lock of rank 3 with any number of states |
| `low-rank-vectors` | `ocerl/LowRankVectors-v0` | `VectorEnvironment`: the same with continuous observations |

`make` builds one by its name. `AugmentedEnvironment` puts the budget into its state (Section 2.1 of the
paper); `rollout` and `sample_returns` play many episodes at once. Importing this package registers the ids.

>>> import jax
>>> game = AugmentedEnvironment(make("paper"), "cvar:0.25")
>>> returns = sample_returns(game, RandomPolicy(2), jax.random.key(0), 1000)
>>> sorted(set(returns.tolist()))
[0.0, 0.5, 1.0, 1.5, 2.5]
"""

from ocerl.envs._base import Environment, EnvState, TimeStep
from ocerl.envs.american_put import AmericanPut
from ocerl.envs.augmented import (
    AugmentedEnvironment,
    AugmentedObservation,
    AugmentedState,
    AugmentedStep,
    BudgetAmong,
    SpreadBudget,
    UniformBudget,
    first_budgets,
)
from ocerl.envs.betting import BettingGame
from ocerl.envs.catalogue import make
from ocerl.envs.guarded_maze import GuardedMaze
from ocerl.envs.registration import CompiledEnv, register
from ocerl.envs.rich import ExogenousEnvironment, VectorEnvironment
from ocerl.envs.rollout import Episodes, RandomPolicy, rollout, sample_returns, telescoping_error
from ocerl.envs.tabular import TabularEnvironment

__all__ = [
    "AmericanPut",
    "AugmentedEnvironment",
    "AugmentedObservation",
    "AugmentedState",
    "AugmentedStep",
    "BettingGame",
    "BudgetAmong",
    "CompiledEnv",
    "EnvState",
    "Environment",
    "Episodes",
    "ExogenousEnvironment",
    "GuardedMaze",
    "RandomPolicy",
    "SpreadBudget",
    "TabularEnvironment",
    "TimeStep",
    "UniformBudget",
    "VectorEnvironment",
    "first_budgets",
    "make",
    "register",
    "rollout",
    "sample_returns",
    "telescoping_error",
]

register()
