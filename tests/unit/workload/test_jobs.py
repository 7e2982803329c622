import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError, WorkloadError
from decima.evaluation.run import simulate
from decima.workload import batch, explicit, poisson, save, write_profiles
from decima.workload.arrivals import with_wrong_estimates
from decima.workload.embedded import embedded_batch
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


PROFILES = [make_profile(name=str(index)) for index in range(5)]


def names(workload):
    return [job.name for job in workload.jobs]


def test_gaps_scale_with_their_mean_and_leave_the_jobs_alone():
    one, two = (poisson(PROFILES, 20, mean, seed=1, label="x") for mean in (25.0, 50.0))
    assert names(one) == names(two)
    np.testing.assert_allclose(two.arrival_ms, 2 * one.arrival_ms, rtol=1e-12)


def test_gaps_are_exponential_and_choice_is_uniform():
    workload = poisson(PROFILES, 20_000, 45.0, seed=0, initial=0, label="x")
    gaps_s = np.diff(workload.arrival_ms, prepend=0.0) / 1000.0
    # Five standard errors; the standard deviation of an exponential equals its mean.
    assert abs(gaps_s.mean() - 45.0) < 5 * 45.0 / np.sqrt(20_000)
    assert abs(gaps_s.std() / 45.0 - 1.0) < 0.05
    share = np.bincount(workload.profile_index, minlength=5) / 20_000
    assert np.abs(share - 0.2).max() < 5 * np.sqrt(0.16 / 20_000)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: batch(PROFILES, 0, label="x"), "n is 0; expected an integer of at least 1"),
        (lambda: batch(PROFILES, 2.5, label="x"), "n is 2.5"),
        (lambda: batch(PROFILES, True, label="x"), "n is True"),
        (lambda: batch(PROFILES, 3, seed=-1, label="x"), "seed is -1"),
        (lambda: batch([], 3, label="x"), "no profiles to draw jobs from"),
        (lambda: poisson(PROFILES, -1, 25.0, label="x"), "n is -1"),
        (lambda: poisson(PROFILES, 0, 25.0, initial=0, label="x"), r"n \+ initial is 0"),
        (lambda: poisson(PROFILES, 5, 25.0, initial=-1, label="x"), "initial is -1"),
        (lambda: poisson(PROFILES, 5, 0.0, label="x"), "mean_interarrival_s is 0.0"),
        (lambda: poisson(PROFILES, 5, float("nan"), label="x"), "mean_interarrival_s is nan"),
        (lambda: poisson(PROFILES, 5, float("inf"), label="x"), "mean_interarrival_s is inf"),
        (lambda: poisson(PROFILES, 5, "25", label="x"), "mean_interarrival_s is '25'"),
        (lambda: explicit(PROFILES, [0.0], label="x"), "1 arrivals for 5 profiles"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ConfigError, match=message):
        call()


def test_bad_explicit_arrival_names_the_job():
    with pytest.raises(WorkloadError, match="job '1': arrival_ms is nan"):
        explicit(PROFILES[:2], [0.0, float("nan")], label="x")
    with pytest.raises(WorkloadError, match="has no jobs"):
        explicit([], [], label="x")


def test_wrong_estimates_change_what_is_told_and_nothing_else():
    right = embedded_batch(10, seed=1)
    wrong = with_wrong_estimates(right, 0.7, seed=3)
    assert names(wrong) == names(right)
    assert wrong.arrival_ms.tolist() == right.arrival_ms.tolist()
    factors = []
    for job, twin in zip(wrong.jobs, right.jobs, strict=True):
        for stage, other in zip(job.profile.stages, twin.profile.stages, strict=True):
            assert stage.all_durations_ms.tolist() == other.all_durations_ms.tolist()
            factors.append(stage.mean_duration_ms / other.mean_duration_ms)
    assert min(factors) < 0.9 < 1.1 < max(factors)
    # FIFO asks for no durations: its schedule is the same.
    runs = [decima.simulate(jobs, "fifo", 5, seed=2).completion_ms.tolist() for jobs in (right, wrong)]
    assert runs[0] == runs[1]
    told = [decima.simulate(jobs, "capped_srw", 5, seed=2).completion_ms.tolist() for jobs in (right, wrong)]
    assert told[0] != told[1]


def test_estimates_without_spread_are_the_means():
    right = batch(PROFILES, 9, seed=1, label="x")
    wrong = with_wrong_estimates(right, 0.0, seed=3)
    for job, twin in zip(wrong.jobs, right.jobs, strict=True):
        assert [stage.mean_duration_ms for stage in job.profile.stages] == [
            stage.mean_duration_ms for stage in twin.profile.stages
        ]


@pytest.mark.parametrize("spread", [-0.1, 11.0, float("nan"), "1"])
def test_a_spread_out_of_range_is_refused(spread):
    with pytest.raises(ConfigError, match="spread is"):
        with_wrong_estimates(batch(PROFILES, 3, seed=1, label="x"), spread, seed=0)


def test_no_file_holds_wrong_estimates(tmp_path):
    wrong = with_wrong_estimates(batch(PROFILES, 3, seed=1, label="x"), 0.5, seed=0)
    for write in (
        lambda: save(wrong, tmp_path / "a.json"),
        lambda: write_profiles(wrong.profiles, tmp_path / "a.parquet"),
    ):
        with pytest.raises(WorkloadError, match="reported_ms is set"):
            write()
    assert not list(tmp_path.iterdir())
