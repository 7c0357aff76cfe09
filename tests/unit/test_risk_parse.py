"""The parser of risk strings: every form, every way to get it wrong, and the round trip through `name`."""

import pytest

from ocerl.errors import OcerlError
from ocerl.risk import (
    CVaR,
    Entropic,
    Mean,
    MeanCVaR,
    MeanVariance,
    MonotoneMeanVariance,
    Risk,
    Utility,
    parse_risk,
)

FORMS = {
    "mean": Mean(),
    "cvar:0.25": CVaR(0.25),
    "cvar:1": CVaR(1.0),
    "cvar:1e-05": CVaR(1e-5),
    "entropic:-1": Entropic(-1.0),
    "entropic:-0.1": Entropic(-0.1),
    "mean-variance:2": MeanVariance(2.0),
    "monotone-mean-variance:2": MonotoneMeanVariance(2.0),
    "mean-cvar:0.5,0.25": MeanCVaR(0.5, 0.25),
}


@pytest.mark.parametrize("text", FORMS)
def test_text_and_risk_are_the_same(text: str) -> None:
    assert parse_risk(text) == FORMS[text]
    assert FORMS[text].name == text


def test_names_read_back_as_the_same_float() -> None:
    for tau in (1 / 3, 0.1 + 0.2, 5e-17, 0.999_999_999_999_999_9):
        assert parse_risk(CVaR(tau).name) == CVaR(tau)


def test_spaces_and_other_spellings_of_a_number_are_read() -> None:
    assert parse_risk(" mean-cvar:.5, 2.5e-1 ") == MeanCVaR(0.5, 0.25)


def test_a_risk_passes_unchanged() -> None:
    risk: Risk = Utility(lambda t: t)
    assert parse_risk(risk) is risk


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no risk ''"),
        ("var:0.5", "there is no risk 'var:0.5'"),
        ("utility:log", "there is no risk"),
        ("cvar", "gives 0 parameters, cvar takes 1 (tau)"),
        ("cvar:", "could not convert string to float"),
        ("cvar:0.1,0.2", "gives 2 parameters, cvar takes 1 (tau)"),
        ("mean:1", "gives 1 parameters, mean takes none"),
        ("mean-cvar:0.5", "gives 1 parameters, mean-cvar takes 2 (kappa, tau)"),
        ("cvar:half", "'half'"),
        ("cvar:0", "0 < tau <= 1, got 0.0"),
        ("cvar:1.0001", "0 < tau <= 1, got 1.0001"),
        ("cvar:-0.5", "0 < tau <= 1, got -0.5"),
        ("cvar:nan", "0 < tau <= 1, got nan"),
        ("cvar:inf", "0 < tau <= 1, got inf"),
        ("entropic:0", "beta < 0, got 0.0"),
        ("entropic:2", "beta < 0, got 2.0"),
        ("entropic:-inf", "beta < 0, got -inf"),
        ("mean-variance:0", "0 < c, got 0.0"),
        ("mean-variance:inf", "0 < c, got inf"),
        ("monotone-mean-variance:-1", "0 < c, got -1.0"),
        ("mean-cvar:1,0.5", "0 <= kappa < 1, got 1.0"),
        ("mean-cvar:0.5,0", "0 < tau <= 1, got 0.0"),
        (0.25, "a risk must be a text or a Risk, got 0.25"),
        (None, "got None"),
    ],
)
def test_every_error_is_one_line_that_shows_every_form(text, message: str) -> None:
    with pytest.raises(OcerlError) as error:
        parse_risk(text)
    line = str(error.value)
    assert message in line
    assert "\n" not in line
    assert line.endswith(
        "a risk is one of mean; cvar:tau with 0 < tau <= 1; entropic:beta with beta < 0; "
        "mean-variance:c with 0 < c; monotone-mean-variance:c with 0 < c; "
        "mean-cvar:kappa,tau with 0 <= kappa < 1 and 0 < tau <= 1"
    )
