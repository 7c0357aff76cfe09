r"""What Rep-UCB chooses its model from, by maximum likelihood: :math:`P_h(s' \mid s, a) = \phi_h(s, a)^\top \mu_h(s')`.

- `FiniteClass`: candidates for φ and for μ; the likelihood of every pair of them is kept, exactly.
- `FeatureClass`: candidates for φ, and any μ over finitely many states, by expectation maximisation.
- `FactorClass`: any φ and μ of a given rank over finitely many states, likewise, warm-started. The class
  grows with the number of states, and a local maximum may be what is found.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.checks import check_whole
from ocerl.optimistic._repucb_kernels import em_step

Floats = NDArray[np.float64]


class ModelClass(Protocol):
    """A class of low-rank models over states and actions by number."""

    @property
    def rank(self) -> int:
        """d."""
        ...

    def add(self, step: int, state: int, action: int, after: int) -> None:
        """Take note of a transition."""
        ...

    def fit(self) -> tuple[Floats, Floats]:
        """The most likely `φ[step, state, action, latent]` and `μ[step, latent, state]`."""
        ...

    def doubt(self, step: int) -> Floats | float:
        """A bonus of the class's own, `[state, action]`, for what its φ cannot know of a pair."""
        ...


@dataclass(eq=False)
class FiniteClass:
    """Every φ of a list with every μ of another, the best pair of each step on its own.

    >>> same = np.full((1, 2, 1, 1), 1.0)
    >>> measures = np.array([[[[0.9, 0.1]]], [[[0.1, 0.9]]]])
    >>> found = FiniteClass(same[None], measures)
    >>> found.add(0, 0, 0, 1)
    >>> found.fit()[1].tolist()
    [[[0.1, 0.9]]]
    """

    features: Floats
    """`[candidate, step, state, action, latent]`."""
    measures: Floats
    """`[candidate, step, latent, state]`."""
    likelihood: Floats = field(init=False)
    """`[step, φ, μ]`: the logarithm; minus infinity for what has been ruled out."""

    def __post_init__(self) -> None:
        if self.features.ndim != 5 or self.measures.ndim != 4 or not (self.features.size and self.measures.size):
            raise OcerlError(
                "a finite class needs candidates φ[candidate, step, state, action, latent] and "
                f"μ[candidate, step, latent, state], got shapes {self.features.shape} and {self.measures.shape}"
            )
        _, steps, states, _, rank = self.features.shape
        if self.measures.shape[1:] != (steps, rank, states):
            raise OcerlError(f"μ must have shape (candidates, {steps}, {rank}, {states}), got {self.measures.shape}")
        check_rank(rank, states)
        self.likelihood = np.zeros((steps, len(self.features), len(self.measures)))

    @property
    def rank(self) -> int:
        return self.features.shape[-1]

    @property
    def chosen(self) -> list[tuple[int, int]]:
        """For each step the numbers of the most likely φ and μ."""
        best = self.likelihood.reshape(len(self.likelihood), -1).argmax(axis=1)
        return [divmod(int(at), self.likelihood.shape[2]) for at in best]

    def add(self, step: int, state: int, action: int, after: int) -> None:
        probability = self.features[:, step, state, action] @ self.measures[:, step, :, after].T
        with np.errstate(divide="ignore"):
            self.likelihood[step] += np.log(probability)
        if np.isneginf(self.likelihood[step]).all():
            raise OcerlError(
                f"the class cannot realise the model: no pair of its {len(self.features)} φ and {len(self.measures)} μ "
                f"allows all transitions seen in step {step + 1}, the last from state {state} by action {action} to "
                f"state {after}; add candidates that do"
            )

    def doubt(self, step: int) -> float:
        """None: what is known of one pair is known of all."""
        return 0.0

    def fit(self) -> tuple[Floats, Floats]:
        pairs = self.chosen
        features = np.stack([self.features[i, step] for step, (i, _) in enumerate(pairs)])
        return features, np.stack([self.measures[j, step] for step, (_, j) in enumerate(pairs)])


def check_rank(rank: int, states: int) -> None:
    """Refuse a rank that no model of so many states needs."""
    check_whole("the rank", rank)
    if rank > states:
        raise OcerlError(f"the rank {rank} is larger than the number of states, {states}: every model has at most that")


