"""Schedulers of heterogeneous executors on random instances: valid, equal to plain Python, never below the bounds."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from decima.systems.heterogeneous import Rules, list_schedulers, plan, validate
from decima.systems.heterogeneous.engine import FIXED, LEAST_LEFT, RESPONSE_RATIO, list_rule
from decima.systems.heterogeneous.settings import DECISIONS, SLOTS, TRANSFERS
from tests.differential.heterogeneous_oracle import PlainScheduler
from tests.heterogeneous_instances import instances

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
