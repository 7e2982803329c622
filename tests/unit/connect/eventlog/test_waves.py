"""Slots, waves and executor counts, by hand."""

import numpy as np
import pytest

from decima.connect.eventlog.tables import assign_slots, mean_slots
from decima.workload.profile import WAVES


def place(tasks, slots=(1, 1)):
    """Tasks are (executor, launch, finish, query, stage)."""
    executor, launch, finish, query, stage = np.array(tasks, dtype=np.int64).T
    placement = assign_slots(executor, launch, finish, np.arange(len(tasks)), query, stage, slots)
    return placement.slot.tolist(), [WAVES[code] for code in placement.wave], placement.first_of_query.tolist()


def test_waves_of_one_core_executors():
    tasks = [(0, 0, 10, 0, 0), (1, 0, 8, 0, 0), (0, 10, 15, 0, 0)]
    tasks += [(1, 8, 20, 0, 1), (1, 20, 25, 0, 1), (0, 15, 20, 1, 2)]
    slot, wave, new = place(tasks)
    assert slot == [0] * 6
    assert wave == ["fresh", "fresh", "rest", "first", "rest", "first"]
    assert new == [True, True, False, False, False, True]


def test_late_stamp_of_an_end_does_not_open_a_second_slot():
    slot, wave, _ = place([(0, 0, 136, 0, 0), (0, 100, 200, 0, 0), (0, 190, 300, 0, 0)])
    assert slot == [0, 0, 0]
    assert wave == ["fresh", "rest", "rest"]


def test_executor_with_two_cores_is_two_executors():
    tasks = [(0, 0, 50, 0, 0), (0, 1, 20, 0, 0), (0, 20, 40, 0, 0), (0, 50, 60, 0, 1), (0, 50, 70, 0, 1)]
    slot, wave, _ = place(tasks, slots=[2])
    # The task at 20 follows the short one; at 50 the slot that has waited longer, since 40, comes first.
    assert slot == [0, 1, 1, 1, 0]
    assert wave == ["fresh", "fresh", "rest", "first", "first"]


def test_second_core_is_fresh_until_it_is_needed():
    slot, wave, _ = place([(0, 0, 10, 0, 0), (0, 10, 20, 0, 0), (0, 15, 30, 0, 1)], slots=[2])
    assert slot == [0, 0, 1]
    assert wave == ["fresh", "rest", "fresh"]


def test_order_of_the_rows_does_not_matter():
    generator = np.random.default_rng(3)
    launch = np.sort(generator.integers(0, 500, 60))
    executor, finish = generator.integers(0, 2, 60), launch + generator.integers(0, 90, 60)
    columns = [executor, launch, finish, np.arange(60), generator.integers(0, 3, 60), generator.integers(0, 5, 60)]
    whole = assign_slots(*columns, [1, 3])
    order = generator.permutation(60)
    mixed = assign_slots(*(column[order] for column in columns), [1, 3])
    for name in ("slot", "wave", "first_of_query"):
        assert getattr(whole, name)[order].tolist() == getattr(mixed, name).tolist()


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        (0, 10, 2.0),
        (0, 20, (2 * 20 + 4 * 5) / 20),
        (20, 20, 6.0),  # no time passes: those that are there
        (30, 30, 4.0),
        (50, 60, 4.0),
    ],
)
def test_mean_slots(begin, end, expected):
    # Two slots from 0 to 30, four from 15 on.
    assert mean_slots(begin, end, [0, 15], [30, np.inf], [2, 4]) == expected
