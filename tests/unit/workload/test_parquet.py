from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from decima.core.errors import WorkloadError
from decima.workload.parquet import read_profiles, write_profiles
from tests.profiles import make_profile, make_stage


@pytest.fixture
def path(profiles, tmp_path):
    path = tmp_path / "profiles.parquet"
    write_profiles(profiles, path, {"note": "made for a test"})
    return path


def rewrite(path, **columns):
    """Replace whole columns of a file and keep the metadata."""
    table = parquet.read_table(path)
    for name, values in columns.items():
        index = table.schema.get_field_index(name)
        field = table.schema.field(name)
        table = table.set_column(index, field, pa.array(values, type=field.type))
    parquet.write_table(table, path)


def refuse(path, message):
    with pytest.raises(WorkloadError, match=message):
        read_profiles(path)


def asking(name, memory=None, cpu=1.0, data_mb=None):
    return replace(make_stage(name), memory=memory, cpu=cpu, data_mb=data_mb)


@pytest.mark.parametrize(
    ("stage", "columns"),
    [
        (asking("a"), []),
        (asking("a", memory=0.3), ["memory"]),
        (asking("a", cpu=0.5), ["cpu"]),
        (asking("a", memory=np.float32(0.5), cpu=2), ["memory", "cpu"]),
        (asking("a", memory=1e-300, cpu=4.0, data_mb=()), ["data_mb", "memory", "cpu"]),
    ],
)
def test_requests_of_stages_have_columns_where_a_stage_says_so(tmp_path, stage, columns):
    job = make_profile(asking("plain"), stage)
    path = tmp_path / "requests.parquet"
    write_profiles([make_profile(), job], path)
    assert parquet.read_schema(path).names[11:] == columns
    plain, read = read_profiles(path)
    assert plain.equals(make_profile())
    assert read.equals(job)
    assert [stage.request for stage in read.stages] == [stage.request for stage in job.stages]


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("memory", [0.0, None], r"job 'job', stage 'a': memory is 0\.0; expected a finite number above 0"),
        ("memory", [0.5, -1.0], "stage 'b': memory is -1.0; expected a finite number above 0"),
        ("memory", [float("nan"), 0.5], "stage 'a': memory is nan; expected a finite number above 0"),
        ("cpu", [float("inf"), 1.0], "stage 'a': cpu is inf; expected a finite number above 0"),
        ("cpu", [2.0, None], "column cpu holds null; expected a value everywhere"),
    ],
)
def test_bad_requests_are_refused_by_name(tmp_path, column, values, message):
    path = tmp_path / "requests.parquet"
    write_profiles([make_profile(asking("a", memory=0.5, cpu=2.0), asking("b"))], path)
    rewrite(path, **{column: values})
    refuse(path, rf"requests\.parquet: .*{message}")


def test_no_profile_writes_no_file(tmp_path):
    with pytest.raises(WorkloadError, match="no job profile to write"):
        write_profiles([], tmp_path / "none.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: pa.table({"a": [1]}), "not one of job profiles"),
        (
            lambda table: table.replace_schema_metadata(table.schema.metadata | {b"decima.version": b"99"}),
            "format version '99'; this release reads '1'",
        ),
        (lambda table: table.drop_columns(["rest_ms"]), r"columns are .*expected .*rest_ms"),
        (lambda table: table.slice(0, 0), r"profiles\.parquet: the file has no rows; expected one per stage"),
    ],
)
def test_other_tables_are_refused(path, change, message):
    parquet.write_table(change(parquet.read_table(path)), path)
    refuse(path, message)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("num_tasks", [7, -1, 2, 2, 2], "job 'etl', stage 'join': num_tasks is -1"),
        ("parents", [[1], [0], [], [1], []], "job 'etl': stages form a cycle"),
        ("stage", ["scan", None, "a", "last", "start"], "column stage holds null"),
        ("job_index", [0, 5, 1, 2, 2], "do not count up from 0"),
        ("stage_index", [0, 5, 1, 2, 2], "do not count up from 0"),
        ("stage_index", [1, 1, 1, 1, 1], "job_index and stage_index do not count"),
        ("source", ["test", "other", "test", "test", "test"], "the rows of job 'etl' differ in column source"),
        ("levels", [[5, 10**8], [1], [5], [5], [5]], "job 'etl', stage 'scan': profile level 100000000"),
    ],
)
def test_columns_that_do_not_fit_are_named_with_the_file(profiles, path, column, values, message):
    rewrite(path, **{column: values})
    if "count" in message:
        refuse(path, rf"profiles\.parquet: .*{message}")
        return
    with pytest.warns(UserWarning, match=rf"profiles\.parquet: 1 of 3 jobs left out: .*{message}"):
        assert [profile.name for profile in read_profiles(path)] == [profile.name for profile in profiles[1:]]
    parquet.write_table(parquet.read_table(path).slice(0, 2), path)
    refuse(path, rf"profiles\.parquet: .*{message}")  # nothing else is there


def test_a_stage_without_tasks_passes_its_parents_on(path, profiles):
    rewrite(path, num_tasks=[7, 2, 2, 2, 0])  # the last stage is the parent of the one before it
    assert profiles[2].stages[0].parents == (1,)
    (stage,) = read_profiles(path)[2].stages
    assert (stage.name, stage.parents) == (profiles[2].stages[0].name, ())
