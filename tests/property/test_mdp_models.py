"""What is read, written, generated and converted stays one and the same model."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ocerl.mdp import TabularMDP, from_arrays, random_mdp, read_csv, to_arrays, write_csv
from tables import Table, table

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)
NUMBERS = st.integers(-(10**6), 10**6)
WORDS = st.text("abc xyzé,\"'\n", min_size=1).map(str.strip).filter(bool)


@st.composite
def outcome_tables(draw: st.DrawFn, names: st.SearchStrategy[object]) -> Table:
    """A table whose probabilities are binary fractions, so that they sum to 1 exactly."""
    states = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    actions = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    written: Table = {}
    for state in states:
        written[state] = {}
        for action in draw(st.lists(st.sampled_from(actions), unique=True)):
            cuts = sorted(draw(st.lists(st.integers(1, 63), max_size=3, unique=True)))
            weights = np.diff([0, *cuts, 64]) / 64
            written[state][action] = [
                (float(weight), draw(st.sampled_from(states)), draw(FINITE)) for weight in weights
            ]
    if not any(written.values()):
        written[states[0]] = {actions[0]: [(1.0, states[0], draw(FINITE))]}
    return written


def completed(written: Table, actions: tuple[object, ...]) -> Table:
    """With what `TabularMDP` promises for states without actions: the first action stays and pays nothing."""
    return {state: by_action or {actions[0]: [(1.0, state, 0.0)]} for state, by_action in written.items()}


@settings(max_examples=40)
@given(outcome_tables(NUMBERS | WORDS))
def test_a_model_has_the_outcomes_it_was_given(written):
    model = TabularMDP.from_outcomes(written)
    assert table(model) == completed(written, model.actions)


@settings(max_examples=30)
@given(st.lists(outcome_tables(NUMBERS | WORDS), min_size=1, max_size=3))
def test_a_file_gives_back_names_probabilities_and_rewards(tmp_path_factory, written):
    path = tmp_path_factory.mktemp("models") / "model.csv"
    model = TabularMDP.from_outcomes(written)
    write_csv(model, path)
    again = read_csv(path, horizon=model.horizon)
    assert set(again.states) == set(model.states)
    assert again.horizon == model.horizon
    for step in range(len(written)):
        assert table(again, step) == table(model, step)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_a_written_file_is_written_alike_again(tmp_path_factory, seed, joint, per_step):
    """Probabilities that are no binary fractions, too: no digit changes on the way, however often."""
    folder = tmp_path_factory.mktemp("models")
    model = random_mdp(seed, horizon=3, joint=joint, continuous=True, per_step=per_step, action_sets=True, absorbing=1)
    write_csv(model, folder / "once.csv")
    write_csv(read_csv(folder / "once.csv", horizon=3), folder / "twice.csv")
    assert (folder / "once.csv").read_bytes() == (folder / "twice.csv").read_bytes()


@settings(max_examples=30)
@given(
    st.integers(0, 10**6),
    st.integers(1, 6),
    st.integers(1, 4),
    st.integers(1, 5),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_random_models_are_models(seed, states, actions, successors, joint, per_step, action_sets, neighbours):
    model = random_mdp(
        seed,
        states=states,
        actions=actions,
        successors=successors,
        joint=joint,
        per_step=per_step,
        action_sets=action_sets,
        neighbours=neighbours,
        random_start=True,
        absorbing=states - 1,
    )
    assert np.isclose(model.start.sum(), 1.0)
    for step in range(5):
        written = table(model, step)
        assert set(written) == set(range(states))
        for by_action in written.values():
            assert 1 <= len(by_action) <= actions
            for outcomes in by_action.values():
                assert np.isclose(sum(p for p, _, _ in outcomes), 1.0)
                assert all(p > 0 and r in (0.0, 1.0, 2.0) for p, _, r in outcomes)
    low, high = model.return_range()
    assert 0.0 <= low <= high <= 2.0 * 5


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_arrays_hold_what_the_outcomes_sum_to(seed, joint, per_step):
    model = random_mdp(seed, horizon=3, joint=joint, per_step=per_step, action_sets=True)
    probabilities, means = to_arrays(model)
    for step in range(len(model.steps)):
        P, R = (probabilities[step], means[step]) if per_step else (probabilities, means)
        expected_P, expected_R = np.zeros_like(P), np.zeros_like(R)
        for state, by_action in table(model, step).items():
            for action, outcomes in by_action.items():
                for p, target, reward in outcomes:
                    expected_P[state, action, target] += p
                    expected_R[state, action] += p * reward
        np.testing.assert_allclose(P, expected_P, atol=1e-12)
        np.testing.assert_allclose(R, expected_R, atol=1e-12)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.booleans())
def test_arrays_turn_into_models_and_back(seed, per_step):
    probabilities, means = to_arrays(random_mdp(seed, horizon=3, per_step=per_step, action_sets=True))
    again, means_again = to_arrays(from_arrays(probabilities, means))
    np.testing.assert_allclose(again, probabilities, atol=1e-12)
    np.testing.assert_allclose(means_again, means, atol=1e-12)


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_random_rewards_have_the_mean_and_the_distribution_they_were_given(seed):
    rng = np.random.default_rng(seed)
    P, weights = rng.dirichlet(np.ones(3), (3, 2)), rng.dirichlet(np.ones(4), (3, 2))
    values = rng.normal(size=4)
    model = from_arrays(P, (values, weights))
    np.testing.assert_allclose(to_arrays(model)[1], weights @ values, atol=1e-12)
    for state, by_action in table(model).items():
        for action, outcomes in by_action.items():
            for value, weight in zip(values, weights[state, action], strict=True):
                mass = sum(p for p, _, reward in outcomes if reward == value)
                assert np.isclose(mass, weight)
