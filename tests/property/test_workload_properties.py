"""What holds for every workload: exact round trips, and the derived values of any DAG."""

import math
import tempfile
from pathlib import Path

import networkx
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from decima.core.errors import WorkloadError
from decima.workload import Job, JobProfile, Stage, Workload, batch, load, parquet, poisson, save
from decima.workload.sources import get_source
from decima.workload.synthetic import SyntheticParameters, synthetic_profiles
from decima.workload.tpch.raw import clean_first_waves, remove_fresh
from tests.profiles import job_profiles

counts = st.integers(0, 6)
values = st.lists(st.integers(1, 5), max_size=8)


@given(st.lists(job_profiles(), min_size=1, max_size=4))
def test_columnar_round_trip_is_exact(profiles):
    with tempfile.TemporaryDirectory() as folder:
        one, two = Path(folder) / "one.parquet", Path(folder) / "two.parquet"
        parquet.write_profiles(profiles, one)
        read = parquet.read_profiles(one)
        parquet.write_profiles(read, two)
        assert one.read_bytes() == two.read_bytes()
    assert len(read) == len(profiles)
    for got, expected in zip(read, profiles, strict=True):
        assert got.equals(expected)
        assert got.work_ms == expected.work_ms


@given(st.data(), st.lists(job_profiles(), min_size=1, max_size=3))
def test_json_round_trip_is_exact(data, profiles):
    arrivals = st.floats(0.0, 1e9) | st.integers(0, 100_000)
    jobs = [
        Job(profile, data.draw(arrivals), name=data.draw(st.text(max_size=5)))
        for profile in data.draw(st.lists(st.sampled_from(profiles), min_size=1, max_size=5))
    ]
    workload = Workload(tuple(jobs), data.draw(st.text(min_size=1, max_size=10)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.json"
        save(workload, path)
        read = load(path)
    assert read.label == workload.label
    assert [job.name for job in read.jobs] == [job.name for job in jobs]
    assert read.arrival_ms.tolist() == workload.arrival_ms.tolist()
    assert read.initial.tolist() == workload.initial.tolist()
    assert read.profile_index.tolist() == workload.profile_index.tolist()
    assert all(a.equals(b) for a, b in zip(read.profiles, workload.profiles, strict=True))


@given(job_profiles())
def test_derived_values_agree_with_path_enumeration(profile):
    graph, stages = profile.graph, profile.stages
    order = profile.topological_order
    assert sorted(order) == list(range(len(stages)))
    assert all(order.index(parent) < order.index(child) for parent, child in graph.edges)
    assert {(parent, child) for parent, below in enumerate(profile.children) for child in below} == set(graph.edges)
    heaviest = np.zeros(len(stages))
    longest = 0.0
    for start in graph:
        for end in graph:
            paths = [[start]] if start == end else networkx.all_simple_paths(graph, start, end)
            for path in paths:
                heaviest[start] = max(heaviest[start], math.fsum(stages[v].work_ms for v in path))
                longest = max(longest, math.fsum(stages[v].mean_duration_ms for v in path))
    np.testing.assert_allclose(profile.downstream_work_ms, heaviest, rtol=1e-12)
    assert profile.critical_path_ms == pytest.approx(longest, rel=1e-12)
    assert profile.critical_path_ms <= profile.work_ms * (1 + 1e-12)


@given(job_profiles(max_stages=6, shuffled=False), st.data())
def test_an_edge_back_is_always_refused_as_a_cycle(profile, data):
    edges = sorted(networkx.transitive_closure(profile.graph).edges)
    if not edges:
        return
    ancestor, descendant = data.draw(st.sampled_from(edges))
    stages = list(profile.stages)
    old = stages[ancestor]
    stages[ancestor] = Stage(
        old.name, old.num_tasks, (*old.parents, descendant), old.levels, old.fresh, old.first, old.rest
    )
    with pytest.raises(WorkloadError, match="stages form a cycle"):
        JobProfile(profile.name, tuple(stages), profile.source)


@given(values, values)
def test_removing_fresh_durations_conserves_the_multiset(first, fresh):
    kept = remove_fresh(first, fresh)
    assert sorted(kept) == sorted(
        value for value in set(first) for _ in range(max(0, first.count(value) - fresh.count(value)))
    )
    remaining = iter(first)
    assert all(value in remaining for value in kept)  # a subsequence: the order is kept


@given(st.dictionaries(st.integers(1, 9), st.tuples(values, values), min_size=1))
def test_inherited_first_waves_come_from_the_nearest_level_below(tables):
    first = {level: lists[0] for level, lists in tables.items()}
    fresh = {level: lists[1] for level, lists in tables.items()}
    cleaned = clean_first_waves(first, fresh)
    for level in tables:
        own = remove_fresh(first[level], fresh[level])
        below = [remove_fresh(first[other], fresh[other]) for other in sorted(tables) if other < level]
        assert cleaned[level] == (own or next((kept for kept in reversed(below) if kept), []))


@given(st.integers(0, 2**64), counts, counts, st.floats(0.01, 1e4))
def test_streams_hold_what_was_asked_for(seed, n, initial, mean_s):
    profiles = synthetic_profiles(3, 0)
    if n + initial == 0:
        n = 1
    stream = poisson(profiles, n, mean_s, seed, initial, label="x")
    assert stream.initial.tolist() == [True] * initial + [False] * n
    assert (np.diff(stream.arrival_ms) >= 0).all()
    assert [job.profile for job in batch(profiles, n + initial, seed, label="x").jobs] == [
        job.profile for job in stream.jobs
    ]


@given(
    st.sampled_from(["two_class", "clocked"]),
    st.integers(0, 2**32),
    st.floats(0.0, 1.0),
    st.floats(0.1, 1.5),
    st.integers(1, 40),
    st.floats(20.0, 300.0),
    st.sampled_from([0.0, 1.0 / 6.0]),
)
@example("clocked", 0, 8.8e-306, 1.5, 5, 20.0, 0.0)  # arrivals of the rare class lie past every finite time
def test_two_classes_have_the_share_and_the_load_asked_for(name, seed, share, load, executors, long_s, sigma):
    source, n = get_source(name), 2000
    options = {"share": share, "long_s": long_s, "sigma_s": sigma * long_s}
    gap_s = source.interarrival_s(load, executors, **options)
    stream = source.stream(n, gap_s, seed, initial=0, **options)
    again = source.stream(n, gap_s, seed, initial=0, **options)
    assert stream.arrival_ms.tolist() == again.arrival_ms.tolist()
    assert stream.profile_index.tolist() == again.profile_index.tolist()
    long = np.array([job.name.startswith("long") for job in stream.jobs])
    # Six standard deviations; on a clock one class alone is random, and the last burst may be cut.
    assert abs(long.mean() - share) <= 6 * np.sqrt(share * (1 - share) / n) + 40 / n
    work_ms = np.array([job.profile.work_ms for job in stream.jobs])
    got = work_ms.sum() / (executors * stream.arrival_ms[-1])
    mean_ms = 1000.0 * gap_s * executors * load
    spread = np.sqrt((work_ms.std() / mean_ms) ** 2 + 1.0)
    assert abs(got / load - 1.0) <= 6 * spread / np.sqrt(n) + 40 * long_s * 1000.0 / (mean_ms * n)


@given(
    st.integers(0, 2**32),
    st.builds(
        SyntheticParameters,
        mean_stages=st.floats(1.0, 12.0),
        min_stages=st.integers(1, 3),
        max_stages=st.integers(3, 10),
        depth_ratio=st.floats(0.0, 1.0),
        early_weight=st.floats(0.1, 5.0),
        extra_edge_probability=st.floats(0.0, 1.0),
        median_tasks=st.floats(1.0, 50.0),
        max_tasks=st.integers(1, 100),
        work_spread=st.floats(0.0, 2.0),
        inflation=st.floats(0.0, 3.0),
        max_samples=st.integers(1, 6),
    ),
)
def test_generated_profiles_are_valid_and_keep_their_limits(seed, parameters):
    for profile in synthetic_profiles(3, seed, parameters):
        assert parameters.min_stages <= len(profile.stages) <= parameters.max_stages
        assert profile.children.index(()) == len(profile.stages) - 1  # the only sink
        assert profile.topological_order == tuple(range(len(profile.stages)))
        for stage in profile.stages:
            assert 1 <= stage.num_tasks <= parameters.max_tasks
            assert (stage.all_durations_ms >= 1.0).all()
            assert (stage.all_durations_ms == np.rint(stage.all_durations_ms)).all()
