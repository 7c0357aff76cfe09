"""Rep-UCB on observation vectors with the neural class: the values are planned at the observations that were seen."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.rich.vectors import VectorMDP
from ocerl.optimistic._repucb_kernels import plan_step
from ocerl.optimistic.low_rank import LowRankWorld, low_rank_problem
from ocerl.optimistic.neural_class import NeuralClass, NeuralConfig, NeuralModel
from ocerl.optimistic.problem import Problem
from ocerl.optimistic.rows import BudgetRows, rows_of, utility_at
from ocerl.planning import ReturnDistribution
from ocerl.planning.policy import Policy
from ocerl.risk import Risk

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class VectorConfig(NeuralConfig):
    """What can be chosen about Rep-UCB on vectors."""

    alpha: float = 0.3
    """α: the factor of the elliptical bonus on φ."""
    ridge: float = 1.0
    """λ: what is added to the covariance."""
    growth: float = 0.15
    """Fit and plan again when there are more rounds by this part."""
    warmup: int = 20
    """So many rounds are played before the first fit."""
    first_budgets: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.alpha, self.growth) < 0 or self.ridge <= 0 or self.first_budgets < 1 or self.warmup < 1:
            raise OcerlError("alpha and growth must be at least 0, ridge positive, warmup and first_budgets at least 1")


@dataclass(frozen=True, eq=False)
class VectorPlan:
    """A plan: what is ahead of each latent, and the bonus, from which any observation's best action follows."""

    rows: BudgetRows
    world: VectorMDP
    shifts: NDArray[np.int64]
    """`[step, atom]`, in units."""
    atoms: Floats
    model: NeuralModel
    ahead: list[Floats]
    """`[step][latent, padded column]`."""
    inverse: list[Floats]
    """`[step][latent, latent]`: of φ's covariance."""
    doubt: list[Floats]
    """`[step][action, cosine, cosine]`: of each action's covariance of ψ."""
    alpha: float
    doubts: float

    def at(self, step: int, observations: Floats) -> tuple[Floats, NDArray[np.uint16]]:
        """The optimistic values `[observation, padded column]` and the greedy actions `[observation, column]`."""
        arrays, size = self.rows.arrays, len(observations)
        upper = np.zeros((size, self.ahead[step].shape[1]))
        slots = np.zeros((size, int(arrays.width.max())), dtype=np.uint16)
        weights = (self.world.rewards(step, observations)[..., None] == self.atoms).astype(np.float64)
        last = step == len(self.ahead) - 1
        features = np.ones((size, self.model.actions, 1)) if last else self.model.features(step, observations)
        bonus = np.zeros((size, self.model.actions)) if last else self.bonus(step, observations, features)
        plan_step(step, features, bonus, self.shifts[step], weights, self.ahead[step], arrays, upper, slots)
        return upper, slots

    def bonus(self, step: int, observations: Floats, features: Floats) -> Floats:
        r""":math:`\min(\alpha \|\phi\|_{\Sigma^{-1}} + c \|\psi\|, 2)` for all observations and actions."""
        norm = np.sqrt(np.einsum("nad,de,nae->na", features, self.inverse[step], features, optimize=True))
        bonus = self.alpha * norm
        if self.doubts > 0:
            cosines = self.model.cosines(observations)
            for action, inverse in enumerate(self.doubt[step]):
                bonus[:, action] += self.doubts * np.sqrt(np.maximum(((cosines @ inverse) * cosines).sum(axis=1), 0.0))
        return np.minimum(bonus, 2.0)


