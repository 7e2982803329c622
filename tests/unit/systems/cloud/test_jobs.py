"""Jobs and lists of VMs: sources, csv files, and what is wrong with bad ones."""

import json
from dataclasses import replace

import numpy as np
import pytest

import decima
from decima.core.errors import ChecksumError, ConfigError, DataUnavailableError, DecimaError, WorkloadError
from decima.systems.cloud import (
    TABLE_4,
    Billing,
    Cluster,
    PlacementJob,
    PlacementSettings,
    PlacementWorkload,
    Rules,
    VmType,
    load_cluster,
    load_jobs,
    make_cluster,
    parse_placement_jobs,
    simulate,
    sources,
)
from decima.systems.cloud.sources import MEAN_DURATION_S, SHARES, Generator, redrawn
from decima.workload import Job, Workload
from tests.unit.systems.cloud.cases import mirrored

HEADER = "arrival_s,id,type,cores,memory_gb,executors,duration_s\n"
GOOD = HEADER + "0,1,cpu,2,4,3,50\n2.5,7,network,1,1.5,2,10\n"
VMS = "type,cores,memory_gb,quantity,price_per_hour\nsmall,4,16,2,0.2\nbig,16,64,1,0.7\n"


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_jobs_of_a_file(tmp_path):
    workload = load_jobs(written(tmp_path / "mine.csv", GOOD))
    assert workload.label == "mine"
    assert workload.jobs[1] == PlacementJob(2.5, 7, 3, 1, 1.5, 2, 10.0)
    assert workload.jobs[1].memory_mib == 1536
    assert workload.arrival_ms.tolist() == [0.0, 2500.0]
    spec = parse_placement_jobs(str(tmp_path / "mine.csv"))
    assert spec.path == tmp_path / "mine.csv"
    again, other = spec.workloads([0, 1])
    assert again is other
    assert again.signature() == workload.signature()
    workload.frame().to_csv(tmp_path / "again.csv", index=False)
    assert load_jobs(tmp_path / "again.csv").signature() == workload.signature()


ROW = "0,1,1,2,4,3,50"
BAD_JOBS = {
    "no header": ("1,2,3\n", r"column arrival_s is missing"),
    "no rows": (HEADER, r"has no rows"),
    "empty": ("", r"column arrival_s is missing"),
    "unknown column": (HEADER.strip() + ",deadline\n" + ROW + ",5\n", r"column 'deadline' is unknown"),
    "column twice": (HEADER.strip() + ",id\n" + ROW + ",5\n", r"column id is there twice"),
    "short row": (HEADER + "0,1,1\n", r"line 2: 3 values for 7 columns"),
    "zero cores": (HEADER + "0,1,1,0,4,3,50\n", r"line 2: cores is '0'; expected a whole number of at least 1"),
    "half a core": (HEADER + "0,1,1,1.5,4,3,50\n", r"line 2: cores is '1.5'; expected a whole number"),
    "negative memory": (HEADER + "0,1,1,2,-4,3,50\n", r"line 2: memory_gb is '-4'; expected a number above 0"),
    "no executors": (HEADER + "0,1,1,2,4,0,50\n", r"line 2: executors is '0'"),
    "NaN duration": (HEADER + "0,1,1,2,4,3,nan\n", r"line 2: duration_s is 'nan'"),
    "infinite duration": (HEADER + "0,1,1,2,4,3,inf\n", r"line 2: duration_s is 'inf'"),
    "word": (HEADER + "0,1,1,two,4,3,50\n", r"line 2: cores is 'two'"),
    "negative arrival": (HEADER + "-1,1,1,2,4,3,50\n", r"line 2: arrival_s is '-1'"),
    "unknown type": (HEADER + "0,1,4,2,4,3,50\n", r"line 2: type is '4'; expected 1, 2 or 3, or one of cpu"),
    "type in words": (HEADER + "0,1,gpu,2,4,3,50\n", r"line 2: type is 'gpu'; expected 1, 2 or 3, or one of cpu"),
    "unsorted": (HEADER + "9,1,1,2,4,3,50\n5,2,1,2,4,3,50\n", r"line 3: arrival_s is 5 after 9"),
    "many executors": (HEADER + "0,1,1,2,4,1e9,50\n", r"line 2.*executors is 1000000000"),
    "open quote": (HEADER + '"0,1,1,2,4,3,50\n', r"unexpected end of data"),
}
for _text in ("1_000", "١", "１", "1e", "0x10", "infinity", ""):
    BAD_JOBS[f"duration {_text!r}"] = (f"{HEADER}0,1,1,1,1,1,{_text}\n", "line 2: duration_s is ")


