"""Pictures hold the right numbers; how they look is for people to judge."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex

from ocerl.errors import OcerlError
from ocerl.experiments import markov_table
from ocerl.mdp import TabularMDP, zoo
from ocerl.planning import ReturnDistribution, frontier, plan
from ocerl.report import plot_frontier, plot_markov_table, plot_plan, plot_returns, save_figure
from ocerl.report.style import PALETTE, series_colours

RISKY = ReturnDistribution(np.array([0.0, 1.0, 1.5, 2.5]), np.array([0.125, 0.125, 0.375, 0.375]))
SAFE = ReturnDistribution(np.array([0.5, 1.5]), np.array([0.5, 0.5]))
"""The paper's two Markov policies: means 13/8 and 1, CVaR_0.25 = 1/2 for both."""


def marks(axes: Axes, marker: str) -> list[tuple[float, float]]:
    """The points that a panel marks in this way."""
    drawn = [line for line in axes.lines if line.get_marker() == marker]
    return [(float(x), float(y)) for line in drawn for x, y in zip(*line.get_data(), strict=True)]


def boxes(axes: Axes) -> list[tuple[str, float, float, int]]:
    """The bars of a policy's panel: colour, from, to, and row."""
    (collection,) = (part for part in axes.collections if isinstance(part, PolyCollection))
    found: list[tuple[str, float, float, int]] = []
    for path, colour in zip(collection.get_paths(), collection.get_facecolor(), strict=True):
        (left, top), (right, bottom) = path.vertices.min(axis=0), path.vertices.max(axis=0)
        found.append((to_hex(colour).upper(), float(left), float(right), round((top + bottom) / 2)))
    return found


def row_labels(axes: Axes) -> list[str]:
    return [tick.get_text() for tick in axes.get_yticklabels()]


def chain(length: int, *, actions: int = 2) -> TabularMDP:
    """From each state on to the next one, and to stay at the last; every action but the first pays less."""
    return TabularMDP.from_outcomes(
        {
            state: {f"a{action}": [(1.0, min(state + 1, length), -float(action))] for action in range(actions)}
            for state in range(1, length + 1)
        },
        horizon=length,
    )


def test_few_returns_are_bars() -> None:
    upper, lower = plot_returns({"risky": RISKY, "safe": SAFE}, "cvar:0.25").axes
    bars = [(patch.get_facecolor(), patch.get_height()) for patch in upper.patches]
    assert [height for _, height in bars] == [0.125, 0.125, 0.375, 0.375, 0.5, 0.5]
    assert [to_hex(colour).upper() for colour, _ in bars] == 4 * [PALETTE[0]] + 2 * [PALETTE[1]]
    middles = np.array([patch.get_x() + patch.get_width() / 2 for patch in upper.patches])
    assert middles == pytest.approx([0.0, 1.0, 1.5, 2.5, 0.5, 1.5], abs=0.25), "beside their values"
    assert middles[2] < middles[5], "next to each other, not on top"
    assert [text.get_text() for text in upper.get_legend().get_texts()] == ["risky", "safe"]
    assert marks(lower, "D") == [(0.5, 0.0), (0.5, 1.0)]
    assert marks(lower, "o") == [(1.625, 0.0), (1.0, 1.0)]
    assert [text.get_text() for text in lower.texts] == ["0.5", "1.625", "0.5", "1"]
    assert lower.get_xlabel() == "total reward"


def test_many_returns_are_a_curve() -> None:
    """The values 0 … 99, each with 1/100: the worst 10 % are 0 … 9, of mean 4.5."""
    upper, lower = plot_returns({"even": ReturnDistribution(np.arange(100.0), np.full(100, 0.01))}, "cvar:0.1").axes
    curve, tail = upper.lines
    x, y = curve.get_data()
    assert x[1:-1].tolist() == list(range(100))
    assert y == pytest.approx([0.0, *(k / 100 for k in range(1, 101)), 1.0])
    assert tail.get_ydata() == [0.1, 0.1]
    assert [text.get_text() for text in upper.texts] == ["worst 10 %"]
    ((worth, _),) = marks(lower, "D")
    assert worth == pytest.approx(4.5)
    assert not upper.patches


