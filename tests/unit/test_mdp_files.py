from pathlib import Path

import pytest

from ocerl import OcerlError
from ocerl.mdp import TabularMDP, read_csv, write_csv
from tables import table

HEADER = "idstatefrom,idaction,idstateto,probability,reward\n"
GAME = HEADER + "2,1,2,0.25,-1.5\n2,1,10,0.75,3\n2,3,10,1,0\n"


@pytest.fixture
def file(tmp_path: Path):
    def write(content: str | bytes, name: str = "game.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def refusal(path: Path, **arguments: object) -> str:
    with pytest.raises(OcerlError) as caught:
        read_csv(path, **arguments)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    return message.removeprefix(str(path))


def test_every_line_is_an_outcome_and_a_state_without_lines_stays_at_no_pay(file):
    model = read_csv(file(GAME), horizon=4, discount=0.9)
    assert model.states == (2, 10)  # by number, not by text: "10" < "2"
    assert model.actions == (1, 3)
    assert table(model) == {
        2: {1: [(0.25, 2, -1.5), (0.75, 10, 3.0)], 3: [(1.0, 10, 0.0)]},
        10: {1: [(1.0, 10, 0.0)]},
    }
    assert (model.horizon, model.discount, model.name) == (4, 0.9, "game")
    assert model.start.tolist() == [1.0, 0.0]


def test_columns_may_stand_in_any_order(file):
    turned = file("reward,idstateto,probability,idstatefrom,idaction\n-1.5,2,.25,2,1\n3,10,.75,2,1\n0,10,1,2,3\n")
    assert table(read_csv(turned)) == table(read_csv(file(GAME)))


@pytest.mark.parametrize(
    "content",
    [
        GAME.replace("\n", "\r\n"),
        "\ufeff" + GAME,
        GAME.replace("\n", "\n\n"),
        GAME.replace(",", ", "),
        GAME.rstrip("\n"),
        GAME.replace("2,1,2,", '"2",1,2,'),
    ],
    ids=["windows", "byte order mark", "blank lines", "spaces", "no newline at the end", "quotes"],
)
def test_ways_in_which_a_table_is_saved_change_nothing(file, content):
    assert table(read_csv(file(content))) == table(read_csv(file(GAME)))


def test_a_line_may_repeat_with_another_reward(file):
    model = read_csv(file(HEADER + "1,1,1,0.5,0\n1,1,1,0.5,1\n"))
    assert table(model) == {1: {1: [(0.5, 1, 0.0), (0.5, 1, 1.0)]}}


def test_names_that_are_no_numbers_stay_text_in_order_of_appearance(file):
    model = read_csv(file(HEADER + "low,wait,high,1,0\nhigh,7,low,1,2\nhigh,wait,7.0,1,2\n"))
    assert model.states == ("low", "high", "7.0")
    assert model.actions == ("wait", 7)


def test_numbers_are_in_their_order_wherever_they_stand(file):
    model = read_csv(file(HEADER + "5,9,30,1,0\n5,8,3,1,0\n"))
    assert model.states == (3, 5, 30)
    assert model.actions == (8, 9)
    assert table(model)[5] == {8: [(1.0, 3, 0.0)], 9: [(1.0, 30, 0.0)]}


def test_the_start_is_the_first_line_unless_given(file):
    path = file(HEADER + "3,1,1,1,0\n1,1,3,1,0\n")
    assert read_csv(path).start.tolist() == [0.0, 1.0]
    assert read_csv(path, start=1).start.tolist() == [1.0, 0.0]


def test_a_step_column_gives_each_step_its_model_and_the_horizon(file):
    path = file("step," + HEADER + "2,1,1,1,1,5\n1,1,1,2,1,0\n")
    model = read_csv(path)
    assert model.horizon == 2
    assert table(model, 0) == {1: {1: [(1.0, 2, 0.0)]}, 2: {1: [(1.0, 2, 0.0)]}}
    assert table(model, 1) == {1: {1: [(1.0, 1, 5.0)]}, 2: {1: [(1.0, 2, 0.0)]}}
    assert "its horizon must be 2, got 3" in refusal(path, horizon=3)


def test_lines_of_all_steps_may_be_mixed(file):
    lines = [f"{step},1,1,1,0.03125,{reward}\n" for reward in range(32) for step in (2, 1)]
    model = read_csv(file("step," + HEADER + "".join(lines)))
    for step in (0, 1):
        assert [reward for _, _, reward in table(model, step)[1][1]] == list(range(32))


def test_one_step_is_a_horizon_of_one(file):
    assert read_csv(file("step," + HEADER + "1,1,1,1,1,5\n")).horizon == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ": the file is empty; the first line must be idstatefrom,idaction,idstateto,probability,reward"),
        ("\n\n", ": the file is empty"),
        (HEADER, ": there is no outcome below the first line"),
        ("idstatefrom,idaction,idstateto\n1,1,1\n", ", line 1: there is no column probability, reward;"),
        (HEADER.replace(",", ";"), "got idstatefrom;idaction;idstateto;probability;reward"),
        (HEADER[:-1] + ",steps\n1,1,1,1,0,1\n", ", line 1: unknown column 'steps'"),
        (HEADER[:-1] + ",reward\n1,1,1,1,0,1\n", ", line 1: there are two columns reward"),
        (GAME + "2,4,2,1\n", ", line 5: got 4 fields, the first line has 5"),
        (GAME + "2,4,2,1,0,0\n", ", line 5: got 6 fields, the first line has 5"),
        (GAME + "2,4,2,one,0\n", ", line 5: the probability is 'one', it must be a number"),
        (GAME + "2,4,2,1,\n", ", line 5: the reward is '', it must be a number"),
        (GAME + "2,4,2,nan,0\n", ", line 5: the probability is nan, it must be a finite number"),
        (GAME + "2,4,2,1,-inf\n", ", line 5: the reward is -inf, it must be a finite number"),
        (
            GAME + "2,4,2,-0.5,0\n2,4,2,1.5,0\n",
            ", line 5: the probability is -0.5, it must be between 0 and 1",
        ),
        (GAME + "2,4,2,1.5,0\n", ", line 5: the probability is 1.5, it must be between 0 and 1"),
        (GAME + "2,,2,1,0\n", ", line 5: the idaction is empty"),
        (GAME + '"a\nb",1,2,1,0\n2,4,2,x,0\n', ", line 7: the probability is 'x'"),
        (GAME + "\n\n2,4,2,x,0\n", ", line 7: the probability is 'x'"),
        (
            GAME + "2,4,2,0.7,0\n2,4,2,0.2,0\n",
            ": the probabilities of state 2, action 4 sum to 0.9, they must",
        ),
        (GAME + "2,4,2,0,0\n", ": the probabilities of state 2, action 4 sum to 0, they must"),
        (
            "step," + HEADER + "0,1,1,1,1,0\n",
            ", line 2: the step is 0, it must be a whole number of at least 1",
        ),
        ("step," + HEADER + "1.5,1,1,1,1,0\n", ", line 2: the step is 1.5, it must be a whole number"),
        ("step," + HEADER + "inf,1,1,1,1,0\n", ", line 2: the step is inf, it must be a whole number"),
        ("step," + HEADER + "1,1,1,1,1,0\n3,1,1,1,1,0\n", ": no line for step 2, but for step 3"),
        ("step," + HEADER + "1,1,1,1,1,0\n2,1,1,1,.5,0\n", "state 1, action 1 in step 2 sum to 0.5"),
        (GAME.encode() + b"2,\xe9,2,1,0\n", ", line 5: not UTF-8 text"),
        (GAME + '2,4,2,1,"' + 200_000 * "x" + '"\n', ": not a CSV file, field larger than field limit"),
    ],
)
def test_a_wrong_file_is_refused_with_file_line_and_reason(file, content, message):
    assert message in refusal(file(content))