@dataclass(eq=False)
class VectorPolicy(Policy):
    """The plan's greedy policy from one first budget: it acts on vectors."""

    plan: VectorPlan
    position: int
    """The first budget's number."""
    _step: int = field(default=0, init=False)
    _earned: int = field(default=0, init=False)

    @property
    def budget(self) -> float:
        return float(self.plan.rows.arrays.budgets[self.position])

    def reset(self) -> None:
        self._step, self._earned = 0, 0

    def columns(self, step: int, earned: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the plan's row has what was earned so far; beyond its window, the edge."""
        arrays = self.plan.rows.arrays
        met = int(arrays.low[0]) + self.position + arrays.refine * earned - arrays.low[step]
        return np.clip(met, 0, arrays.width[step] - 1)

    def act(self, state: Floats) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        slots = self.plan.at(self._step, state[None])[1]
        return int(slots[0, self.columns(self._step, np.array([self._earned]))[0]])

    def observe(self, reward: float) -> None:
        self._earned += int(self.plan.rows.problem.shifts([reward])[self._step, 0])
        self._step += 1


@dataclass(frozen=True, eq=False)
class VectorTransition:
    """One transition of the data sets, after uniform actions."""

    step: int
    before: Floats
    action: int
    after: Floats
    second: bool
    """Whether it was the second uniform action: then it is for the likelihood only."""


@dataclass(eq=False)
class VectorRepUcb:
    """The oracle's state: the class with what it has seen, and the plan."""

    config: VectorConfig
    world: VectorMDP
    rows: BudgetRows
    models: NeuralClass
    starts: list[Floats]
    first: list[list[tuple[Floats, int]]] = field(init=False)
    """`[step]`: the observations and actions of the first data set."""
    plan: VectorPlan | None = None
    rounds: int = 0
    planned: int = 0

    def __post_init__(self) -> None:
        self.first = [[] for _ in range(self.models.steps)]
        self.atoms = np.unique(self.world.inner.rewards)
        self.shifts = np.clip(self.rows.problem.shifts(self.atoms), 0, self.rows.problem.most[:, None])
        self._values = self.rows.arrays.ceiling[0, : self.rows.arrays.width[0]].copy()

    def values(self) -> tuple[Floats, Floats]:
        """The first budgets and their optimistic values, over the starts seen."""
        return self.rows.arrays.budgets, self._values.copy()

    def policy(self, budget: float) -> VectorPolicy:
        """The greedy policy from one of the first budgets."""
        if self.plan is None:
            raise OcerlError("there is no plan before the first fit")
        return VectorPolicy(self.plan, self.rows.first_position(budget))

    def add(self, seen: list[VectorTransition]) -> None:
        """Take note of transitions."""
        for t in seen:
            self.models.add(t.step, t.before, t.action, t.after)
            if not t.second:
                self.first[t.step].append((t.before, t.action))
                if t.step == 0:
                    self.starts.append(t.before)

    def update(self, seen: list[VectorTransition]) -> None:
        """Add a round's transitions, and fit and plan again if there are enough new rounds."""
        self.add(seen)
        self.rounds += 1
        if self.rounds >= (1 + self.config.growth) * self.planned:
            self.models.fit()
            self.replan()

    def replan(self) -> None:
        """Plan with what was fitted."""
        self.plan, self._values = self.planning(self.config.alpha, self.config.doubts)
        self.planned = self.rounds

    def planning(self, alpha: float, doubts: float) -> tuple[VectorPlan, Floats]:
        """Backward induction at the observations seen, and the first budgets' values."""
        problem, arrays = self.rows.problem, self.rows.arrays
        horizon, model = problem.horizon, self.models.snapshot()
        inverse, doubt = self._inverses(model)
        end = utility_at(self.rows.risk, problem, self.rows.positions(horizon, padded=True))
        width = int(arrays.pad_width.max())
        ahead = [np.zeros((0, width)) for _ in range(horizon - 1)] + [np.zeros((1, width))]
        ahead[-1][0, : end.size] = end
        plan = VectorPlan(self.rows, self.world, self.shifts, self.atoms, model, ahead, inverse, doubt, alpha, doubts)
        for step in range(horizon - 2, -1, -1):
            after = np.stack([row[2] for row in self.models.seen[step]])
            ahead[step] = model.weights(step, after) @ plan.at(step + 1, after)[0]
        begin = int(arrays.low[0] - arrays.pad_low[0])
        values = plan.at(0, np.stack(self.starts[-64:]))[0].mean(axis=0)
        return plan, values[begin : begin + arrays.width[0]]

    def _inverses(self, model: NeuralModel) -> tuple[list[Floats], list[Floats]]:
        inverse, doubt = list[Floats](), list[Floats]()
        for step, rows in enumerate(self.first):
            before, action = np.stack([row[0] for row in rows]), np.array([row[1] for row in rows])
            features = model.features(step, before)[np.arange(len(rows)), action]
            inverse.append(_inverse(features.T @ features + self.config.ridge * np.eye(self.models.rank)))
            every = self.models.seen[step]
            cosines = model.cosines(np.stack([row[0] for row in every]))
            tried = np.array([row[1] for row in every])
            own = [cosines[tried == a] for a in range(self.models.actions)]
            prior = self.config.prior * np.eye(cosines.shape[1])
            doubt.append(np.stack([_inverse(psi.T @ psi + prior) for psi in own]))
        return inverse, doubt


def init(config: VectorConfig, world: VectorMDP, risk: Risk, random: np.random.Generator, seed: int) -> VectorRepUcb:
    """An oracle whose networks were fitted to some rounds of uniform actions, with its first plan."""
    problem = low_rank_problem(world.inner)
    models = NeuralClass(problem.horizon - 1, world.inner.n_actions, world.points.shape[1], config, seed)
    oracle = VectorRepUcb(config, world, rows_of(problem, risk, config.first_budgets), models, [])
    play, seen = VectorWorld(world, random), list[VectorTransition]()
    for _ in range(config.warmup):
        seen += gather(play, None, problem, random)
    models.calibrate(np.stack([t.after for t in seen]))
    oracle.add(seen)
    oracle.rounds = config.warmup
    models.fit()
    oracle.replan()
    return oracle


def recommend(oracle: VectorRepUcb) -> VectorPolicy:
    """The policy a run ends with: the best in the fitted model, without a bonus."""
    plan, values = oracle.planning(0.0, 0.0)
    return VectorPolicy(plan, int(np.argmax(oracle.rows.arrays.budgets + values)))


class VectorWorld:
    """Draws a latent from the features, a state from its measure, and noise around the state's point."""

    def __init__(self, world: VectorMDP, random: np.random.Generator) -> None:
        self.world, self.random = world, random
        self.inner = LowRankWorld(world.inner, random)

    def reset(self) -> Floats:
        return self._seen(self.inner.reset())

    def step(self, action: int) -> tuple[Floats, float]:
        state, reward, _ = self.inner.step(action)
        return self._seen(state), reward

    def _seen(self, state: int) -> Floats:
        return self.world.observe(np.array(state), self.random)


def gather(
    world: VectorWorld, policy: VectorPolicy | None, problem: Problem, random: np.random.Generator
) -> list[VectorTransition]:
    """One round's data: for every step but the last an episode that follows the policy up to it."""
    found: list[VectorTransition] = []
    actions = world.world.inner.n_actions
    for step in range(problem.horizon - 1):
        if policy:
            policy.reset()
        x = world.reset()
        for _ in range(step):
            x, reward = world.step(policy.act(x) if policy else int(random.integers(actions)))
            if policy:
                policy.observe(reward)
        for second in range(2):
            if step + second < problem.horizon - 1:
                action = int(random.integers(actions))
                after, _ = world.step(action)
                found.append(VectorTransition(step + second, x, action, after, bool(second)))
                x = after
    return found


@dataclass(eq=False)
class VectorJudge:
    """The return distribution of a policy, from the latent model; the noise is averaged over draws for each state.

    Noise is drawn afresh in every step, so a policy on vectors is one on states that chooses at random; how often
    it takes which action is measured on `draws` observations of each state, always the same.
    """

    world: VectorMDP
    draws: int = 32
    _judged: dict[tuple[VectorPlan, int], ReturnDistribution] = field(
        default_factory=dict[tuple["VectorPlan", int], ReturnDistribution]
    )

    def __post_init__(self) -> None:
        states = np.repeat(np.arange(self.world.inner.n_states), self.draws)
        random = np.random.default_rng(0)
        self.observations = [self.world.observe(states, random) for _ in range(self.world.inner.horizon)]
        self.problem = low_rank_problem(self.world.inner)

    def __call__(self, policy: VectorPolicy) -> ReturnDistribution:
        key = policy.plan, policy.position
        if key not in self._judged:
            self._judged[key] = self._evaluate(policy)
        return self._judged[key]

    def _evaluate(self, policy: VectorPolicy) -> ReturnDistribution:
        inner, problem = self.world.inner, self.problem
        mass = np.zeros((inner.n_states, int(problem.earned[-1]) + 1))
        mass[0, 0] = 1.0
        for step in range(inner.horizon):
            slots = policy.plan.at(step, self.observations[step])[1].reshape(inner.n_states, self.draws, -1)
            slots = slots[:, :, policy.columns(step, np.arange(mass.shape[1]))]
            paid = problem.shifts(inner.rewards[step].ravel())[step].reshape(inner.rewards[step].shape)
            latents = np.zeros((inner.rank, mass.shape[1]))
            for state, action in np.ndindex(*paid.shape):
                moved = mass[state] * (slots[state] == action).mean(axis=0)
                if moved.any():
                    latents += inner.features[step, state, action][:, None] * np.roll(moved, paid[state, action])
            mass = inner.measures[step].T @ latents
        total = mass.sum(axis=0)
        met = np.flatnonzero(total > 0)
        values = np.asarray(problem.floor + problem.unit * met, dtype=np.float64)
        return ReturnDistribution(values, total[met] / total.sum(), (0.0, 0.0))


def _inverse(matrix: NDArray[np.floating]) -> Floats:
    return np.linalg.inv(matrix).astype(np.float64)
