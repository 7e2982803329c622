import hashlib
from itertools import pairwise

import networkx
import numpy as np
import pytest

from decima.core.errors import ConfigError, WorkloadError
from decima.workload import SyntheticParameters, synthetic_batch, synthetic_profiles
from decima.workload.sources import PRESETS, get_source, parse_jobs
from decima.workload.synthetic import default_profiles
from decima.workload.two_class import VARIANTS, TwoClasses

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


def test_seed_decides():
    one, two, other = synthetic_profiles(20, 1), synthetic_profiles(20, 1), synthetic_profiles(20, 2)
    assert all(a.equals(b) for a, b in zip(one, two, strict=True))
    assert not any(a.equals(b) for a, b in zip(one, other, strict=True))


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


# Two classes of jobs, bursts on a clock and mixtures: lengths, shares, load, and texts that make no sense.


EMBEDDED = "base=embedded"


def drawn(text, seed=0):
    return parse_jobs(text).workload(seed)


def names(workload):
    return [job.name for job in workload.jobs]


def is_of(workload, name):
    """Which jobs are of a class."""
    return np.array([job.startswith(name) for job in names(workload)])


def test_tasks_and_dags_share_the_work_of_a_job():
    profiles = TwoClasses(stages=6, tasks=4).profiles()
    assert len(profiles) == 2 * VARIANTS
    for profile in profiles:
        length_ms = 50_000.0 if profile.name.startswith("long") else 10_000.0
        assert profile.work_ms == pytest.approx(length_ms, rel=1e-12)
        assert {stage.num_tasks for stage in profile.stages} == {4}
        assert 2 <= len(profile.stages) <= 12
        assert profile.children.count(()) == 1
        assert profile.critical_path_ms < length_ms / 4 * (1 + 1e-12)
    stages = [len(profile.stages) for profile in profiles]
    assert np.mean(stages) == pytest.approx(6, abs=5 * np.std(stages) / len(stages) ** 0.5)


def test_shapes_depend_on_no_length_share_or_number_of_tasks():
    def shapes(**options):
        return [[stage.parents for stage in each.stages] for each in TwoClasses(stages=5, **options).profiles()]

    assert shapes() == shapes(long_s=200.0) == shapes(share=0.1) == shapes(tasks=7) == shapes(sigma_s=5.0)


@pytest.mark.parametrize(("mean_s", "sigma_s"), [(60.0, 10.0), (20.0, 20.0)])
def test_lengths_follow_a_normal_distribution_drawn_again_at_or_below_0(mean_s, sigma_s):
    lengths = [each.work_ms / 1000.0 for each in TwoClasses(long_s=mean_s, sigma_s=sigma_s).profiles()[:-1]]
    again = np.random.default_rng(0).normal(mean_s, sigma_s, 400_000)
    again = again[again > 0.0]
    assert len(lengths) == VARIANTS
    assert min(lengths) > 0.0
    assert all(one < other for one, other in pairwise(lengths))
    assert np.mean(lengths) == pytest.approx(again.mean(), rel=0.005)
    assert np.std(lengths) == pytest.approx(again.std(), rel=0.02)


def test_another_share_moves_jobs_between_classes_and_changes_nothing_else():
    one, more = (drawn(f"two_class:n=400,interarrival_s=10,sigma_s=8,share={share}") for share in (0.3, 0.6))
    assert one.arrival_ms.tolist() == more.arrival_ms.tolist()
    assert not (is_of(one, "long") & ~is_of(more, "long")).any()
    both = is_of(one, "long")
    assert np.array_equal(np.array(names(one))[both], np.array(names(more))[both])
    lengths = [drawn(f"two_class:n=50,long_s={length},interarrival_s=9") for length in (50, 70)]
    assert names(lengths[0]) == names(lengths[1])
    assert lengths[0].arrival_ms.tolist() == lengths[1].arrival_ms.tolist()


def test_ends_of_alpha_are_the_two_sources():
    assert set(names(drawn(f"mixed:1,{EMBEDDED},n=200"))) == {"long", "short"}
    queries = {each.name for each in get_source("embedded").profiles("2g")}
    assert set(names(drawn(f"mixed:0,{EMBEDDED},sizes=2g,n=200"))) <= queries


