r"""Rep-UCB: optimism in a low-rank MDP whose features are learned (Appendix D.2).

In every round the most likely :math:`\phi_h, \mu_h` of a class are fitted to all transitions seen in step `h`, and with
:math:`\Sigma_h = \sum_{\mathcal D_h} \phi_h \phi_h^\top + \lambda I` the planning oracle takes

.. math:: \hat Q_h(s,b,a) = E_r \sum_z \phi_{h,z}(s,a) \int \hat V_{h+1}(s', b - r)\, d\mu_{h,z}(s')
          + \min(\alpha \|\phi_h(s,a)\|_{\Sigma_h^{-1}}, 2)\, D_h(b)

backwards in the augmented MDP, without a bonus in the last step. Its cost is linear in the number of states: the
integral is taken once for each latent and budget, not for each state and action.

**Data.** For each step `h`, the policy is followed up to :math:`s_h`, then two actions are uniform:
:math:`(s_h, a_h, s_{h+1})` joins :math:`\mathcal D_h`, and :math:`(s_{h+1}, a_{h+1}, s_{h+2})` joins
:math:`\tilde{\mathcal D}_{h+1}`, which counts for the likelihood only. Nothing is planned beyond the last step, whose
next state does not matter: the trajectory for `h = H` and the second action of `h = H - 1` are left out, so a round
takes `H - 1` episodes.

Deviations from the paper: the bonus is in parts of :math:`D_h(b)`, the spread of pay-offs that can still be reached,
and values are clipped to what can be reached; α and λ are constants, α smaller than the theory's; the model is
fitted and planned again when the rounds grew by `growth`. Rewards are known, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.lattice import Lattice
from ocerl.optimistic._kernels import Values
from ocerl.optimistic._repucb_kernels import plan_step
from ocerl.optimistic.model_class import ModelClass
from ocerl.optimistic.problem import Problem
from ocerl.optimistic.rows import BudgetRows, rows_of
from ocerl.optimistic.table import TablePolicy
from ocerl.optimistic.worlds import World
from ocerl.planning.policy import Policy
from ocerl.risk import Risk

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class RepUcbConfig:
    """What can be chosen about Rep-UCB."""

    alpha: float = 0.3
    """α: the factor of the bonus."""
    ridge: float = 1.0
    """λ: what is added to the covariance."""
    growth: float = 0.02
    """Fit and plan again when there are more rounds by this part."""
    first_budgets: int = 1
    """At least so many first budgets are on the grid of a utility that is curved."""

    def __post_init__(self) -> None:
        for name in ("alpha", "growth"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise OcerlError(f"{name} must be a number of at least 0, got {getattr(self, name)}")
        if not 0 < self.ridge < float("inf"):
            raise OcerlError(f"ridge must be a positive number, got {self.ridge}")
        if self.first_budgets < 1:
            raise OcerlError(f"first_budgets must be at least 1, got {self.first_budgets}")


@dataclass(frozen=True)
class Transition:
    """One transition of the data sets, after uniform actions."""

    step: int
    state: int
    action: int
    after: int
    second: bool
    """Whether it was the second uniform action: then it is for the likelihood only."""


@dataclass(frozen=True, eq=False)
class StepRewards:
    """The known rewards: `shifts[step, atom]` in units, and `weights[step][state, action, atom]`."""

    shifts: NDArray[np.int64]
    weights: Floats


@dataclass(eq=False)
class RepUcb:
    """The oracle's state: the class with what it has seen, the data's counts, and the plan."""

    config: RepUcbConfig
    start: int
    rows: BudgetRows
    rewards: StepRewards
    models: ModelClass
    visits: Floats
    """`[step, state, action]`: how often it is in the first data set."""
    plan: Values
    rounds: int = 0
    planned: int = 0

    def values(self) -> tuple[Floats, Floats]:
        """The first budgets and their optimistic values."""
        arrays = self.rows.arrays
        begin = int(arrays.low[0] - arrays.pad_low[0])
        return arrays.budgets, self.plan.upper[0, self.start, begin : begin + arrays.width[0]].copy()

    def policy(self, budget: float) -> TablePolicy:
        """The greedy policy from one of the first budgets."""
        return TablePolicy.of_plan(self.rows, self.plan, self.rows.first_position(budget))

    def update(self, seen: list[Transition]) -> None:
        """Add a round's transitions, and fit and plan again if there are enough new rounds."""
        for t in seen:
            self.models.add(t.step, t.state, t.action, t.after)
            self.visits[t.step, t.state, t.action] += not t.second
        self.rounds += 1
        if self.rounds >= (1 + self.config.growth) * self.planned:
            self.replan()

    def replan(self) -> None:
        """The most likely model, its bonus, and backward induction on both."""
        features, measures = self.models.fit()
        self._plan(features, measures, self.config.alpha)
        self.planned = self.rounds

    def _plan(self, features: Floats, measures: Floats, alpha: float) -> None:
        plan, last = self.plan, self.rows.problem.horizon - 1
        for h in range(last, -1, -1):
            following = plan.upper[h + 1, : features.shape[1]]
            # After the last step all states are worth the same.
            ahead = np.repeat(following[:1], self.models.rank, axis=0) if h == last else measures[h] @ following
            bonus = np.zeros(features.shape[1:3]) if h == last else self._bonus(h, features[h], alpha)
            weights, shifts = self.rewards.weights[h], self.rewards.shifts[h]
            plan_step(h, features[h], bonus, shifts, weights, ahead, self.rows.arrays, plan.upper[h], plan.slots[h])

    def _bonus(self, step: int, features: Floats, alpha: float) -> Floats:
        r""":math:`\min(\alpha \|\phi\|_{\Sigma^{-1}}, 2)` for all states and actions."""
        flat = features.reshape(-1, features.shape[-1])
        covariance = (flat * self.visits[step].reshape(-1, 1)).T @ flat
        covariance += self.config.ridge * np.eye(len(covariance))
        norm = np.sqrt(np.einsum("id,de,ie->i", flat, np.linalg.inv(covariance), flat, optimize=True))
        doubt = self.models.doubt(step) if alpha > 0 else 0.0
        return np.minimum(alpha * norm.reshape(features.shape[:2]) + doubt, 2.0)


