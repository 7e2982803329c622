import json
import os
import re
from pathlib import Path

import pytest

import decima
from decima.core.errors import DataUnavailableError, WorkloadError
from decima.workload import Job, Workload, load, parquet, save, tpch_profile
from tests.profiles import make_profile

SIMPLE = """[
  {"name": "etl",
   "stages": [
     {"name": "scan", "tasks": 10, "duration_ms": 1200},
     {"name": "sort", "tasks": 4, "parents": ["scan"], "duration_ms": {"fresh": 900, "rest": [300, 350.5]}},
     {"name": "write", "tasks": 1, "parents": [0, 1],
      "durations": {"20": {"fresh": [1000], "first": 700}, "5": [600, 650]}}
   ]},
  {"arrival_ms": 2500, "stages": [{"tasks": 3, "duration_ms": 0}]}
]
"""


def write(folder, content, name="jobs.json"):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def sharing(workload):
    """Which jobs share a profile."""
    return [workload.profiles.index(job.profile) for job in workload.jobs]


def same(one, two):
    return (
        one.label == two.label
        and [job.name for job in one.jobs] == [job.name for job in two.jobs]
        and one.arrival_ms.tolist() == two.arrival_ms.tolist()
        and one.initial.tolist() == two.initial.tolist()
        and sharing(one) == sharing(two)
        and all(a.equals(b) for a, b in zip(one.profiles, two.profiles, strict=True))
    )


def test_a_dozen_lines_are_enough(tmp_path):
    assert len(SIMPLE.splitlines()) <= 12
    workload = load(write(tmp_path, SIMPLE, "my jobs.json"))
    assert workload.label == "my jobs"
    etl, second = workload.jobs
    scan, sort, out = etl.profile.stages
    assert (etl.name, etl.profile.source) == ("etl", "json")
    assert (scan.name, scan.num_tasks, scan.parents, scan.levels) == ("scan", 10, (), (1,))
    assert [wave[0].tolist() for wave in (scan.fresh, scan.first, scan.rest)] == [[1200.0]] * 3
    assert [wave[0].tolist() for wave in (sort.fresh, sort.first, sort.rest)] == [[900.0], [], [300.0, 350.5]]
    assert (sort.parents, out.parents, out.levels) == ((0,), (0, 1), (5, 20))
    assert [array.tolist() for array in out.fresh] == [[600.0, 650.0], [1000.0]]
    assert [array.tolist() for array in out.first] == [[600.0, 650.0], [700.0]]
    assert [array.tolist() for array in out.rest] == [[600.0, 650.0], []]
    assert (etl.initial, etl.arrival_ms, second.initial, second.arrival_ms) == (True, 0.0, False, 2500.0)
    assert (second.name, second.profile.stages[0].name) == ("job-1", "0")


def test_jobs_may_share_a_profile(tmp_path):
    content = {
        "label": "nightly",
        "profiles": {"p": {"stages": [{"tasks": 1, "duration_ms": 5}]}},
        "jobs": [
            {"profile": "p"},
            {"profile": "p", "arrival_ms": 10, "name": "late"},
            {"profile": "p", "initial": False},
        ],
    }
    workload = load(write(tmp_path, content))
    assert workload.label == "nightly"
    assert len(workload.profiles) == 1
    assert [job.name for job in workload.jobs] == ["p", "late", "p"]
    assert workload.initial.tolist() == [True, False, False]


def round_trip(workload, folder):
    """What is read of a workload that was saved."""
    save(workload, folder / "saved.json")
    return load(folder / "saved.json")


def test_tpch_jobs_are_references(tmp_path, tpch_data):
    content = [
        {"size": "10g", "query": 9, "arrival_ms": 0, "initial": True},
        {"size": "2g", "query": 1, "arrival_ms": 4.5},
    ]
    workload = load(write(tmp_path, content))
    assert workload.profiles == (tpch_profile("10g", 9), tpch_profile("2g", 1))
    assert same(round_trip(workload, tmp_path), workload)
    assert json.loads((tmp_path / "saved.json").read_text())["jobs"] == [
        {"size": "10g", "query": 9, "arrival_ms": 0, "initial": True},
        {"size": "2g", "query": 1, "arrival_ms": 4.5, "initial": False},
    ]


def test_parquet_of_profiles_is_a_batch(tmp_path):
    path = tmp_path / "mine.parquet"
    parquet.write_profiles([make_profile(name="a"), make_profile(name="b")], path)
    workload = load(path)
    assert workload.label == "mine"
    assert [job.name for job in workload.jobs] == ["a", "b"]
    assert workload.initial.all()


def stage(**change):
    body = {"name": "s", "tasks": 2, "duration_ms": 5} | change
    return [{"name": "etl", "stages": [{"name": "ok", "tasks": 1, "duration_ms": 1}, body]}]


