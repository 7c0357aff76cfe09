"""Models: what is decided on, what it leads to and what it pays (Section 2 of the paper).

A `TabularMDP` comes from a file (`read_csv`), from Gymnasium (`from_gymnasium`), from arrays (`from_arrays`),
from the `zoo` of known models or from `random_mdp`; `load_model` takes what the command line takes.
"""

from ocerl.mdp import zoo
from ocerl.mdp.arrays import from_arrays, to_arrays
from ocerl.mdp.files import read_csv, write_csv
from ocerl.mdp.generate import random_mdp
from ocerl.mdp.gymnasium_table import from_gymnasium
from ocerl.mdp.load import load_model
from ocerl.mdp.tabular import TabularMDP
from ocerl.mdp.transitions import Transitions

__all__ = [
    "TabularMDP",
    "Transitions",
    "from_arrays",
    "from_gymnasium",
    "load_model",
    "random_mdp",
    "read_csv",
    "to_arrays",
    "write_csv",
    "zoo",
]
