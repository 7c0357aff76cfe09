"""The settings of a deep policy-gradient run; defaults are those of Appendix C where it names them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

from ocerl.errors import OcerlError
from ocerl.gradient.deep.agent import Critic

Oracle = Literal["reinforce", "ppo-forward", "ppo-backward"]
ORACLES: tuple[Oracle, ...] = ("reinforce", "ppo-forward", "ppo-backward")


@dataclass(frozen=True, kw_only=True)
class DeepConfig:
    """What decides a run, but for its environment, risk and seed.

    >>> DeepConfig(oracle="reinforce").passes
    1
    >>> DeepConfig(rollout=8, environments=4).batch
    32
    """

    oracle: Oracle = "ppo-forward"
    """`reinforce`, `ppo-forward` (KL from the old policy to the new) or `ppo-backward` (from the new to the old)."""
    steps: int = 1_000_000
    """Environment steps of a run; rounded up to whole updates."""
    environments: int = 256
    """How many episodes are played side by side."""
    group: int = 4
    """Environments that meet the same chance from the same first budget, so that what differs is what they do; 1 for
    none (Gymnasium's environments have no common chance)."""
    rollout: int = 64
    """Steps of each of them between two updates."""
    epochs: int = 4
    """Passes of PPO over a batch; REINFORCE makes one, in one piece."""
    minibatches: int = 8
    """Pieces that PPO divides a batch into."""
    learning_rate: float = 1e-3
    """Adam's step size at the beginning."""
    final_rate: float = 0.1
    """The part of the step size that is left at the end; it falls linearly."""
    gae_lambda: float = 0.95
    """λ of generalised advantage estimation (Schulman et al., 2016)."""
    kl_weight: float = 0.1
    """The weight of the KL penalty, against advantages of unit size."""
    kl_target: float | None = None
    """With a number, the KL weight is doubled or halved to keep the divergence of an update near it."""
    clip: float | None = None
    """With a number, the importance ratio is clipped to 1 ± so much (the other form of PPO)."""
    barrier: float = 0.02
    """The weight of the log-barrier, against advantages of unit size."""
    final_barrier: float = 0.1
    """The part of the barrier that is left at the end; it falls linearly."""
    mean_weight: float = 0.001
    """A small weight on the reward itself: among policies of equal tail, the better mean."""
    max_gradient: float = 1.0
    """Gradients are scaled down to this norm."""
    hidden: tuple[int, ...] = (64, 64)
    """The sizes of the hidden layers of both networks."""
    critic: Critic | None = None
    """`q` (the default for discrete actions, as in the paper) or `value` (for continuous ones)."""
    budget_knots: int = 65
    """Where returns are not discrete, the budget is shown by so many hats, at even distances."""
    time_knots: int = 16
    """The time is shown by at most so many hats."""
    dense: bool = True
    """Whether the pay-off is paid densely rather than at the end (they have the same optimum)."""
    hide_budget: bool = False
    """A negative control: the networks do not see the budget."""
    first_budget: tuple[float, float] | None = None
    """The range of first budgets, if it is not to be the environment's; two equal numbers fix it."""

    def __post_init__(self) -> None:
        if self.oracle not in ORACLES:
            raise OcerlError(f"there is no deep oracle {self.oracle!r}; there are {', '.join(ORACLES)}")
        for name in ("steps", "environments", "group", "rollout", "epochs", "minibatches"):
            _require(name, getattr(self, name), "a whole number of at least 1", lambda x: isinstance(x, int) and x >= 1)
        for name in ("learning_rate", "max_gradient"):
            _require(name, getattr(self, name), "a positive number", lambda x: isfinite(x) and x > 0)
        for name in ("kl_weight", "barrier", "mean_weight"):
            _require(name, getattr(self, name), "a number of at least 0", lambda x: isfinite(x) and x >= 0)
        for name in ("gae_lambda", "final_rate", "final_barrier"):
            _require(name, getattr(self, name), "between 0 and 1", lambda x: 0 <= x <= 1)
        for name in ("dense", "hide_budget"):
            if not isinstance(getattr(self, name), bool):
                raise OcerlError(f"{name} must be True or False, got {getattr(self, name)!r}")
        for name in ("kl_target", "clip"):
            _require(name, getattr(self, name), "a positive number or None", lambda x: x is None or x > 0)
        for name in ("budget_knots", "time_knots"):
            _require(name, getattr(self, name), "a whole number of at least 2", lambda x: isinstance(x, int) and x >= 2)
        _require("critic", self.critic, "'q', 'value' or None", lambda x: x in (None, "q", "value"))
        _require("hidden", self.hidden, "a tuple of sizes, such as (64, 64)", _are_sizes)
        if self.first_budget is not None:
            ordered = "two finite numbers, low <= high"
            _require("first_budget", self.first_budget, ordered, is_range)
        if self.environments % self.group:
            raise OcerlError(f"environments must be a multiple of group, got {self.environments} and {self.group}")
        if self.oracle != "reinforce" and self.batch % self.minibatches:
            raise OcerlError(
                f"environments × rollout must be a multiple of minibatches, "
                f"got {self.environments} × {self.rollout} = {self.batch} and {self.minibatches}"
            )

    @property
    def batch(self) -> int:
        """Steps for each update."""
        return self.environments * self.rollout

    @property
    def updates(self) -> int:
        return -(-self.steps // self.batch)

    @property
    def passes(self) -> int:
        """How often an update goes over its batch."""
        return 1 if self.oracle == "reinforce" else self.epochs

    @property
    def pieces(self) -> int:
        return 1 if self.oracle == "reinforce" else self.minibatches


def is_range(value: Any) -> bool:
    """Whether these are two finite numbers, the smaller one first."""
    return len(value) == 2 and all(map(isfinite, value)) and value[0] <= value[1]


def _require(name: str, value: Any, wanted: str, holds: Callable[[Any], bool]) -> None:
    try:
        good = not isinstance(value, bool) and holds(value)
    except (TypeError, ValueError):  # of another type altogether
        good = False
    if not good:
        raise OcerlError(f"{name} must be {wanted}, got {value!r}")


def _are_sizes(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(size, int) and size >= 1 for size in value)
