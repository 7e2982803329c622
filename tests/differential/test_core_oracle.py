"""The compiled core against the plain-Python oracle: the same decisions and random numbers, everything else equal.

A scheduler runs in the core with a decision log; the oracle replays its decisions. Compared exactly: all columns of
all decisions, every task with executor, wave and times, completions, events, and how the run ends.
"""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload import synthetic_batch, synthetic_poisson
from tests.differential.oracle import OracleSimulator
from tests.differential.oracle_policies import DynamicPartition, SparkFifo
from tests.differential.side_by_side import (
    assert_same,
    check_same,
    check_same_driven,
    core_run,
    oracle_for,
    oracle_run,
)
from tests.drivers import IN_CORE, Idler, careless_choice
from tests.random_clusters import SWITCHES, clusters, random_settings, random_workload, workloads

pytestmark = pytest.mark.differential

MODES = ("paper", "released", "simplified")
POLICIES = ("random", "fair", "weighted_fair", "capped_srw")


def cases(number, start=0):
    """(seed, workload, generator) of a number of seeds."""
    for seed in range(start, start + number):
        rng = np.random.default_rng(seed)
        yield seed, random_workload(rng), rng


@given(workloads(), clusters(modes=MODES, switches=SWITCHES), st.sampled_from(POLICIES), st.integers(0, 99))
def test_any_cluster(workload, settings, scheduler, seed):
    check_same(workload, settings, make_scheduler(scheduler), seed)


@pytest.mark.parametrize("scheduler", POLICIES)
def test_random_clusters(scheduler):
    for seed, workload, rng in cases(240):
        check_same(workload, random_settings(rng), make_scheduler(scheduler), seed)


TIES = {
    "one executor": {"executors": 1},
    "more executors than tasks": {"executors": 40},
    "moving takes no time": {"moving_delay_ms": 0.0},
    "moving takes as long as a task": {"moving_delay_ms": 1000.0},
}


@pytest.mark.parametrize("mode", ["paper", "released"])
@pytest.mark.parametrize("kind", ["equal", "few", "zero"])
@pytest.mark.parametrize("tie", TIES)
def test_ties(tie, kind, mode):
    settings = Settings.of_mode(mode, **({"executors": 6} | TIES[tie]))
    for seed in range(3000, 3008):
        workload = random_workload(np.random.default_rng(seed), kind=kind)
        for durations in ("mean", "sampled"):
            for scheduler in POLICIES:
                check_same(workload, settings.replace(durations=durations), make_scheduler(scheduler), seed)


@pytest.mark.parametrize("scheduler", IN_CORE)
@pytest.mark.parametrize("mode", ["paper", "released"])
def test_every_scheduler_on_generated_jobs(mode, scheduler):
    for seed, workload in enumerate([synthetic_batch(4, 1), synthetic_poisson(5, 12.0, 2)]):
        settings = Settings.of_mode(mode, executors=(30, 9)[seed], durations=("mean", "sampled")[seed])
        core = check_same(workload, settings, make_scheduler(scheduler), seed)
        assert len(core.tasks) == sum(job.profile.num_tasks for job in workload.jobs)
        assert sorted(core.completion_order) == list(range(len(workload)))


@given(workloads(), clusters(switches=SWITCHES), st.integers(0, 2**32 - 1))
def test_policies_that_idle_on_purpose(workload, settings, seed):
    check_same(workload, settings, Idler(0.2), seed)


def test_idling_in_part_refused_decisions_and_deadlocks():
    ends = Counter()
    for seed, workload, rng in cases(250, 4000):
        settings = random_settings(rng)
        core = check_same_driven(workload, settings, careless_choice(seed), seed)
        ends[core.error or "done"] += 1
    assert set(ends) == {"done", "deadlock", "invalid"}, ends


@pytest.mark.parametrize(("name", "policy"), [("released_fair", DynamicPartition), ("released_fifo", SparkFifo)])
def test_released_heuristics_decide_as_their_plain_versions(name, policy):
    for seed, workload, rng in cases(40, 5000):
        settings = random_settings(rng, job_limit=False)
        core = core_run(workload, settings, make_scheduler(name), seed)
        assert_same(core, oracle_run(oracle_for(workload, settings, seed), core.decisions, policy()))


