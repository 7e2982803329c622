import numpy as np
import pytest

from decima.core.errors import WorkloadError
from decima.workload.levels import at_level, at_sizes, mean_ratio
from decima.workload.profile import JobProfile, Stage


def profile(levels, tasks=8):
    """Rest tasks of 100 ms per level executor, first ones of 200 and 400 ms."""
    rest = tuple(np.array([100.0 * level]) for level in levels)
    first = tuple(np.array([200.0 * level, 400.0 * level]) for level in levels)
    fresh = tuple(np.zeros(0) for _ in levels)
    return JobProfile("q", (Stage("a", tasks, (), tuple(levels), fresh, first, rest),), "test")


def test_between_levels_the_mean_is_on_the_line_over_the_logarithm():
    between = at_sizes(profile([1, 4]), [2]).stages[0]
    assert between.levels == (2,)
    assert between.rest[0].tolist() == pytest.approx([250.0])  # 100 at 1, 400 at 4
    assert between.first[0].tolist() == pytest.approx([500.0, 1000.0])


def test_a_measured_level_is_taken_as_it_is():
    assert at_sizes(profile([1, 4]), [4]).equals(at_level(profile([1, 4]), 4))


@pytest.mark.parametrize(("executors", "factor"), [(1, 1.5 / 3.0), (4, 1.0), (6, 4.0 / 3.0), (100, 5.0 / 3.0)])
def test_outside_contention_counts_up_to_the_number_of_tasks(executors, factor):
    assert at_sizes(profile([4]), [executors]).stages[0].rest[0].tolist() == [400.0]
    shared = at_sizes(profile([4]), [executors], (0.5,)).stages[0]
    assert shared.rest[0].tolist() == pytest.approx([400.0 * factor])


def test_ratio_is_of_a_common_wave():
    stage = profile([1, 4]).stages[0]
    assert mean_ratio(stage, "rest", 1, 0) == 4.0
    assert mean_ratio(stage, "fresh", 1, 0) == 4.0  # not measured: that of later tasks


def test_a_level_that_was_not_measured_is_refused():
    with pytest.raises(WorkloadError, match="no durations with 3 executors"):
        at_level(profile([1, 4]), 3)
