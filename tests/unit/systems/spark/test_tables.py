import numpy as np
import pytest

from decima.core.errors import WorkloadError
from decima.core.random import draw_below, draw_uniform
from decima.systems.spark.rules.durations import FIRST, FRESH, REST
from decima.systems.spark.settings import LEVEL_RULES, Settings
from decima.systems.spark.tables import ProfileTables, WorkloadTables, level_grid, profile_tables
from decima.workload.jobs import Job, Workload
from decima.workload.profile import JobProfile, Stage

# ---- levels ---------------------------------------------------------------------------------------------------------

LEVELS = (2, 5, 10)
# (executors, level left, level right, probability of the right one)
BY_HAND = {
    "interpolate": [
        *[(n, 2, 2, 0.0) for n in (0, 1, 2)],
        *[(3, 2, 5, 1 / 3), (4, 2, 5, 2 / 3), (5, 5, 5, 0.0)],
        *[(6, 5, 10, 0.2), (7, 5, 10, 0.4), (8, 5, 10, 0.6), (9, 5, 10, 0.8)],
        *[(n, 10, 10, 0.0) for n in (10, 11, 99, 100)],
    ],
    # the released points are 5, 10, 20, ...: level 2 is none of them, and 20 and above were not profiled
    "inverted": [
        *[(n, 5, 5, 0.0) for n in (0, 1, 2, 3, 4, 5)],
        *[(6, 5, 10, 0.8), (7, 5, 10, 0.6), (8, 5, 10, 0.4), (9, 5, 10, 0.2)],
        *[(n, 10, 10, 0.0) for n in (10, 11, 15, 20, 50, 100)],
    ],
    "left": [*[(n, 5, 5, 0.0) for n in (0, 2, 5, 6, 9)], *[(n, 10, 10, 0.0) for n in (10, 11, 100)]],
    "right": [*[(n, 5, 5, 0.0) for n in (0, 2, 5)], *[(n, 10, 10, 0.0) for n in (6, 9, 10, 11, 100)]],
}


@pytest.mark.parametrize("rule", LEVEL_RULES)
def test_level_grid_by_hand(rule):
    left, right, weight = level_grid(LEVELS, rule, 101)
    assert len(left) == len(right) == len(weight) == 101
    for executors, low, high, probability in BY_HAND[rule]:
        assert (LEVELS[left[executors]], LEVELS[right[executors]]) == (low, high), executors
        if low != high:
            assert weight[executors] == pytest.approx(probability, abs=1e-15), executors


@pytest.mark.parametrize("rule", ["inverted", "left", "right"])
def test_a_released_point_that_was_not_profiled_gives_the_largest_level(rule):
    levels = (2, 10, 40)
    left, right, _ = level_grid(levels, rule, 101)
    assert levels[left[3]] == levels[right[3]] == 40  # 5 is missing
    assert levels[left[20]] == levels[right[20]] == 40
    between = {"inverted": (40, 10), "left": (40, 40), "right": (10, 10)}  # 7 executors: points 5 and 10
    assert (levels[left[7]], levels[right[7]]) == between[rule]


def test_interpolation_knows_no_points_but_the_levels_of_the_stage():
    left, right, weight = level_grid((1, 130), "interpolate", 140)
    assert (left[100], right[100]) == (0, 1)
    assert weight[100] == 99 / 129
    assert (left[0], right[0], left[135], right[135]) == (0, 0, 1, 1)
    one_left, one_right, _ = level_grid((7,), "interpolate", 101)
    assert not one_left.any()
    assert not one_right.any()


# ---- lists of durations ---------------------------------------------------------------------------------------------


def one_stage(fresh, first, rest, levels=(5,)):
    lists = [[np.array(values, dtype=float) for values in wave] for wave in (fresh, first, rest)]
    return Stage("s", 1, (), levels, *map(tuple, lists))


def situations(stage, level=0, **settings):
    """(values, added ms) of fresh, first and rest launches at a level."""
    arrays = ProfileTables((JobProfile("job", (stage,), "test"),), Settings(**settings)).arrays
    lists = []
    for situation in (FRESH, FIRST, REST):
        index = arrays["row_list"][0] + 3 * level + situation
        start = arrays["list_offset"][index]
        values = arrays["values_ms"][start : start + arrays["list_length"][index]].tolist()
        assert arrays["list_mean_ms"][index] == sum(values) / len(values) + arrays["list_add_ms"][index]
        lists.append((values, arrays["list_add_ms"][index]))
    return lists


FULL = one_stage([[50, 60]], [[40]], [[10, 20]])
FRESH_LIST, FIRST_LIST, REST_LIST = ([50, 60], 0), ([40], 0), ([10, 20], 0)


