"""Machines and stocks: pay a little now, or risk a lot later."""

from __future__ import annotations

from collections.abc import Sequence

from ocerl.errors import OcerlError
from ocerl.mdp.checks import check_number, check_probability, check_whole
from ocerl.mdp.tabular import Label, Outcome, TabularMDP


def machine_replacement(
    *,
    conditions: int = 8,
    wear: float = 0.3,
    replacement_cost: float = 5.0,
    failure_cost: float = 30.0,
    horizon: int = 20,
) -> TabularMDP:
    """Run a machine that wears, or replace it before it fails.

    A state is the condition, 0 for a new machine. To run it costs its condition, and with probability `wear`
    it is one worse afterwards; worn in the last condition it fails, which costs `failure_cost` more and
    brings a new one. To replace it costs `replacement_cost` and brings a new one.

    Source: the replacement problem of Derman, "On Optimal Replacement Rules When Changes of State Are
    Markovian" (1963), with numbers of our own; all costs are whole.
    """
    check_whole("the number of conditions", conditions, least=2)
    check_probability("the wear", wear)
    check_number("the replacement cost", replacement_cost)
    check_number("the failure cost", failure_cost)
    last = conditions - 1
    machine: dict[Label, dict[Label, list[Outcome]]] = {
        condition: {
            "run": [
                (1.0 - wear, condition, float(-condition)),
                (wear, condition + 1, float(-condition))
                if condition < last
                else (wear, 0, float(-condition) - failure_cost),
            ],
            "replace": [(1.0, 0, float(-replacement_cost))],
        }
        for condition in range(conditions)
    }
    return TabularMDP.from_outcomes(machine, start=0, horizon=horizon, name="machine-replacement")


def inventory(
    *,
    capacity: int = 3,
    demand: Sequence[float] = (0.25, 0.5, 0.25),
    price: float = 8.0,
    cost: float = 2.0,
    order_cost: float = 4.0,
    holding_cost: float = 1.0,
    horizon: int = 3,
) -> TabularMDP:
    """Order, then meet a random demand from the stock; what cannot be met is lost.

    A state is the stock and an action the number ordered, at most what there is room for. With `x` in the
    house after the order and a demand of `d` (with probability `demand[d]`) the reward is

        price · min(d, x) - holding_cost · x - (order_cost + cost · order, if anything is ordered).

    Source: Puterman, "Markov Decision Processes" (1994), Section 3.2, whose numbers are the defaults. Known:
    with 3 steps the best means from stocks 0, 1, 2, 3 are 67/16, 129/16, 194/16, 227/16 (Section 4.6).
    """
    check_whole("the capacity", capacity)
    for name, value in (
        ("price", price),
        ("cost", cost),
        ("order cost", order_cost),
        ("holding cost", holding_cost),
    ):
        check_number(f"the {name}", value)
    if not len(demand):
        raise OcerlError("the demand needs the probability of at least one number of units, got none")

    def outcomes(stock: int, order: int) -> list[Outcome]:
        in_house = stock + order
        paid = holding_cost * in_house + (order_cost + cost * order if order else 0.0)
        return [
            (probability, max(in_house - wanted, 0), price * min(wanted, in_house) - paid)
            for wanted, probability in enumerate(demand)
        ]

    house: dict[Label, dict[Label, list[Outcome]]] = {
        stock: {order: outcomes(stock, order) for order in range(capacity - stock + 1)} for stock in range(capacity + 1)
    }
    return TabularMDP.from_outcomes(house, start=0, horizon=horizon, name="inventory")
