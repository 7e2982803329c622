import numpy as np
import pytest

from decima.core.errors import WorkloadError
from decima.evaluation.run import simulate
from decima.workload.jobs import Job, Workload
from tests.profiles import make_profile, make_stage


def test_initial_follows_the_arrival_unless_given():
    profile = make_profile()
    assert Job(profile).initial is True
    assert Job(profile, 5.0).initial is False
    assert Job(profile, 0.0, initial=False).initial is False
    with pytest.raises(WorkloadError, match=r"job 'job': initial, yet it arrives at 5\.0 ms"):
        Job(profile, 5.0, initial=True)


@pytest.mark.parametrize("arrival", [-1, float("nan"), float("inf"), "soon", None, 10**400])
def test_bad_arrival_is_refused(arrival):
    with pytest.raises(WorkloadError, match="job 'job': arrival_ms is"):
        Job(make_profile(), arrival)


@pytest.mark.parametrize(
    ("arrival", "hint"),
    [
        (1.7e18, "it looks like nanoseconds since 1970: divide by 1,000,000, or count"),
        (1_700_000_000_000_000_001, "it looks like nanoseconds since 1970"),
        (1.7e15, "it looks like microseconds since 1970: divide by 1,000, or count"),
        (1e300, r"from 0 to 1e\+15$"),
        (1.0000001e15, r"from 0 to 1e\+15; it looks like microseconds"),
    ],
)
def test_an_arrival_that_would_cut_durations_short_is_refused_with_the_likely_mistake(arrival, hint):
    with pytest.raises(WorkloadError, match=hint):
        Job(make_profile(), arrival)


@pytest.mark.parametrize("arrival_ms", [1.7e12, 1e15])
def test_the_latest_arrivals_leave_durations_whole(arrival_ms):
    profile = make_profile(make_stage(tasks=3, levels=(1,), fresh=[[1100.25]], first=[[1100.25]], rest=[[1100.25]]))
    later = simulate(Workload((Job(profile, arrival_ms),), "late"), executors=1, moving_delay_ms=0.0)
    assert later.jct_ms.tolist() == [3 * 1100.25]


@pytest.mark.parametrize("name", ["\udfff", 5, b"etl"])
def test_a_name_that_cannot_be_written_is_refused(name):
    with pytest.raises(WorkloadError, match=r"a job's name is .*; expected a Unicode text"):
        Job(make_profile(), name=name)
    with pytest.raises(WorkloadError, match=r"the workload's label is .*; expected a non-empty Unicode text"):
        Workload((Job(make_profile()),), name)


def test_profiles_are_shared_by_identity_in_order_of_first_use():
    one, two = make_profile(name="one"), make_profile(name="two")
    workload = Workload((Job(two), Job(one, 10.0), Job(two, 20.0)), "mine")
    assert workload.profiles == (two, one)
    assert workload.profile_index.tolist() == [0, 1, 0]
    assert workload.arrival_ms.tolist() == [0.0, 10.0, 20.0]
    assert workload.initial.tolist() == [True, False, False]
    assert workload.profile_index.dtype == np.int64
    assert len(workload) == 3


def test_universe_holds_the_profiles_that_jobs_were_drawn_from():
    one, two, other = (make_profile(name=name) for name in ("one", "two", "other"))
    workload = Workload((Job(two), Job(one)), "mine", (one, other, two))
    assert workload.profiles == (two, one)
    assert workload.profile_index.tolist() == [2, 0]
    with pytest.raises(WorkloadError, match="profile 'two' is not in the given universe"):
        Workload((Job(two),), "mine", (one, other))


@pytest.mark.parametrize(
    ("label", "slug"), [("TPC-H", "tpc-h"), ("embedded synthetic", "embedded-synthetic"), ("é", "workload")]
)
def test_slug_is_the_label_for_file_names(label, slug):
    assert Workload((Job(make_profile()),), label).slug == slug


def test_empty_workload_is_refused():
    with pytest.raises(WorkloadError, match="'mine' has no jobs; expected at least one"):
        Workload((), "mine")
    with pytest.raises(WorkloadError, match="label is ''"):
        Workload((Job(make_profile()),), "")


def test_describe_is_in_seconds():
    profile = make_profile(
        make_stage("a", 10, fresh=[[]], first=[[]], rest=[[500]]),
        make_stage("b", 1, (0,), fresh=[[]], first=[[]], rest=[[2000]]),
        name="etl",
    )
    frame = Workload((Job(profile, 1500.0, name="mine"), Job(profile)), "x").describe()
    assert frame.to_dict("records") == [
        {"name": "mine", "stages": 2, "tasks": 11, "work_s": 7.0, "critical_path_s": 2.5, "arrival_s": 1.5},
        {"name": "etl", "stages": 2, "tasks": 11, "work_s": 7.0, "critical_path_s": 2.5, "arrival_s": 0.0},
    ]
