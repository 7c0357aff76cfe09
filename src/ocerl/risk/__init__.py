"""Static risks of a total reward, as optimized certainty equivalents (Appendix B of the paper).

A risk is a concave utility `u`. The optimized certainty equivalent (OCE) of a random reward X is

    OCE_u(X) = max_b { b + E[u(X - b)] },

and the maximising `b` is the budget. **The convention, everywhere in ocerl:** rewards are maximised, τ is the
mass of the *worst* tail, and a bigger number is better; nothing is ever a loss.

| risk | text form | `u(t)` | OCE_u(X) |
|---|---|---|---|
| `Mean()` | `mean` | t | E X |
| `CVaR(τ)` | `cvar:τ` | −(−t)₊ / τ | the mean of the worst τ-fraction |
| `Entropic(β)`, β < 0 | `entropic:β` | (exp(βt) − 1) / β | (1/β) log E exp(βX) |
| `MeanVariance(c)` | `mean-variance:c` | t − ct² | E X − c Var X (not monotone) |
| `MonotoneMeanVariance(c)` | `monotone-mean-variance:c` | t − ct² to its top, then flat | its monotone kin |
| `MeanCVaR(κ, τ)` | `mean-cvar:κ,τ` | κ(t)₊ − κ₂(−t)₊, κ₂ = (1 − κ)/τ + κ | κ E X + (1 − κ) CVaR_τ(X) |
| `Utility(function)` | none | any function you write | see `check_utility` |

>>> parse_risk("cvar:0.25").certainty_equivalent([0.0, 1.5], probabilities=[1 / 8, 7 / 8])
CertaintyEquivalent(value=0.75, budget=1.5, tolerance=0.0)
"""

from ocerl.risk._base import CertaintyEquivalent, Risk
from ocerl.risk._conditions import Condition, UtilityReport, check_utility
from ocerl.risk._estimate import FEWEST_TAIL_SAMPLES, Estimate, estimate, mean_interval
from ocerl.risk._named import CVaR, Entropic, Mean, MeanCVaR, MeanVariance, MonotoneMeanVariance
from ocerl.risk._parse import parse_risk
from ocerl.risk._utility import Utility

__all__ = [
    "FEWEST_TAIL_SAMPLES",
    "CVaR",
    "CertaintyEquivalent",
    "Condition",
    "Entropic",
    "Estimate",
    "Mean",
    "MeanCVaR",
    "MeanVariance",
    "MonotoneMeanVariance",
    "Risk",
    "Utility",
    "UtilityReport",
    "check_utility",
    "estimate",
    "mean_interval",
    "parse_risk",
]
