"""Pictures of what was found: return distributions, policies, frontiers and the paper's table."""

from ocerl.report.frontier import plot_frontier
from ocerl.report.markov_table import plot_markov_table
from ocerl.report.plan import plot_plan
from ocerl.report.regret import plot_regret, plot_regret_study
from ocerl.report.returns import plot_returns
from ocerl.report.save import save_figure

__all__ = [
    "plot_frontier",
    "plot_markov_table",
    "plot_plan",
    "plot_regret",
    "plot_regret_study",
    "plot_returns",
    "save_figure",
]
