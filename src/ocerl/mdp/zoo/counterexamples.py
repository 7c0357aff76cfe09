"""Small models on which the obvious method is wrong."""

from __future__ import annotations

from ocerl.mdp.tabular import TabularMDP


def paper(*, horizon: int = 2) -> TabularMDP:
    """The paper's synthetic MDP, whose best CVaR policy depends on the history.

    In `s1` both actions pay `Ber(1/2)` and lead to `s2`; there `a1` pays `1.5 · Ber(3/4)` and `a2` pays 0.5.

    Source: Section 5 of Wang, Liang, Kallus and Sun, "A Reductions Approach to Risk-Sensitive Reinforcement
    Learning with Optimized Certainty Equivalents". Known: CVaR_.25 is 0.75 with `a1` after 0 and `a2` after
    1, and 0.5 for either action alone.

    Deviation: "the trajectory ends after s2" is a third state, `end`, so that a longer horizon earns no more.
    """
    first = [(0.5, "s2", 0.0), (0.5, "s2", 1.0)]
    return TabularMDP.from_outcomes(
        {
            "s1": {"a1": first, "a2": first},
            "s2": {"a1": [(0.25, "end", 0.0), (0.75, "end", 1.5)], "a2": [(1.0, "end", 0.5)]},
        },
        horizon=horizon,
        name="paper",
    )


def chow(*, horizon: int = 2) -> TabularMDP:
    """The counterexample to the decomposition of CVaR over risk levels (Chow et al., 2015).

    One random move: to a state that pays 100, or to a choice between `a1` (-300 or 300), `a2` (0) and `a3`
    (-50 or 250).

    Source: after Hau, Delage, Ghavamzadeh and Petrik, "On Dynamic Programming Decompositions of Static Risk
    Measures in Markov Decision Processes" (2023). Known: CVaR_.5 is 25, with `a3`; the decomposition claims
    50.
    """
    return TabularMDP.from_outcomes(
        {
            "start": {"move": [(0.5, "safe", 0.0), (0.5, "choice", 0.0)]},
            "safe": {"move": [(1.0, "end", 100.0)]},
            "choice": {
                "a1": [(0.25, "end", -300.0), (0.75, "end", 300.0)],
                "a2": [(1.0, "end", 0.0)],
                "a3": [(0.5, "end", -50.0), (0.5, "end", 250.0)],
            },
        },
        horizon=horizon,
        name="chow",
    )
