import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError, WorkloadError
from decima.workload import batch, explicit, poisson, save, write_profiles
from decima.workload.arrivals import with_wrong_estimates
from decima.workload.embedded import embedded_batch
from tests.profiles import make_profile

PROFILES = [make_profile(name=str(index)) for index in range(5)]


def names(workload):
    return [job.name for job in workload.jobs]


def test_longer_stream_begins_like_a_shorter_one():
    short, long = (poisson(PROFILES, n, 25.0, seed=5, label="x") for n in (10, 100))
    assert names(long)[:11] == names(short)
    assert long.arrival_ms[:11].tolist() == short.arrival_ms.tolist()


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


def test_explicit_arrivals():
    workload = explicit(PROFILES[:3], [0.0, 1.5, 1.5], label="mine")
    assert workload.arrival_ms.tolist() == [0.0, 1500.0, 1500.0]
    assert workload.initial.tolist() == [True, False, False]
    assert workload.label == "mine"


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