@pytest.mark.parametrize(("text", "message"), BAD_JOBS.values(), ids=BAD_JOBS)
def test_bad_job_files(text, message, tmp_path):
    with pytest.raises(WorkloadError, match=message):
        load_jobs(written(tmp_path / "bad.csv", text))


ODD_ROWS = {name: text.removeprefix(HEADER) for name, (text, message) in BAD_JOBS.items() if "line 2" in message}


@pytest.mark.parametrize("row", [*ODD_ROWS.values(), "5,7,1,2,4,3,50\n"], ids=[*ODD_ROWS, "repeated id"])
def test_a_malformed_row_is_left_out_and_named(row, tmp_path):
    path = written(tmp_path / "odd.csv", GOOD + row + "8,9,1,1,1,1,5\n")
    with pytest.warns(UserWarning, match=r"odd\.csv: 1 of 4 jobs left out: .*odd\.csv, line 4"):
        assert [job.id for job in load_jobs(path).jobs] == [1, 7, 9]


def test_jobs_made_by_hand_are_checked():
    job = PlacementJob(0.0, 1, 1, 2, 4.0, 3, 50.0)
    for changes in (
        {"cores": 0},
        {"cores": 2.0},
        {"executors": -1},
        {"memory_gb": float("nan")},
        {"duration_s": 0.0},
        {"duration_s": 5e-324},
        {"type": 4},
        {"arrival_s": float("inf")},
        {"id": -1},
    ):
        [(name, value)] = changes.items()
        with pytest.raises(WorkloadError, match=f"{name} is {value!r}"):
            replace(job, **changes)
    with pytest.raises(WorkloadError, match="no jobs"):
        PlacementWorkload((), "none")
    with pytest.raises(WorkloadError, match="id 1 occurs 2 times"):
        PlacementWorkload((job, job), "twice")
    with pytest.raises(WorkloadError, match="job 2 arrives at 1 s, after job 1 at 3 s"):
        PlacementWorkload((replace(job, arrival_s=3.0), replace(job, arrival_s=1.0, id=2)), "unsorted")


def test_a_job_too_large_for_the_cluster():
    huge = PlacementWorkload((PlacementJob(0.0, 5, 1, 8, 4.0, 9, 50.0),), "huge")
    with pytest.raises(
        WorkloadError, match=r"job 5: 8 of its 9 executors \(8 cores, 4 GB each\) fit the empty cluster"
    ):
        simulate(huge)


# ---- VMs ------------------------------------------------------------------------------------------------------------


def test_vms_of_a_file(tmp_path):
    cluster = load_cluster(written(tmp_path / "mine.csv", VMS))
    assert (len(cluster), cluster.cores, cluster.currency, cluster.label) == (3, 24, "USD", "mine")
    assert cluster.names == ("small-1", "small-2", "big-1")
    euros = VMS.replace("hour\n", "hour,currency\n").replace("0.2\n", "0.2,EUR\n").replace("0.7\n", "0.7,EUR\n")
    assert make_cluster(written(tmp_path / "eur.csv", euros)).currency == "EUR"
    assert make_cluster("table4") is TABLE_4


def test_lists_of_prices_have_as_many_cores_and_memory_costs_extra():
    for name in ("families", "compute"):
        cluster = make_cluster(name)
        assert cluster.cores == TABLE_4.cores
        by_memory = sorted(cluster.types, key=lambda kind: kind.memory_gb / kind.cores)
        per_core = [kind.price_per_hour / kind.cores for kind in by_memory]
        assert per_core == sorted(per_core)
        assert per_core[0] < per_core[-1]


