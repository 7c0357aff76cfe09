"""Whether an oracle does what its definition asks for, measured on a known model: for our oracles and for yours."""

from ocerl.conformance.optimism import OptimismReport, check_optimism, rich_maker, ucbvi_maker
from ocerl.conformance.policy import PolicyReport, check_policy_optimization, table_policy_of

__all__ = [
    "OptimismReport",
    "PolicyReport",
    "check_optimism",
    "check_policy_optimization",
    "rich_maker",
    "table_policy_of",
    "ucbvi_maker",
]
