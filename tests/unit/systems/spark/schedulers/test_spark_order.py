"""Spark's own FIFO and FAIR: by hand, and against Spark's comparators in plain Python, core by core."""

from collections import Counter
from functools import cmp_to_key
from pathlib import Path

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError
from decima.systems.spark.schedulers import Decision, make_scheduler
from decima.systems.spark.state import new_state
from decima.systems.spark.system import run_state
from tests.random_clusters import random_settings, random_workload
from tests.services import sessions_of
from tests.spark import order_runs
from tests.toy_jobs import one_stage, workload

TENS = workload(one_stage(10, 1.0, name="a1"), one_stage(10, 1.0, name="a2"), one_stage(10, 1.0, name="b1"))


def grants(scheduler, jobs, executors, at_s=0.0):
    """(job, stage, executors) of the decisions at a time."""
    result = decima.simulate(jobs, scheduler, executors, log=True, mode="simplified", runnable_only=True)
    return [(row[4], row[5], row[7]) for row in result.log.decision_lists() if row[0] == 1000.0 * at_s]


@pytest.mark.parametrize(
    ("pools", "executors", "expected"),
    [
        ("each", 6, [(0, 0, 2), (1, 0, 2), (2, 0, 2)]),
        ("each", 7, [(0, 0, 3), (1, 0, 2), (2, 0, 2)]),
        ("one", 6, [(0, 0, 6)]),
        ("#0/3+#1-2", 8, [(0, 0, 6), (1, 0, 2)]),  # job 2 waits behind job 1 in a pool that is FIFO
        ("a*+b*", 4, [(0, 0, 2), (2, 0, 2)]),
        ("a*/1/0/fair+b*", 4, [(0, 0, 1), (2, 0, 2), (1, 0, 1)]),
        ("a*/2/0/fair+b*", 6, [(0, 0, 2), (2, 0, 2), (1, 0, 2)]),
        ("b*/1/3+a*", 4, [(2, 0, 3), (0, 0, 1)]),  # b has its minimum share before a has anything
        ("b*/1/2+a*/1/4", 5, [(0, 0, 3), (2, 0, 2)]),  # both below: by part of the minimum share
        ("b*/1/1+a*", 6, [(2, 0, 3), (0, 0, 3)]),  # above it shares are as without
        ("a2", 4, [(1, 0, 2), (0, 0, 2)]),  # the others are in the pool `default`; "a2" comes before it
        ("z*+a2/2", 3, [(1, 0, 2), (0, 0, 1)]),
    ],
)
def test_pools_weights_and_minimum_shares(pools, executors, expected):
    assert grants(make_scheduler(f"spark_fair:pools={pools}"), TENS, executors) == expected


class Plain:
    """Spark's rule as `Pool` and `FairSchedulingAlgorithm` have it, one core after the other."""

    name = "plain"

    def __init__(self, pools):
        self.pools = pools  # (name, weight, minimum share, whether fair) by job

    def reset(self, rng):
        pass

    def decide(self, observation):
        state = observation.state
        stages = [each for each in observation.frontier if each.runnable]
        if not stages and not state.reoffer:
            stages = observation.frontier
        place = {each.id: number for number, each in enumerate(observation.jobs)}
        given = Counter()

        def running(each):
            at = each.id
            return int(state.stage_executors[at] + state.stage_moving[at] + state.stage_commit[at]) + given[at]

        def pool_running(name):
            held = sum(each.allocation for each in observation.jobs if self.pools[each.id][0] == name)
            return held + sum(given[each.id] for each in stages if self.pools[each.job.id][0] == name)

        def next_stage():
            queue = sorted({self.pools[each.job.id] for each in stages}, key=cmp_to_key(before))
            for pool in queue:
                members = [each for each in stages if self.pools[each.job.id] == pool]
                members.sort(key=lambda each: (running(each) if pool[3] else 0, place[each.job.id], each.index))
                for each in members:
                    if each.room > given[each.id]:
                        return each
            return None

        def before(one, other):
            (name_1, weight_1, least_1, _), (name_2, weight_2, least_2, _) = one, other
            running_1, running_2 = pool_running(name_1), pool_running(name_2)
            needy_1, needy_2 = running_1 < least_1, running_2 < least_2
            if needy_1 and not needy_2:
                return -1
            if needy_2 and not needy_1:
                return 1
            if needy_1:
                compare = running_1 / max(least_1, 1.0) - running_2 / max(least_2, 1.0)
            else:
                compare = running_1 / weight_1 - running_2 / weight_2
            return compare or (-1 if name_1 < name_2 else 1)

        first = next_stage()
        if first is None:
            return Decision.idle()
        for _ in range(observation.num_free_executors):
            each = next_stage()
            if each is None:
                break
            given[each.id] += 1
        return observation.grant(first, given[first.id])