def test_what_is_no_file_is_refused(tmp_path):
    assert refusal(tmp_path / "none.csv") == ": there is no such file or folder"
    assert refusal(tmp_path) == " is a folder, a model is a CSV file"


def test_a_start_that_is_not_there_is_refused(file):
    assert "there is no state 99 to start in; the model has 2 states: 2, 10" in refusal(file(GAME), start=99)


def test_written_files_are_as_expected(tmp_path):
    coin = {"play": {"bet": [(0.1, "play", 0.1), (0.9, "end", -1.0)]}}
    write_csv(TabularMDP.from_outcomes(coin), tmp_path / "coin.csv")
    assert (tmp_path / "coin.csv").read_text() == (
        HEADER + "play,bet,play,0.1,0.1\nplay,bet,end,0.9,-1.0\nend,bet,end,1.0,0.0\n"
    )


def test_names_that_a_file_cannot_tell_apart_are_not_written(tmp_path):
    path = tmp_path / "twins.csv"
    twins = TabularMDP.from_outcomes({1: {"go": [(1.0, "1", 0.0)]}})
    with pytest.raises(OcerlError, match="the states 1 and '1' would be one in a file: rename one"):
        write_csv(twins, path)
    nameless = TabularMDP.from_outcomes({1: {" ": [(1.0, 1, 0.0)]}})
    with pytest.raises(OcerlError, match="the action ' ' would have no name in a file"):
        write_csv(nameless, path)
    assert not path.exists()


def test_a_folder_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "missing" / "game.csv"
    model = TabularMDP.from_outcomes({1: {1: [(1.0, 1, 0.0)]}})
    with pytest.raises(OcerlError, match="there is no such file or folder"):
        write_csv(model, path)


def test_many_names_and_lines_take_the_same_way_as_few(file):
    """Text names are read in chunks; numbers all at once. Both must give the same model, beyond one chunk."""
    count = 2_500
    lines = [f"{i},1,{(i + 1) % count},1,{i}\n" for i in range(count)]
    numbers = read_csv(file(HEADER + "".join(lines)))
    texts = read_csv(file(HEADER + "".join(f"s{line}".replace(",1,", ",1,s", 1) for line in lines)))
    assert numbers.states == tuple(range(count))
    assert texts.states == tuple(f"s{i}" for i in range(count))
    for part in ("action", "next_state", "reward", "outcome_start"):
        assert getattr(numbers.steps[0], part).tolist() == getattr(texts.steps[0], part).tolist()
    wrong = HEADER + "".join(lines) + "s,1,0,oops,0\n"
    assert refusal(file(wrong)).startswith(f", line {count + 2}: the probability is 'oops'")
