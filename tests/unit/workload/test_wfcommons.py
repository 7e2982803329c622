"""Workflows of WfCommons as jobs of the Spark cluster."""

import json

import pytest

import decima
from decima.core.errors import WorkloadError
from tests.unit.systems.heterogeneous.test_data import NEW, OLD


@pytest.mark.parametrize("body", [OLD, NEW])
def test_a_workflow_is_a_job_with_a_stage_of_one_task_per_task(body, tmp_path):
    path = tmp_path / "flow.json"
    path.write_text(json.dumps(body))
    (job,) = decima.load(path).jobs
    assert [(stage.name, stage.num_tasks, stage.parents) for stage in job.profile.stages] == [
        ("t1", 1, ()),
        ("t2", 1, (0,)),
    ]
    assert job.profile.stages[1].data_mb == (2.0,)
    assert job.profile.name == body["name"]
    result = decima.simulate(str(path), "fifo", executors=1, moving_delay_ms=0.0)
    assert result.makespan_s == pytest.approx(13.5)


def test_it_can_be_saved_and_read_again(tmp_path):
    path = tmp_path / "flow.json"
    path.write_text(json.dumps(NEW))
    decima.workload.save(decima.load(path), tmp_path / "jobs.json")
    assert decima.load(tmp_path / "jobs.json").jobs[0].profile.equals(decima.load(path).jobs[0].profile)


def test_a_mistake_names_the_file(tmp_path):
    path = tmp_path / "flow.json"
    path.write_text(json.dumps(NEW | {"schemaVersion": "2.0"}))
    with pytest.raises(WorkloadError, match=r"flow.json: workflow: version '2.0' of WfFormat is unknown"):
        decima.load(path)
