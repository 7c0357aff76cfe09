r"""The augmented MDP (Section 2.1): state :math:`(s, b)`, budget :math:`b' = b - r`, pay-off :math:`u(-b_{H+1})`.

These few functions are the only place where the budget is computed; the planner, the environments and the
Gymnasium wrapper all call them. They work elementwise on NumPy and JAX arrays and on numbers.

Two deviations from the paper, both needed outside of [0, 1] and the undiscounted case:
budgets are kept in time-0 units, :math:`b' = b - \gamma^h r`, so nothing is divided by the discount; and the
pay-off may be paid densely, which telescopes to the terminal one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ocerl.risk import Risk


def next_budget(budget: Any, reward: Any, step: Any = 0, discount: float = 1.0) -> Any:
    r"""The budget after a reward: :math:`b_{h+1} = b_h - \gamma^h r_h` (`step` counts from 0).

    >>> next_budget(1.0, 0.25)
    0.75
    >>> next_budget(1.0, 0.5, step=1, discount=0.5)
    0.75
    """
    return budget - reward if discount == 1.0 else budget - discount**step * reward


def terminal_utility(risk: Risk, budget: Any) -> Any:
    r"""The pay-off at the end of the episode, :math:`u(-b_{H+1})`: the utility of the return above the first budget.

    >>> from ocerl.risk import CVaR
    >>> float(terminal_utility(CVaR(0.25), 0.5))
    -2.0
    """
    return risk.utility(-budget)


def dense_payoff(risk: Risk, budget: Any, after: Any) -> Any:
    r"""The pay-off of one step in dense form, :math:`u(-b_{h+1}) - u(-b_h)`.

    Over an episode it sums to :math:`u(-b_{H+1}) - u(-b_1)`; the subtracted constant does not depend on
    the policy, so the optimal policy for each first budget is the same.

    >>> from ocerl.risk import CVaR
    >>> float(dense_payoff(CVaR(0.5), 1.0, 0.25))
    1.5
    """
    return terminal_utility(risk, after) - terminal_utility(risk, budget)