def init(
    config: RepUcbConfig, problem: Problem, risk: Risk, models: ModelClass, rewards: StepRewards, *, start: int
) -> RepUcb:
    """An oracle that has seen nothing, with its first plan."""
    owned = np.diff(problem.pair_start[0])
    if not (owned == owned[0]).all():
        raise OcerlError("states have different actions: Rep-UCB's uniform actions need the same for all")
    rows = rows_of(problem, risk, config.first_budgets)
    oracle = RepUcb(
        config=config,
        start=start,
        rows=rows,
        rewards=rewards,
        models=models,
        visits=np.zeros((problem.horizon, problem.n_states, int(owned[0]))),
        plan=rows.empty_values(pessimistic=False),
    )
    oracle.replan()
    return oracle


def recommend(oracle: RepUcb) -> TablePolicy:
    """The policy a run ends with: the best in the most likely model, without a bonus."""
    plain = replace(oracle, plan=oracle.rows.empty_values(pessimistic=False))
    plain._plan(*oracle.models.fit(), alpha=0.0)  # pyright: ignore[reportPrivateUsage]
    budgets, values = plain.values()
    return plain.policy(float(budgets[np.argmax(budgets + values)]))


def gather(world: World, policy: Policy, problem: Problem, random: np.random.Generator) -> list[Transition]:
    """One round's data: for every step but the last an episode that follows the policy up to it."""
    found: list[Transition] = []
    actions = problem.actions[problem.pairs(0, 0)]
    for step in range(problem.horizon - 1):
        policy.reset()
        state = world.reset()
        for _ in range(step):
            state, reward, _ = world.step(policy.act(state))
            policy.observe(reward)
        for second in range(2):
            if step + second < problem.horizon - 1:
                slot = int(random.integers(actions.size))
                after, _, _ = world.step(int(actions[slot]))
                found.append(Transition(step + second, state, slot, after, bool(second)))
                state = after
    return found


def rewards_of(lattice: Lattice) -> StepRewards:
    """The rewards of a model, which must not depend on the next state."""
    model = lattice.model
    atoms = np.unique(np.concatenate([t.reward for t in model.steps]))
    weights = np.zeros((lattice.length, model.n_states, model.n_actions, atoms.size))
    for step in range(lattice.length):
        t = model.transitions(step)
        joint = np.zeros((t.n_pairs, atoms.size, model.n_states))
        np.add.at(joint, (t.outcome_pair, np.searchsorted(atoms, t.reward), t.next_state), t.probability)
        own = joint.sum(axis=2)
        if not np.allclose(joint, own[:, :, None] * joint.sum(axis=1)[:, None, :], atol=1e-9):
            raise OcerlError(
                f"{model.name}: in step {step + 1} a reward depends on the next state; Rep-UCB takes rewards as known "
                "functions of state and action"
            )
        weights[step, t.pair_state, t.action] = own
    most = [int(lattice.shifts(step).max()) for step in range(lattice.length)]
    shifts = [np.clip(lattice.round_reward(step, atoms), 0, most[step]) for step in range(lattice.length)]
    return StepRewards(np.stack(shifts), weights)
