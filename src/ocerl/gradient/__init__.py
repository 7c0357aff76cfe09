"""Algorithm 2: policy optimization in the augmented MDP (Section 4 and Appendix E)."""

from ocerl.gradient.agnostic import AgnosticNPG
from ocerl.gradient.budgets import FirstBudgets, first_budgets
from ocerl.gradient.graph import AugmentedGraph, augmented_graph
from ocerl.gradient.meta import Judgement, PolicyOracle, Round, optimise_policies
from ocerl.gradient.npg import ExactNPG, rate_bound
from ocerl.gradient.npg_sampled import SampledNPG
from ocerl.gradient.policy import StochasticBudgetPolicy
from ocerl.gradient.reinforce import Reinforce
from ocerl.gradient.tables import ExactJudge
from ocerl.gradient.train import ORACLES, train_tabular
from ocerl.gradient.training import SeedResult, Training

__all__ = [
    "ORACLES",
    "AgnosticNPG",
    "AugmentedGraph",
    "ExactJudge",
    "ExactNPG",
    "FirstBudgets",
    "Judgement",
    "PolicyOracle",
    "Reinforce",
    "Round",
    "SampledNPG",
    "SeedResult",
    "StochasticBudgetPolicy",
    "Training",
    "augmented_graph",
    "first_budgets",
    "optimise_policies",
    "rate_bound",
    "train_tabular",
]
