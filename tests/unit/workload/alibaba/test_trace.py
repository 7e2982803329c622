"""Reading the Alibaba trace: names, hand-made files with every oddity, halves and thinning."""

import warnings

import numpy as np
import pytest

from decima.core.errors import ChecksumError, ConfigError, DataUnavailableError, WorkloadError
from decima.workload import alibaba_like
from decima.workload.alibaba import hour, raw
from decima.workload.alibaba.assemble import TaskName, parse_name
from decima.workload.alibaba.generator import LARGEST_DAG, generate
from decima.workload.sources import parse_jobs

# arrival, job, stage, length, plan_cpu, plan_mem, tasks
TASKS = """\
5,j_b,R3_1_2,7,100,0.3,2
5,j_b,M1,4,100,0.5,1
5,j_b,M2,4,200,2.5,3
0,j_a,R1_2,9,50,0.2,2
0,j_a,M2,6,50,0.2,1
9,j_c,J2_1_1,3,100,0.3,1
9,j_c,M1,3,100,0.3,1
9,j_c,task_x,2,100,0.3,1
7,j_lone,task_one,5,100,0.3,1
7,j_lone,task_two,5,100,0.3,1
8,j_plan,M1,5,100,,1
8,j_twice,M1,5,100,0.3,1
8,j_twice,R1,5,100,0.3,1
8,j_back,M1,-5,100,0.3,1
"""
INSTANCES = """\
5,j_b,M2,i,4,1,1
0,j_a,R1_2,i,9,1,1
5,j_b,R3_1_2,i,7,1,1
5,j_b,M2,i,0,1,1
5,j_b,M1,i,4,1,1
0,j_a,R1_2,i,8,1,1
0,j_a,M2,i,6,1,1
5,j_b,R3_1_2,i,6,1,1
5,j_b,M2,i,3,1,1
9,j_c,M1,i,3,1,1
9,j_c,J2_1_1,i,-1,1,1
3,j_unknown,M1,i,3,1,1
"""


def read(folder, tasks, instances="0,j,M1,i,1,1,1\n", **options):
    (folder / "tasks.csv").write_text(tasks)
    (folder / "instances.csv").write_text(instances)
    return hour.read_csv(folder / "tasks.csv", folder / "instances.csv", **options)


@pytest.fixture
def trace(tmp_path):
    with pytest.warns(
        UserWarning, match=r"3 of 7 jobs are read; left out: 1 jobs without plan \(j_plan\); 1 jobs with"
    ):
        return read(tmp_path, TASKS, INSTANCES, length_s=10.0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("M1", TaskName(1, (), False, False)),
        ("J4_2_3", TaskName(4, (2, 3), False, False)),
        ("R12_7_7_3", TaskName(12, (7, 3), False, True)),
        ("J9_" + "1_" * 23 + "4", TaskName(9, (1,), True, True)),
        ("J53_1_2_3_4_6_8_10_12_13_14_15_16_18_20_22_24_25_2",
         TaskName(53, (1, 2, 3, 4, 6, 8, 10, 12, 13, 14, 15, 16, 18, 20, 22, 24, 25), True, False)),
        ("task_LTg0MTUwNTA5Mjg4MDkwNjIzMA==", None),
        ("MergeTask", None),
        ("M1_x", None),
        ("J10_7_9_Stg4", TaskName(10, (7, 9), False, False)),
        ("J3_1_2_Stg4", TaskName(3, (1, 2), False, False)),
        ("R2_1_Stg1_Stg2_", TaskName(2, (1,), False, False)),
        ("M1_Stg1", TaskName(1, (), False, False)),
        ("J53_1_2_3_4_6_8_10_12_13_14_15_16_18_20_22_24_25_S",
         TaskName(53, (1, 2, 3, 4, 6, 8, 10, 12, 13, 14, 15, 16, 18, 20, 22, 24, 25), False, False)),
    ],
)  # fmt: skip
def test_names_hold_number_and_parents(name, expected):
    assert parse_name(name) == expected


