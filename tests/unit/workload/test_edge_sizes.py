"""Sizes of edges in the workload formats, an optional field."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from pyarrow import parquet

import decima
from decima.core.errors import ConfigError, WorkloadError
from decima.systems.heterogeneous.sources import ClusterOptions, read_instance
from decima.workload import parquet as profile_file
from decima.workload.json_jobs import load, save
from decima.workload.profile import JobProfile
from tests.profiles import make_profile, make_stage
from tests.unit.commands.calls import refuse, succeed

STAGES = [
    {"name": "scan", "tasks": 2, "duration_ms": 1000},
    {"name": "read", "tasks": 1, "duration_ms": 500},
    {"name": "join", "tasks": 1, "parents": ["read", "scan"], "duration_ms": 300, "data_mb": [50, 80.5]},
    {"name": "sum", "tasks": 1, "parents": ["join"], "duration_ms": 100, "data_mb": 3},
]


def written(folder, stages=STAGES, name="jobs.json"):
    path = folder / name
    path.write_text(json.dumps([{"name": "etl", "stages": stages}]))
    return path


def without(*places):
    return [{key: each[key] for key in each if key != "data_mb" or at not in places} for at, each in enumerate(STAGES)]


def test_json_round_trip(tmp_path):
    workload = load(written(tmp_path))
    assert [stage.data_mb for stage in workload.jobs[0].profile.stages] == [None, None, (50, 80.5), (3,)]
    save(workload, tmp_path / "again.json")
    assert load(tmp_path / "again.json").jobs[0].profile.equals(workload.jobs[0].profile)


def test_parquet_round_trip(tmp_path):
    (profile,) = load(written(tmp_path)).universe
    silent = JobProfile("silent", load(written(tmp_path, without(2, 3))).universe[0].stages, "json")
    path = tmp_path / "profiles.parquet"
    profile_file.write_profiles([profile, silent], path)
    again = profile_file.read_profiles(path)
    assert again[0].equals(profile)
    assert again[1].equals(silent)
    assert not again[0].equals(JobProfile(profile.name, silent.stages, profile.source))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0], "stage 'join': data_mb has 1 sizes for 2 parents; expected one for each"),
        ([1.0, -1.0], "data_mb is -1.0; expected a number from 0"),
        ([1.0, float("nan")], "data_mb is nan"),
        ([1.0, 1e300], "data_mb is 1e+300"),
        (["1", 2], 'data_mb is "1"; expected a number'),
        (True, "data_mb is true; expected a number"),
    ],
)
def test_wrong_sizes(tmp_path, value, message):
    stages = [*STAGES[:2], STAGES[2] | {"data_mb": value}, STAGES[3]]
    with pytest.raises(WorkloadError, match=message.replace("+", r"\+")):
        load(written(tmp_path, stages))


def test_null_inside_a_list_of_sizes(tmp_path):
    path = tmp_path / "profiles.parquet"
    stage = replace(make_stage("b", parents=(0,)), data_mb=(1.0,))
    profile_file.write_profiles([make_profile(make_stage("a"), stage)], path)
    table = parquet.read_table(path)
    index = table.schema.get_field_index("data_mb")
    broken = pa.array([None, [None]], pa.list_(pa.float64()))
    parquet.write_table(table.set_column(index, table.schema.field(index), broken), path)
    with pytest.raises(WorkloadError, match="column data_mb holds null"):
        profile_file.read_profiles(path)


def test_plan_takes_what_the_jobs_say(tmp_path):
    path = written(tmp_path)
    for edges in (None, "own"):
        (job,) = read_instance(str(path), ClusterOptions(2), edges).jobs
        sent = {(job.nodes[a], job.nodes[b]): size for (a, b), size in zip(job.edges, job.data, strict=True)}
        assert sent == {("read", "join"): 50.0, ("scan", "join"): 80.5, ("join", "sum"): 3.0}
    drawn = read_instance(str(path), ClusterOptions(2), "ccr=1").jobs[0]
    assert drawn.data.tolist() != job.data.tolist()
    assert "takes" in succeed(
        "simulate", "--system", "heterogeneous", "--scheduler", "heft", "--jobs", path, "--executors", 2
    )


def test_plan_says_what_is_missing(tmp_path):
    path = written(tmp_path, without(3))
    with pytest.raises(ConfigError, match="have no sizes of edges; expected --edges"):
        read_instance(str(path))
    message = refuse("simulate", "--system", "heterogeneous", "--jobs", path, "--edges", "own")
    assert "job 'etl', stage 'sum' lacks the data that its parents send; expected data_mb" in message


def test_the_simulator_ignores_them(tmp_path):
    with_sizes, plain = load(written(tmp_path)), load(written(tmp_path, without(2, 3)))
    first, second = (decima.simulate(each, "fair", 2, 0).completion_ms.tolist() for each in (with_sizes, plain))
    assert first == second
