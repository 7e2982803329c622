"""Compiled schedulers that lack what their rules read are refused instead of reading something else."""

import pytest

import decima
from decima.exceptions import ConfigError, RecordError
from decima.optimum.steered import steered
from decima.policy.architecture import Architecture
from decima.policy.scheduler import LearnedScheduler
from decima.schedulers import CompiledScheduler, make_scheduler
from decima.schedulers.weighted_fair import _weighted_fair
from decima.workload import synthetic_batch

JOBS = synthetic_batch(3, seed=0)


def test_the_third_argument_is_values_by_name():
    with pytest.raises(ConfigError, match=r"scheduler mine: the parameters are \(\); expected values by name"):
        CompiledScheduler("mine", _weighted_fair, ())
    made = CompiledScheduler("mine", _weighted_fair)
    assert made.values == make_scheduler("weighted_fair").values
    assert decima.simulate(JOBS, made, 5).avg_jct_s == decima.simulate(JOBS, "weighted_fair", 5).avg_jct_s


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda values: values.clear(), "no value for alpha, sticky, stage_rule, leftover, order; its rule reads 5"),
        (lambda values: values.pop("leftover"), "no value for leftover"),
        (lambda values: values.update(alpha=float("nan")), "alpha must be from -5 to 5, got nan"),
        (lambda values: values.update(beta=1.0), "no parameter 'beta'"),
    ],
)
def test_values_changed_afterwards(change, message):
    scheduler = make_scheduler("weighted_fair")
    change(scheduler.values)
    with pytest.raises(ConfigError, match=message):
        decima.simulate(JOBS, scheduler, 5)


def test_arrays_that_a_rule_reads_have_to_be_given():
    message = "scheduler steered reads the array job_order_factor, which was not given; expected 3 of float64"
    with pytest.raises(RecordError, match=message):
        decima.simulate(JOBS, steered(), 5)
    with pytest.raises(RecordError, match=message):
        decima.compare([steered(), "fair"], JOBS, 5, seeds=range(2))


def test_weights_cut_short():
    architecture = Architecture()
    policy = LearnedScheduler(architecture, architecture.initial_weights(0))
    policy.weights = policy.weights[:10]
    with pytest.raises(RecordError, match=r"array net_weights of .*: got 10 numbers; expected 12736 of float32"):
        decima.simulate(JOBS, policy, 5)
