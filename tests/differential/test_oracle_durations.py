"""Durations of the oracle by hand; its rules are those of the core (`test_core_oracle.py`, `test_runs_by_hand.py`)."""

from types import SimpleNamespace

import pytest

from decima.systems.spark.settings import Settings
from decima.workload.profile import Stage
from tests.differential.oracle_durations import FIRST, FRESH, REST, DurationModel

# profiled at 2, 5 and 10 executors; nothing fresh was measured at 5, no first wave at 10
PROFILE = Stage(
    "s",
    1,
    (),
    (2, 5, 10),
    fresh=([30.0], [], [50.0, 70.0]),
    first=([20.0], [24.0], []),
    rest=([1.0], [2.0, 4.0], [6.0, 8.0, 10.0]),
)


@pytest.mark.parametrize(
    ("rule", "executors", "wave", "expected_ms"),
    [
        ("left", 7, REST, 3.0),
        ("right", 7, REST, 8.0),
        ("left", 1, REST, 3.0),  # 2 is profiled, but no data point
        ("interpolate", 1, REST, 1.0),
        ("interpolate", 3, REST, 2 / 3 * 1.0 + 1 / 3 * 3.0),
        ("interpolate", 7, REST, 0.6 * 3.0 + 0.4 * 8.0),
        ("inverted", 7, REST, 0.4 * 3.0 + 0.6 * 8.0),
        ("left", 30, REST, 8.0),  # data point 20 is missing: the largest level
        ("interpolate", 30, REST, 8.0),
        ("left", 5, FRESH, 1024.0),  # first wave and warm-up
        ("left", 10, FIRST, 60.0),  # fresh, no warm-up
        ("interpolate", 7, FRESH, 0.6 * 1024.0 + 0.4 * 60.0),
    ],
)
def test_mean_durations(rule, executors, wave, expected_ms):
    model = DurationModel(Settings(level_rule=rule, durations="mean"))
    assert model.duration_ms(PROFILE, wave, executors) == pytest.approx(expected_ms, rel=1e-15)


def raws(*values):
    """A generator that has the given raw outputs only."""
    return SimpleNamespace(bit_generator=SimpleNamespace(random_raw=iter(values).__next__))


def test_mixed_level_takes_a_uniform_then_an_index():
    below, above = int(0.39 * 2**64), int(0.41 * 2**64)
    last_of_three, last_of_two = int(0.99 * 2**64), int(0.5 * 2**64)
    for rule, first, second, expected_ms in [
        ("interpolate", below, last_of_three, 10.0),
        ("interpolate", above, last_of_two, 4.0),
        ("inverted", above, last_of_three, 10.0),
        ("inverted", int(0.61 * 2**64), last_of_two, 4.0),
    ]:
        model = DurationModel(Settings(level_rule=rule), raws(first, second))
        assert model.duration_ms(PROFILE, REST, 7) == expected_ms, rule


def test_single_level_takes_an_index_only_even_of_one_entry():
    # both data points around 30 are missing, so there is one candidate
    for rule, executors, expected_ms in [("interpolate", 2, 1.0), ("left", 7, 2.0), ("inverted", 30, 6.0)]:
        rng = raws(0)
        assert DurationModel(Settings(level_rule=rule), rng).duration_ms(PROFILE, REST, executors) == expected_ms
        with pytest.raises(StopIteration):
            rng.bit_generator.random_raw()