POOLS = {
    "one": lambda number, count: ("all", 1, 0, False),
    "#0-1/3/2/fair+*/1/1": lambda number, count: ("#", 3, 2, True) if number < 2 else ("*", 1, 1, False),
    "#1/2/0/fair+#2/1/3": lambda number, count: {1: ("#1", 2, 0, True), 2: ("#2", 1, 3, False)}.get(
        number, ("default", 1, 0, False)
    ),
    "*/1/0/fair": lambda number, count: ("*", 1, 0, True),
}


@pytest.mark.parametrize("pools", POOLS)
def test_the_compiled_rule_is_that_of_spark(pools):
    decisions = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        jobs, settings = random_workload(rng), random_settings(rng)
        plain = Plain([POOLS[pools](number, len(jobs)) for number in range(len(jobs))])
        states = [new_state(jobs, settings, log_decisions=True) for _ in range(2)]
        for state, scheduler in zip(states, (plain, make_scheduler(f"spark_fair:{pools}")), strict=True):
            run_state(state, scheduler, seed)
        np.testing.assert_array_equal(states[1].logged_decisions, states[0].logged_decisions, err_msg=f"seed {seed}")
        decisions += len(states[0].logged_decisions)
    assert decisions > 800


def test_one_pool_is_fifo():
    for seed in range(10):
        jobs = random_workload(np.random.default_rng(seed))
        runs = [decima.simulate(jobs, name, 5, seed, log=True) for name in ("spark_fifo", "spark_fair:one")]
        assert runs[0].log.decision_lists() == runs[1].log.decision_lists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("spark_fair:a/1/2/fair/5", "'a/1/2/fair/5' is not a pool; expected PATTERN/WEIGHT/MIN_SHARE/ORDER"),
        ("spark_fair:#x", "'#x' is not a pool"),
        ("spark_fair:a+", "'' is not a pool"),
        ("spark_fair:a/0", "expected a weight of at least 1"),
        ("spark_fair:a/1/-1", "expected a weight of at least 1, a minimum share of at least 0"),
        ("spark_fair:a/1/1/lifo", "fifo or fair"),
        ("spark_fair:a/x", "'a/x' is 'x'; expected a whole number"),
        ("spark_fair:pool=a", "has no option 'pool'; did you mean 'pools'?"),
        ("spark_fifo:sticky=1", "scheduler spark_fifo has no parameter 'sticky'"),
    ],
)
def test_bad_pools_are_one_sentence(text, message):
    with pytest.raises(ConfigError) as caught:
        make_scheduler(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_service_has_no_names_of_jobs():
    with pytest.raises(ConfigError, match="spark_fair reads names and numbers of jobs, which no client reports"):
        sessions_of("spark_fair:a*")


LOGS = Path(__file__).parent / "logs"


@pytest.mark.parametrize(("run", "gap"), [("fifo", 1), ("fair", 0)])
def test_a_real_spark_launched_its_tasks_in_this_order(run, gap):
    """Runs of Spark 4.3.0 on three executors, recorded by `tests/spark/order_runs.py`."""
    rows = order_runs.read(LOGS / f"order-{run}.csv")
    real, simulated, in_gap = order_runs.both_orders(run, rows)
    assert simulated == real
    assert in_gap == gap
    assert len(real) + gap == sum(query.tasks + 3 * (query.stages - 1) for query in order_runs.RUNS[run])


@pytest.mark.parametrize(("run", "other"), [("fifo", "spark_fair"), ("fair", "spark_fair:one"), ("fair", "spark_fifo")])
def test_other_orders_are_told_apart_from_that_of_a_real_spark(run, other, monkeypatch):
    monkeypatch.setitem(order_runs.SCHEDULERS, run, other)
    real, simulated, _ = order_runs.both_orders(run, order_runs.read(LOGS / f"order-{run}.csv"))
    assert simulated != real
