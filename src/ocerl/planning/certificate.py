"""What is proven about a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Certificate:
    """`lower <= OCE* <= upper`; the policy that comes with it is guaranteed `value`.

    `exact` says that nothing beats the policy by more than 1e-9 of the return range; then all three agree.
    """

    value: float
    lower: float
    upper: float
    exact: bool
