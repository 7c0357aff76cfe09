"""Any user's utility as a risk (Appendix B: the OCE is defined for every u; R1-R5 make it well-behaved)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from ocerl.errors import OcerlError
from ocerl.risk._base import CertaintyEquivalent, Numbers, Risk, array_module, attained, largest_magnitude
from ocerl.risk._conditions import check_utility, evaluate, rounding
from ocerl.risk._distribution import FloatArray
from ocerl.risk._search import maximise_concave

_HALVINGS = 64


@final
@dataclass(frozen=True)
class Utility(Risk):
    """The OCE of your own utility: a function, elementwise on arrays, that gives -inf outside its domain.

    The certainty equivalent needs R1 (proper), R3 (concave) and R5 (u(0) = 0, slope 1 there), judged on the
    range of X - b that the distribution at hand can reach; then a maximising budget lies between the least
    and the greatest value, and a golden-section search finds it. R4 may fail: the risk is then not
    `monotone`.

    Deviation from the paper: its utilities live on [-1, 1], since its returns lie in [0, 1]. Here `low` and
    `high` say where `monotone` is judged; give `low=z_lo - z_hi, high=z_hi - z_lo` for returns in [z_lo,
    z_hi].

    >>> import numpy as np
    >>> risk = Utility(np.log1p, label="log")
    >>> result = risk.certainty_equivalent([0.0, 0.5])
    >>> round(result.value, 9), result.tolerance < 1e-9, risk.monotone
    (0.219653563, True, True)
    """

    function: Callable[[Numbers], Numbers]
    """The utility u."""
    label: str = "custom"
    """What to call it in tables and plots."""
    low: float = -1.0
    """The least X - b at which `monotone` is judged."""
    high: float = 1.0
    """The greatest X - b at which `monotone` is judged."""

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise OcerlError(f"utility {self.label!r}: function must be callable, got {self.function!r}")
        check_utility(self.function, self.low, self.high)  # refuses a bad range, and what is not elementwise

    @property
    def name(self) -> str:
        """`utility:label`, for display: a function has no text form, and `parse_risk` does not read this."""
        return f"utility:{self.label}"

    @property
    def monotone(self) -> bool:
        return check_utility(self.function, self.low, self.high).holds("R4")

    @property
    def slopes(self) -> None:
        return None

    def utility(self, t: Numbers) -> Numbers:
        _, t = array_module(t)
        with np.errstate(all="ignore"):  # log(0) = -inf is meant
            result = self.function(t)
        return result[()] if isinstance(result, np.ndarray) else result

    def v_max(self, low: float, high: float) -> float:
        magnitude = largest_magnitude(self, low, high)
        self._require("R1", "R3", low=min(low, self.low), high=max(high, self.high))
        return magnitude

    def _solve(self, support: FloatArray, probabilities: FloatArray) -> CertaintyEquivalent:
        least, greatest = float(support[0]), float(support[-1])
        width = greatest - least
        if width == 0:
            self._require("R1", "R3", "R5", low=self.low, high=self.high)
            return CertaintyEquivalent(least, least, 0.0)
        self._require("R1", "R3", "R5", low=-width, high=width)
        first = self._edge(feasible=greatest, other=least, extreme=greatest)
        last = self._edge(feasible=least, other=greatest, extreme=least)
        if first > last:
            raise OcerlError(
                f"{self.name}: E u(X - b) is -inf for every b: the values from {least:g} to {greatest:g} "
                "lie wider apart than its domain allows"
            )
        top = maximise_concave(lambda budget: attained(self, budget, support, probabilities), first, last)
        budget, value = self._snap(top.argument, support, probabilities)
        size = 1 + abs(budget) + float(probabilities @ np.abs(self.utility(support - budget)))
        return CertaintyEquivalent(value, budget, top.gap + 16 * rounding(self.function) * size)

    def _edge(self, feasible: float, other: float, extreme: float) -> float:
        """The budget nearest to `other` at which `u(extreme - b)` is still finite, by bisection."""
        if self._finite(extreme - other):
            return other
        for _ in range(_HALVINGS):
            middle = (feasible + other) / 2
            feasible, other = (middle, other) if self._finite(extreme - middle) else (feasible, middle)
        return feasible

    def _finite(self, t: float) -> bool:
        return bool(np.isfinite(evaluate(self.function, np.array([t]))[0]))

    def _snap(self, budget: float, support: FloatArray, probabilities: FloatArray) -> tuple[float, float]:
        """The budget or the atom beside it, whichever earns most: with a kink in u the atom is exact."""
        place = int(np.searchsorted(support, budget))
        atoms = support[max(place - 1, 0) : place + 1]
        candidates = [budget, *(float(atom) for atom in atoms)]
        earned = [attained(self, candidate, support, probabilities) for candidate in candidates]
        best = int(np.argmax(earned))
        return candidates[best], earned[best]

    def _require(self, *names: str, low: float, high: float) -> None:
        report = check_utility(self.function, low, high)
        failures = [entry for entry in report.conditions if entry.name in names and not entry.holds]
        if failures:
            advice = "; normalise it to (u(t) - u(0)) / u'(0)" if failures[-1].name == "R5" else ""
            listed = "; ".join(f"{entry.name} ({entry.meaning}) fails: {entry.reason}" for entry in failures)
            raise OcerlError(f"{self.name} on [{low:g}, {high:g}]: {listed}{advice}")