def test_jobs_come_by_arrival_and_stages_behind_their_parents(trace):
    assert trace.job_names == ("j_a", "j_b", "j_c")
    assert trace.arrival_s.tolist() == [0.0, 5.0, 9.0]
    a, b, c = (trace.profile(job) for job in range(3))
    assert [(stage.name, stage.parents) for stage in a.stages] == [("M2", ()), ("R1_2", (0,))]
    assert [(stage.name, stage.parents) for stage in b.stages] == [("M1", ()), ("M2", ()), ("R3_1_2", (0, 1))]
    assert [(stage.name, stage.parents) for stage in c.stages] == [("M1", ()), ("J2_1_1", (0,)), ("task_x", ())]
    assert [stage.num_tasks for stage in b.stages] == [1, 3, 2]
    assert trace.profile(1) is b


def test_durations_are_those_of_the_instances_in_file_order(trace):
    b, c = trace.profile(1), trace.profile(2)
    assert [stage.rest[0].tolist() for stage in b.stages] == [[4000.0], [4000.0, 500.0, 3000.0], [7000.0, 6000.0]]
    # No finished instance of two stages of job c is recorded: their own lengths stand for them.
    assert [stage.first[0].tolist() for stage in c.stages] == [[3000.0], [3000.0], [2000.0]]
    assert trace.work_s.tolist() == [23.0, 4.0 + 7.5 + 13.0, 8.0]


def test_requests_are_cut_at_the_largest_executor(trace):
    assert trace.memory.tolist() == [0.2, 0.2, 0.5, 1.0, 0.3, 0.3, 0.3, 0.3]


def test_every_oddity_is_counted(trace):
    table = trace.report.table().set_index("what")
    counts = table["count"].to_dict()
    named = table["examples"][table["examples"] != ""].to_dict()
    assert named == {
        "jobs of independent tasks": "j_lone",
        "unfinished jobs": "j_back",
        "jobs without plan": "j_plan",
        "jobs with repeated stage": "j_twice",
    }
    assert counts == {
        "jobs": 3,
        "stages": 8,
        "tasks": 12,
        "edges": 4,
        "jobs of independent tasks": 1,
        "independent stages": 1,
        "unfinished jobs": 1,
        "jobs without plan": 1,
        "jobs with repeated stage": 1,
        "jobs with missing parents": 0,
        "jobs with cycles": 0,
        "malformed rows": 0,
        "cut names": 0,
        "jobs with cut names": 0,
        "repeated parents": 1,
        "jobs out of order": 2,
        "zero durations": 1,
        "requests above one": 1,
        "cpu above one": 1,
        "stages without durations": 2,
        "unfinished instances": 2,
    }


def test_halves_share_the_jobs_and_count_from_their_beginning(trace):
    train, test = trace.workload("train"), trace.workload("test")
    assert [job.name for job in train.jobs] == ["j_a"]
    assert [(job.name, job.arrival_ms) for job in test.jobs] == [("j_b", 0.0), ("j_c", 4000.0)]
    assert [job.name for job in trace.workload(n=2).jobs] == ["j_a", "j_b"]


