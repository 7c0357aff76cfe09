"""Section 3: a world to explore and no model, by optimism. Algorithm 1, its oracles and `explore`."""

from ocerl.optimistic.explore import explore
from ocerl.optimistic.golf import Golf, GolfConfig
from ocerl.optimistic.meta import OptimisticOracle, optimism
from ocerl.optimistic.repucb import RepUcb, RepUcbConfig
from ocerl.optimistic.result import Exploration, SeedRun
from ocerl.optimistic.ucbvi import UcbVi, UcbViConfig

__all__ = [
    "Exploration",
    "Golf",
    "GolfConfig",
    "OptimisticOracle",
    "RepUcb",
    "RepUcbConfig",
    "SeedRun",
    "UcbVi",
    "UcbViConfig",
    "explore",
    "optimism",
]
