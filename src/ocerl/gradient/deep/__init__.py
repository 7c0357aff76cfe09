"""Algorithm 2 with neural networks: REINFORCE and PPO in the augmented MDP (Section 5 and Appendix C)."""

from ocerl.gradient.deep.config import ORACLES, DeepConfig
from ocerl.gradient.deep.policy import NetworkPolicy
from ocerl.gradient.deep.result import DeepSeedResult, DeepTraining
from ocerl.gradient.deep.saved import evaluate_levels, evaluate_run
from ocerl.gradient.deep.train import train

__all__ = [
    "ORACLES",
    "DeepConfig",
    "DeepSeedResult",
    "DeepTraining",
    "NetworkPolicy",
    "evaluate_levels",
    "evaluate_run",
    "train",
]
