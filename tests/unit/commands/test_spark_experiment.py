"""`decima spark experiment`: what it refuses before any Spark is started."""

import pytest

from tests.unit.commands.calls import refuse


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fifo", "fifo"], "a scheduler is given twice"),
        (["slow"], "slow"),
        (["spark_fifo"], "use --control"),
        (["fifo", "--scale", -1], "scale factor -1.0: expected a positive number"),
        (["fifo", "--queries", 30], "queries must be at most 22"),
        (["fifo", "--repetitions", 0], "repetitions must be a whole number of at least 1"),
        (["decima:none-such"], "unknown policy 'none-such'"),
        (["weighted_fair:alpha=x"], "alpha is 'x'; expected a number"),
        (["weighted_fair", "--scale", 7], "measured size '7g' is unknown"),
    ],
)
def test_bad_input_is_one_sentence(arguments, message, tmp_path):
    folder = tmp_path / "out"
    assert message in refuse("spark", "experiment", *arguments, "--out", folder)
    assert not (folder / "card.json").exists()


def test_a_folder_that_is_a_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    assert "it is not a folder" in refuse("spark", "experiment", "fifo", "--out", path)


def test_a_folder_of_another_plan(tmp_path):
    path = tmp_path / "card.json"
    path.write_text('{"plan": {"scale": 1}, "limits": {}, "schedulers": {}}')
    assert "belongs to an experiment with another plan" in refuse("spark", "experiment", "fifo", "--out", tmp_path)
