"""A policy as a picture: the action in every state for every budget, in a few steps spread over the horizon."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import SubFigure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from ocerl.mdp.tabular import Label, TabularMDP
from ocerl.planning import BudgetPolicy, MarkovPolicy, Rule, policy_rules
from ocerl.report.style import series_colours, short

MOST_STEPS = 4
"""A longer horizon is shown in so many steps, the first and the last included."""
MOST_STATES = 30
"""Of more states, those that are met the most are shown."""
MOST_LISTED = 12
"""The legend lists at most so many actions."""
MOST_NAMED = 3
"""A panel with no more budgets than this names each below."""
RAREST = 1e-4
"""What the policy meets less often than this is left out, where it would squeeze the rest."""
LONGEST_LABEL = 14
LEAST_WIDTH = 0.015
"""No bar is narrower than this part of its panel."""


@dataclass(frozen=True)
class Bar:
    """One action for a state, between two budgets or two steps."""

    state: Label
    action: Label
    low: float
    high: float
    probability: float


@dataclass(frozen=True)
class Panel:
    """The bars of one step, or of a whole Markov policy; only states with a choice have any."""

    title: str
    bars: list[Bar]
    ticks: list[float]
    """Where to name budgets; nowhere in particular if empty."""


def panels(policy: BudgetPolicy | MarkovPolicy) -> list[Panel]:
    """What there is to draw; a step in which no choice is met is left out."""
    if isinstance(policy, MarkovPolicy):
        bars = list(_joined_steps(policy_rules(policy, rarest=RAREST)))
        return [Panel("", bars, [])] if bars else []
    last = policy.lattice.length
    steps = np.linspace(1, last, min(last, MOST_STEPS)).round().astype(int).tolist()
    rules = policy_rules(policy, steps=steps, rarest=RAREST)
    return [
        _budget_panel(step, list(of_step), policy.lattice.unit)
        for step, of_step in groupby(rules, lambda rule: rule.step)
    ]


def _budget_panel(step: int, rules: Sequence[Rule], unit: float) -> Panel:
    """Bars reach half a unit beyond their budgets, so that a single one is a unit wide."""
    budgets = sorted({budget for rule in rules for budget in (rule.lowest, rule.highest)})
    bars = [
        Bar(rule.state, rule.action, rule.lowest - unit / 2, rule.highest + unit / 2, rule.probability)
        for rule in rules
    ]
    return Panel(f"step {step}", bars, budgets if len(budgets) <= MOST_NAMED else [])


def _joined_steps(rules: Iterable[Rule]) -> Iterator[Bar]:
    """The rules of a Markov policy, a state's neighbouring steps with the same action as one bar."""
    by_state: dict[Label, list[Rule]] = {}
    for rule in rules:
        by_state.setdefault(rule.state, []).append(rule)
    for state, of_state in by_state.items():
        # In a run of neighbouring steps, step and place in the list differ by the same number.
        placed = enumerate(of_state)
        for (action, _), run in groupby(placed, lambda item: (item[1].action, item[1].step - item[0])):
            joined = [rule for _, rule in run]
            probability = sum(rule.probability for rule in joined)
            yield Bar(state, action, joined[0].step - 0.5, joined[-1].step + 0.5, probability)


def shown_states(model: TabularMDP, found: Sequence[Panel]) -> tuple[list[Label], int]:
    """The states that get a row, in the model's order, and how many there are; every panel has its say."""
    place = {label: index for index, label in enumerate(model.states)}
    rank: dict[Label, int] = {}
    for panel in found:
        weight: dict[Label, float] = {}
        for bar in panel.bars:
            weight[bar.state] = weight.get(bar.state, 0.0) + bar.probability
        most_met = sorted(sorted(weight, key=place.__getitem__), key=weight.__getitem__, reverse=True)
        for number, label in enumerate(most_met):
            rank[label] = min(number, rank.get(label, number))
    chosen = sorted(sorted(rank, key=place.__getitem__), key=rank.__getitem__)[:MOST_STATES]
    return sorted(chosen, key=place.__getitem__), len(rank)


def draw_policy(
    figure: SubFigure, model: TabularMDP, found: Sequence[Panel], states: Sequence[Label], of: int, axis: str
) -> None:
    """Fill a part of a figure with panels next to each other: states down, budgets (or steps) across."""
    used = {bar.action for panel in found for bar in panel.bars if bar.state in set(states)}
    actions = [action for action in model.actions if action in used]
    colours = dict(zip(actions, series_colours(len(actions)), strict=True))
    rows = {label: row for row, label in enumerate(states)}
    grid = figure.subplots(1, len(found), sharey=True, squeeze=False)
    for axes, panel in zip(grid[0], found, strict=True):
        _draw_panel(axes, panel, rows, colours)
    first: Axes = grid[0][0]
    first.set_yticks(range(len(states)), [_name(label) for label in states])
    first.set_ylim(len(states) - 0.4, -0.6)
    first.set_ylabel("state" if len(states) == of else f"state (the {len(states)} most met of {of})")
    figure.supxlabel(axis, fontsize="medium")
    chosen = np.linspace(0, len(actions) - 1, min(len(actions), MOST_LISTED)).round().astype(int)
    figure.legend(
        handles=[Patch(color=colours[actions[i]], label=_name(actions[i])) for i in chosen],
        title="action" if len(chosen) == len(actions) else f"action ({len(chosen)} of {len(actions)})",
        loc="outside upper left",
        ncols=6,
        alignment="left",
    )


def _draw_panel(axes: Axes, panel: Panel, rows: dict[Label, int], colours: dict[Label, str]) -> None:
    bars = [bar for bar in panel.bars if bar.state in rows]
    low, high = min(bar.low for bar in panel.bars), max(bar.high for bar in panel.bars)
    half_row = 0.4 * min(1.0, len(rows) / 4)
    boxes: list[list[tuple[float, float]]] = []
    for bar in bars:
        widen = max(0.0, LEAST_WIDTH * (high - low) - (bar.high - bar.low)) / 2
        left, right = bar.low - widen, bar.high + widen
        top, bottom = rows[bar.state] - half_row, rows[bar.state] + half_row
        boxes.append([(left, top), (right, top), (right, bottom), (left, bottom)])
    axes.add_collection(PolyCollection(boxes, facecolors=[colours[bar.action] for bar in bars], linewidths=0))
    margin = 0.06 * (high - low)
    axes.set_xlim(low - margin, high + margin)
    axes.xaxis.set_major_locator(FixedLocator(panel.ticks) if panel.ticks else MaxNLocator(3))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda budget, _: short(budget)))
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_title(panel.title)


def _name(label: Label) -> str:
    text = short(label) if isinstance(label, float) else str(label)
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"
