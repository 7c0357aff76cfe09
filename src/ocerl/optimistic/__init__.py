"""Section 3: a world to explore and no model, by optimism. Algorithm 1, its oracles and `explore`."""

from ocerl.optimistic.explore import explore
from ocerl.optimistic.meta import OptimisticOracle, optimism
from ocerl.optimistic.result import Exploration, SeedRun
from ocerl.optimistic.ucbvi import UcbVi, UcbViConfig

__all__ = ["Exploration", "OptimisticOracle", "SeedRun", "UcbVi", "UcbViConfig", "explore", "optimism"]
