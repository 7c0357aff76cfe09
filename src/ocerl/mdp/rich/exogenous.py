r"""Exogenous block MDPs (the definition "Ex-BMDP"): a small world behind observations full of noise that moves.

The endogenous latent :math:`z^{en}` is a state of a tabular model and follows the actions. The exogenous one is a
row of bits, each of which flips by itself with its own probability in every step. The observation is

.. math:: o = M \cdot (z^{en}, z^{ex}) \quad\text{over GF(2)}

with an invertible matrix of bits `M`, so that one function recovers the latents, and none of the observation's
bits needs to say anything by itself. Observations are written as whole numbers, bit `i` having the value 2^i.

Rewards depend on the endogenous part only, hence so does the optimum: the planner finds it exactly in the
endogenous model, whatever the number of bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.checks import check_whole
from ocerl.mdp.rich.lock import risky_lock
from ocerl.mdp.tabular import Columns, TabularMDP

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MOST_BITS = 20
"""Tables over observations have 2 to this power entries for every latent."""
MOST_OUTCOMES = 1 << 23
"""A table of the whole world is not made beyond so many outcomes."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ExogenousBlockMDP:
    """An exogenous block MDP, and candidates for the function that decodes it.

    Candidate `e` reads the latent `z` as `shuffles[e, z]` whenever the bits in `masks[e]` have odd parity; the
    true one has an empty mask. Wrong candidates are right half of the time, and mix in what is exogenous.
    """

    endogenous: TabularMDP
    flips: Floats
    """`[bit]`: the probability with which an exogenous bit flips in a step; all begin as 0."""
    columns: Ints
    """`[bit]`: the columns of `M` as numbers, those of the latent's bits first."""
    masks: Ints
    """`[candidate]`: the exogenous bits that mislead it, as a number."""
    shuffles: Ints
    """`[candidate, latent]`."""
    name: str = "exogenous"

    def __post_init__(self) -> None:
        if ((self.flips < 0) | (self.flips > 1)).any():
            raise OcerlError("the probabilities of a flip must be between 0 and 1")
        if self.columns.size != self.latent_bits + self.bits:
            raise OcerlError(f"M must have {self.latent_bits + self.bits} columns, got {self.columns.size}")
        if np.unique(self.emit(np.arange(self.n_observations))).size < self.n_observations:
            raise OcerlError("the emission must be invertible: two latents have the same observation")

    @property
    def bits(self) -> int:
        """The number of exogenous bits: there are 2 to this power exogenous states."""
        return self.flips.size

    @property
    def n_latents(self) -> int:
        return self.endogenous.n_states

    @property
    def latent_bits(self) -> int:
        return (self.n_latents - 1).bit_length()

    @property
    def n_observations(self) -> int:
        return 1 << (self.latent_bits + self.bits)

    @property
    def n_candidates(self) -> int:
        return self.masks.size

    @property
    def truth(self) -> int:
        """The number of the true candidate, or -1 where it is not among them."""
        true = np.flatnonzero(self.masks == 0)
        return int(true[0]) if true.size else -1

    def code(self, latent: Ints, exogenous: Ints) -> Ints:
        """Both latents as one number, the endogenous one in the lowest bits."""
        return latent + (exogenous << self.latent_bits)

    def emit(self, code: Ints) -> Ints:
        """The observation of a code: `M` times its bits."""
        observation = np.zeros_like(code)
        for bit, column in enumerate(self.columns):
            observation ^= np.where((code >> bit) & 1 == 1, column, 0)
        return observation

    @cached_property
    def codes(self) -> Ints:
        """`[observation]`: the code behind it, by the inverse of `M`."""
        inverse = np.empty(self.n_observations, dtype=np.int64)
        inverse[self.emit(np.arange(self.n_observations))] = np.arange(self.n_observations)
        return inverse

    def candidate(self, number: int) -> NDArray[np.int8]:
        """`[observation]`: the latent that a candidate decodes."""
        latent, exogenous = self.codes & ((1 << self.latent_bits) - 1), self.codes >> self.latent_bits
        odd = np.bitwise_count(exogenous & self.masks[number]) % 2 == 1
        latent = np.minimum(latent, self.n_latents - 1)  # codes beyond the last latent never occur
        return np.where(odd, self.shuffles[number][latent], latent).astype(np.int8)

    @cached_property
    def decoders(self) -> NDArray[np.int8]:
        """`[candidate, observation]`: the class of decoders, as a table."""
        return np.stack([self.candidate(number) for number in range(self.n_candidates)])

    def parity_flip(self, mask: int) -> float:
        """The probability that the parity of some bits changes in a step: they flip independently."""
        chosen = ((mask >> np.arange(self.bits)) & 1) == 1
        return float((1 - np.prod(1 - 2 * self.flips[chosen])) / 2)

    def shadow(self, mask: int) -> TabularMDP:
        """The world as far as a candidate with this mask can see: states `z + n_latents · parity`.

        The parity of bits that flip independently is a Markov chain, so this small model is exact.
        """
        flip = self.parity_flip(mask)
        return _product(self.endogenous, np.array([[1 - flip, flip], [flip, 1 - flip]]), self.name)

    def shadow_decoder(self, number: int) -> Ints:
        """`[state of the shadow]`: what a candidate decodes there."""
        return np.concatenate([np.arange(self.n_latents), self.shuffles[number]])

    def model(self) -> TabularMDP:
        """The whole world as a table of observations, while it is small enough for one."""
        outcomes = max(step.probability.size for step in self.endogenous.steps) << (2 * self.bits)
        if outcomes > MOST_OUTCOMES:
            raise OcerlError(
                f"a table of {self.name} with {self.bits} exogenous bits would have {outcomes:.1e} outcomes a step: "
                "take fewer bits, or an oracle that decodes observations (golf)"
            )
        kernel: Floats = np.ones((1, 1))
        for flip in self.flips:
            kernel = np.kron(np.array([[1 - flip, flip], [flip, 1 - flip]]), kernel).astype(np.float64)
        named = _product(self.endogenous, kernel, self.name)
        states = np.arange(named.n_states)
        observed = self.emit(self.code(states % self.n_latents, states // self.n_latents))
        return _renamed(named, observed, self.n_observations)


def exogenous_lock(
    *, bits: int = 4, horizon: int = 5, slip: float = 0.02, flip: float = 0.3, candidates: int = 20, seed: int = 0
) -> ExogenousBlockMDP:
    """The risky combination lock behind `bits` exogenous bits, with so many candidate decoders.

    >>> world = exogenous_lock(bits=16)
    >>> world.n_observations, world.decoders.shape, world.decoders[world.truth, world.emit(np.array([2]))].tolist()
    (262144, (20, 262144), [2])
    """
    check_whole("the number of exogenous bits", bits)
    check_whole("the number of candidates", candidates)
    if bits > MOST_BITS:
        raise OcerlError(f"the number of exogenous bits must be at most {MOST_BITS}, got {bits}")
    random = np.random.default_rng([seed, bits])
    endogenous = risky_lock(horizon=horizon, slip=slip, seed=seed)
    size = endogenous.n_states
    masks, shuffles = _candidates(random, size, bits, candidates)
    return ExogenousBlockMDP(
        endogenous=endogenous,
        flips=np.full(bits, float(flip)),
        columns=_invertible(random, (size - 1).bit_length() + bits),
        masks=masks,
        shuffles=shuffles,
        name="risky-lock",
    )


def _candidates(random: np.random.Generator, latents: int, bits: int, count: int) -> tuple[Ints, Ints]:
    """The true decoder, in a random place among wrong ones that differ from each other."""
    wrong: set[tuple[int, tuple[int, ...]]] = set()
    tries = 0
    while len(wrong) < count - 1:
        shuffle = tuple(int(z) for z in random.permutation(latents))
        mask = int(random.integers(1, 1 << bits))
        if shuffle != tuple(range(latents)):
            wrong.add((mask, shuffle))
        tries += 1
        if tries > 10_000:
            raise OcerlError(f"{bits} exogenous bits do not mislead {count - 1} decoders: ask for fewer candidates")
    listed = sorted(wrong)
    random.shuffle(listed)
    listed.insert(int(random.integers(count)), (0, tuple(range(latents))))
    return np.array([mask for mask, _ in listed]), np.array([shuffle for _, shuffle in listed])


def _invertible(random: np.random.Generator, size: int) -> Ints:
    """The columns of a random invertible matrix over GF(2): a permutation, mixed by row additions."""
    matrix = np.eye(size, dtype=np.int64)[random.permutation(size)]
    for _ in range(4 * size):
        one, other = random.choice(size, 2, replace=False)
        matrix[one] ^= matrix[other]
    return (matrix << np.arange(size)[:, None]).sum(axis=0)


def _product(model: TabularMDP, kernel: Floats, name: str) -> TabularMDP:
    """A model beside a Markov chain that nothing influences: states `z + n · x`, begun at `x = 0`."""
    size, chain = model.n_states, kernel.shape[0]
    before, after = (column.ravel() for column in np.meshgrid(np.arange(chain), np.arange(chain), indexing="ij"))
    columns: list[Columns] = []
    for t in model.steps:
        pair = t.outcome_pair
        rows = (t.pair_state[pair], t.action[pair], t.next_state)
        state, action, target = (np.repeat(row.astype(np.int64), before.size) for row in rows)
        shifts = [np.tile(size * at, pair.size) for at in (before, after)]
        probability = np.repeat(t.probability, before.size) * np.tile(kernel[before, after], pair.size)
        reward = np.repeat(t.reward, before.size)
        columns.append((state + shifts[0], action, target + shifts[1], probability, reward))
    first = int(np.flatnonzero(model.start)[0])
    return TabularMDP.from_indices(
        columns,
        states=tuple(range(size * chain)),
        actions=model.actions,
        start=first,
        horizon=model.require_horizon(),
        name=name,
    )


def _renamed(model: TabularMDP, numbers: Ints, size: int) -> TabularMDP:
    """The same model with its states numbered otherwise, among `size` numbers."""
    columns: list[Columns] = []
    for t in model.steps:
        pair = t.outcome_pair
        state, target = numbers[t.pair_state[pair]], numbers[t.next_state]
        columns.append((state, t.action[pair], target, t.probability, t.reward))
    return TabularMDP.from_indices(
        columns,
        states=tuple(range(size)),
        actions=model.actions,
        start=int(numbers[np.flatnonzero(model.start)[0]]),
        horizon=model.require_horizon(),
        name=model.name,
    )