IN_STAGE = {
    "negative tasks": (stage(tasks=-1), "num_tasks is -1"),
    "text for tasks": (stage(tasks="2"), "num_tasks is '2'"),
    "negative duration": (stage(duration_ms=[1, -2]), "duration -2.0 ms"),
    "text for duration": (stage(duration_ms="5"), 'duration is "5"; expected a number'),
    "true for duration": (stage(duration_ms=[True]), "duration is true; expected a number"),
    "endless duration": (stage(duration_ms=10**400), "too large"),
    "no wave": (stage(duration_ms={}), "level 1 is missing"),
    "unknown wave": (stage(duration_ms={"last": 5}), "unknown key 'last'; expected fresh, first, rest"),
    "unknown key": (stage(paernts=[0]), "unknown key 'paernts'; expected tasks, name, parents"),
    "both": (stage(durations={"5": 1}), "exactly one of 'duration_ms' and 'durations'"),
    "dangling name": (stage(parents=["nope"]), "parent 'nope' does not exist; expected one of ['ok', 's']"),
    "dangling index": (stage(parents=[7]), "parent 7 does not exist"),
    "fractional parent": (stage(parents=[0.5]), "parent is 0.5; expected an integer"),
    "parents not a list": (stage(parents="ok"), 'parents is "ok"; expected a list'),
    "zero memory": (stage(memory=0), "memory is 0; expected a finite number above 0"),
    "NaN memory": (stage(memory=float("nan")), "memory is nan"),
    "text for memory": (stage(memory="much"), 'memory is "much"; expected a number'),
}


@pytest.mark.parametrize(("content", "message"), IN_STAGE.values(), ids=IN_STAGE)
def test_error_names_file_job_and_stage(tmp_path, content, message):
    with pytest.raises(WorkloadError) as caught:
        load(write(tmp_path, content))
    for part in ("jobs.json", "'etl'", "stage 's'", message):
        assert part in str(caught.value)


def levels(durations):
    return [{"name": "etl", "stages": [{"name": "s", "tasks": 2, "durations": durations}]}]


ELSEWHERE = {
    "empty list": ([], "'jobs' has no jobs"),
    "a number": (5, "the content is 5; expected an object"),
    "no jobs key": ({"label": "x"}, "key 'jobs' is missing; got label"),
    "unknown top key": ({"jobs": [], "lable": "x"}, "unknown key 'lable'"),
    "job not an object": ([5], "job 0: entry is 5; expected an object"),
    "nothing in a job": ([{}], "job 0: key 'size' is missing; got none"),
    "no query": ([{"size": "2g"}], "job 0: key 'query' is missing"),
    "unknown size": ([{"size": "3g", "query": 1}], "job 0: TPC-H size '3g' is unknown"),
    "unknown query": ([{"size": "2g", "query": 23}], "job 0: TPC-H query 23 is unknown; expected 1 to 22"),
    "text for query": ([{"size": "2g", "query": "9"}], 'job 0: query is "9"; expected an integer'),
    "typo in a job": ([{"size": "2g", "query": 9, "arrival": 5}], "job 0: unknown key 'arrival'"),
    "stages empty": ([{"stages": []}], "job 'job-0' has no stages"),
    "stages not a list": ([{"stages": {}}], "job 0: stages is an object; expected a list"),
    "stage not an object": ([{"stages": [7]}], "job 0: stage is 7"),
    "negative request": ([stage()[0] | {"requests": [1, -1]}], "stage 's': memory is -1.0"),
    "too few requests": ([stage()[0] | {"requests": [1]}], "of each of 2 stages"),
    "unknown profile": ([{"profile": "p"}], "job 0: profile 'p' is not defined; the file defines []"),
    "level not a number": (levels({"five": 5}), "'etl'), stage 's': profile level 'five'"),
    "level zero": (levels({"0": 5}), "'etl'), stage 's': profile level '0'"),
    "surrogate for a name": ([{"name": "\ud800", "stages": [{"tasks": 1, "duration_ms": 1}]}], "name is '\\ud800'"),
    "surrogate for a key": ([{"\ud800": 1}], "key '\\ud800' is not Unicode text"),
    "missing level": (levels({"5": 1, "20": {"rest": []}}), "job 'etl', stage 's': profile level 20 is missing"),
}