BAD_VMS = {
    "mixed currencies": (
        "type,cores,memory_gb,quantity,price_per_hour,currency\na,1,1,1,1,USD\nb,1,1,1,1,EUR\n",
        "line 3: currency is 'EUR' after 'USD'",
    ),
    "zero price": (VMS.replace("0.7", "0"), "line 3: price_per_hour is '0'; expected a number above 0"),
    "negative price": (VMS.replace("0.7", "-1"), "line 3: price_per_hour is '-1'"),
    "NaN price": (VMS.replace("0.7", "nan"), "line 3: price_per_hour is 'nan'"),
    "no cores": (VMS.replace("big,16", "big,0"), "line 3: cores is '0'"),
    "no quantity": (VMS.replace("64,1", "64,0"), "line 3: quantity is '0'"),
    "huge quantity": (VMS.replace("64,1", "64,1e20"), "line 3: quantity is '1e20'; expected a number up to 1e.12"),
    "listed twice": (VMS.replace("big", "small"), "line 3: type 'small' is listed twice"),
    "tiny price": (VMS.replace("0.7", "5e-324"), "line 3: VM type big: price_per_hour is 5e-324"),
    "no name": (VMS.replace("big", ""), "line 3: type is empty"),
    "no price": (VMS.replace("price_per_hour", "price"), "column price_per_hour is missing"),
}


@pytest.mark.parametrize(("text", "message"), BAD_VMS.values(), ids=BAD_VMS)
def test_bad_vm_files(text, message, tmp_path):
    with pytest.raises(WorkloadError, match=message):
        load_cluster(written(tmp_path / "bad.csv", text))


def test_bad_settings():
    for make, message in (
        (lambda: make_cluster("table5"), "unknown list of VMs 'table5'; did you mean 'table4'?"),
        (lambda: VmType("a", 0, 1.0, 1, 1.0), "VM type a: cores is 0"),
        (lambda: VmType("a", 1, 1.0, 1, float("nan")), "price_per_hour is nan"),
        (lambda: Cluster(()), "the list has 0 VMs"),
        (lambda: PlacementSettings(beta=1.5), "beta is 1.5; expected the weight of cost, from 0 to 1"),
        (lambda: PlacementSettings(beta=float("nan")), "beta is nan"),
        (lambda: PlacementSettings.of_mode("fast"), "mode must be one of paper, released, got 'fast'"),
        (lambda: Billing(boot_s=-1.0), "billing.boot_s is -1.0"),
        (lambda: Rules(idle_waits=-1), "rules.idle_waits is -1; expected a whole number of at most 1e+06"),
        (lambda: Rules(lookahead="far"), "rules.lookahead must be none or shares, got 'far'"),
        (lambda: Rules(penalty_percent=0.0), "rules.penalty_percent is 0.0"),
        (lambda: Rules(wait_reward="much"), "rules.wait_reward is 'much'"),
        (lambda: Rules(clock_goes_back=1), "rules.clock_goes_back must be true or false"),
    ):
        with pytest.raises(ConfigError) as caught:
            make()
        assert message in str(caught.value)


VM = VmType("a", 4, 16.0, 1, 0.1)


@pytest.mark.parametrize(
    ("record", "name", "value"),
    [
        (VM, "cores", 10**30),
        (VM, "quantity", 10**7),
        (VM, "memory_gb", 1e300),
        (VM, "memory_gb", 1e-9),
        (VM, "price_per_hour", 1e308),
        (VM, "price_per_hour", 5e-324),
        (Rules(), "penalty_percent", 1e-20),
        (Billing(), "granularity_s", 1e-300),
        (Billing(), "minimum_s", 1e-300),
        (Billing(), "boot_s", 1e-300),
    ],
)
def test_numbers_that_nothing_can_be_computed_with_are_refused(record, name, value):
    with pytest.raises(ConfigError, match=f"{name} is .*; expected"):
        replace(record, **{name: value})


# ---- sources --------------------------------------------------------------------------------------------------------


def test_generated_jobs_are_as_documented():
    drawn = Generator(n=4000).draw(1)
    types = np.array([job.type for job in drawn.jobs])
    for kind, share in SHARES.items():
        assert np.mean(types == kind) == pytest.approx(share, abs=0.02)
        durations = [job.duration_s for job in drawn.jobs if job.type == kind]
        assert np.mean(durations) == pytest.approx(MEAN_DURATION_S[kind], rel=0.05)
    assert max(job.cores * job.executors for job in drawn.jobs) <= 24
    assert max(job.memory_gb * job.executors for job in drawn.jobs) <= 60
    gaps = np.diff([job.arrival_s for job in drawn.jobs])
    assert gaps.mean() == pytest.approx(60.0, rel=0.05)
    burst = Generator("burst", n=4000).draw(1)
    assert np.diff([job.arrival_s for job in burst.jobs]).mean() == pytest.approx(6.0, rel=0.05)
    assert [replace(job, arrival_s=0.0) for job in burst.jobs] == [replace(job, arrival_s=0.0) for job in drawn.jobs]


