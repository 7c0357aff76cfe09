"""Known models: the best policy for a risk, exactly or certified, and the exact return of any policy."""

from ocerl.planning.distribution import ReturnDistribution
from ocerl.planning.evaluate import evaluate
from ocerl.planning.frontier import Frontier, frontier
from ocerl.planning.iterated import IteratedPlan, iterated
from ocerl.planning.markov import MarkovPlan, best_markov
from ocerl.planning.neutral import exponential, risk_neutral
from ocerl.planning.plan import plan
from ocerl.planning.policy import BudgetPolicy, MarkovPolicy, Policy
from ocerl.planning.result import Plan
from ocerl.planning.rules import Rule, policy_rules
from ocerl.planning.simulate import simulate
from ocerl.planning.storage import load_policy, save_policy

__all__ = [
    "BudgetPolicy",
    "Frontier",
    "IteratedPlan",
    "MarkovPlan",
    "MarkovPolicy",
    "Plan",
    "Policy",
    "ReturnDistribution",
    "Rule",
    "best_markov",
    "evaluate",
    "exponential",
    "frontier",
    "iterated",
    "load_policy",
    "plan",
    "policy_rules",
    "risk_neutral",
    "save_policy",
    "simulate",
]