def test_raw_files_are_read_in_blocks(tmp_path):
    """The same jobs as rows of raw files, beside some that start before or after the window."""
    tasks = [
        # name, instances, job, type, status, start, end, cpu, mem
        "R2_1,2,j_1,1,Terminated,104,109,100,0.3",
        "M1,1,j_1,1,Terminated,100,104,100,0.3",
        "M1,1,j_early,1,Terminated,99,104,100,0.3",
        "R2_1,1,j_early,1,Terminated,104,106,100,0.3",
        "M1,1,j_late,1,Terminated,110,111,100,0.3",
        "M1,1,j_2,1,Terminated,109,109,100,0.3",
        "M1,1,j_failed,1,Failed,105,106,100,0.3",
        "M1,,j_waiting,1,Waiting,0,0,100,0.3",
        "R2_1,1,j_waiting,1,Terminated,105,106,100,0.3",
        "task_q,1,j_lone,1,Terminated,105,106,100,0.3",
    ]
    instances = [
        "i,R2_1,j_1,1,Terminated,104,107,m,1,1,1,1,1,1",
        "i,M1,j_1,1,Terminated,100,104,m,1,1,1,1,1,1",
        "i,M1,j_early,1,Terminated,99,104,m,1,1,1,1,1,1",
        "i,R2_1,j_1,1,Failed,104,105,m,1,1,1,1,1,1",
        "i,R2_1,j_1,1,Terminated,105,109,m,1,1,1,1,1,1",
        "i,M1,j_2,1,Terminated,109,109,m,1,1,1,1,1,1",
    ]
    (tmp_path / raw.TASKS).write_text("\n".join(tasks) + "\n")
    (tmp_path / raw.INSTANCES).write_text("\n".join(instances) + "\n")
    unfinished = r"2 of 5 jobs are read; left out: 2 unfinished jobs \(j_failed, j_waiting\)"
    with pytest.warns(UserWarning, match=unfinished):
        whole = raw.read_raw(tmp_path, 100.0, 10.0)
    with pytest.warns(UserWarning, match=unfinished):
        blocks = raw.read_raw(tmp_path, 100.0, 10.0, block_bytes=128)
    for trace in (whole, blocks):
        assert trace.job_names == ("j_1", "j_2")
        assert trace.arrival_s.tolist() == [0.0, 9.0]
        assert trace.duration_ms.tolist() == [4000.0, 3000.0, 4000.0, 500.0]
        assert trace.report.unfinished_jobs == 2
        assert trace.report.jobs_of_independent_tasks == 1
        assert trace.report.unfinished_instances == 1
    (tmp_path / "only").mkdir()
    (tmp_path / "only" / raw.TASKS).write_text("\n".join(tasks) + "\n")
    text = f"alibaba:folder={tmp_path / 'only'},start_s=100,length_s=10"
    with pytest.warns(UserWarning, match=unfinished):
        drawn = parse_jobs(text).workload(0)
    assert [job.profile.work_ms for job in drawn.jobs] == [4000.0 + 2 * 5000.0, 500.0]
    with pytest.raises(WorkloadError, match="no job starts from 500 to 510 s"):
        raw.read_raw(tmp_path, 500.0, 10.0)
    with pytest.raises(DataUnavailableError, match="there is no file"):
        raw.read_raw(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="length_s is 0"):
        raw.read_raw(tmp_path, 100.0, 0)


GOOD_ROWS = "M1,4,j_a,1,Terminated,1000,1010,100,0.2\nR2_1,2,j_a,1,Terminated,1010,1030,100,0.2\n"
# Rows of a job that cannot be simulated, how it is counted, and the jobs that are read beside j_a.
ODD = {
    "suffix": ("M1,1,j,1,Terminated,1200,1210,1,1\nJ2_1_Stg4,1,j,1,Terminated,1200,1210,1,1\n", "", ["j"]),
    "suffix as parent": (
        "M1,1,j,1,Terminated,1200,1210,1,1\nJ2_1_Stg4,1,j,1,Terminated,1200,1210,1,1\n"
        "R4_2,1,j,1,Terminated,1200,1210,1,1\n", "", ["j"],
    ),
    "missing parent": ("R4_3,1,j,1,Terminated,1200,1210,1,1\n", "1 jobs with missing parents (j)", []),
    "cycle": (
        "R1_5,1,j,1,Terminated,1200,1210,1,1\nM5_1,1,j,1,Terminated,1200,1210,1,1\n", "1 jobs with cycles (j)", []
    ),
    "repeated": (
        "M1,1,j,1,Terminated,1200,1210,1,1\nR1,1,j,1,Terminated,1200,1210,1,1\n", "1 jobs with repeated stage (j)", []
    ),
    "text for a number": (
        "M1,1,j,1,Terminated,1200,noon,1,1\nM2,1,j,1,Terminated,1200,1210,1,1\n",
        "1 unfinished jobs (j); 1 malformed rows", [],
    ),
    "missing column": ("M1,1,j,1,Terminated,1200,1210,1\n", "1 malformed rows", []),
    "header": ("task_name,instance_num,job_name,task_type,status,start_time,end_time,plan_cpu,plan_mem\n",
               "1 malformed rows", []),
    "ends before its start": ("M1,1,j,1,Terminated,1200,1190,1,1\n", "1 unfinished jobs (j)", []),
    "end is 0": ("M1,1,j,1,Terminated,1200,0,1,1\n", "1 unfinished jobs (j)", []),
    "no tasks": ("M1,0,j,1,Terminated,1200,1210,1,1\n", "1 unfinished jobs (j)", []),
    "independent": ("task_x,1,j,1,Terminated,1200,1210,1,1\n", "", []),
}  # fmt: skip


