"""The Gymnasium driver by hand: pay-offs, spaces, ranges that follow, broken rewards, the compiled driver's terms."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from ocerl.envs import AugmentedEnvironment, AugmentedObservation, BettingGame, Episodes, telescoping_error
from ocerl.errors import OcerlError
from ocerl.gradient.deep import compiled, vector
from ocerl.gradient.deep.actions import actions_of
from ocerl.gradient.deep.agent import Agent
from ocerl.gradient.deep.config import DeepConfig
from ocerl.gradient.deep.driver import Greedy, Report
from ocerl.gradient.deep.following import carried
from ocerl.gradient.deep.inputs import Inputs
from ocerl.gradient.deep.knots import knots_over
from ocerl.gradient.deep.learner import LearnerState, init
from ocerl.gradient.deep.sources import Source, gymnasium_task
from ocerl.gradient.deep.vector import GymnasiumDriver, GymnasiumProblem, GymnasiumState, as_played
from ocerl.mdp.augmentation import terminal_utility
from ocerl.risk import parse_risk
from support.counting import Counting, makers


def configured(**settings: Any) -> DeepConfig:
    small: dict[str, Any] = {"environments": 2, "rollout": 6, "epochs": 1, "minibatches": 1, "hidden": (8,), "group": 1}
    return DeepConfig(**{**small, "budget_knots": 5, "mean_weight": 0.0, **settings})


def driver_on(
    make: Any, risk: str = "cvar:0.5", *, budgets: tuple[float, float] | None = None, horizon: int = 9, **settings: Any
) -> GymnasiumDriver:
    source = Source.of(make)
    task = gymnasium_task(source, horizon=horizon, budget_range=budgets)
    config = configured(**settings)
    knots = knots_over(task.budget_range, config.budget_knots)
    inputs = Inputs.of(task.observation_space, time_knots=np.arange(float(task.horizon)), knots=knots)
    return GymnasiumDriver(source, task, GymnasiumProblem(parse_risk(risk), inputs, 1.0, 1.0), config)


def learners_of(driver: GymnasiumDriver, seeds: int = 1) -> LearnerState:
    actions, inputs, config = actions_of(driver.task.action_space), driver.problem.inputs, driver.config
    critic = "q" if isinstance(driver.task.action_space, spaces.Discrete) else "value"

    def one(key: jax.Array) -> LearnerState:
        return init(key, inputs, Agent(key, inputs, actions, hidden=config.hidden, critic=critic), config)

    return eqx.filter_vmap(one)(jax.random.split(jax.random.key(0), seeds))


def advanced(driver: GymnasiumDriver, updates: int, seeds: int = 1) -> tuple[GymnasiumState, Report]:
    with closing(driver):
        return driver.advance(driver.begin(learners_of(driver, seeds), 0), updates)


def counting(*lengths: int) -> Callable[[], Counting]:
    return lambda: Counting(lengths)


# ---- what is known of an environment ----


@pytest.mark.parametrize(
    ("make", "given", "horizon"),
    [
        (counting(3), 7, 7),
        (lambda: TimeLimit(Counting((3,)), 5), None, 5),
        (lambda: TimeLimit(Counting((3,)), 5), 4, 4),
        (lambda: TimeLimit(Counting((3,)), 5), 8, 5),
        ("CartPole-v1", None, 500),
        ("CartPole-v1", 20, 20),
        ("ocerl/BettingGame-v0", None, 6),
        ("ocerl/BettingGame-v0", 2, 2),
        (lambda: SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 2), None, 500),
    ],
)
def test_the_horizon_is_the_shortest_that_is_known(make: Any, given: int | None, horizon: int) -> None:
    assert gymnasium_task(Source.of(make), horizon=given, budget_range=(0.0, 1.0)).horizon == horizon


def test_without_a_horizon_the_error_says_how_to_give_one() -> None:
    with pytest.raises(
        OcerlError, match=r"^Counting has no time limit.*needs a horizon.*horizon=….*--horizon H"
    ) as told:
        gymnasium_task(Source.of(counting(3)))
    assert "\n" not in str(told.value)


def test_what_cannot_be_an_environment_is_refused() -> None:
    with pytest.raises(OcerlError, match="cannot make NoSuchThing-v0"):
        gymnasium_task(Source.of("NoSuchThing-v0"))
    given: Any = Counting((3,))
    with pytest.raises(OcerlError, match="lambda"):
        Source.of(given)
    with pytest.raises(OcerlError, match="actions must be in a Discrete space or a Box"):
        gymnasium_task(Source.of(lambda: Counting((3,), spaces.MultiBinary(2))), horizon=3)


def test_the_range_is_given_or_known_or_guessed_from_random_play() -> None:
    given = gymnasium_task(Source.of(counting(3)), horizon=9, budget_range=(2.0, 3.0))
    assert (given.budget_range, given.guessed) == ((2.0, 3.0), False)
    known = gymnasium_task(Source.of("ocerl/BettingGame-v0"))
    assert (known.budget_range, known.guessed) == (BettingGame().budget_range, False)
    assert gymnasium_task(Source.of("ocerl/BettingGame-v0"), horizon=3).guessed

    class Same(Counting):
        def reward(self, episode: int, step: int) -> float:
            return 1.0

    # Returns are 1 and 3, or half a reward for the second step and a quarter for the third.
    guessed = gymnasium_task(Source.of(lambda: Same((1, 3))), horizon=9)
    assert (guessed.budget_range, guessed.guessed) == ((0.0, 4.0), True)
    discounted = gymnasium_task(Source.of(lambda: Same((1, 3))), horizon=9, discount=0.5)
    assert discounted.budget_range == (1 - 0.375, 1.75 + 0.375)


def test_the_discount_is_the_environments_unless_given() -> None:
    source = Source.of("ocerl/AmericanPut-v0", discount=0.5)
    assert gymnasium_task(source).discount == 0.5
    assert gymnasium_task(source, discount=0.25).discount == 0.25


# ---- pay-offs ----


@pytest.mark.parametrize("dense", [True, False])
def test_payoffs_of_the_betting_game_telescope(dense: bool) -> None:
    driver = driver_on("ocerl/BettingGame-v0", "cvar:0.25", horizon=6, rollout=18, environments=4, dense=dense)
    game = AugmentedEnvironment(BettingGame(), "cvar:0.25", dense=dense)
    with closing(driver):
        stage = driver.begin(learners_of(driver), 0).stages[0]

        def act(seen: AugmentedObservation) -> tuple[Any, Any]:
            action = np.asarray(seen.step) % 3 + 2
            return action, action

        played = stage.play(18, act, lambda rng, number: rng.uniform(-0.05, 0.9, number))
        payoff = driver.payoff(played)
    # Three episodes of six steps in each of four environments.
    by_episode: Callable[[Any], Any] = lambda x: jnp.asarray(x).T.reshape(12, 6)  # noqa: E731
    assert by_episode(played.ended).tolist() == [[False] * 5 + [True]] * 12
    episodes = Episodes(
        observation=played.seen,
        action=by_episode(played.action),
        payoff=by_episode(payoff),
        reward=by_episode(played.reward),
        terminated=by_episode(played.ended),
        active=jnp.ones((12, 6), dtype=bool),
        first_budget=by_episode(played.seen.budget)[:, 0],
        final_budget=by_episode(played.after)[:, -1],
    )
    assert len(set(np.asarray(episodes.first_budget).tolist())) == 12
    assert telescoping_error(game, episodes).item() < 1e-5


def test_the_payoff_is_in_its_units_and_the_mean_counts_a_little() -> None:
    driver = driver_on(counting(2), "cvar:0.5", budgets=(0.0, 4.0), mean_weight=0.25)
    driver.problem = driver.problem._replace(unit=8.0, reward_unit=2.0)
    with closing(driver):
        stage = driver.begin(learners_of(driver), 0).stages[0]
        still = np.zeros(2, dtype=np.int64)
        played = stage.play(1, lambda seen: (still, still), driver.first_budgets((3.0, 3.0)))
        played = played._replace(seen=played.seen._replace(budget=np.full((1, 2), 3.0)), after=np.full((1, 2), 2.0))
        # u(-2) - u(-3) = 2, over 8; and a reward of 1 over 2, with weight 1/4
        assert driver.payoff(played).tolist() == [[0.375, 0.375]]


def test_a_shorter_horizon_cuts_training_and_trials() -> None:
    driver = driver_on(counting(5), budgets=(0.0, 9.0), horizon=2, rollout=4)
    with closing(driver):
        state = driver.begin(learners_of(driver), 0)
        still = np.zeros(2, dtype=np.int64)
        played = state.stages[0].play(4, lambda seen: (still, still), driver.first_budgets((0.0, 9.0)))
        assert played.ended[:, 0].tolist() == [False, True] * 2
        assert driver.returns(_policy(driver, state), np.array([0.0]), 2, seed=0).tolist() == [[3.0, 3.0]]


# ---- learning ----


def test_reports_and_learners_are_those_of_the_compiled_driver() -> None:
    driver = driver_on("ocerl/BettingGame-v0", "cvar:0.25", horizon=6)
    learners = learners_of(driver, seeds=2)
    state, report = advanced(driver, updates=3, seeds=2)
    problem = compiled.Problem(
        AugmentedEnvironment(BettingGame(), "cvar:0.25"), driver.problem.inputs, jnp.float32(1.0), jnp.float32(1.0)
    )
    other = compiled.CompiledDriver(driver.task, problem, driver.config)
    theirs, their_report = other.advance(other.begin(learners, 0), 3)

    def form(tree: Any) -> Any:
        return jax.tree.map(lambda x: (x.shape, x.dtype), tree)

    assert form(report) == form(their_report)
    assert form(state.learner) == form(theirs.learner)
    assert form(driver.inputs_of(state)) == form(other.inputs_of(theirs))
    np.testing.assert_allclose(driver.ranges_of(state), other.ranges_of(theirs))
    assert np.asarray(report.metrics.kl).shape == (3, 2)
    assert np.asarray(report.broken).tolist() == [[-1, -1]] * 3
    assert np.asarray(report.finite).all()


def test_a_seed_repeats_itself_and_seeds_differ() -> None:
    driver = driver_on("ocerl/BettingGame-v0", horizon=6)
    alike = _stacked_twice(learners_of(driver))
    with closing(driver):
        (first, _), (again, _) = (driver.advance(driver.begin(alike, seed=5), 2) for _ in range(2))
    assert eqx.tree_equal(first.learner.agent, again.learner.agent)
    weights = first.learner.agent.critic.body.last.weight
    assert not np.array_equal(weights[0], weights[1])


def _stacked_twice(learners: LearnerState) -> LearnerState:
    return jax.tree.map(lambda x: jnp.concatenate([x, x]), learners)


def test_the_batch_is_what_was_played() -> None:
    """The mean pay-off of a report is that of episodes which are known: u(Z - b) - u(-b), all from the budget 4."""
    driver = driver_on(counting(3), "cvar:0.5", budgets=(4.0, 4.0), first_budget=(4.0, 4.0), rollout=3)
    _, report = advanced(driver, updates=2)
    # Returns are 1 + 2 + 3 and then 10 + 11 + 12, both above the budget: the pay-off is -u(-4) = 8 in three steps.
    np.testing.assert_allclose(report.payoff[:, 0], [8 / 3, 8 / 3], rtol=1e-6)


def test_a_learner_learns_in_a_gymnasium_environment() -> None:
    class Bandit(Counting):
        """One step; the second action pays 1. There is nothing to see."""

        def _observation(self) -> Any:
            return np.zeros(2)

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            observation, _, *rest = super().step(action)
            return observation, float(action), *rest

        def reward(self, episode: int, step: int) -> float:
            return 0.0

    settings: dict[str, Any] = {"environments": 8, "rollout": 16, "epochs": 8, "kl_weight": 0.01}
    settings |= {"learning_rate": 0.01, "barrier": 0.0, "steps": 2560}
    driver = driver_on(lambda: Bandit((1,)), "mean", horizon=1, budgets=(0.0, 1.0), **settings)
    with closing(driver):
        state = driver.begin(learners_of(driver), 0)
        before = driver.returns(_policy(driver, state), np.array([0.0, 1.0]), 4, seed=0)
        state, report = driver.advance(state, 20)
        after = driver.returns(_policy(driver, state), np.array([0.0, 1.0]), 4, seed=0)
    assert before.shape == after.shape == (2, 4)
    assert float(report.payoff[0, 0]) < 0.75
    assert float(report.payoff[-1, 0]) > 0.9
    assert after.tolist() == [[1.0] * 4] * 2


def _policy(driver: GymnasiumDriver, state: GymnasiumState, seed: int = 0) -> Greedy:
    learner, inputs = jax.tree.map(lambda x: x[seed], (state.learner, driver.inputs_of(state)))
    return Greedy(learner.agent, inputs, learner.moments)


# ---- the spaces ----


def test_actions_are_of_the_environments_type_and_within_its_bounds() -> None:
    """The environment itself refuses an action that its space does not contain."""
    made: list[Counting] = []

    def make(space: spaces.Space[Any]) -> Callable[[], Counting]:
        def one() -> Counting:
            made.append(Counting((3, 1), space))
            return made[-1]

        return one

    advanced(driver_on(make(spaces.Discrete(2, start=1)), budgets=(0.0, 9.0), rollout=20), 1)
    assert {int(action) for env in made for action in env.actions} == {1, 2}
    made.clear()
    box = spaces.Box(np.float32([-2.0, -0.1]), np.float32([4.0, 0.3]))
    advanced(driver_on(make(box), budgets=(0.0, 9.0), rollout=20), 1)
    taken = np.array([action for env in made for action in env.actions])
    assert taken.dtype == np.float32
    assert (taken.min(axis=0) < [0.0, 0.05]).all()
    assert (taken.max(axis=0) > [2.0, 0.15]).all()


def test_bounds_hold_to_the_last_bit() -> None:
    box = spaces.Box(np.float32([-0.1]), np.float32([0.3]))
    assert box.contains(as_played(jnp.array([0.3 + 1e-7]), box))
    assert as_played(jnp.array([1]), spaces.Discrete(2)).dtype == np.int64


def test_dictionaries_tuples_and_images_are_played() -> None:
    class Rich(Counting):
        def __init__(self) -> None:
            super().__init__((3, 1))
            picture = spaces.Box(0, 255, (4, 4, 1), dtype=np.uint8)
            self.observation_space = spaces.Dict(
                where=self.observation_space, more=spaces.Tuple((spaces.Discrete(4), picture))
            )

        def _observation(self) -> Any:
            picture = np.full((4, 4, 1), 50 * self._step, dtype=np.uint8)
            return {"where": super()._observation(), "more": (np.int64(self._step), picture)}

    _, report = advanced(driver_on(Rich, budgets=(0.0, 9.0)), 2)
    assert np.asarray(report.finite).all()


# ---- ranges that follow ----


def test_a_guessed_range_follows_the_returns_and_nothing_is_compiled_again() -> None:
    def make() -> Counting:
        return Counting((3,))

    driver = driver_on(make, "mean", budgets=(0.0, 2.0), rollout=3)
    assert not driver.task.guessed
    state, _ = advanced(driver, updates=3)
    assert driver.ranges_of(state).tolist() == [[0.0, 2.0]]

    driver.task = _guessing(driver)
    with closing(driver):
        state, _ = driver.advance(driver.begin(learners_of(driver), 0), 1)  # a return of 6
        assert driver.ranges_of(state).tolist() == [[0.0, 3.0]]
        programs = vector._learn._cache_size(), vector._sample._cache_size()
        state, _ = driver.advance(state, 2)  # of 33 and of 303
        assert driver.ranges_of(state).tolist() == [[0.0, 6.75]]
        assert (vector._learn._cache_size(), vector._sample._cache_size()) == programs
        knots = np.asarray(driver.inputs_of(state).budget_knots[0])
        assert (knots[0], knots[-1], knots.size) == (0.0, 6.75, 5)
        # What is saved of a state is enough to go on.
        again = driver.begin(state.learner, 1, inputs=driver.inputs_of(state), ranges=driver.ranges_of(state))
        assert driver.ranges_of(again).tolist() == [[0.0, 6.75]]
        assert eqx.tree_equal(driver.inputs_of(again), driver.inputs_of(state))


def _guessing(driver: GymnasiumDriver) -> Any:
    from dataclasses import replace

    return replace(driver.task, guessed=True)


@pytest.mark.parametrize("hidden", [(8, 8), ()])
def test_new_knots_keep_what_was_learned(hidden: tuple[int, ...]) -> None:
    inputs = Inputs.of(spaces.Discrete(3), time_knots=np.arange(4.0), knots=np.array([0.0, 1.0, 2.0, 3.0, 4.0]))
    agent = Agent(jax.random.key(0), inputs, actions_of(spaces.Discrete(2)), hidden=hidden, critic="q")
    moved, on = carried(agent, inputs, np.array([0.0, 2.0, 4.0, 6.0, 8.0]))
    moments = inputs.no_moments()

    def answers(agent: Agent, inputs: Inputs) -> jax.Array:
        # At the new knots, up to the end of the old ones
        seen = AugmentedObservation(jnp.array([0, 1, 2]), jnp.array([0, 1, 3]), jnp.array([0.0, 2.0, 4.0]))
        features = inputs(seen, moments)
        return jnp.concatenate([agent.actor(features), agent.critic(features)], axis=-1)

    np.testing.assert_allclose(answers(moved, on), answers(agent, inputs), atol=1e-5)
    assert float(jnp.abs(answers(agent, on) - answers(agent, inputs)).max()) > 0.1
    blind = Inputs.of(
        spaces.Discrete(3), time_knots=np.arange(4.0), knots=np.asarray(inputs.budget_knots), hide_budget=True
    )
    assert eqx.tree_equal(carried(agent, blind, np.array([0.0, 2.0, 4.0, 6.0, 8.0]))[0], agent)


# ---- rewards that are no numbers, other people's vector environments, the end ----


def test_a_reward_that_is_no_number_is_reported_at_its_step_and_spoils_nothing() -> None:
    class Faulty(Counting):
        def __init__(self, wrong: bool) -> None:
            super().__init__((4, 2))
            self._wrong = wrong

        def reward(self, episode: int, step: int) -> float:
            return float("nan") if self._wrong and (episode, step) == (1, 1) else 1.0

    copies: Iterator[bool] = iter([False, False, False, True])  # two are made to look at, then two to play in
    driver = driver_on(lambda: Faulty(next(copies)), budgets=(0.0, 4.0), rollout=4)
    _, report = advanced(driver, updates=3)
    # In the second batch, its second step: 2 · 1 + 1
    assert np.asarray(report.broken)[:, 0].tolist() == [-1, 3, -1]
    assert np.asarray(report.finite).all()


def test_weights_that_are_no_numbers_play_an_action_that_exists() -> None:
    box = spaces.Box(np.float32([1.0]), np.float32([2.0]))
    driver = driver_on(lambda: Counting((3,), box), budgets=(0.0, 9.0))
    learners = learners_of(driver)
    broken = learners._replace(agent=jax.tree.map(lambda x: x * jnp.nan, learners.agent))
    with closing(driver):
        _, report = driver.advance(driver.begin(broken, 0), 1)
    assert not np.asarray(report.finite).any()


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_vector_environment_of_the_users_learns_the_same(mode: AutoresetMode) -> None:
    """Episodes that depend on nothing are the same in all modes.

    So is what is learned, unless steps that only begin an episode have shifted the noise of the actions.
    """
    lengths = ((2, 1, 3), (3, 2))
    ours = driver_on(_alternating(*lengths), budgets=(2.0, 2.0), first_budget=(2.0, 2.0), rollout=5)
    theirs = driver_on(
        lambda: SyncVectorEnv(makers(*lengths), autoreset_mode=mode),
        budgets=(2.0, 2.0),
        first_budget=(2.0, 2.0),
        rollout=5,
    )
    (expected, told), (found, told_too) = advanced(ours, 2), advanced(theirs, 2)
    np.testing.assert_array_equal(told.payoff, told_too.payoff)
    same = bool(eqx.tree_equal(found.learner.agent, expected.learner.agent))
    assert same == (mode is not AutoresetMode.NEXT_STEP)


def _alternating(*lengths: tuple[int, ...]) -> Callable[[], Counting]:
    """Copies with lengths in turn, beginning with the third to be made: two are made to look at."""
    made = iter([lengths[0], lengths[0], *lengths])
    return lambda: Counting(next(made))


def test_a_vector_environment_has_to_be_as_wide_as_the_batch() -> None:
    driver = driver_on(lambda: SyncVectorEnv(makers((3,), (3,), (3,))), budgets=(0.0, 9.0))
    with pytest.raises(OcerlError, match="environments must be 3, got 2"), closing(driver):
        driver.begin(learners_of(driver), 0)


def test_all_environments_are_closed() -> None:
    made: list[Counting] = []

    def make() -> Counting:
        made.append(Counting((3, 1)))
        return made[-1]

    driver = driver_on(make)
    state = driver.begin(learners_of(driver, seeds=2), 0)
    driver.returns(_policy(driver, state), np.array([0.0]), 3, seed=0)
    assert sum(not env.closed for env in made) == 2 * 2 + 2
    driver.close()
    assert all(env.closed for env in made)


@pytest.mark.slow
def test_copies_may_be_processes() -> None:
    driver = driver_on("CartPole-v1", budgets=(0.0, 9.0))
    apart = GymnasiumDriver(driver.source, driver.task, driver.problem, driver.config, processes=True)
    learners = learners_of(driver)
    with closing(driver), closing(apart):
        (here, _), (there, _) = (each.advance(each.begin(learners, 0), 2) for each in (driver, apart))
        assert eqx.tree_equal(here.learner.agent, there.learner.agent)
        policy = _policy(driver, here)
        alone, aside = (each.returns(policy, np.array([5.0]), 2, seed=0) for each in (driver, apart))
    np.testing.assert_array_equal(alone, aside)
    expected = terminal_utility(driver.problem.risk, 5.0 - alone)
    assert np.isfinite(expected).all()