def test_a_rare_extreme_does_not_squeeze_the_rest() -> None:
    values = np.append(-1e6, np.arange(100.0))
    returns = ReturnDistribution(values, np.append(1e-9, np.full(100, (1 - 1e-9) / 100)))
    upper = plot_returns({"rare": returns}, "cvar:0.5").axes[0]
    low, high = upper.get_xlim()
    assert -40 < low < 0
    assert 99 < high < 140
    assert upper.lines[0].get_xdata()[0] <= -1e6, "it is drawn all the same"


def test_rounding_is_said() -> None:
    rounded = ReturnDistribution(SAFE.values, SAFE.probabilities, error=(0.0, 0.25))
    assert "0 to 0.25 more" in plot_returns({"rounded": rounded}, "mean").axes[1].get_xlabel()


def test_one_return() -> None:
    sure = ReturnDistribution(np.array([2.0]), np.array([1.0]))
    upper, lower = plot_returns({"sure": sure}, "cvar:0.5").axes
    assert [patch.get_height() for patch in upper.patches] == [1.0]
    assert marks(lower, "D") == marks(lower, "o") == [(2.0, 0.0)]


def test_no_returns() -> None:
    with pytest.raises(OcerlError, match="at least one"):
        plot_returns({}, "mean")


def test_a_plan_with_budgets() -> None:
    """In s2 with a budget of 1/2 a2, with 3/2 a1; a bar is a unit, 1/2, wide. The first step is a tie."""
    figure = plot_plan(plan(zoo.make("paper"), "cvar:0.25"))
    returns, summary, first, second = figure.axes
    assert [patch.get_height() for patch in returns.patches] == [0.125, 0.875, 0.125, 0.125, 0.375, 0.375]
    assert marks(summary, "D") == [(0.75, 0.0), (0.5, 1.0)]
    assert marks(summary, "o") == [(1.3125, 0.0), (1.625, 1.0)]
    assert [axes.get_title(loc="left") for axes in (first, second)] == ["step 1", "step 2"]
    assert row_labels(first) == ["s1", "s2"]
    assert boxes(second) == [(PALETTE[1], 0.25, 0.75, 1), (PALETTE[0], 1.25, 1.75, 1)]
    assert [(left, right, row) for _, left, right, row in boxes(first)] == [(1.25, 1.75, 0)]
    (legend,) = figure.subfigs[1].legends
    assert [text.get_text() for text in legend.get_texts()] == ["a1", "a2"]
    assert "cvar:0.25 of paper, 2 steps: 0.75 (exact)" in figure.get_suptitle()


def test_a_plan_without_budgets() -> None:
    """State 1 is met in the first step, 2 in the second, 3 in all that follow; the first action is best."""
    model = chain(3).with_(horizon=5)
    panel = plot_plan(plan(model, "entropic:-1")).axes[2]
    assert row_labels(panel) == ["1", "2", "3"]
    assert boxes(panel) == [
        (PALETTE[0], 0.5, 1.5, 0),
        (PALETTE[0], 1.5, 2.5, 1),
        (PALETTE[0], 2.5, 5.5, 2),
    ]


def test_steps_are_joined_only_while_the_action_stays() -> None:
    """What pays changes from step to step: a, b, b, a."""
    pays = {"a": [1.0, 0.0, 0.0, 1.0], "b": [0.0, 1.0, 1.0, 0.0]}
    tables = [{"s": {action: [(1.0, "s", pay[step])] for action, pay in pays.items()}} for step in range(4)]
    panel = plot_plan(plan(TabularMDP.from_outcomes(tables), "mean")).axes[2]
    assert boxes(panel) == [
        (PALETTE[0], 0.5, 1.5, 0),
        (PALETTE[1], 1.5, 3.5, 0),
        (PALETTE[0], 3.5, 4.5, 0),
    ]


