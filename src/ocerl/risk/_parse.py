"""The one parser of risk strings: `keyword` or `keyword:parameter,...`."""

from ocerl.errors import OcerlError
from ocerl.risk._base import Risk
from ocerl.risk._named import NAMED
from ocerl.risk._parameters import NamedRisk, intervals


def parse_risk(text: str | Risk) -> Risk:
    """The risk that `text` names; a risk is returned unchanged.

    >>> parse_risk("mean-cvar:0.5,0.25")
    MeanCVaR(kappa=0.5, tau=0.25)
    >>> parse_risk("cvar:25")
    Traceback (most recent call last):
    ocerl.errors.OcerlError: 'cvar:25': cvar: tau must be a number with 0 < tau <= 1, got 25.0; a risk ...
    """
    if isinstance(text, Risk):
        return text
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # users of untyped code
        raise OcerlError(f"a risk must be a text or a Risk, got {text!r}; {_valid_forms()}")
    keyword, colon, tail = text.strip().partition(":")
    kinds = {kind.keyword: kind for kind in NAMED}
    if keyword not in kinds:
        raise OcerlError(f"there is no risk {text!r}; {_valid_forms()}")
    kind = kinds[keyword]
    parameters = tuple(intervals(kind))
    words = tail.split(",") if colon else []
    if len(words) != len(parameters):
        wanted = f"{len(parameters)} ({', '.join(parameters)})" if parameters else "none"
        raise OcerlError(f"risk {text!r} gives {len(words)} parameters, {keyword} takes {wanted}; {_valid_forms()}")
    try:
        return kind(*map(float, words))
    except ValueError as error:  # not a number, or (OcerlError) not one the risk can take
        raise OcerlError(f"{text!r}: {error}; {_valid_forms()}") from None


def _form(kind: type[NamedRisk]) -> str:
    """A risk's text form with the ranges of its parameters, such as `cvar:tau with 0 < tau <= 1`."""
    parameters = intervals(kind)
    if not parameters:
        return kind.keyword
    ranges = " and ".join(interval.condition(name) for name, interval in parameters.items())
    return f"{kind.keyword}:{','.join(parameters)} with {ranges}"


def _valid_forms() -> str:
    return "a risk is one of " + "; ".join(_form(kind) for kind in NAMED)
