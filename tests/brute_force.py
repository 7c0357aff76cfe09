r"""The referee: what a tiny model can be made to do, by plain recursion over everything that may happen.

Nothing here uses the library's arithmetic. A `Game` is a table of fractions; its histories (states, actions
*and rewards*) form a tree, a deterministic history-dependent policy picks one action in every node of it, and
`attainable` lists the return distribution of each such policy. `Game.model` writes the same table as a
`TabularMDP`, so the builder of models is judged as well.

Deterministic policies are enough. For a fixed budget :math:`b` the objective :math:`b + E\,u(Z - b)` is
linear in the distribution of :math:`Z`, and a randomised policy's distribution is a mixture of those of
deterministic ones, so one of the mixed is at least as good; the maximum over :math:`b` keeps that. Among
Markov policies the objective is linear in the probabilities of each single (step, state), so there too a
table of actions is best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Protocol

from ocerl.mdp.tabular import TabularMDP

State = int
Action = str
Outcome = tuple[Fraction, State, Fraction]
"""Probability, next state, reward."""
Table = Mapping[State, Mapping[Action, Sequence[Outcome]]]
Distribution = tuple[tuple[Fraction, Fraction], ...]
"""Pairs (value, probability), the smallest value first, every value once."""
MarkovTable = Mapping[tuple[int, State], Action]
OCE = Callable[[Distribution], float]

STAY = "stay"
"""The only choice in a state the table does not list: it stays and pays nothing."""
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


class Acting(Protocol):
    """What is asked of a policy object; states and actions are positions in the model's lists."""

    def reset(self) -> object: ...
    def act(self, state: int, /) -> int: ...
    def observe(self, reward: float, /) -> object: ...


@dataclass(frozen=True)
class Game:
    """A finite-horizon decision problem in fractions: one table for all steps, or one for each."""

    tables: tuple[Table, ...]
    horizon: int
    start: Mapping[State, Fraction]
    discount: Fraction = Fraction(1)

    def choices(self, step: int, state: State) -> Mapping[Action, Sequence[Outcome]]:
        table = self.tables[0] if len(self.tables) == 1 else self.tables[step]
        return table.get(state) or {STAY: ((Fraction(1), state, Fraction(0)),)}

    def outcomes(self, step: int, state: State, action: Action) -> list[Outcome]:
        """What can be told apart afterwards, rewards discounted: rows alike in state and reward are one."""
        seen: dict[tuple[State, Fraction], Fraction] = {}
        for probability, next_state, reward in self.choices(step, state)[action]:
            event = (next_state, self.discount**step * Fraction(reward))
            seen[event] = seen.get(event, Fraction(0)) + probability
        return [(probability, *event) for event, probability in seen.items()]

    def model(self) -> TabularMDP:
        """The same game as the library reads it."""
        tables: list[dict[State, dict[Action, list[tuple[float, State, float]]]]] = [
            {
                state: {
                    action: [(float(p), next_state, float(reward)) for p, next_state, reward in listed]
                    for action, listed in by_action.items()
                }
                for state, by_action in table.items()
            }
            for table in self.tables
        ]
        return TabularMDP.from_outcomes(
            tables[0] if len(tables) == 1 else tables,
            start={state: float(probability) for state, probability in self.start.items()},
            horizon=self.horizon,
            discount=float(self.discount),
        )


def mixture(parts: Iterable[tuple[Fraction, Fraction, Distribution]]) -> Distribution:
    """For `(p, shift, other)` each: with probability `p`, `shift` plus a draw of the other distribution."""
    mass: dict[Fraction, Fraction] = {}
    for probability, shift, distribution in parts:
        for value, weight in distribution:
            mass[value + shift] = mass.get(value + shift, Fraction(0)) + probability * weight
    return tuple(sorted(mass.items()))


NOTHING: Distribution = ((Fraction(0), Fraction(1)),)


def count_policies(game: Game) -> int:
    """How many deterministic history-dependent policies there are, counting each node of the tree."""

    @cache
    def count(step: int, state: State) -> int:
        if step == game.horizon:
            return 1
        return sum(
            math.prod(count(step + 1, after) for _, after, _ in game.outcomes(step, state, action))
            for action in game.choices(step, state)
        )

    return math.prod(count(0, state) for state in game.start)


def attainable(game: Game) -> frozenset[Distribution]:
    """The return distributions of all deterministic history-dependent policies.

    After each outcome the policy goes on as it likes, whatever it does after the others: a product over
    outcomes, and over the states the game may start in.
    """

    @cache
    def onward(step: int, state: State) -> frozenset[Distribution]:
        if step == game.horizon:
            return frozenset({NOTHING})
        return frozenset(
            mixture((p, reward, rest) for (p, _, reward), rest in zip(outcomes, rests, strict=True))
            for outcomes in (game.outcomes(step, state, action) for action in game.choices(step, state))
            for rests in product(*(onward(step + 1, after) for _, after, _ in outcomes))
        )

    firsts = product(*(onward(0, state) for state in game.start))
    return frozenset(
        mixture((p, Fraction(0), rest) for p, rest in zip(game.start.values(), rests, strict=True)) for rests in firsts
    )


def optimum(game: Game, oce: OCE) -> float:
    """The best certainty equivalent of any history-dependent policy."""
    return max(map(oce, attainable(game)))


