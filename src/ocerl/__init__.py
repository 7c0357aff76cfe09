"""Sequential decisions under risk: the policy that is best for your risk, how good it is, and what it trades.

The idea: the static risk of a total reward is ordinary reinforcement learning in a budget-augmented MDP, plus
one choice of the first budget (Section 2.1 of "A Reductions Approach to Risk-Sensitive Reinforcement Learning
with Optimized Certainty Equivalents"). With states `(s, b)`, budgets `b' = b - r` and the pay-off `u(-b)` at
the end,

    OCE* = max_b { b + V*(s_1, b) }.

Three doors lead to the same kind of answer, a policy that carries its budget with it and a certificate of its
value:

- you have a model: `plan` finds the optimum exactly, or between certified bounds (Section 2.1);
- you have a world to explore and no model: `explore`, by optimism (Section 3, Algorithm 1);
- you have a simulator or any Gymnasium environment: `train`, by policy gradients with networks, or `train_tabular`,
  with tables (Section 4, Algorithm 2).

Rewards are maximised, τ is the mass of the worst tail, and a bigger number is better, everywhere.

>>> import ocerl
>>> ocerl.CVaR(0.5).certainty_equivalent([0.0, 1.0, 2.0, 9.0]).value
0.5
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ocerl.errors import OcerlError
    from ocerl.gradient import train_tabular
    from ocerl.gradient.deep import NetworkPolicy, evaluate_run, train
    from ocerl.mdp import TabularMDP, from_arrays, from_gymnasium, read_csv, write_csv, zoo
    from ocerl.optimistic import explore
    from ocerl.planning import best_markov, evaluate, frontier, load_policy, plan
    from ocerl.risk import (
        CVaR,
        Entropic,
        Mean,
        MeanCVaR,
        MeanVariance,
        MonotoneMeanVariance,
        Risk,
        Utility,
        check_utility,
        estimate,
        parse_risk,
    )

__version__ = "0.1.0"

__all__ = [
    "CVaR",
    "Entropic",
    "Mean",
    "MeanCVaR",
    "MeanVariance",
    "MonotoneMeanVariance",
    "NetworkPolicy",
    "OcerlError",
    "Risk",
    "TabularMDP",
    "Utility",
    "__version__",
    "best_markov",
    "check_utility",
    "estimate",
    "evaluate",
    "evaluate_run",
    "explore",
    "from_arrays",
    "from_gymnasium",
    "frontier",
    "load_policy",
    "parse_risk",
    "plan",
    "read_csv",
    "train",
    "train_tabular",
    "write_csv",
    "zoo",
]

_HOME = {
    "CVaR": "ocerl.risk",
    "Entropic": "ocerl.risk",
    "Mean": "ocerl.risk",
    "MeanCVaR": "ocerl.risk",
    "MeanVariance": "ocerl.risk",
    "MonotoneMeanVariance": "ocerl.risk",
    "NetworkPolicy": "ocerl.gradient.deep",
    "OcerlError": "ocerl.errors",
    "Risk": "ocerl.risk",
    "TabularMDP": "ocerl.mdp",
    "Utility": "ocerl.risk",
    "best_markov": "ocerl.planning",
    "check_utility": "ocerl.risk",
    "estimate": "ocerl.risk",
    "evaluate": "ocerl.planning",
    "evaluate_run": "ocerl.gradient.deep",
    "explore": "ocerl.optimistic",
    "from_arrays": "ocerl.mdp",
    "from_gymnasium": "ocerl.mdp",
    "frontier": "ocerl.planning",
    "load_policy": "ocerl.planning",
    "parse_risk": "ocerl.risk",
    "plan": "ocerl.planning",
    "read_csv": "ocerl.mdp",
    "train": "ocerl.gradient.deep",
    "train_tabular": "ocerl.gradient",
    "write_csv": "ocerl.mdp",
    "zoo": "ocerl.mdp",
}


if not TYPE_CHECKING:  # a type checker has the imports above, and would take `__getattr__` to allow any name

    def __getattr__(name: str) -> object:
        """Load a public name from its module when it is first used, so that `import ocerl` stays light."""
        if name not in _HOME:
            raise AttributeError(f"module 'ocerl' has no attribute {name!r}")
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
