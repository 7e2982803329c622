import dataclasses
import math

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError, DecimaError
from decima.systems.spark.gym.environment import SparkClusterEnv
from decima.systems.spark.settings import LEVEL_RULES, Settings
from decima.workload import synthetic_batch

PAPER, RELEASED = Settings.paper(), Settings.released()


def test_the_modes_differ_in_these_fields_only():
    different = {
        name: (value, RELEASED.as_dict()[name])
        for name, value in PAPER.as_dict().items()
        if value != RELEASED.as_dict()[name]
    }
    assert different == {
        "mode": ("paper", "released"),
        "level_rule": ("interpolate", "inverted"),
        "job_limit": (True, False),
        "reoffer": (True, False),
        "keep_warm": (True, False),
        "time_limit_applies": (True, False),
    }


def test_released_mean_durations_take_the_left_level_as_the_reference_runs_do():
    assert Settings.released(durations="mean").level_rule == "left"
    assert Settings.released(durations="mean", level_rule="right").level_rule == "right"


def test_simplified_switches_every_effect_off():
    simplified = Settings.of_mode("simplified", executors=3)
    assert (simplified.durations, simplified.executors) == ("mean", 3)
    assert [simplified.first_wave, simplified.startup, simplified.inflation] == [False, False, False]


def test_whole_numbers_of_other_types_are_taken():
    for executors in (3.0, np.int64(3), np.float32(3)):
        made = Settings(executors=executors)
        assert made.executors == 3
        assert type(made.executors) is int


NO_COUNTS = (0, -1, 2.5, True, "5", math.nan, math.inf, -math.inf, [3])
DELAYS = (-1.0, math.nan, math.inf, 1.1e15, "2", None, True)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("executors", NO_COUNTS, "executors must be a whole number of at least 1, got"),
        ("executors", (10**12, 10**400), "executors must be at most 1000000, got 1000000000000"),
        ("moving_delay_ms", DELAYS, r"moving_delay_ms must be a number from 0 to 1e\+15, got"),
        ("warmup_delay_ms", DELAYS, r"warmup_delay_ms must be a number from 0 to 1e\+15, got"),
        ("time_limit_ms", (0.0, -5.0, math.nan, "10", None), "time_limit_ms must be above 0, got"),
        ("durations", ("average",), "durations must be one of sampled, mean, got 'average'"),
        ("level_rule", ("nearest",), f"level_rule must be one of {', '.join(LEVEL_RULES)}, got 'nearest'"),
        ("cores", (2,), "unknown simulator setting: cores"),
    ],
)
def test_bad_values(name, values, message):
    for value in values:
        with pytest.raises(DecimaError, match=message):
            Settings.of_mode("paper", **{name: value})
    with pytest.raises(ConfigError, match="mode must be one of paper, released, simplified, got 'fast'"):
        Settings.of_mode("fast")


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Settings) if field.type is bool])
def test_switches_are_true_or_false(name):
    for value in ("no", 1, None):
        with pytest.raises(ConfigError, match=f"{name} must be True or False, got"):
            Settings(**{name: value})
    assert getattr(Settings(**{name: np.bool_(False)}), name) == False  # noqa: E712


NO_EFFECT = "but has no effect in mode"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"mode": "simplified", "moving_delay_ms": 5e4}, f"_ms is 50000.0 {NO_EFFECT} simplified with startup off"),
        ({"startup": False, "warmup_delay_ms": 7.0}, f"warmup_delay_ms is 7.0 {NO_EFFECT} paper with startup off"),
        ({"inflation": False, "level_rule": "left"}, f"level_rule is 'left' {NO_EFFECT} paper with inflation off"),
        (
            {"mode": "released", "inflation": False, "level_rule": "right"},
            f"level_rule is 'right' {NO_EFFECT} released with inflation off",
        ),
        ({"mode": "released", "time_limit_ms": 1e3}, f"is 1000.0 {NO_EFFECT} released with time_limit_applies off"),
        (
            {"job_bound": True, "classes": ((1.0, 4), (2.0, 6))},
            "job_bound is on with 2 classes of executors: those too small for the stages left would wait in their job "
            "for ever; expected one class, or job_bound off",
        ),
        ({"executors": 50, "classes": ((1.0, 4), (2.0, 6))}, "executors is 50, and the classes have 10"),
        ({"executors": 7, "classes": ((1.0, 4), (2.0, 6))}, "is 7, and the classes have 10; leave executors out"),
    ],
)
def test_what_would_have_no_effect_is_refused(values, message):
    jobs = synthetic_batch(2)
    for make in (
        lambda: decima.simulate(jobs, "fair", **values),
        lambda: decima.compare(["fair"], jobs, seeds=[0], **values),
        lambda: SparkClusterEnv(jobs, **values),
        lambda: Settings.of_mode(values.get("mode", "paper"), **{k: v for k, v in values.items() if k != "mode"}),
    ):
        with pytest.raises(ConfigError) as refused:
            make()
        assert message in str(refused.value)


def test_the_same_with_the_switch_on_and_values_that_ask_for_nothing_are_taken():
    Settings.simplified(startup=True, moving_delay_ms=5e4)
    Settings(job_bound=True, classes=((1.0, 4),))
    Settings.simplified(moving_delay_ms=0.0, warmup_delay_ms=0.0)
    Settings.released(time_limit_applies=True, time_limit_ms=1000.0)
    for durations in ("mean", "sampled"):
        unchanged = Settings.released(inflation=False, durations=durations)
        assert Settings(**unchanged.as_dict()) == unchanged
    classes = ((1.0, 4), (2.0, 6))
    assert Settings(classes=classes).executors == Settings(executors=10, classes=classes).executors == 10
    assert Settings(**Settings(classes=classes).as_dict()) == Settings(classes=classes)
    assert Settings.simplified().replace(classes=classes).replace(classes=((1.0, 3),)).executors == 3