@dataclass(eq=False)
class Counts:
    """How often each (pair, next state) was seen, for each step."""

    steps: int
    actions: int
    seen: list[dict[tuple[int, int], int]] = field(init=False)

    def __post_init__(self) -> None:
        self.seen = [{} for _ in range(self.steps)]

    def add(self, step: int, state: int, action: int, after: int) -> None:
        """Count a transition."""
        key = (state * self.actions + action, after)
        self.seen[step][key] = self.seen[step].get(key, 0) + 1

    def arrays(self, step: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """The pairs, the next states and how often."""
        pair, after = np.array(list(self.seen[step]), dtype=np.int64).reshape(-1, 2).T
        return pair, after, np.array(list(self.seen[step].values()), dtype=np.float64)


@dataclass(eq=False)
class FeatureClass:
    """Every φ of a list with any μ: for each candidate μ is fitted by EM, and the likeliest candidate is chosen."""

    features: Floats
    """`[candidate, step, state, action, latent]`."""
    sweeps: int = 3
    """How many steps of EM a fit takes, from where the last one ended."""
    prior: float = 0.01
    """What is added to every count of μ."""
    measures: Floats = field(init=False)
    """`[candidate, step, latent, state]`."""

    def __post_init__(self) -> None:
        candidates, steps, states, actions, rank = self.features.shape
        check_rank(rank, states)
        self.counts = Counts(steps, actions)
        self.measures = np.full((candidates, steps, rank, states), 1 / states)

    @property
    def rank(self) -> int:
        return self.features.shape[-1]

    def add(self, step: int, state: int, action: int, after: int) -> None:
        self.counts.add(step, state, action, after)

    def doubt(self, step: int) -> float:
        """None, as in `FiniteClass`."""
        return 0.0

    def fit(self) -> tuple[Floats, Floats]:
        candidates, steps = self.features.shape[:2]
        chosen: list[int] = []
        for step in range(steps):
            pair, after, weight = self.counts.arrays(step)
            likelihood = np.zeros(candidates)
            for c in range(candidates):
                flat = self.features[c, step].reshape(-1, self.rank)
                for _ in range(self.sweeps):
                    likelihood[c] = em_step(pair, after, weight, flat, self.measures[c, step], self.prior, True)
            chosen.append(int(likelihood.argmax()))
        order = np.arange(steps)
        return self.features[chosen, order], self.measures[chosen, order].copy()


@dataclass(eq=False)
class FactorClass:
    r"""Any φ and μ of a rank over finitely many states, learned from nothing.

    The φ of a pair without a visit can be anything, but its estimate is near the uniform distribution, whose norm is
    small once anything else was seen: the elliptical bonus alone loses optimism. So the class adds a bonus of its
    own, :math:`c / \sqrt{1 + N(s, a)}`, for the size that a free φ has: with it the learner has to see every pair that
    matters, as UCB-VI has to. A deviation from the paper, whose class is given.
    """

    steps: int
    states: int
    actions: int
    rank: int
    seed: int = 0
    sweeps: int = 5
    """How many steps of EM a fit takes, from where the last one ended."""
    doubts: float = 0.3
    """`c`."""
    prior: float = 0.3
    """What is added to every count: a Dirichlet prior, without which a new state would have probability 0."""
    features: Floats = field(init=False)
    measures: Floats = field(init=False)
    visits: Floats = field(init=False)
    """`[step, state, action]`: how often a pair was."""

    def __post_init__(self) -> None:
        check_rank(self.rank, self.states)
        random = np.random.default_rng(self.seed)
        self.features = random.dirichlet(np.full(self.rank, 5.0), (self.steps, self.states * self.actions))
        self.measures = random.dirichlet(np.full(self.states, 5.0), (self.steps, self.rank))
        self.counts = Counts(self.steps, self.actions)
        self.visits = np.zeros((self.steps, self.states, self.actions))

    def add(self, step: int, state: int, action: int, after: int) -> None:
        self.counts.add(step, state, action, after)
        self.visits[step, state, action] += 1

    def doubt(self, step: int) -> Floats:
        return self.doubts / np.sqrt(1 + self.visits[step])

    def fit(self) -> tuple[Floats, Floats]:
        for step in range(self.steps):
            pair, after, weight = self.counts.arrays(step)
            for _ in range(self.sweeps if pair.size else 0):
                em_step(pair, after, weight, self.features[step], self.measures[step], self.prior, False)
        shape = (self.steps, self.states, self.actions, self.rank)
        return self.features.reshape(shape), self.measures
