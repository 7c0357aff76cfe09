"""An exogenous block MDP to play in, without a table of it, and exact judgement of policies there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ocerl.mdp.lattice import Lattice, exact_lattice
from ocerl.mdp.rich import ExogenousBlockMDP
from ocerl.optimistic._episodes import draw
from ocerl.optimistic.problem import Problem, learning_lattice, problem_of_model
from ocerl.optimistic.table import DecodedPolicy
from ocerl.optimistic.worlds import compiled_outcomes
from ocerl.planning import ReturnDistribution, evaluate


class BlockWorld:
    """Draws latents and flips bits; shows the observation's number. Its episodes have their full length."""

    def __init__(self, world: ExogenousBlockMDP, random: np.random.Generator) -> None:
        self.world, self.random = world, random
        lattice = learning_lattice(world.endogenous)
        self.rewards = np.unique(np.concatenate([t.reward for t in world.endogenous.steps]))
        self._outcomes = compiled_outcomes(lattice, self.rewards)
        self._first = int(np.flatnonzero(world.endogenous.start)[0])
        self._powers = 1 << np.arange(world.bits)
        self._step, self._latent, self._bits = 0, self._first, 0

    def reset(self) -> int:
        self._step, self._latent, self._bits = 0, self._first, 0
        return self._observe()

    def step(self, action: int) -> tuple[int, float, bool]:
        outcomes = self._outcomes
        pair = int(outcomes.pair_start[min(self._step, outcomes.pair_start.shape[0] - 1), self._latent]) + action
        first, last = outcomes.outcome_start[pair], outcomes.outcome_start[pair + 1]
        drawn = draw(outcomes.cumulative, first, last, self.random.random())
        self._latent, self._step = int(outcomes.next_state[drawn]), self._step + 1
        flipped = self.random.random(self.world.bits) < self.world.flips
        self._bits ^= int(self._powers[flipped].sum())
        return self._observe(), float(self.rewards[outcomes.atom[drawn]]), False

    def _observe(self) -> int:
        code = self._latent + (self._bits << self.world.latent_bits)
        observation = 0
        for bit, column in enumerate(self.world.columns.tolist()):
            observation ^= column if (code >> bit) & 1 else 0
        return observation


def block_problem(world: ExogenousBlockMDP) -> Problem:
    """What a learner is told that has decoders: the actions, the horizon, the rewards' ranges and their unit.

    It is the endogenous model's problem, but that no state is said to end the episode.
    """
    problem = problem_of_model(learning_lattice(world.endogenous), per_step=True)
    return replace(problem, terminal=np.zeros_like(problem.terminal))


@dataclass(eq=False)
class BlockJudge:
    """The exact return distribution of a policy that reads one of the candidates, in its shadow."""

    world: ExogenousBlockMDP
    _judged: dict[bytes, ReturnDistribution] = field(default_factory=dict[bytes, ReturnDistribution])
    _lattices: dict[int, Lattice] = field(default_factory=dict[int, Lattice])

    def __call__(self, policy: DecodedPolicy) -> ReturnDistribution:
        if policy.key not in self._judged:
            lattice = self._lattice(policy.decoder)
            played = policy.through(self.world.shadow_decoder(policy.decoder), lattice)
            self._judged[policy.key] = evaluate(lattice.model, played)
        return self._judged[policy.key]

    def _lattice(self, decoder: int) -> Lattice:
        if decoder not in self._lattices:
            found = exact_lattice(self.world.shadow(int(self.world.masks[decoder])))
            assert found is not None
            self._lattices[decoder] = found
        return self._lattices[decoder]

    @cached_property
    def start(self) -> int:
        """The observation that episodes begin with."""
        return int(self.world.emit(np.flatnonzero(self.world.endogenous.start))[0])


def observations(
    world: ExogenousBlockMDP, latent: NDArray[np.int64], exogenous: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The observations of some latents."""
    return world.emit(world.code(latent, exogenous))