def test_a_long_horizon_is_shown_in_a_few_steps() -> None:
    titles = [axes.get_title(loc="left") for axes in plot_plan(plan(chain(10), "cvar:0.5")).axes[2:]]
    assert titles == ["step 1", "step 4", "step 7", "step 10"]


def test_of_many_states_the_most_met_are_shown() -> None:
    """40 states after the first one, the k-th with a probability of k / 820."""
    options = {"a": [(1.0, "end", 1.0)], "b": [(1.0, "end", 0.0)]}
    table = {0: {"draw": [(k / 820, k, 0.0) for k in range(1, 41)]}, **dict.fromkeys(range(1, 41), options)}
    panel = plot_plan(plan(TabularMDP.from_outcomes(table, horizon=2), "cvar:0.5")).axes[2]
    assert row_labels(panel) == [str(k) for k in range(11, 41)]
    assert panel.get_ylabel() == "state (the 30 most met of 40)"


def test_every_step_s_states_are_among_the_shown() -> None:
    """40 states of 1/40 in step 2, which lead to two of 1/2 in step 3; alone, 30 of the 40 would be as likely."""
    options = {"a": [(1.0, "end", 1.0)], "b": [(1.0, "end", 0.0)]}
    ahead = {"a": [(0.5, 41, 0.0), (0.5, 42, 0.0)], "b": [(1.0, 41, -1.0)]}
    table = {
        0: {"draw": [(1 / 40, k, 0.0) for k in range(1, 41)]},
        **dict.fromkeys(range(1, 41), ahead),
        **dict.fromkeys((41, 42), options),
    }
    second, third = plot_plan(plan(TabularMDP.from_outcomes(table, horizon=3), "cvar:0.5")).axes[2:]
    labels = row_labels(second)
    assert len(labels) == 30
    assert labels[-2:] == ["41", "42"]
    assert [labels[row] for *_, row in boxes(third)] == ["41", "42"]


def test_many_actions() -> None:
    """Every one of 20 actions is best in one of 20 states; the legend lists 12 of them."""
    table = {
        state: {f"a{action}": [(1.0, "end", 1.0 if action == state else 0.0)] for action in range(20)}
        for state in range(20)
    }
    start = dict.fromkeys(range(20), 0.05)
    figure = plot_plan(plan(TabularMDP.from_outcomes(table, start=start, horizon=1), "cvar:0.5"))
    (legend,) = figure.subfigs[1].legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert len(texts) == 12
    assert (texts[0], texts[-1]) == ("a0", "a19")
    assert legend.get_title().get_text() == "action (12 of 20)"
    assert len({colour for colour, *_ in boxes(figure.axes[2])}) == 20


def test_no_choice() -> None:
    figure = plot_plan(plan(chain(2, actions=1), "cvar:0.5"))
    assert len(figure.axes) == 2
    assert [text.get_text() for text in figure.subfigs[1].texts] == ["no state leaves a choice"]


def test_a_bracket_is_in_the_title() -> None:
    model = TabularMDP.from_outcomes({"s": {"go": [(1.0, "s", 2**0.5)], "stay": [(1.0, "s", 1.0)]}}, horizon=2)
    found = plan(model, "cvar:0.5", resolution=0.1)
    title = plot_plan(found).get_suptitle()
    assert f"the optimum is in [{found.lower:.4g}, {found.upper:.4g}]" in title


def test_frontier() -> None:
    """Against (a1, a1), best for tau = 1: its CVaR is 1/2 at 1/4 and (1/8 + 3/2 * 1/4) / (1/2) = 1 at 1/2."""
    levels, price = plot_frontier(frontier(zoo.make("paper"), [0.25, 0.5, 1.0])).axes
    assert marks(levels, "o") == [(0.25, 0.75), (0.5, 1.125), (1.0, 1.625)]
    assert marks(levels, "s") == [(0.25, 1.3125), (0.5, 1.3125), (1.0, 1.625)]
    assert marks(price, "o") == [(0.3125, 0.25), (0.3125, 0.125), (0.0, 0.0)]
    assert {text.get_text() for text in price.texts} == {"τ = 0.25", "τ = 0.5", "τ = 1"}
    assert not levels.collections, "nothing is uncertain"