def test_a_time_limit_cuts_both_at_the_same_point():
    cut = 0
    for seed, workload, rng in cases(40, 6000):
        whole = core_run(workload, random_settings(rng, time_limit_applies=False), make_scheduler("random"), seed)
        events = sorted({task[4] for task in whole.tasks} | {task[3] for task in whole.tasks})
        limit_ms = events[len(events) // 2] or 1.0  # exactly at an event, which still happens
        for time_limit_ms in (limit_ms, np.nextafter(limit_ms, 0.0)):
            settings = random_settings(rng, time_limit_applies=True, time_limit_ms=float(time_limit_ms))
            core = check_same(workload, settings, make_scheduler("fair"), seed)
            assert core.now_ms <= time_limit_ms
            cut += core.truncated
    assert cut > 40


class CountingOracle(OracleSimulator):
    """Counts how often the rarer rules apply."""

    def __init__(self, workload, settings, seed):
        super().__init__(workload, settings, seed)
        self.seen = Counter()

    def backup(self, executor):
        job, attached = executor.job, executor in self.destination
        stage = executor.stage
        super().backup(executor)
        if executor in self.destination:
            same = self.destination[executor].job is job
            self.seen["backup: moves inside its job" if same else "backup: moves to another job"] += 1
        elif executor.stage is not None:
            self.seen["backup: own runnable stage" + (", straight from a stage" if stage else "")] += 1
        else:
            self.seen["backup: pool" if executor.job else "backup: null pool"] += 1
        assert not attached

    def remove_job(self, job):
        promised = [s for s in self.sources() if any(d is not None and d.job is job for _, d in s.commitments)]
        others = [s for s in promised if s.job is not job]
        coming = [e for e, stage in self.destination.items() if stage is not None and stage.job is job]
        self.seen["job ends: commitments dropped"] += bool(others)
        self.seen["job ends: executors under way"] += bool(coming)
        self.seen["job ends: idle executors released"] += bool(job.pool.executors)
        self.seen["job ends: last executor offered"] += self.num_source > 0
        super().remove_job(job)

    def on_executor_arrival(self, executor):
        stage = self.destination[executor]
        if stage is not None and not stage.exhausted and stage not in stage.job.runnable:
            self.seen["arrives before the stage can run"] += 1
        super().on_executor_arrival(executor)

    def offer_idle(self):
        offered = super().offer_idle()
        self.seen["idle executors offered again"] += offered
        return offered

    def carry_out(self, executor, stage):
        if executor.decided != self.calls:
            self.seen["commitment older than the last call"] += 1
        if stage is not None and stage.job is executor.job and not stage.exhausted and stage not in stage.job.runnable:
            self.seen["waits for a stage of its job"] += 1
        super().carry_out(executor, stage)


def test_random_clusters_exercise_the_rare_rules():
    """So that the comparisons above mean something."""
    seen = {}
    for mode in ("paper", "released"):
        seen[mode] = Counter()
        for seed, workload, _ in cases(60):
            settings = Settings.of_mode(mode, executors=6)
            core = core_run(workload, settings, make_scheduler("random"), seed)
            oracle = CountingOracle(workload, settings, seed)
            assert_same(core, oracle_run(oracle, core.decisions))
            seen[mode] += oracle.seen
    both = {
        "job ends: commitments dropped",
        "job ends: executors under way",
        "job ends: idle executors released",
        "job ends: last executor offered",
        "arrives before the stage can run",
        "commitment older than the last call",
        "waits for a stage of its job",
        "backup: pool",
        "backup: null pool",
    }
    released = {"backup: own runnable stage", "backup: own runnable stage, straight from a stage"}
    released |= {"backup: moves inside its job", "backup: moves to another job"}
    expected = {"paper": both | {"idle executors offered again"}, "released": both | released}
    for mode, rules in expected.items():
        assert rules == {rule for rule, times in seen[mode].items() if times}, seen[mode]