@pytest.mark.parametrize(
    ("waves", "expected"),
    [
        (([[]], [[40]], [[10]]), [([40], 1000), ([40], 0), ([10], 0)]),  # no fresh: first wave and warm-up
        (([[50]], [[]], [[10]]), [([50], 0), ([50], 0), ([10], 0)]),  # no first: fresh, no warm-up
        (([[50]], [[40]], [[]]), [([50], 0), ([40], 0), ([40], 0)]),  # no rest: first
        (([[50]], [[]], [[]]), [([50], 0), ([50], 0), ([50], 0)]),
        (([[]], [[40]], [[]]), [([40], 1000), ([40], 0), ([40], 0)]),
        (([[]], [[]], [[10]]), [([10], 1000), ([10], 0), ([10], 0)]),
    ],
)
def test_other_lists_stand_in_for_an_empty_one(waves, expected):
    assert situations(one_stage(*waves)) == expected


def test_effects_can_be_switched_off_one_by_one():
    assert situations(FULL, first_wave=False) == [FRESH_LIST, REST_LIST, REST_LIST]
    assert situations(FULL, startup=False) == [FIRST_LIST, FIRST_LIST, REST_LIST]
    assert situations(FULL, first_wave=False, startup=False) == [REST_LIST, REST_LIST, REST_LIST]
    no_rest = one_stage([[50]], [[40]], [[]])
    assert situations(no_rest, first_wave=False) == [([50], 0), ([40], 0), ([40], 0)]
    no_fresh = one_stage([[]], [[40]], [[10]])
    assert situations(no_fresh, startup=False) == [([40], 0), ([40], 0), ([10], 0)]
    assert situations(no_fresh, warmup_delay_ms=5.5)[0] == ([40], 5.5)


def test_without_inflation_the_lowest_level_is_the_only_one():
    stage = one_stage([[1], [9]], [[2], [9]], [[3], [9]], levels=(4, 50))
    assert situations(stage, level=1) == [([9], 0)] * 3
    profile = JobProfile("job", (stage,), "test")
    for rule in LEVEL_RULES:
        settings = Settings(level_rule=rule)
        object.__setattr__(settings, "inflation", False)  # together they are refused
        arrays = ProfileTables((profile,), settings).arrays
        assert not arrays["grid_left"].any()
        assert not arrays["grid_right"].any()
        assert arrays["values_ms"].tolist() == [1, 2, 3]


def test_means_are_exact_sums():
    values = [0.1] * 10
    stage = one_stage([values], [values], [[1e15, 0.06, 0.06, -0.0]])
    arrays = ProfileTables((JobProfile("job", (stage,), "test"),), Settings()).arrays
    assert arrays["list_mean_ms"].tolist() == [0.1, 0.1, (1e15 + 0.125) / 4]


def profile(name, *parents):
    """Stages with the given parents, as many tasks as their index plus one."""
    wave = (np.array([1000.0]),)
    stages = [Stage(f"{name}{i}", i + 1, above, (5,), wave, wave, wave) for i, above in enumerate(parents)]
    return JobProfile(name, tuple(stages), "test")


CHAIN, FORK = profile("chain", (), (0,)), profile("fork", (), (0,), (0,))


def test_tables_of_profiles_are_shared_where_durations_agree():
    universe = (CHAIN, FORK)
    settings = Settings()
    one = WorkloadTables(Workload((Job(CHAIN),), "test", universe), settings).arrays["values_ms"]
    other = WorkloadTables(Workload((Job(FORK),), "test", universe), settings.replace(executors=9)).arrays["values_ms"]
    cold = WorkloadTables(Workload((Job(FORK),), "test", universe), settings.replace(startup=False)).arrays["values_ms"]
    assert one is other
    assert cold is not one
    assert profile_tables(universe, settings) is profile_tables(universe, settings)


def test_draws_are_functions_of_raw_bits():
    rng, twin = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(100):
        assert draw_uniform(np.uint64(rng.bit_generator.random_raw())) == twin.random()
    for bound in (1, 2, 3, 1000):
        assert draw_below(np.uint64(0), bound) == 0
        assert draw_below(np.uint64(2**64 - 1), bound) == bound - 1
        raws = rng.integers(2**64, size=2000, dtype=np.uint64)
        drawn = [draw_below(raw, bound) for raw in raws]
        assert drawn == [((int(raw) >> 32) * bound) >> 32 for raw in raws]
        if bound < 10:
            assert set(drawn) == set(range(bound))


def test_levels_that_would_fill_the_memory_are_refused():
    nothing, value = np.zeros(0), np.ones(1)
    stages = [
        Stage(str(index), 1, (), (index + 1, 10_000), (nothing, nothing), (nothing, nothing), (value, value))
        for index in range(7_000)
    ]
    workload = Workload((Job(JobProfile("wide", stages, "test")),), "wide")
    with pytest.raises(WorkloadError, match=r"7000 different lists of profile levels up to 10000 executors need"):
        WorkloadTables(workload, Settings())