@pytest.mark.parametrize("block_bytes", [128, 1 << 20])
@pytest.mark.parametrize("case", ODD)
def test_an_odd_job_is_left_out_and_named(case, block_bytes, tmp_path):
    rows, reason, others = ODD[case]
    for order, text in enumerate((GOOD_ROWS + rows, rows + GOOD_ROWS)):
        (tmp_path / str(order)).mkdir()
        (tmp_path / str(order) / raw.TASKS).write_text(text)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            trace = raw.read_raw(tmp_path / str(order), 0.0, 3600.0, block_bytes)
        assert trace.job_names == ("j_a", *others)
        messages = [str(warning.message) for warning in seen]
        assert len(messages) == (reason != "")
        assert all(message.endswith(f"jobs are read; left out: {reason}") for message in messages)
    if others:
        assert [stage.parents for stage in trace.profile(1).stages][:2] == [(), (0,)]


def test_only_the_first_names_are_told(tmp_path):
    rows = "".join(f"R4_3,1,j_{number},1,Terminated,1200,1210,1,1\n" for number in range(5))
    (tmp_path / raw.TASKS).write_text(GOOD_ROWS + rows)
    with pytest.warns(UserWarning, match=r"5 jobs with missing parents \(j_0, j_1, j_2, ...\)$"):
        raw.read_raw(tmp_path, 0.0, 3600.0)


def test_a_window_is_of_raw_files():
    with pytest.raises(ConfigError, match=r"start_s choose a window of raw files; expected folder=PATH"):
        parse_jobs("alibaba:start_s=3").workload(0)


def test_a_changed_copy_or_another_version_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(hour, "_package_file", lambda name: None)
    monkeypatch.setattr(hour, "fetched_folder", lambda: tmp_path)
    hour.read_hour.cache_clear()
    assert not hour.hour_available()
    with pytest.raises(DataUnavailableError, match="the Alibaba hour is not on this machine"):
        hour.read_hour()
    for name in (hour.TASKS_PARQUET, hour.INSTANCES_PARQUET):
        (tmp_path / name).write_bytes(b"PAR1")
    assert hour.hour_available()
    with pytest.raises(ChecksumError, match="expected 5354827c"):
        hour.read_hour()
    monkeypatch.undo()

    class Other:
        version = "0.1.1"

    monkeypatch.setattr(hour.metadata, "distribution", lambda name: Other)
    with pytest.raises(DataUnavailableError, match=r"package spar 0.1.1 is installed, without the hour"):
        hour.hour_available()


def test_the_hour_is_what_its_description_says(trace_data):
    trace = hour.read_hour()
    report = trace.report
    assert (report.jobs, report.stages, report.tasks, report.edges) == (15_478, 64_860, 2_958_866, 52_824)
    assert (report.jobs_of_independent_tasks, report.cut_names, report.jobs_with_cut_names) == (1_271, 9, 7)
    assert (report.requests_above_one, report.zero_durations) == (8, 41_833)
    train, test = trace.select("train")[0], trace.select("test")[0]
    assert (len(train), len(train) + len(test)) == (6_734, 15_478)
    assert np.diff(trace.first_stage).max() == 91
    tenth = trace.workload("test", 0.1, seed=3)
    assert len(tenth) == round(0.1 * len(test))


# Jobs generated after the statistics of the trace, and how parts of a trace are chosen.


def stages(trace):
    return np.diff(trace.first_stage)


