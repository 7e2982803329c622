import pandas
import pytest

from decima.core.errors import ConfigError
from experiments.training_files import check_whole_curve, read_training_file

WHOLE = "iteration,val_greedy\n9,3.0\n19,2.5\n29,2.0\n"


@pytest.fixture
def training(tmp_path, monkeypatch):
    """``models/training`` of a folder that passes for a checkout."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "decima-sched"\n')
    (tmp_path / "params.yaml").write_text("runs: {}\n")
    folder = tmp_path / "models" / "training"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (WHOLE[:-1], "was cut short: line 4 is not whole"),
        (WHOLE[:-5], "was cut short: line 4 is not whole"),
        (WHOLE.replace("19,2.5", "19"), "was cut short: line 3 is not whole"),
        ("", "was cut short: line 0 is not whole"),
        (WHOLE.replace("val_greedy", "score"), "has no column val_greedy; expected: iteration, val_greedy"),
    ],
)
def test_files_that_are_not_whole_are_refused(training, text, message):
    (training / "some.csv").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_training_file("some.csv", ("iteration", "val_greedy"))


def test_whole_files_are_read(training):
    (training / "some.csv").write_text(WHOLE)
    assert read_training_file("some.csv", ("val_greedy",))["val_greedy"].to_list() == [3.0, 2.5, 2.0]
    with pytest.raises(ConfigError, match=r"other\.csv is missing"):
        read_training_file("other.csv", ("val_greedy",))


def test_curves_that_end_before_their_run_are_refused(training):
    curve = pandas.DataFrame({"iteration": [9, 19, 29]})
    check_whole_curve(curve, "some.csv", 30)
    check_whole_curve(curve, "some.csv", 39)  # the next validation would have been at 40
    with pytest.raises(ConfigError, match=r"some\.csv was cut short: it ends after 30 of the 40 iterations"):
        check_whole_curve(curve, "some.csv", 40)
    with pytest.raises(ConfigError, match="after 10 of the 20"):
        check_whole_curve(curve.head(1), "some.csv", 20)
