import numpy as np
import pytest
from scipy import sparse

from ocerl import OcerlError
from ocerl.mdp import from_arrays, to_arrays
from tables import table

# Two states, two actions: action 0 stays or leaves, action 1 leaves; state 1 has only action 0.
P = np.array([[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 0.0]]])


def test_rewards_may_belong_to_the_state_the_action_or_the_move():
    by_state = from_arrays(P, [1.0, 2.0])
    by_action = from_arrays(P, [[1.0, 3.0], [2.0, 9.0]])
    by_move = from_arrays(P, [[[1.0, -1.0], [9.0, 3.0]], [[9.0, 2.0], [9.0, 9.0]]])
    assert table(by_state) == {
        0: {0: [(0.5, 0, 1.0), (0.5, 1, 1.0)], 1: [(1.0, 1, 1.0)]},
        1: {0: [(1.0, 1, 2.0)]},
    }
    assert table(by_action) == {
        0: {0: [(0.5, 0, 1.0), (0.5, 1, 1.0)], 1: [(1.0, 1, 3.0)]},
        1: {0: [(1.0, 1, 2.0)]},
    }
    assert table(by_move) == {
        0: {0: [(0.5, 0, 1.0), (0.5, 1, -1.0)], 1: [(1.0, 1, 3.0)]},
        1: {0: [(1.0, 1, 2.0)]},
    }


def test_random_rewards_are_independent_of_the_next_state():
    weights = np.zeros((2, 2, 2))
    weights[:, :] = [0.25, 0.75]
    weights[1, 0] = [1.0, 0.0]
    model = from_arrays(P, ([0.0, 4.0], weights))
    assert table(model)[0] == {
        0: [(0.125, 0, 0.0), (0.375, 0, 4.0), (0.125, 1, 0.0), (0.375, 1, 4.0)],
        1: [(0.25, 1, 0.0), (0.75, 1, 4.0)],
    }
    assert table(model)[1] == {0: [(1.0, 1, 0.0)]}


def test_sparse_matrices_say_the_same_as_an_array():
    matrices = [sparse.csr_array(P[:, 0]), sparse.coo_matrix(P[:, 1])]
    assert table(from_arrays(matrices, [1.0, 2.0])) == table(from_arrays(P, [1.0, 2.0]))


def test_entries_of_a_sparse_matrix_add_up():
    twice = sparse.coo_matrix(([0.25, 0.75, 1.0], ([0, 0, 1], [1, 1, 1])), shape=(2, 2))
    assert table(from_arrays([twice], [0.0, 0.0]))[0] == {0: [(1.0, 1, 0.0)]}


def test_every_step_may_have_a_model_of_its_own():
    model = from_arrays(np.stack([P, P[::-1, :, ::-1]]), [[1.0, 2.0], [3.0, 4.0]])
    assert model.horizon == 2
    assert table(model, 1) == {
        0: {0: [(1.0, 0, 3.0)]},
        1: {0: [(0.5, 0, 4.0), (0.5, 1, 4.0)], 1: [(1.0, 0, 4.0)]},
    }
    assert from_arrays(P[np.newaxis], [[1.0, 2.0]]).horizon == 1
    weights = np.broadcast_to([0.5, 0.5], (2, 2, 2, 2))
    random = from_arrays(np.stack([P, P]), ([0.0, 1.0], weights))
    assert table(random, 1)[0][1] == [(0.5, 1, 0.0), (0.5, 1, 1.0)]


def test_arrays_of_a_model_have_its_probabilities_and_mean_rewards():
    weights = np.broadcast_to([0.25, 0.75], (2, 2, 2))
    probabilities, means = to_arrays(from_arrays(P, ([0.0, 4.0], weights)))
    assert probabilities.tolist() == P.tolist()
    assert means.tolist() == [[3.0, 3.0], [3.0, 0.0]]  # 0: the action is not there
    steps, step_means = to_arrays(from_arrays(np.stack([P, P]), [[1.0, 2.0], [3.0, 4.0]]))
    assert steps.shape == (2, 2, 2, 2)
    assert step_means[:, 0, 0].tolist() == [1.0, 3.0]


@pytest.mark.parametrize(
    ("transitions", "rewards", "message"),
    [
        (np.ones((2, 3, 3)) / 3, [0.0] * 3, r"P has shape \(2, 3, 3\), it must be \(S, A, S\).*np.moveaxis"),
        (np.eye(2), [0.0, 0.0], r"P has shape \(2, 2\), it must be \(S, A, S\) or \(H, S, A, S\)$"),
        ([["a"]], [0.0], "P is not an array of numbers"),
        (P, [0.0, None, "x"], "R is not an array of numbers"),
        (P, [0.0, 0.0, 0.0], r"R has shape \(3,\), it must be \(2,\) or \(2, 2\) or \(2, 2, 2\)"),
        (P * 0.9, [0.0, 0.0], "the probabilities of state 0, action 0 sum to 0.9, they must sum to 1"),
        (P - 0.5, [0.0, 0.0], r"P\[0, 1, 0\] is -0.5, a probability must be between 0 and 1"),
        (P * np.nan, [0.0, 0.0], r"P\[0, 0, 0\] is nan, a probability must be"),
        (P, [0.0, np.nan], "R is nan for state 1, action 0, next state 1, a reward must be a finite number"),
        (
            P,
            ([0.0, 1.0], np.ones((2, 2, 3)) / 3),
            r"R\[1\] has shape \(2, 2, 3\), it must be \(2, 2, 2\)",
        ),
        (
            P,
            ([0.0, 1.0], np.ones((2, 2, 2)) / 3),
            r"in R\[1\] of state 0, action 0 are .*, they must not be negative and sum",
        ),
        (np.stack([P, P]), [[0.0, 0.0]], "P has 2 steps and R 1"),
        ([sparse.eye_array(2), sparse.eye_array(3)], [0.0, 0.0], "must all have one shape"),
    ],
)
def test_wrong_arrays_are_refused(transitions, rewards, message):
    with pytest.raises(OcerlError, match=message):
        from_arrays(transitions, rewards)
