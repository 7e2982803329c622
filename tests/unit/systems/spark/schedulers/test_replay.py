"""Replay drives a state by logged decisions, also where the frontier is empty."""

import json

import pytest

from decima.core.errors import DataUnavailableError, InvalidDecisionError
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.schedulers.replay import read_decisions
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import ClusterState
from decima.systems.spark.system import run_state
from decima.systems.spark.tables import WorkloadTables
from decima.workload import Job, Workload
from tests.profiles import make_profile, make_stage

CHAIN = make_profile(make_stage("a", 3), make_stage("b", 2, parents=(0,)))
JOBS = Workload((Job(CHAIN), Job(CHAIN, 4500.0)), "test")


def new_state(settings):
    return ClusterState(WorkloadTables(JOBS, settings), settings, log_decisions=True)


def logged(state):
    rows = state.logged_decisions.tolist()
    return [
        tuple(None if column < 2 and value < 0 else int(value) for column, value in enumerate(row[4:7])) for row in rows
    ]


def replay(state, decisions, folder):
    """Run a fresh state by these decisions."""
    path = folder / "decisions.json"
    path.write_text(json.dumps(decisions))
    with make_scheduler(f"replay:{path}") as scheduler:
        run_state(state, scheduler, 0)


@pytest.mark.parametrize("mode", ["paper", "released", "simplified"])
@pytest.mark.parametrize("scheduler", ["random", "fifo"])
def test_a_log_repeats_its_run(mode, scheduler, tmp_path):
    settings = Settings.of_mode(mode, executors=4)
    first, second = new_state(settings), new_state(settings)
    run_state(first, make_scheduler(scheduler), 0)
    decisions = logged(first)
    assert any(stage is None for _, stage, _ in decisions) or mode != "released"
    replay(second, decisions, tmp_path)
    assert logged(second) == decisions
    assert second.job_finish_ms.tolist() == first.job_finish_ms.tolist()
    assert second.busy_ms == first.busy_ms


def test_too_few_and_too_many_decisions(tmp_path):
    settings = Settings.released(executors=2, durations="mean")
    state = new_state(settings)
    run_state(state, make_scheduler("released_fair"), 0)
    decisions = logged(state)
    with pytest.raises(InvalidDecisionError, match=rf"asks for decision {len(decisions) - 1} at .* are logged"):
        replay(new_state(settings), decisions[:-1], tmp_path)
    with pytest.raises(
        InvalidDecisionError, match=rf"{len(decisions) + 1} decisions are logged, but the run ended after"
    ):
        replay(new_state(settings), [*decisions, decisions[-1]], tmp_path)


def test_rows_of_three_and_of_eight(tmp_path):
    path = tmp_path / "decisions.json"
    path.write_text("[[1, 2, 3], [0.5, null, 7, 4, null, null, 7, 7], [0.5, 0, 7, 4, 5, 6, 7, 2]]")
    assert read_decisions(path) == [(1, 2, 3, 0, -1), (None, None, 7, 0, -1), (5, 6, 7, 0, -1)]
    path.write_text('{"decisions": [[null, null, 3]], "avg_jct_ms": 5}')
    assert read_decisions(path) == [(None, None, 3, 0, -1)]
    path.write_text("[[1, 2, 3, 4.5], [0.5, 0, 7, 4, 5, 6, 7, 0, 2000.0]]")
    assert read_decisions(path) == [(1, 2, 3, 4.5, -1), (5, 6, 7, 2000.0, -1)]
    path.write_text("[[1, 2, 3, 4, 5, 6]]")
    message = r"decision 0 is \[1, 2, 3, 4, 5, 6\]; expected \[job, stage, limit\] and if wanted delay_ms"
    with pytest.raises(InvalidDecisionError, match=message):
        read_decisions(path)
    with pytest.raises(DataUnavailableError, match="No such file"):
        read_decisions(tmp_path / "no.json")


def test_parts_that_came_later_have_their_defaults(tmp_path):
    path = tmp_path / "decisions.json"
    path.write_text("[[1, 2, 3], [1, 2, 3, 0, 4], [0.5, 0, 7, 4, 5, 6, 7, 2], [0.5, 0, 7, 4, 5, 6, 7, 2, 0, 9]]")
    assert read_decisions(path) == [(1, 2, 3, 0, -1), (1, 2, 3, 0, 4), (5, 6, 7, 0, -1), (5, 6, 7, 0, 9)]
    for wrong in ("0, -2", "-1, 4", "NaN, 4", "true, 4"):
        path.write_text(f"[[1, 2, 3, {wrong}]]")
        with pytest.raises(InvalidDecisionError, match=r"decision 0 is \[1, 2, 3, .*\]; expected whole numbers"):
            read_decisions(path)
    path.write_text("[[1, 2, 3, 0, -2]]")
    with pytest.raises(InvalidDecisionError, match=r"decision 0 is \[1, 2, 3, 0, -2\]; expected whole numbers"):
        read_decisions(path)
