"""A model written out as `{state: {action: [(p, next state, reward), …]}}`, by plain loops over its rows."""

from ocerl.mdp import TabularMDP
from ocerl.mdp.tabular import Label, Outcome

Table = dict[Label, dict[Label, list[Outcome]]]


def table(model: TabularMDP, step: int = 0) -> Table:
    rows = model.transitions(step)
    written: Table = {}
    for state, name in enumerate(model.states):
        written[name] = {}
        for pair in range(rows.pair_start[state], rows.pair_start[state + 1]):
            written[name][model.actions[rows.action[pair]]] = [
                (float(rows.probability[i]), model.states[rows.next_state[i]], float(rows.reward[i]))
                for i in range(rows.outcome_start[pair], rows.outcome_start[pair + 1])
            ]
    return written
