import pytest

from ocerl import OcerlError
from ocerl.mdp import load_model, zoo
from tables import table

HEADER = "idstatefrom,idaction,idstateto,probability,reward\n"


def test_a_name_from_the_zoo():
    assert table(load_model("paper")) == table(zoo.make("paper"))


def test_a_longer_game_has_the_states_of_a_longer_game():
    """The betting game lists what its rounds can reach: another horizon is another model."""
    model = load_model("betting-game", horizon=7)
    assert model.horizon == 7
    assert model.states == zoo.make("betting-game", horizon=7).states
    assert model.n_states > zoo.make("betting-game", horizon=6).n_states


@pytest.mark.parametrize("name", ["game.csv", "GAME.CSV", "game.txt"])
def test_a_file(tmp_path, name):
    path = tmp_path / name
    path.write_text(HEADER + "1,1,2,1,5\n2,1,1,1,7\n")
    model = load_model(str(path), horizon=3, discount=0.5, start="2")
    assert (model.horizon, model.discount) == (3, 0.5)
    assert model.start.tolist() == [0.0, 1.0]  # the file's states are numbers, a command line gives text
    assert load_model(str(path)).horizon is None


def test_a_gymnasium_id():
    assert load_model("FrozenLake-v1").horizon == 100
    model = load_model("CliffWalking-v1", horizon=20, start="36")
    assert (model.horizon, model.start.argmax()) == (20, 36)


def test_a_start_that_is_not_there_is_refused_as_it_was_written():
    with pytest.raises(OcerlError, match=r"there is no state 's3' to start in; the model has 3 states: s1, s2, end"):
        load_model("paper", start="s3")


def test_what_is_none_of_the_three_is_told_all_three():
    with pytest.raises(OcerlError) as caught:
        load_model("papr")
    message = str(caught.value)
    assert message.startswith("there is no model 'papr' (did you mean paper?)")
    assert all(form in message for form in (*zoo.names(), "a CSV file", "Gymnasium id"))
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "message"), [("none.csv", "no such file"), ("NoSuchThing-v0", "Gymnasium cannot make")]
)
def test_a_form_that_is_clear_gets_its_own_error(text, message):
    with pytest.raises(OcerlError, match=message):
        load_model(text)