def test_sources_by_text():
    assert len(parse_placement_jobs("generated").workload()) == 50
    burst = parse_placement_jobs("generated:pattern=burst,n=7")
    assert len(burst.workload(1)) == 7
    assert burst.workload(1).signature() == burst.workload(1).signature() != burst.workload(2).signature()
    for text, message in (
        ("generate", "unknown source of jobs 'generate'; did you mean 'generated'?"),
        ("generated:load=3", "has no option 'load'"),
        ("generated:n=many", "is 'many'; expected a whole number"),
        ("dag", "jobs is missing; expected dag:jobs=VALUE"),
    ):
        with pytest.raises(ConfigError) as caught:
            parse_placement_jobs(text)
        assert message in str(caught.value)
    for text in ("generated:n=0", "generated:interarrival_s=0", "generated:pattern=rare"):
        with pytest.raises(ConfigError):
            parse_placement_jobs(text).workload()


def test_dag_jobs_run_alone(tmp_path):
    stages = [{"name": "scan", "tasks": 6, "duration_ms": 1000}]
    written = [{"name": "late", "arrival_ms": 9000, "stages": stages}, {"name": "first", "stages": stages}]
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps(written))
    spec = parse_placement_jobs(f"dag:jobs={path},executors=3,cores=1,memory_gb=2,type=network")
    assert spec.path == path
    first, late = spec.workload(1).jobs
    assert (first.arrival_s, late.arrival_s) == (0.0, 9.0)
    assert (late.type, late.cores, late.memory_gb, late.executors) == (3, 1, 2.0, 3)
    # Executors move for some seconds, and each then runs two of the six tasks.
    alone = decima.load(path).jobs[0].profile
    expected = decima.simulate(Workload((Job(alone),), "alone"), "fair", executors=3, seed=1).makespan_s
    assert first.duration_s == late.duration_s == expected >= 2.0
    assert decima.simulate(spec.workload(1), "ilp_exact").complete
    assert len(parse_placement_jobs("dag:jobs=synthetic:n=3+interarrival_s=30+initial=0").workload(2)) == 3
    with pytest.raises(DecimaError, match="type is 'disk'; expected 1, 2 or 3"):
        parse_placement_jobs(f"dag:jobs={path},type=disk").workload()


def test_redrawn_jobs_come_from_the_trace(published):
    trace = sources.load_trace("normal")
    drawn = redrawn(trace, 60.0, seed=3)
    assert len(drawn) == 50
    known = {replace(job, arrival_s=0.0, id=0) for job in trace.jobs}
    assert {replace(job, arrival_s=0.0, id=0) for job in drawn.jobs} <= known
    assert parse_placement_jobs("redrawn:trace=burst").workload(1).label == "burst trace, drawn anew"


def test_published_traces(published):
    normal, burst = sources.load_trace("normal"), sources.load_trace("burst")
    assert (len(normal), len(burst)) == (50, 100)
    assert normal.jobs[0] == PlacementJob(57.0, 1, 3, 3, 4.0, 6, 100.0)
    with pytest.raises(WorkloadError, match="unknown trace 'slow'"):
        sources.load_trace("slow")


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    return mirrored(tmp_path, monkeypatch)


def test_fetching_verifies_and_keeps(mirror):
    with pytest.raises(DataUnavailableError, match="run 'decima data fetch cloud-vm'"):
        sources.load_trace("normal")
    folder = sources.fetch_traces()
    assert len(sources.load_trace("normal")) == 1
    (folder / "jobs.csv").write_text("changed")
    with pytest.raises(ChecksumError, match="got SHA-256"):
        sources.load_trace("normal")
    sources.fetch_traces()
    assert sources.traces_available()


def test_a_corrupted_download_leaves_nothing(mirror):
    (mirror / "jobs_burst.csv").write_text("corrupt")
    with pytest.raises(ChecksumError, match=r"jobs_burst\.csv: got SHA-256"):
        sources.fetch_traces()
    assert not sources.traces_folder().exists()
    (mirror / "jobs_burst.csv").unlink()
    with pytest.raises(DataUnavailableError, match="has no readable file"):
        sources.fetch_traces()
