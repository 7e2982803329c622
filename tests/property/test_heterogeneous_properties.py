"""Schedulers of heterogeneous executors on random instances: valid, equal to plain Python, never below the bounds."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decima.connect.service.node_client import schedule_by_service
from decima.systems.heterogeneous import Cluster, Instance, Rules, list_schedulers, metrics, plan, validate
from decima.systems.heterogeneous.engine import FIXED, LEAST_LEFT, RESPONSE_RATIO, list_rule
from decima.systems.heterogeneous.settings import DECISIONS, SLOTS, TRANSFERS
from tests.differential.heterogeneous_oracle import PlainScheduler
from tests.heterogeneous_instances import draw_instance, instances
from tests.services import Direct, sessions_of

CHOICES = {"fixed": FIXED, "least_left": LEAST_LEFT, "response_ratio": RESPONSE_RATIO}
rules = st.sampled_from(
    [
        Rules(decision, slots, duplicate, transfers)
        for decision, slots in product(DECISIONS, SLOTS)
        if (decision, slots) != ("idle", "insertion")
        for duplicate, transfers in product((False, True), TRANSFERS)
    ]
)


def copies_of(schedule):
    """Copies in the order of the decisions: (node, executor, start, finish)."""
    columns = (schedule.node, schedule.executor, schedule.start_s, schedule.finish_s)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@settings(max_examples=150, deadline=None)
@given(instance=instances, rules=rules, choice=st.sampled_from(sorted(CHOICES)), seed=st.integers(0, 1000))
def test_compiled_equals_plain_python_copy_for_copy(instance, rules, choice, seed):
    priority = np.random.default_rng(seed).integers(0, 6, len(instance)).astype(float)  # with ties
    schedule = list_rule(instance, rules, priority, choice=CHOICES[choice]).schedule()
    twin = PlainScheduler(instance, rules, choice=choice)
    expected = twin.run(priority.tolist())
    assert copies_of(schedule) == expected
    validate(instance, schedule)
    for least, finish, copied in twin.steps:
        assert finish < least if copied else finish == least


@settings(max_examples=30, deadline=None)
@given(instance=instances, seed=st.integers(0, 1000), slots=st.sampled_from(["append", "insertion"]))
def test_bias_and_forced_executors_equal_plain_python(instance, seed, slots):
    rng = np.random.default_rng(seed)
    priority = rng.random(len(instance))
    bias = rng.uniform(0.0, 5.0, (len(instance), len(instance.cluster)))
    forced = rng.integers(-1, len(instance.cluster), len(instance))
    rules = Rules(slots=slots, duplicate=False)
    for options in ({"bias": bias}, {"forced": forced}):
        schedule = list_rule(instance, rules, priority, **options).schedule()
        expected = PlainScheduler(instance, rules, **options).run(priority.tolist())
        assert copies_of(schedule) == expected


@settings(max_examples=15, deadline=None)
@given(instance=instances, seed=st.integers(0, 1000))
def test_every_scheduler_makes_valid_schedules(instance, seed):
    for name in list_schedulers(bare=True):
        schedule = plan(instance, scheduler=name, seed=seed)
        validate(instance, schedule)
        assert schedule.makespan_s == schedule.first_finish_s.max()
        assert schedule.scheduler == name


@settings(max_examples=25, deadline=None)
@given(instance=instances, seed=st.integers(0, 1000))
def test_dropping_unread_copies_never_takes_longer(instance, seed):
    for scheduler in ("high_rank_up_deft", "random_deft:slots=insertion"):
        before = plan(instance, scheduler=scheduler, seed=seed)
        after = plan(instance, scheduler=scheduler, seed=seed, drop_unread=True)
        validate(instance, after)
        assert after.makespan_s <= before.makespan_s
        assert len(after) <= len(before)
        read = {*after.sources()[:, 0].tolist()}
        children = np.diff(instance.children[0])
        assert all(copy in read or children[node] == 0 for copy, node in enumerate(after.node.tolist()))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), stream=st.booleans(), name=st.sampled_from(list_schedulers(bare=True)))
def test_twice_the_work_and_data_take_twice_the_time(seed, stream, name):
    small = draw_instance(seed, stream=stream)
    jobs = [replace(job, work=2.0 * job.work, data=2.0 * job.data, arrival_s=2.0 * job.arrival_s) for job in small.jobs]
    large = Instance(jobs, small.cluster)
    assert plan(large, scheduler=name).makespan_s == pytest.approx(2.0 * plan(small, scheduler=name).makespan_s)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), rules=rules)
def test_free_transfers_need_no_copies(seed, rules):
    instance = draw_instance(seed, ccr=0.0)
    schedule = list_rule(instance, replace(rules, duplicate=True), np.zeros(len(instance))).schedule()
    assert not schedule.duplicate.any()
    assert metrics(schedule).duplicates == 0


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), rules=rules)
def test_given_times_that_come_of_speeds_change_nothing(seed, rules):
    instance = draw_instance(seed, stream=True)
    costs = instance.work[:, None] / instance.cluster.speeds
    given_times = Instance(instance.jobs, Cluster(costs=costs, rate=1.0))
    priority = np.random.default_rng(seed).random(len(instance))
    first, second = (list_rule(each, rules, priority).schedule() for each in (instance, given_times))
    assert copies_of(first) == copies_of(second)


SERVED = {f"{name}:decision={decision}" for name in ("heft", "sjf_deft", "lachesis") for decision in DECISIONS}


@pytest.fixture(scope="module")
def client():
    return Direct(sessions_of("fair", heterogeneous=sorted(SERVED)))


@settings(max_examples=25, deadline=None)
@given(instance=instances, most=st.sampled_from([0, 1, 3]))
def test_a_service_makes_the_same_schedule_step_by_step(client, instance, most):
    for name in sorted(SERVED):
        there = schedule_by_service(instance, client, name, most=most)
        here = plan(instance, scheduler=name)
        assert copies_of(there) == copies_of(here), name