@pytest.mark.parametrize(("content", "message"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_error_outside_a_stage(tmp_path, content, message):
    with pytest.raises(WorkloadError) as caught:
        load(write(tmp_path, content))
    assert message in str(caught.value)
    assert "jobs.json" in str(caught.value)


GOOD = {"name": "good", "stages": [{"tasks": 1, "duration_ms": 5}]}
MEMBERS = {name: (content[0] if isinstance(content, list) else content, part)
           for name, (content, part) in (IN_STAGE | ELSEWHERE).items()
           if isinstance(content, list) and len(content) == 1 and "surrogate" not in name}  # fmt: skip


@pytest.mark.parametrize(("entry", "message"), MEMBERS.values(), ids=MEMBERS)
def test_a_malformed_job_is_left_out_and_named(tmp_path, entry, message):
    path = write(tmp_path, {"jobs": [entry, GOOD, GOOD]})
    with pytest.warns(UserWarning, match=r"jobs\.json: 1 of 3 jobs left out: ") as caught:
        assert [job.name for job in load(path).jobs] == ["good", "good"]
    assert message in str(caught[0].message)


def test_a_malformed_profile_is_that_of_its_jobs(tmp_path):
    profiles = {"bad": {"stages": [{"tasks": -1, "duration_ms": 1}]}, "fine": {"stages": GOOD["stages"]}}
    jobs = [{"profile": "bad"}, {"profile": "fine"}, {"profile": "bad", "arrival_ms": 3}]
    with pytest.warns(UserWarning, match=r"2 of 3 jobs left out: job 0: job 'bad', .*; job 2: job 'bad'"):
        assert len(load(write(tmp_path, {"profiles": profiles, "jobs": jobs}))) == 1
    with pytest.raises(WorkloadError, match=r"jobs\.json: none of 2 jobs can be read; the first: job 0: job 'bad'"):
        load(write(tmp_path, {"profiles": profiles, "jobs": [jobs[0], jobs[2]]}))


def test_stages_without_tasks_are_passed_over(tmp_path):
    """a -> none -> b and a -> b: what the empty stage sends is nothing, and its parents are those of its children."""
    stages = [
        {"name": "b", "tasks": 1, "duration_ms": 1, "parents": ["none", "a", "none2"], "data_mb": [7, 3, 9]},
        {"name": "none", "tasks": 0, "parents": ["a"], "data_mb": 5},
        {"name": "none2", "tasks": 0, "parents": ["none", "c"], "data_mb": [1, 1], "duration_ms": []},
        {"name": "a", "tasks": 2, "duration_ms": 4},
        {"name": "c", "tasks": 3, "duration_ms": 0},
    ]
    job = {"name": "etl", "stages": stages, "requests": [0.1, 0.2, 0.3, 0.4, 0.5]}
    loaded = load(write(tmp_path, [job])).jobs[0]
    b, a, c = loaded.profile.stages
    assert (b.name, a.name, c.name) == ("b", "a", "c")
    assert dict(zip(b.parents, b.data_mb, strict=True)) == {1: 3.0, 2: 0.0}
    assert loaded.requests[:, 0].tolist() == [0.1, 0.4, 0.5]
    assert decima.simulate(load(tmp_path / "jobs.json"), executors=2).avg_jct_s > 0.0
    empty = {"name": "empty", "stages": [{"tasks": 0}]}
    with pytest.warns(UserWarning, match="1 of 2 jobs left out: job 'empty' has no tasks"):
        assert len(load(write(tmp_path, [GOOD, empty]))) == 1
    with pytest.raises(WorkloadError, match="job 'empty' has no tasks; expected at least one"):
        load(write(tmp_path, [empty]))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"arrival_ms": -1}, r"job 0 \('etl'\): .*arrival_ms is -1"),
        ({"arrival_ms": float("nan")}, "arrival_ms is nan"),
        ({"arrival_ms": "0"}, 'arrival_ms is "0"; expected a number'),
        ({"arrival_ms": 10**400}, "arrival_ms is 1000"),
        ({"arrival_ms": 5, "initial": True}, r"initial, yet it arrives at 5\.0 ms"),
        ({"initial": 1}, "initial is 1; expected true or false"),
        ({"name": 5}, "name is 5; expected a string"),
    ],
)
def test_bad_arrival(tmp_path, entry, message):
    content = [{"name": "etl", "stages": [{"tasks": 1, "duration_ms": 1}]} | entry]
    with pytest.raises(WorkloadError, match=message):
        load(write(tmp_path, content))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[\n{"size": "2g",}\n]', r"line 2, column 1\d: "),
        ("", "line 1, column 1: "),
        ('[{"size": "2g", "size": "5g", "query": 1}]', "key 'size' is given twice"),
        ("[" * 100_000, "not JSON text"),
        ("[" + "9" * 5000 + "]", "not JSON text"),
        (b"\xff\xfe\x00", r"jobs\.json: not JSON text"),
    ],
)
def test_malformed_json(tmp_path, text, message):
    (tmp_path / "jobs.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(WorkloadError, match=message):
        load(tmp_path / "jobs.json")


def test_other_paths_are_refused(tmp_path):
    with pytest.raises(DataUnavailableError, match=r"cannot read workload file .*none\.json"):
        load(tmp_path / "none.json")
    with pytest.raises(WorkloadError, match=r"such as x\.json"):
        save(Workload((Job(make_profile()),), "x"), tmp_path / "x.parquet")


def test_interrupted_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = write(tmp_path, SIMPLE)

    def die(handle):
        raise KeyboardInterrupt

    workload = load(path)
    monkeypatch.setattr(os, "fsync", die)
    with pytest.raises(KeyboardInterrupt):
        save(workload, path)
    assert path.read_text() == SIMPLE
    assert list(tmp_path.iterdir()) == [path]


def test_examples_of_the_documentation_load(tmp_path):
    text = (Path(__file__).parents[3] / "docs" / "workload-format.md").read_text(encoding="utf-8")
    examples = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    assert len(examples) == 2
    first, second = (load(write(tmp_path, example)) for example in examples)
    assert [stage.name for stage in first.profiles[0].stages] == ["scan", "sort", "write"]
    assert (second.label, len(second.profiles), second.arrival_ms.tolist()) == ("nightly", 1, [0.0, 60000.0])