def test_short_jobs_come_on_the_clock_and_long_ones_between():
    # One job in 2 s, of which 0.75 are short: a tick of six every 16 s.
    workload = drawn("clocked:burst=6,share=0.25,n=4000,interarrival_s=2,initial=0", 3)
    assert len(workload) == 4000
    times = workload.arrival_ms
    assert (np.diff(times) >= 0.0).all()
    ticks, bursts = np.unique(times[is_of(workload, "short")], return_counts=True)
    np.testing.assert_allclose(ticks, 16_000.0 * np.arange(1, len(ticks) + 1), rtol=1e-12)
    assert set(bursts[:-1].tolist()) == {6}
    gaps = np.diff(times[is_of(workload, "long")])
    assert gaps.mean() == pytest.approx(8_000.0, rel=5 / len(gaps) ** 0.5)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.1)
    longer = drawn("clocked:burst=6,share=0.25,n=5000,interarrival_s=2,initial=0", 3)
    assert longer.arrival_ms[:4000].tolist() == times.tolist()
    assert names(longer)[:4000] == names(workload)


def test_a_clocked_source_has_poisson_streams_as_well():
    twin = get_source("clocked").poisson(50, 3.0, 1, share=0.1)
    assert len(set(twin.arrival_ms.tolist())) == 51
    assert twin.arrival_ms.tolist() == drawn("two_class:n=50,interarrival_s=3", 1).arrival_ms.tolist()


@pytest.mark.parametrize("name", [name for name in PRESETS if "tpch" not in name])
def test_presets_bring_the_load_they_say(name):
    spec = parse_jobs(f"{name}:n=20000,initial=0")
    workload = spec.workload(0)
    executors = int(PRESETS[name].rpartition("executors=")[2])
    work_s = sum(job.profile.work_ms for job in workload.jobs) / 1000.0
    load = work_s / (20_000 * spec.interarrival_s) / executors
    assert load == pytest.approx({"half_long": 0.8}.get(name, 0.6), rel=0.03)


def test_a_preset_can_be_changed():
    assert parse_jobs("rare_long:executors=4").interarrival_s == parse_jobs("rare_long").interarrival_s / 2
    assert parse_jobs("rare_long:interarrival_s=7").interarrival_s == 7.0
    batch = parse_jobs("rare_long:arrivals=batch,n=3").workload(0)
    assert batch.initial.tolist() == [True] * 3
    assert parse_jobs("rare_long:share=0.5").options["share"] == 0.5
    assert parse_jobs(f"half_tpch:{EMBEDDED}").interarrival_s > 10.0


def test_the_digest_tells_parameters_apart():
    texts = ("two_class", "two_class:share=0.4", "two_class:long_s=60", f"mixed:{EMBEDDED}", f"mixed:0.4,{EMBEDDED}")
    texts += ("clocked", "clocked:burst=3")
    specs = [parse_jobs(text) for text in texts]
    assert len({spec.source.digest(**spec.options) for spec in specs}) == len(specs)
    assert parse_jobs("two_class").source.digest(share=0.5) == parse_jobs("two_class").source.digest()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("two_class:share=1.2", r"share is 1\.2; expected the part of jobs that are long, from 0 to 1"),
        ("two_class:share=nan", "share is 'nan'; expected a number"),
        ("two_class:long_s=0", r"long_s is 0\.0; expected a length from 0\.001 to 1e\+09 seconds"),
        ("two_class:short_s=inf", "short_s is inf; expected a length"),
        ("two_class:sigma_s=-1", r"sigma_s is -1\.0; expected a standard deviation from 0 to the mean, 50 s"),
        ("two_class:sigma_s=51", r"sigma_s is 51\.0; expected a standard deviation from 0 to the mean, 50 s"),
        ("two_class:stages=0", "stages is 0; expected a whole number from 1 to 100"),
        ("two_class:tasks=0", "tasks is 0; expected a whole number from 1 to 1,000,000"),
        ("clocked:burst=0,interarrival_s=1", "burst is 0; expected an integer of at least 1"),
        ("clocked:arrivals=poisson", "arrivals is 'poisson'; expected batch or clocked"),
        (f"mixed:alpha=-0.1,{EMBEDDED}", r"alpha is -0\.1; expected the part of jobs of the two classes, from 0 to 1"),
        (f"mixed:alpha=1.5,{EMBEDDED}", r"alpha is 1\.5; expected the part"),
        ("mixed:base=two_class", "base is 'two_class'; expected tpch, embedded, measured or synthetic"),
        ("two_class:load=60,executors=2", r"load is 60\.0; expected a number above 0 and up to 10, of which 1 is all"),
        ("two_class:load=0,executors=2", r"load is 0\.0; expected a number above 0"),
        ("two_class:load=0.5,executors=0", "executors must be a whole number of at least 1, got 0"),
        ("two_class:load=0.5", "load and executors belong together, such as load=0.8,executors=10"),
        ("two_class:executors=2", "load and executors belong together"),
        ("two_class:load=0.5,executors=2,interarrival_s=3", "load and interarrival_s both set the arrival rate"),
        ("two_class:arrivals=batch,load=0.5,executors=2", "load and executors describe a stream"),
    ],
)
def test_texts_that_mean_nothing(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_jobs(text).workload(0)
