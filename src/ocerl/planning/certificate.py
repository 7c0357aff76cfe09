"""What is proven about a value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ocerl.planning.distribution import ReturnDistribution
from ocerl.risk import Risk


@dataclass(frozen=True)
class Certificate:
    """`lower <= OCE* <= upper`; the policy that comes with it is guaranteed `value`.

    `exact` says that nothing beats the policy by more than 1e-9 of the return range; then all three agree.
    """

    value: float
    lower: float
    upper: float
    exact: bool


def guaranteed(returns: ReturnDistribution, risk: Risk, budget: float) -> float:
    r"""The OCE that a policy has at least, where its returns are known up to rounding.

    :math:`b + E\,u(Z - b)` at a fixed `b`, with every return at the worst end of its error; a concave function is least
    at an end.
    """
    low, high = returns.error
    if low == high == 0.0:
        return returns.certainty_equivalent(risk)
    if risk.monotone:
        return returns.certainty_equivalent(risk) + low
    above = returns.values - budget
    worst = np.minimum(risk.utility(above + low), risk.utility(above + high))
    return budget + float(returns.probabilities @ worst)
