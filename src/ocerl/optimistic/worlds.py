"""The worlds a learner explores: tabular models and Gymnasium environments with `Discrete` spaces.

A world has `reset()` and `step(action)`; a tabular model draws exactly one random number for the start and one
for every step, so that its compiled episodes and those played from Python are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.lattice import Lattice
from ocerl.mdp.transitions import Transitions
from ocerl.optimistic._episodes import Outcomes, draw
from ocerl.planning.policy import Policy

if TYPE_CHECKING:
    import gymnasium


class World(Protocol):
    """What an episode is played in."""

    def reset(self) -> int:
        """Begin an episode: its first state."""
        ...

    def step(self, action: int) -> tuple[int, float, bool]:
        """The next state, the reward, and whether the episode is over."""
        ...


@dataclass(frozen=True)
class Episode:
    """What one episode showed: `states` has one entry more than `actions` and `rewards`."""

    states: list[int]
    actions: list[int]
    rewards: list[float]
    budget: float | None = None
    """The first budget of the policy that played, if it had one."""


def collect(world: World, policy: Policy, horizon: int) -> Episode:
    """Play one episode: at most `horizon` steps, which are the end (there is nothing beyond to bootstrap)."""
    policy.reset()
    episode = Episode([world.reset()], [], [], getattr(policy, "budget", None))
    for _ in range(horizon):
        action = policy.act(episode.states[-1])
        state, reward, over = world.step(action)
        policy.observe(reward)
        episode.states.append(state)
        episode.actions.append(action)
        episode.rewards.append(reward)
        if over:
            break
    return episode


class TabularWorld:
    """A tabular model to play in, step by step or compiled."""

    def __init__(self, lattice: Lattice, terminal: NDArray[np.bool_], random: np.random.Generator) -> None:
        self.lattice, self.model = lattice, lattice.model
        self.terminal, self.random = terminal, random
        self.rewards = np.unique(np.concatenate([t.reward for t in self.model.steps]))
        """The reward values; outcomes name them by their position."""
        self.outcomes = compiled_outcomes(lattice, self.rewards)
        self._state, self._step = 0, 0

    @property
    def most_outcomes(self) -> int:
        """The most outcomes that any state and action has."""
        return int(np.diff(self.outcomes.outcome_start).max())

    def reset(self) -> int:
        cumulative = self.outcomes.start_cumulative
        self._state, self._step = int(draw(cumulative, 0, cumulative.size, self.random.random())), 0
        return self._state

    def step(self, action: int) -> tuple[int, float, bool]:
        t = self.model.transitions(self._step)
        first, last = t.pair_start[self._state], t.pair_start[self._state + 1]
        slot = int(np.flatnonzero(t.action[first:last] == action)[0])
        layer = min(self._step, self.outcomes.pair_start.shape[0] - 1)
        pair = self.outcomes.pair_start[layer, self._state] + slot
        first, last = self.outcomes.outcome_start[pair], self.outcomes.outcome_start[pair + 1]
        drawn = draw(self.outcomes.cumulative, first, last, self.random.random())
        self._state, self._step = int(self.outcomes.next_state[drawn]), self._step + 1
        reward = float(self.rewards[self.outcomes.atom[drawn]])
        return self._state, reward, bool(self.terminal[self._state])


def compiled_outcomes(lattice: Lattice, rewards: NDArray[np.float64]) -> Outcomes:
    """The model's outcomes in the form the compiled loops draw from, steps one after another."""
    steps = lattice.model.steps[: lattice.length]
    pairs = np.cumsum([0, *(t.n_pairs for t in steps)])
    outcomes = np.cumsum([0, *(t.probability.size for t in steps)])
    return Outcomes(
        pair_start=np.stack([t.pair_start + pairs[i] for i, t in enumerate(steps)]),
        outcome_start=np.concatenate([[0], *(t.outcome_start[1:] + outcomes[i] for i, t in enumerate(steps))]),
        cumulative=np.concatenate([_cumulative(t) for t in steps]),
        next_state=np.concatenate([t.next_state.astype(np.int64) for t in steps]),
        atom=np.searchsorted(rewards, np.concatenate([t.reward for t in steps])),
        start_cumulative=np.cumsum(lattice.model.start),
    )


def _cumulative(t: Transitions) -> NDArray[np.float64]:
    total = np.cumsum(t.probability)
    return total - np.repeat((total - t.probability)[t.outcome_start[:-1]], np.diff(t.outcome_start))


class GymnasiumWorld:
    """A Gymnasium environment; when it terminates, the next state is one more than it has: the end."""

    def __init__(self, environment: gymnasium.Env[Any, Any], horizon: int, seed: int) -> None:
        self.environment, self.horizon, self._step = environment, horizon, 0
        self.name = environment.spec.id if environment.spec else type(environment.unwrapped).__name__
        self.n_states = discrete_size(environment.observation_space, "observation", self.name)
        self.n_actions = discrete_size(environment.action_space, "action", self.name)
        self._state_start = int(getattr(environment.observation_space, "start", 0))
        self._action_start = int(getattr(environment.action_space, "start", 0))
        self._seed: int | None = seed

    @property
    def random(self) -> np.random.Generator:
        """The environment's random numbers."""
        # The seed is given once, and not before it is this world's turn: seeds may share an environment.
        if self._seed is not None:
            self.environment.reset(seed=self._seed)
            self._seed = None
        return self.environment.unwrapped.np_random

    def reset(self) -> int:
        assert self.random is not None
        observation, _ = self.environment.reset()
        self._step = 0
        return int(observation) - self._state_start

    def step(self, action: int) -> tuple[int, float, bool]:
        observation, reward, terminated, truncated, _ = self.environment.step(action + self._action_start)
        self._step += 1
        if truncated and not terminated and self._step < self.horizon:
            raise OcerlError(
                f"{self.name} was cut off by its own time limit before the horizon: "
                "give a horizon of at most that many steps (horizon=…)"
            )
        state = self.n_states if terminated else int(observation) - self._state_start
        return state, float(reward), bool(terminated)


def discrete_size(space: object, what: str, name: str) -> int:
    """The size of a `Discrete` space, or an error that says which space it is."""
    from gymnasium.spaces import Discrete

    if not isinstance(space, Discrete):
        raise OcerlError(f"{name} has {what}s in {space}: exploring with UCB-VI needs finitely many (a Discrete space)")
    return int(space.n)