def test_statistics_are_those_of_the_published_counts():
    trace = generate(5000)
    sizes = stages(trace)
    assert np.mean(sizes >= 4) == pytest.approx(0.285, abs=0.02)
    assert np.median(sizes) == 2
    assert trace.memory.mean() == pytest.approx(0.327, abs=0.01)
    assert np.quantile(trace.memory, 0.95) == 0.59
    assert np.median(trace.num_tasks) == 1
    assert np.quantile(trace.num_tasks, 0.95) == pytest.approx(176, rel=0.2)
    assert np.diff(trace.arrival_s).mean() == pytest.approx(0.2326, rel=0.05)
    assert trace.report.edges / trace.report.stages == pytest.approx(0.75, abs=0.1)


def test_the_mix_of_the_paper_has_its_large_jobs():
    sizes = stages(generate(5000, mix="paper"))
    assert np.mean(sizes >= 4) == pytest.approx(0.59, abs=0.02)
    assert 100 < sizes.max() <= LARGEST_DAG
    assert np.mean(sizes >= 100) == pytest.approx(0.006, abs=0.003)


def test_thinning_keeps_the_arrivals_of_what_is_kept():
    whole = alibaba_like(jobs=400)
    half, again, other = (alibaba_like(fraction=0.5, seed=seed, jobs=400) for seed in (1, 1, 2))
    names = [[job.name for job in each.jobs] for each in (half, again, other)]
    assert names[0] == names[1] != names[2]
    assert [len(each) for each in names] == [200, 200, 200]
    arrival = {job.name: job.arrival_ms for job in whole.jobs}
    assert all(arrival[job.name] == job.arrival_ms for job in half.jobs)
    assert half.label == "Alibaba-like (generated)"


def test_parts_and_windows_lie_inside_the_time_of_the_trace():
    trace = generate(400)
    train, test = trace.select("train")[0], trace.select("test")[0]
    assert len(train) + len(test) == 400
    assert trace.arrival_s[train].max() < trace.length_s / 2 <= trace.arrival_s[test].min()
    begins = set()
    for seed in range(5):
        chosen, begin = trace.select("test", seed=seed, window_s=10.0)
        assert trace.length_s / 2 <= begin <= trace.length_s - 10.0
        assert (trace.arrival_s[chosen] >= begin).all()
        assert (trace.arrival_s[chosen] <= begin + 10.0).all()
        begins.add(begin)
    assert len(begins) == 5


def test_texts_replay_or_draw():
    spec = parse_jobs("alibaba_like:part=test,fraction=0.5,jobs=200")
    assert spec.arrivals == "trace"
    expected = alibaba_like("test", 0.5, 7, jobs=200)
    assert [job.name for job in spec.workload(7).jobs] == [job.name for job in expected.jobs]
    assert parse_jobs("alibaba_like:n=5").arrivals == "batch"
    assert len(parse_jobs("alibaba_like:arrivals=trace,n=5,jobs=50").workload(0)) == 5
    assert parse_jobs("alibaba_like:n=5,interarrival_s=2").arrivals == "poisson"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("part=most", "part is 'most'; expected all, train or test"),
        ("fraction=0", "fraction is 0.0; expected a number above 0 and up to 1"),
        ("fraction=0.001,jobs=10", "no job of part 'all' is left at fraction 0.001"),
        ("window_s=1e9", "window_s is 1000000000.0; expected seconds above 0, at most"),
        ("jobs=0", "jobs is 0; expected an integer from 1 to 1,000,000"),
        ("mix=mine", "mix is 'mine'; expected public or paper"),
        ("trace_seed=-1", "trace_seed is -1; expected an integer of at least 0"),
        ("arrivals=trace,n=99,jobs=10", "n is 99; expected an integer from 1 to 10, the jobs of Alibaba-like"),
        ("arrivals=clocked", "arrivals is 'clocked'; expected batch or poisson or trace"),
        ("arrivals=trace,load=0.5,executors=3", "load and executors describe a stream"),
    ],
)
def test_options_out_of_range_are_refused(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_jobs(f"alibaba_like:{text}").workload(0)
