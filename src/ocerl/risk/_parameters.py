"""What named risks share: validated parameters and a text form made of them."""

import math
from dataclasses import dataclass, fields
from numbers import Real
from typing import ClassVar, cast

from ocerl.errors import OcerlError
from ocerl.risk._base import Risk, largest_magnitude


@dataclass(frozen=True)
class Interval:
    """Where a parameter may lie; an end counts only when it is closed, and infinity never does."""

    low: float
    high: float
    closed_low: bool = False
    closed_high: bool = False

    def __contains__(self, number: float) -> bool:
        above = self.low <= number if self.closed_low else self.low < number
        below = number <= self.high if self.closed_high else number < self.high
        return above and below

    def condition(self, name: str) -> str:
        """The interval in words, such as `0 < tau <= 1`."""
        above, below = "<=" if self.closed_low else "<", "<=" if self.closed_high else "<"
        left = "" if math.isinf(self.low) else f"{format_number(self.low)} {above} "
        right = "" if math.isinf(self.high) else f" {below} {format_number(self.high)}"
        return left + name + right


@dataclass(frozen=True)
class NamedRisk(Risk):
    """A risk with a text form `keyword:parameter,...`; every parameter is a float within its `interval`."""

    keyword: ClassVar[str]

    def __post_init__(self) -> None:
        for parameter, interval in intervals(type(self)).items():
            given: object = getattr(self, parameter)
            if not isinstance(given, Real) or float(given) not in interval:
                wanted = interval.condition(parameter)
                raise OcerlError(f"{self.keyword}: {parameter} must be a number with {wanted}, got {given!r}")
            # A NumPy scalar would set the precision of every array it meets.
            object.__setattr__(self, parameter, float(given))

    @property
    def name(self) -> str:
        parameters = ",".join(format_number(getattr(self, parameter)) for parameter in intervals(type(self)))
        return f"{self.keyword}:{parameters}" if parameters else self.keyword

    def v_max(self, low: float, high: float) -> float:
        return largest_magnitude(self, low, high)


def intervals(kind: type[NamedRisk]) -> dict[str, Interval]:
    """The parameters of a named risk, in order, with where each may lie."""
    return {parameter.name: cast(Interval, parameter.metadata["interval"]) for parameter in fields(kind)}


def format_number(number: float) -> str:
    """The shortest text that reads back as the same float: `0.25`, `-1`.

    >>> format_number(-1.0), format_number(0.1)
    ('-1', '0.1')
    """
    return repr(float(number)).removesuffix(".0")
