"""Whether an oracle does what its definition asks for, measured on a known model: for our oracles and for yours."""

from ocerl.conformance.optimism import OptimismReport, check_optimism, ucbvi_maker

__all__ = ["OptimismReport", "check_optimism", "ucbvi_maker"]
