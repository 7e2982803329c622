"""Replay drives a state by logged decisions, also where the frontier is empty."""

import json

import pytest

from decima.core.errors import DataUnavailableError, InvalidDecisionError
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.schedulers.replay import read_decisions
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import new_state
from decima.systems.spark.system import run_state
from decima.workload import Job, Workload
from tests.profiles import make_profile, make_stage

CHAIN = make_profile(make_stage("a", 3), make_stage("b", 2, parents=(0,)))
JOBS = Workload((Job(CHAIN), Job(CHAIN, 4500.0)), "test")


def logged(state):
    rows = state.logged_decisions.tolist()
    return [
        tuple(None if column < 2 and value < 0 else int(value) for column, value in enumerate(row[4:7])) for row in rows
    ]


def replay(state, decisions, folder):
    """Run a state by these decisions."""
    path = folder / "decisions.json"
    path.write_text(json.dumps(decisions))
    with make_scheduler(f"replay:{path}") as scheduler:
        run_state(state, scheduler, 0)


@pytest.mark.parametrize("mode", ["paper", "released", "simplified"])
@pytest.mark.parametrize("scheduler", ["random", "fifo"])
def test_a_log_repeats_its_run(mode, scheduler, tmp_path):
    settings = Settings.of_mode(mode, executors=4)
    first, second = (new_state(JOBS, settings, log_decisions=True) for _ in range(2))
    run_state(first, make_scheduler(scheduler), 0)
    decisions = logged(first)
    assert any(stage is None for _, stage, _ in decisions) or mode != "released"
    replay(second, decisions, tmp_path)
    assert logged(second) == decisions
    assert second.job_finish_ms.tolist() == first.job_finish_ms.tolist()
    assert second.busy_ms == first.busy_ms


def test_too_few_and_too_many_decisions(tmp_path):
    settings = Settings.released(executors=2, durations="mean")
    state, fresh = (new_state(JOBS, settings, log_decisions=True) for _ in range(2))
    run_state(state, make_scheduler("released_fair"), 0)
    decisions = logged(state)
    with pytest.raises(InvalidDecisionError, match=rf"asks for decision {len(decisions) - 1} at .* are logged"):
        replay(fresh, decisions[:-1], tmp_path)
    with pytest.raises(
        InvalidDecisionError, match=rf"{len(decisions) + 1} decisions are logged, but the run ended after"
    ):
        replay(fresh, [*decisions, decisions[-1]], tmp_path)


@pytest.mark.parametrize(
    ("text", "decisions"),
    [
        (
            "[[1, 2, 3], [0.5, null, 7, 4, null, null, 7, 7], [0.5, 0, 7, 4, 5, 6, 7, 2]]",
            [(1, 2, 3, 0, -1), (None, None, 7, 0, -1), (5, 6, 7, 0, -1)],
        ),
        ('{"decisions": [[null, null, 3]], "avg_jct_ms": 5}', [(None, None, 3, 0, -1)]),
        # Parts that came later have their defaults.
        ("[[1, 2, 3, 4.5], [0.5, 0, 7, 4, 5, 6, 7, 0, 2000.0]]", [(1, 2, 3, 4.5, -1), (5, 6, 7, 2000.0, -1)]),
        ("[[1, 2, 3, 0, 4], [0.5, 0, 7, 4, 5, 6, 7, 2, 0, 9]]", [(1, 2, 3, 0, 4), (5, 6, 7, 0, 9)]),
    ],
)
def test_files_of_decisions(text, decisions, tmp_path):
    path = tmp_path / "decisions.json"
    path.write_text(text)
    assert read_decisions(path) == decisions


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1, 2, 3, 4, 5, 6", r"3, 4, 5, 6\]; expected \[job, stage, limit\] and if wanted delay_ms"),
        *((f"1, 2, 3, {wrong}", "3, .*; expected whole numbers") for wrong in ("0, -2", "-1, 4", "NaN, 4", "true, 4")),
    ],
)
def test_rows_that_are_no_decisions(row, message, tmp_path):
    path = tmp_path / "decisions.json"
    path.write_text(f"[[{row}]]")
    with pytest.raises(InvalidDecisionError, match=rf"decision 0 is \[1, 2, {message}"):
        read_decisions(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DataUnavailableError, match="No such file"):
        read_decisions(tmp_path / "no.json")