def markov_tables(game: Game) -> Iterator[MarkovTable]:
    """All maps (step, state) → action, over the states that can be met at that step."""
    met = set(game.start)
    keys: list[tuple[int, State]] = []
    for step in range(game.horizon):
        keys += [(step, state) for state in sorted(met)]
        met = {after for state in met for listed in game.choices(step, state).values() for _, after, _ in listed}
    for actions in product(*(game.choices(*key) for key in keys)):
        yield dict(zip(keys, actions, strict=True))


def distribution_of_table(game: Game, table: MarkovTable) -> Distribution:
    """The return distribution of a Markov policy, carried forward from the start."""
    joint: dict[tuple[State, Fraction], Fraction] = {
        (state, Fraction(0)): probability for state, probability in game.start.items()
    }
    for step in range(game.horizon):
        moved: dict[tuple[State, Fraction], Fraction] = {}
        for (state, earned), mass in joint.items():
            for probability, after, reward in game.outcomes(step, state, table[step, state]):
                key = (after, earned + reward)
                moved[key] = moved.get(key, Fraction(0)) + mass * probability
        joint = moved
    return mixture((mass, earned, NOTHING) for (_, earned), mass in joint.items())


def markov_optimum(game: Game, oce: OCE) -> float:
    """The best certainty equivalent of any Markov policy."""
    return max(oce(distribution_of_table(game, table)) for table in markov_tables(game))


def distribution_of_policy(game: Game, model: TabularMDP, policy: Acting) -> Distribution:
    """The return distribution of a policy *object*, met as a user meets it: `reset`, then `act`, `observe`.

    Every history is replayed from its beginning, and the whole tree is walked twice: an object that loses its
    budget, or keeps something from an earlier episode, is found out.
    """
    position = {state: index for index, state in enumerate(model.states)}

    def chosen(history: Sequence[tuple[State, float]], state: State) -> Action:
        policy.reset()
        for past, reward in history:
            policy.act(position[past])
            policy.observe(reward)
        action = policy.act(position[state])
        available = game.choices(len(history), state)
        return STAY if STAY in available else str(model.actions[action])

    def onward(history: tuple[tuple[State, float], ...], state: State) -> Distribution:
        step = len(history)
        if step == game.horizon:
            return NOTHING
        undiscounted = game.discount**-step
        return mixture(
            (p, reward, onward((*history, (state, float(undiscounted * reward))), after))
            for p, after, reward in game.outcomes(step, state, chosen(history, state))
        )

    first, second = (mixture((p, Fraction(0), onward((), state)) for state, p in game.start.items()) for _ in range(2))
    assert first == second, "the policy behaves differently after reset than when it was new"
    return first


def mean(distribution: Distribution) -> float:
    return float(sum(value * probability for value, probability in distribution))


def cvar(tau: float) -> OCE:
    """The mean of the worst outcomes that have the mass `tau` together."""

    def oce(distribution: Distribution) -> float:
        left, total = Fraction(tau), Fraction(0)
        for value, probability in distribution:
            taken = min(left, probability)
            total, left = total + taken * value, left - taken
        return float(total / Fraction(tau))

    return oce


def mean_cvar(kappa: float, tau: float) -> OCE:
    return lambda distribution: kappa * mean(distribution) + (1.0 - kappa) * cvar(tau)(distribution)


def entropic(beta: float) -> OCE:
    """The logarithm of a mean of exponentials, relative to the smallest value: the largest term is 1."""

    def oce(distribution: Distribution) -> float:
        least = float(distribution[0][0])
        moment = math.fsum(float(p) * math.exp(beta * (float(v) - least)) for v, p in distribution)
        return least + math.log(moment) / beta

    return oce


def mean_variance(c: float) -> OCE:
    def oce(distribution: Distribution) -> float:
        average = sum(value * probability for value, probability in distribution)
        return float(average) - c * float(sum(p * (value - average) ** 2 for value, p in distribution))

    return oce


def of_utility(utility: Callable[[float], float]) -> OCE:
    r"""The OCE by its definition, for a concave `u` with `u(0) = 0` and slope 1 there.

    Then :math:`b + E\,u(X-b)` is concave in `b` and its maximum lies within the support's range: it is looked
    for at every atom and, by golden section, between. Where it is minus infinity, `b` is too large.
    """

    def oce(distribution: Distribution) -> float:
        atoms = [(float(value), float(probability)) for value, probability in distribution]

        def objective(b: float) -> float:
            return b + sum(p * utility(value - b) for value, p in atoms)

        low, high = atoms[0][0], atoms[-1][0]
        best = max(objective(value) for value, _ in atoms)
        for _ in range(70):
            left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
            at_left, at_right = objective(left), objective(right)
            best = max(best, at_left, at_right)
            low, high = (left, high) if at_left < at_right else (low, right)
        return best

    return oce


def monotone_mean_variance(c: float) -> OCE:
    return of_utility(lambda t: t - c * t * t if t <= 1.0 / (2.0 * c) else 1.0 / (4.0 * c))


def named(text: str) -> OCE:
    """The independent certainty equivalent behind a risk's name."""
    makers: dict[str, Callable[..., OCE]] = {
        "mean": lambda: mean,
        "cvar": cvar,
        "mean-cvar": mean_cvar,
        "entropic": entropic,
        "mean-variance": mean_variance,
        "monotone-mean-variance": monotone_mean_variance,
    }
    name, _, numbers = text.partition(":")
    return makers[name](*(float(number) for number in numbers.split(",") if number))
