"""Compiled schedulers that lack what their rules read are refused instead of reading something else."""

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError, RecordError
from decima.systems.spark.gym.environment import SparkClusterEnv
from decima.systems.spark.optimum.schedule_search import steered
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.scheduler import LearnedScheduler
from decima.systems.spark.schedulers import CompiledScheduler, make_scheduler
from decima.systems.spark.schedulers.packing import _weighted_fair
from decima.workload import synthetic_batch

JOBS = synthetic_batch(3, seed=0)


def test_the_third_argument_is_values_by_name():
    with pytest.raises(ConfigError, match=r"scheduler mine: the parameters are \(\); expected values by name"):
        CompiledScheduler("mine", _weighted_fair, ())
    made = CompiledScheduler("mine", _weighted_fair)
    assert made.values == make_scheduler("weighted_fair:paper").values
    assert decima.simulate(JOBS, made, 5).avg_jct_s == decima.simulate(JOBS, "weighted_fair:paper", 5).avg_jct_s


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
    scheduler = make_scheduler("weighted_fair:paper")
    change(scheduler.values)
    with pytest.raises(ConfigError, match=message):
        decima.simulate(JOBS, scheduler, 5)


def test_arrays_that_a_rule_reads_have_to_be_given():
    message = "scheduler steered reads the array job_order_factor, which is not set; expected 3 of float64"
    with pytest.raises(RecordError, match=message):
        decima.simulate(JOBS, steered(), 5)
    with pytest.raises(RecordError, match=message):
        decima.compare([steered(), "fair"], JOBS, 5, seeds=range(2))


@pytest.mark.parametrize("decision", [None, print, "fair"])
def test_a_decision_that_is_not_compiled(decision):
    with pytest.raises(ConfigError, match=r"scheduler mine: its decision is .*; expected a function compiled"):
        CompiledScheduler("mine", decision)


@pytest.mark.parametrize("values", [None, 5, (1.0,)])
def test_values_that_are_no_longer_named(values):
    scheduler = make_scheduler("weighted_fair:paper")
    scheduler.values = values
    with pytest.raises(ConfigError, match=r"scheduler weighted_fair: the parameters are .*; expected values by name"):
        decima.simulate(JOBS, scheduler, 5)


def test_a_teacher_whose_arrays_were_not_given():
    architecture = Architecture()
    policy = LearnedScheduler(architecture, architecture.initial_weights(0), teacher=steered())
    with pytest.raises(RecordError, match="scheduler steered reads the array job_order_factor, which is not set"):
        decima.simulate(JOBS, policy, 5)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda weights: weights[:10], "architecture paper has 12736 weights, got an array of shape"),
        (lambda weights: weights.astype("f8"), "weights must be a float32 array, got float64"),
        (lambda weights: weights.tolist(), "weights must be a float32 array, got list"),
        (lambda weights: np.where(np.arange(len(weights)) == 7, np.float32("nan"), weights), "finite, number 7 is nan"),
    ],
)
def test_other_weights_are_checked_and_copied(spoil, message):
    architecture = Architecture()
    policy = LearnedScheduler(architecture, architecture.initial_weights(0))
    before = decima.simulate(JOBS, policy, 5).avg_jct_s
    with pytest.raises(ConfigError, match=message):
        policy.weights = spoil(policy.weights)
    with pytest.raises(ConfigError, match=message):
        LearnedScheduler(architecture, spoil(policy.weights))
    mine = policy.weights.copy()
    policy.weights = mine
    mine[:] = 0.0
    assert decima.simulate(JOBS, policy, 5).avg_jct_s == before
    with pytest.raises(AttributeError, match="architecture"):
        policy.architecture = Architecture()


@pytest.mark.parametrize("array", ["values_ms", "stage_tasks", "job_arrival_ms", "child", "job_first_stage"])
def test_a_slip_on_a_view_does_not_reach_other_runs(array):
    class Careless:
        name = "careless"

        def reset(self, rng):
            """Nothing to forget."""

        def decide(self, observation):
            view = getattr(observation.state, array)
            view += 1
            return observation.grant(observation.frontier[0], 1)

    expected = decima.simulate(JOBS, "fair", 5).avg_jct_s
    with pytest.raises(ValueError, match="read-only"):
        decima.simulate(JOBS, Careless(), 5)
    env = SparkClusterEnv(JOBS, 5)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="read-only"):
        getattr(env.state, array)[:] = 1
    assert decima.simulate(synthetic_batch(3, seed=0), "fair", 5).avg_jct_s == expected
