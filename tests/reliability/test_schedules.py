"""Random runs of every system, replayed by the oracles from their files, and proof that a wrong file is seen."""

import json

import pytest

from decima.core.system import list_systems
from tests.knobs import FIRST_SEED, RANDOM_RUNS
from tests.reliability.replays import differences
from tests.reliability.systems import CHECKED

# Seeds of one test; many make the last line of progress say more.
BLOCK = 40
END = FIRST_SEED + RANDOM_RUNS
# Keys of a result file that repeat what was given.
GIVEN = {"system", "label", "scheduler", "parameters", "settings", "seed", "decision_fields"}


def test_every_system_is_replayed():
    assert sorted(CHECKED) == list_systems()


@pytest.mark.parametrize("name", CHECKED)
@pytest.mark.parametrize("first", range(FIRST_SEED, END, BLOCK))
def test_files_of_random_runs_are_what_the_oracle_finds(name, first, tmp_path, tally):
    checked = CHECKED[name]
    subjects = checked.subjects()
    tally(f"random runs replayed by the oracle: {name}", runs=min(BLOCK, END - first))
    for seed in range(first, min(first + BLOCK, END)):
        subject = subjects[seed % len(subjects)]
        folder = tmp_path / str(seed)
        folder.mkdir()
        repeat = f"seed {seed}, {subject}: repeat with DECIMA_FIRST_SEED={seed} DECIMA_RANDOM_RUNS=1"
        try:
            files = checked.random_run(seed, subject, folder)
            found = [] if files is None else differences(*checked.replay(*files))
        except Exception as error:
            error.add_note(repeat)
            raise
        assert not found, "\n".join([repeat, *found[:20]])


GOOD = {name: (checked.replay, checked.good_run) for name, checked in CHECKED.items()}
GOOD["elastic"] = (CHECKED["spark"].replay, CHECKED["spark"].good_elastic_run)


def changes(value):
    """Copies of a value of a file, in each of which another number, truth value or missing number differs."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from (value | {key: changed} for changed in changes(each))
    elif isinstance(value, list):
        for place, each in enumerate(value[:3]):
            yield from ([*value[:place], changed, *value[place + 1 :]] for changed in changes(each))
    elif value is None or isinstance(value, (bool, int, float)):
        yield (not value) if isinstance(value, bool) else (value or 0) + 1


@pytest.mark.parametrize("name", GOOD)
def test_every_number_of_a_file_counts(name, tmp_path):
    replay, make = GOOD[name]
    files = make(tmp_path)
    assert differences(*replay(*files)) == []
    content, path = files[1].read_text(encoding="utf-8"), files[1]
    result = json.loads(content)
    if name == "elastic":
        assert min(result["losses"].values()) > 0
    for key in result.keys() - GIVEN - ({"jobs"} if name != "heterogeneous" else set()):
        for changed in changes(result[key]):
            path.write_text(json.dumps(result | {key: changed}), encoding="utf-8")
            assert wrong(replay, files), f"{key} {changed}"
    path.write_text(content, encoding="utf-8")
    for table in files[2:]:
        head, first, *rows = table.read_text(encoding="utf-8").splitlines()
        for place, number in enumerate(first.split(",")):
            if number.replace(".", "").isdigit():
                row = first.split(",")
                row[place] = str(float(number) + 1) if "." in number else str(int(number) + 1)
                table.write_text("\n".join([head, ",".join(row), *rows]) + "\n", encoding="utf-8")
                assert wrong(replay, files), head.split(",")[place]
        table.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
        assert wrong(replay, files), "a row less"


def wrong(replay, files):
    """Whether the replay sees that the files are wrong, by a difference or because it cannot be done."""
    try:
        return differences(*replay(*files))
    except Exception as error:  # a decision that cannot be carried out, a VM that is not there
        return [str(error)]
