"""What `plan` answers with: the policy, its certificate and its whole return distribution."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocerl.mdp.lattice import Lattice
from ocerl.mdp.tabular import TabularMDP
from ocerl.planning.certificate import Certificate
from ocerl.planning.distribution import ReturnDistribution
from ocerl.planning.evaluate import forward_markov
from ocerl.planning.grid import Grid
from ocerl.planning.policy import BudgetPolicy, MarkovPolicy
from ocerl.planning.simulate import simulate
from ocerl.planning.storage import save_policy
from ocerl.risk import Estimate, Risk, estimate


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """The answer to a planning problem. `print` it for a summary; `save` it to a folder."""

    model: TabularMDP
    risk: Risk
    certificate: Certificate
    budget: float
    """The first budget: for CVaR a quantile of the return."""
    policy: BudgetPolicy | MarkovPolicy
    returns: ReturnDistribution
    """The policy's return distribution (of rewards rounded down, where they had to be rounded)."""
    neutral_value: float
    neutral_policy: MarkovPolicy
    lattice: Lattice
    """Where returns are counted."""
    seconds: float

    @property
    def value(self) -> float:
        """The OCE the policy is guaranteed to have."""
        return self.certificate.value

    @property
    def lower(self) -> float:
        return self.certificate.lower

    @property
    def upper(self) -> float:
        """No history-dependent policy has a larger OCE."""
        return self.certificate.upper

    @property
    def exact(self) -> bool:
        return self.certificate.exact

    @property
    def resolution(self) -> float:
        """The unit of the lattice."""
        return self.lattice.unit

    @cached_property
    def neutral_returns(self) -> ReturnDistribution:
        """The return distribution of the risk-neutral policy, computed when it is first asked for."""
        return forward_markov(Grid.of(self.lattice), self.neutral_policy)

    @property
    def risk_neutral(self) -> RiskNeutral:
        """The best mean return, and the OCE of the policy that has it."""
        return RiskNeutral(self.neutral_value, self.neutral_returns.certainty_equivalent(self.risk))

    def simulate(self, episodes: int, seed: int = 0) -> NDArray[np.float64]:
        """Returns of simulated episodes under the policy, with the model's own rewards."""
        return simulate(self.model, self.policy, episodes, seed)

    def estimate(self, episodes: int, seed: int = 0) -> Estimate:
        """The OCE as simulated episodes show it, with an interval."""
        return estimate(self.simulate(episodes, seed), self.risk)

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON form."""
        return {
            "model": self.model.name,
            "risk": self.risk.name,
            "horizon": self.model.horizon,
            "discount": self.model.discount,
            "value": self.value,
            "lower": self.lower,
            "upper": self.upper,
            "exact": self.exact,
            "budget": self.budget,
            "resolution": self.resolution,
            "return": {
                "values": self.returns.values.tolist(),
                "probabilities": self.returns.probabilities.tolist(),
                "mean": self.returns.mean,
            },
            "risk_neutral": {"value": self.risk_neutral.value, "oce": self.risk_neutral.oce},
            "seconds": self.seconds,
        }

    def save(self, folder: Path | str) -> None:
        """Write `plan.json` and the policy to a folder; `load_policy` reads the policy back."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "plan.json").write_text(json.dumps(self.to_dict(), indent=2) + "\n")
        save_policy(self.policy, folder)

    def __str__(self) -> str:
        proof = "exact" if self.exact else f"certified: OCE* is in [{self.lower:.6g}, {self.upper:.6g}]"
        return (
            f"{self.risk.name} of {self.model.name} over {self.model.horizon} steps: {self.value:.6g} ({proof})\n"
            f"first budget {self.budget:.6g}, mean return {self.returns.mean:.6g}; "
            f"the risk-neutral policy has mean {self.risk_neutral.value:.6g} and OCE {self.risk_neutral.oce:.6g}"
        )


@dataclass(frozen=True)
class RiskNeutral:
    value: float
    oce: float
