import numpy as np
import pytest

from decima.core.errors import ConfigError
from decima.systems.spark.policy.task import SEQUENCE_SEED, VALIDATION_SEED, JobSequence, Task, sequences_of_rollouts
from decima.systems.spark.settings import Settings

STREAM = Task("stream", source="embedded", jobs=30, interarrival_s=(20.0, 40.0))


@pytest.mark.parametrize(
    "cluster",
    [Settings(executors=7), Settings.released(durations="mean"), Settings.simplified(moving_delay_ms=0.0)],
    ids=lambda cluster: cluster.mode,
)
def test_a_task_on_a_given_cluster(cluster):
    task = Task.on(cluster, source="embedded", objective="p90_jct_s")
    assert task.cluster == cluster
    assert Task.from_dict(task.as_dict()) == task
    assert (task.objective, task.metric) == ("p90_jct", "p90_jct_s")


def test_training_validation_and_tests_share_no_sequence():
    sequences = [one for iteration in range(50) for one in STREAM.training_sequences(3, iteration, 4)]
    seeds = [one.seed for one in sequences]
    assert min(seeds) >= SEQUENCE_SEED
    assert len(set(seeds)) == len(seeds)
    validation = [one.seed for one in STREAM.validation_sequences(50)]
    assert validation == list(range(VALIDATION_SEED, VALIDATION_SEED + 50))
    assert VALIDATION_SEED > 100_000
    with pytest.raises(ConfigError, match="at most 50000 validation sequences"):
        STREAM.validation_sequences(50_001)


def test_episode_lengths_are_exponential():
    lengths = [one.time_limit_s for k in range(400) for one in STREAM.training_sequences(0, k, 5, 300.0)]
    assert np.mean(lengths) == pytest.approx(300.0, rel=0.1)
    assert np.std(lengths) == pytest.approx(300.0, rel=0.15)


def test_ends_are_drawn_per_sequence_or_per_rollout_or_not_at_all():
    drawn = STREAM.training_sequences(0, 4, 2, 300.0)
    limits = {
        ends: [one.time_limit_s for one in sequences_of_rollouts(drawn, 3, ends, 300.0, 0, 4)]
        for ends in ("sequence", "rollout", "fixed")
    }
    assert limits["sequence"] == [one.time_limit_s for one in drawn for _ in range(3)]
    assert len(set(limits["rollout"])) == 6
    assert limits["fixed"] == [300.0] * 6
    again = sequences_of_rollouts(drawn, 3, "rollout", 300.0, 0, 4)
    assert [one.time_limit_s for one in again] == limits["rollout"]
    assert [one.seed for one in again] == [one.seed for one in drawn for _ in range(3)]
    for ends in limits:
        assert sequences_of_rollouts(drawn, 2, ends, None, 0, 4) == [one for one in drawn for _ in range(2)]


def test_a_cut_stream_has_the_jobs_that_arrive_in_time_and_one_more():
    whole = STREAM.workload(JobSequence(SEQUENCE_SEED, 25.0))
    cut = STREAM.workload(JobSequence(SEQUENCE_SEED, 25.0, 200.0))
    assert len(whole) == 31
    kept = len(cut)
    assert 1 < kept < 31
    assert np.array_equal(cut.arrival_ms, whole.arrival_ms[:kept])
    assert cut.arrival_ms[-2] <= 200_000.0 < cut.arrival_ms[-1]
    assert cut.universe == whole.universe
    assert len(STREAM.workload(JobSequence(SEQUENCE_SEED, 25.0, 1e9))) == 31


def test_time_limits_reach_the_simulator():
    assert STREAM.sequence_settings(JobSequence(1, 25.0, 12.5)).time_limit_ms == 12_500.0
    assert STREAM.sequence_settings(JobSequence(1, 25.0)) == STREAM.cluster
    released = Task("stream", source="embedded", mode="released")
    with pytest.raises(ConfigError, match="mode released never ends an episode early"):
        released.sequence_settings(JobSequence(1, 25.0, 12.5))
    switched_on = Task("stream", source="embedded", mode="released", settings={"time_limit_applies": True})
    assert switched_on.sequence_settings(JobSequence(1, 25.0, 12.5)).time_limit_applies


def test_dictionary_round_trip():
    assert Task.from_dict(STREAM.as_dict()) == STREAM
    assert Task().jobs == 20
    assert Task("stream").jobs == 200
    with pytest.raises(ConfigError, match="unknown field of a task: size"):
        Task.from_dict({"size": 1})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "trickle"}, "kind must be 'batch' or 'stream', got 'trickle'"),
        ({"source": "google"}, "unknown workload source 'google'; known: alibaba, alibaba_like, clocked"),
        ({"jobs": 0}, "jobs must be a whole number of at least 1, got 0"),
        ({"interarrival_s": 0.0}, "interarrival_s must be a number above 0"),
        ({"interarrival_s": (30.0, 20.0)}, "interarrival_s must be a number above 0, or a low and a high one"),
        ({"executors": 0}, "executors must be"),
        ({"mode": "real"}, "mode must be one of"),
        ({"objective": "cost"}, "unknown objective 'cost'"),
        ({"settings": {"speed": 1}}, "unknown simulator setting: speed"),
    ],
)
def test_bad_values_are_named(changes, message):
    with pytest.raises(ConfigError, match=message):
        Task(**changes)


def test_references_are_registered_heuristics():
    assert list(Task().reference_schedulers()) == ["weighted_fair", "capped_srw"]
    assert Task("stream").reference_schedulers()["weighted_fair"].values["alpha"] == 0.1
