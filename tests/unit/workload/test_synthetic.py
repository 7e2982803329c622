import hashlib
import time

import networkx
import numpy as np
import pytest

from decima.core.errors import ConfigError, WorkloadError
from decima.workload import SyntheticParameters, synthetic_batch, synthetic_profiles
from decima.workload.synthetic import default_profiles

# Changes only with the generator or its defaults; then every number computed from the workload does too.
DEFAULT_DIGEST = "7be6244bfc4d0dc1e5aa3592f0e52fdf53b6fa4cf00a5a8a5c1831f6e230fb6a"


def digest(profiles):
    lines = [
        f"{profile.name} {stage.num_tasks} {stage.parents} {stage.all_durations_ms.astype(int).tolist()}\n"
        for profile in profiles
        for stage in profile.stages
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def work_s(profiles):
    return np.array([profile.work_ms for profile in profiles]) / 1000.0


def test_default_profiles_never_change():
    assert digest(default_profiles()) == DEFAULT_DIGEST


def test_default_profiles_are_made_quickly():
    synthetic_profiles(7)  # imports
    start = time.process_time()
    assert len(synthetic_profiles()) == 154
    assert time.process_time() - start < 5.0  # 0.2 s alone on a machine


def test_seed_decides():
    one, two, other = synthetic_profiles(20, 1), synthetic_profiles(20, 1), synthetic_profiles(20, 2)
    assert all(a.equals(b) for a, b in zip(one, two, strict=True))
    assert not any(a.equals(b) for a, b in zip(one, other, strict=True))


def test_longer_set_begins_like_a_shorter_one():
    assert all(a.equals(b) for a, b in zip(synthetic_profiles(9, 3), synthetic_profiles(30, 3)[:9], strict=True))


def test_default_work_is_heavy_tailed_and_near_tpch():
    work = np.sort(work_s(default_profiles("paper")))[::-1]
    assert len(work) == 132
    share = work[: round(0.23 * len(work))].sum() / work.sum()
    assert 0.78 < share < 0.84  # the paper states 82 % for 23 % of its jobs
    assert 700 < work.mean() < 900  # TPC-H: 757
    profiles = default_profiles()
    stages = [stage for profile in profiles for stage in profile.stages]
    assert 8 < len(stages) / len(profiles) < 10  # TPC-H: 9.2
    assert 100 < np.mean([stage.num_tasks for stage in stages]) < 140  # TPC-H: 126
    assert 3 < np.mean([profile.critical_path_ms for profile in profiles]) / 1000 < 7  # TPC-H: 4.7


def mean_ratio(profiles, above, below):
    """Mean over stages of the ratio of two mean durations, each chosen by a function of the stage."""
    ratios = [
        above(stage).mean() / below(stage).mean()
        for profile in profiles
        for stage in profile.stages
        if len(above(stage)) and len(below(stage))
    ]
    return np.mean(ratios)


def test_waves_and_inflation_are_as_asked_for():
    parameters = SyntheticParameters(
        class_names=("one",),
        class_work_s=(50_000.0,),
        fresh_slowdown=4.0,
        first_slowdown=2.0,
        inflation=1.0,
        inflation_exponent=1.0,
        inflation_spread=0.0,
        median_tasks=500.0,
        task_spread=0.0,
        levels=(2, 50, 100),
        max_samples=200,
    )
    profiles = synthetic_profiles(30, 0, parameters)
    level = 2  # 100 executors
    assert mean_ratio(profiles, lambda s: s.fresh[level], lambda s: s.rest[level]) == pytest.approx(4.0, rel=0.02)
    assert mean_ratio(profiles, lambda s: s.first[level], lambda s: s.rest[level]) == pytest.approx(2.0, rel=0.02)
    assert mean_ratio(profiles, lambda s: s.rest[2], lambda s: s.rest[0]) == pytest.approx(2 / 1.02, rel=0.02)
    assert mean_ratio(profiles, lambda s: s.rest[1], lambda s: s.rest[0]) == pytest.approx(1.5 / 1.02, rel=0.02)


def test_work_of_a_class_is_as_asked_for():
    parameters = SyntheticParameters(class_names=("a", "b"), class_work_s=(100.0, 5000.0), work_spread=0.0)
    work = work_s(synthetic_profiles(20, 0, parameters))
    np.testing.assert_allclose(work[::2], 100.0, rtol=0.02)  # durations are whole milliseconds
    np.testing.assert_allclose(work[1::2], 5000.0, rtol=0.02)


def test_no_later_wave_where_every_task_has_an_executor():
    for profile in synthetic_profiles(14, 0):
        for stage in profile.stages:
            for level, first, rest in zip(stage.levels, stage.first, stage.rest, strict=True):
                assert len(first) == min(level, stage.num_tasks, 24)
                assert len(rest) == min(max(stage.num_tasks - level, 0), 24)


def test_shape_parameters():
    chains = synthetic_profiles(20, 0, SyntheticParameters(depth_ratio=1.0, extra_edge_probability=0.0))
    flat = synthetic_profiles(20, 0, SyntheticParameters(depth_ratio=0.0, extra_edge_probability=0.0))
    for profile in flat:  # everything feeds the sink
        assert all(children == (len(profile.stages) - 1,) for children in profile.children[:-1])
    for profile in chains:  # as many layers as stages, give or take the random quarter
        depth = networkx.dag_longest_path_length(profile.graph) + 1
        assert depth >= round(0.75 * len(profile.stages))
    single = synthetic_profiles(5, 0, SyntheticParameters(min_stages=1, max_stages=1, max_tasks=3))
    assert all(len(profile.stages) == 1 and profile.num_tasks <= 3 for profile in single)


def test_size_classes_select_profiles():
    assert len(default_profiles()) == 154
    assert not any(profile.name.startswith("2xl") for profile in default_profiles("paper"))
    assert all(profile.name.startswith("xs-") for profile in default_profiles(["xs"]))
    assert len(default_profiles("3xl")) == 22
    for sizes in ("4xl", ["xs", "nope"], []):
        with pytest.raises(WorkloadError, match="xs"):
            synthetic_batch(sizes=sizes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean_stages": float("nan")}, "mean_stages is nan; expected a finite number"),
        ({"mean_stages": "9"}, "mean_stages is '9'"),
        ({"max_tasks": 2.5}, "max_tasks is 2.5; expected an integer"),
        ({"max_tasks": 0}, "max_tasks is 0; expected at least 1"),
        ({"task_spread": -0.1}, "task_spread is -0.1; expected at least 0"),
        ({"min_stages": 5, "max_stages": 4}, "max_stages is 4, below min_stages 5"),
        ({"extra_edge_probability": 1.5}, "extra_edge_probability is 1.5; expected at most 1"),
        ({"early_weight": 0.0}, "early_weight is 0"),
        ({"class_work_s": ()}, "class_work_s is"),
        ({"class_work_s": (1.0, -1.0), "class_names": ("a", "b")}, "class_work_s is"),
        ({"class_names": ("a",)}, "one name per class"),
        ({"levels": (5, 2)}, "levels is"),
        ({"levels": ()}, "levels is"),
        ({"max_samples": 0}, "max_samples is 0"),
    ],
)
def test_bad_parameters_are_named(change, message):
    with pytest.raises(ConfigError) as caught:
        SyntheticParameters(**change)
    assert message in str(caught.value)


def test_bad_count_and_seed():
    with pytest.raises(ConfigError, match="count is 0"):
        synthetic_profiles(0)
    with pytest.raises(ConfigError, match="seed is -1"):
        synthetic_profiles(5, -1)