def test_a_frontier_that_is_certified() -> None:
    model = TabularMDP.from_outcomes({"s": {"go": [(0.5, "s", 2**0.5), (0.5, "s", 1.0)]}}, horizon=2)
    found = frontier(model, [0.5, 1.0], resolution=0.01)
    (band,) = plot_frontier(found).axes[0].collections
    corners = {(round(x, 9), round(y, 9)) for x, y in band.get_paths()[0].vertices}
    for level, value, upper in zip(found.levels, found.values, found.uppers, strict=True):
        assert {(level, round(value, 9)), (level, round(upper, 9))} <= corners


def test_a_frontier_of_one_level() -> None:
    _, price = plot_frontier(frontier(zoo.make("paper"), [0.5])).axes
    assert marks(price, "o") == [(0.0, 0.0)]


def test_the_markov_table() -> None:
    """The values are worked out by hand in the tests of the planner."""
    (axes,) = plot_markov_table(markov_table()).axes
    labels = row_labels(axes)
    optimum, markov, paper = ({labels[round(y)]: x for x, y in marks(axes, marker)} for marker in "Dox")
    assert (optimum["cvar:0.25"], markov["cvar:0.25"], paper["cvar:0.25"]) == (0.75, 0.5, 0.5)
    assert (optimum["mean-variance:2"], markov["mean-variance:2"]) == pytest.approx((105 / 128, 1 / 2))
    assert paper["entropic:-1"] == 1.25
    assert "monotone-mean-variance:1" in markov
    assert "monotone-mean-variance:1" not in paper
    texts = dict(zip(labels, [text.get_text() for text in axes.texts], strict=True))
    assert texts["cvar:0.5"] == "+0.125"
    assert texts["entropic:-1"] == "Markov is optimal"


@pytest.mark.parametrize("count", [1, 7, 8, 30])
def test_colours_differ(count: int) -> None:
    assert len(set(series_colours(count))) == count


def test_saving(tmp_path: Path) -> None:
    """Dots in a name are not a suffix; the same figure is the same bytes."""
    for name in ("a/cvar.0.25", "b/cvar.0.25"):
        save_figure(plot_returns({"safe": SAFE}, "cvar:0.25"), tmp_path / name)
    files = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*"))
    assert files == ["a/cvar.0.25.png", "a/cvar.0.25.svg", "b/cvar.0.25.png", "b/cvar.0.25.svg"]
    for suffix in ("png", "svg"):
        assert len({(tmp_path / name / f"cvar.0.25.{suffix}").read_bytes() for name in "ab"}) == 1
    height, width = matplotlib.image.imread(tmp_path / "a/cvar.0.25.png").shape[:2]
    assert (width, height) == pytest.approx(150 * plot_returns({"safe": SAFE}, "mean").get_size_inches(), abs=1)


def test_a_user_s_settings_stay_and_do_not_matter(tmp_path: Path) -> None:
    def saved(name: str) -> bytes:
        save_figure(plot_returns({"safe": SAFE}, "cvar:0.25"), tmp_path / name)
        return (tmp_path / f"{name}.svg").read_bytes()

    plain = saved("plain")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.hashsalt": "mine"}):
        before = dict(matplotlib.rcParams)
        assert saved("own") == plain
        assert dict(matplotlib.rcParams) == before


def test_no_window_system_is_touched() -> None:
    """`pyplot` is not even imported."""
    script = (
        "import sys, numpy as np\n"
        "from ocerl.planning import ReturnDistribution\n"
        "from ocerl.report import plot_returns\n"
        "plot_returns({'sure': ReturnDistribution(np.ones(1), np.ones(1))}, 'mean')\n"
        "assert 'matplotlib.figure' in sys.modules\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
