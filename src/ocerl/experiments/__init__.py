"""The paper's tables and figure, and studies beyond it; each from one command."""

from ocerl.experiments.markov_table import MarkovTable, markov_table

__all__ = ["MarkovTable", "markov_table"]
