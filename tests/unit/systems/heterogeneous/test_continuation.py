"""Decisions that go on from a schedule that was begun, whose executors may not be free yet."""

import itertools
import json

import numpy as np
import pytest

from decima.core.errors import WorkloadError
from decima.systems.heterogeneous import Cluster, Instance, Job, make_scheduler, plan, save_instance, validate
from decima.systems.heterogeneous.continuation import Copy, decide
from decima.systems.heterogeneous.optimum.exact import optimum
from tests.heterogeneous_instances import draw_instance
from tests.reliability.heterogeneous_checker import Run, brute_force_s

INSERTING = ("heft", "lachesis", "discounted_rank", "linear_rank")


@pytest.mark.parametrize("last_work", [20.0, 4.0])
@pytest.mark.parametrize("name", ["lachesis", "discounted_rank", "linear_rank"])
def test_executor_that_holds_a_later_copy_of_the_parent_gets_no_other_copy(name, last_work):
    """Node 2 of one job runs from 50 on; node 1 needs node 0, node 3 needs node 2."""
    job = Job("a", [5, 5, 1, last_work], [(1, 0), (2, 3)], [1.0, 1.0])
    rule = make_scheduler(name).list_rule(Instance([job], Cluster([1.0], 1.0)), 0)
    copies = decide(rule, [Copy(2, 0, 50.0, 51.0)], np.zeros(1), 0.0)
    assert sorted(copy.node for copy in copies) == [0, 1, 3]
    start = {copy.node: copy.start_s for copy in copies}
    finish = {copy.node: copy.finish_s for copy in copies}
    assert start[0] >= finish[1]
    assert start[3] >= 51.0
    spans = sorted((copy.start_s, copy.finish_s) for copy in [*copies, Copy(2, 0, 50.0, 51.0)])
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))


@pytest.mark.parametrize("name", INSERTING)
def test_gaps_before_an_executor_is_available_stay_empty(name):
    jobs = [Job("a", [10.0], [], []), Job("b", [10.0], [], [])]
    rule = make_scheduler(name).list_rule(Instance(jobs, Cluster([1.0], 1.0)), 0)
    (copy,) = decide(rule, [Copy(0, 0, 50.0, 60.0)], np.array([100.0]), 0.0)
    assert (copy.node, copy.start_s, copy.finish_s) == (1, 100.0, 110.0)
    (copy,) = decide(rule, [Copy(0, 0, 50.0, 60.0)], np.array([30.0]), 0.0)
    assert (copy.start_s, copy.finish_s) == (30.0, 40.0)  # what is left of the gap is used


@pytest.mark.parametrize("name", INSERTING)
def test_every_answer_is_after_its_parents_and_when_executors_are_there(name):
    """A client that reports a beginning of the plan and other times of availability, checked in plain Python."""
    for seed in range(12):
        instance = draw_instance(seed, jobs=2, nodes=6, executors=3, ccr=3.0)
        rng = np.random.default_rng(seed)
        whole = plan(instance, scheduler=name)
        order = np.argsort(whole.start_s, kind="stable")
        begun = [
            Copy(int(whole.node[at]), int(whole.executor[at]), float(whole.start_s[at]), float(whole.finish_s[at]))
            for at in order[: len(order) // 3]
        ]
        known = {copy.node for copy in begun}
        begun = [copy for copy in begun if all(parent in known for parent in parents(instance, copy.node))]
        available_s = rng.uniform(0.0, 2.0 * whole.makespan_s, 3)
        rule = make_scheduler(name).list_rule(instance, 0)
        made = decide(rule, begun, available_s, 0.0)
        everything = [*begun, *made]
        assert {copy.node for copy in everything} == set(range(len(instance)))
        for copy in made:
            assert np.isfinite(copy.finish_s)
            assert copy.start_s >= available_s[copy.executor]
            for parent in parents(instance, copy.node):
                assert min(each.finish_s for each in everything if each.node == parent) <= copy.start_s
        for executor in range(3):
            spans = sorted((each.start_s, each.finish_s) for each in everything if each.executor == executor)
            assert all(before[1] <= after[0] + 1e-9 for before, after in itertools.pairwise(spans))


@pytest.mark.parametrize("start_s", [5.0, 10.0, 15.0])
def test_a_copy_without_length_may_lie_between_two_that_touch(start_s):
    """A client whose nodes moved tells all of them again, in the order of the decisions."""
    job = Job("a", [5.0, 5.0, 5.0, 0.0, 1.0], [(3, 4)], [2.0])
    rule = make_scheduler("heft").list_rule(Instance([job], Cluster([1.0], 1.0)), 0)
    copies = [Copy(0, 0, 5.0, 10.0), Copy(1, 0, 0.0, 5.0), Copy(2, 0, 10.0, 15.0)]
    made = decide(rule, [*copies, Copy(3, 0, start_s, start_s)], np.zeros(1), 0.0)
    assert made == [Copy(4, 0, 15.0, 16.0)]
    with pytest.raises(WorkloadError, match="from 7 to 7 lies on a copy that was told before"):
        decide(rule, [*copies, Copy(3, 0, 7.0, 7.0)], np.zeros(1), 0.0)


def parents(instance, node):
    start, parent, _ = instance.parents
    return parent[start[node] : start[node + 1]].tolist()


def test_nodes_without_work_leave_equal_executors_equal():
    job = Job("j", work=[0, 0, 10, 10], edges=[(0, 2), (1, 2), (1, 3), (0, 3)], data=[100, 1, 100, 1])
    instance = Instance([job], Cluster(speeds=[1.0, 1.0], rate=1.0))
    found = optimum(instance, duplicate=False)
    validate(instance, found.schedule)
    assert found.makespan_s == pytest.approx(11.0)


def test_entries_without_work(tmp_path):
    """Beside all schedules, tried one by one."""
    rng = np.random.default_rng(5)
    for _ in range(15):
        entries, others = int(rng.integers(2, 4)), int(rng.integers(2, 4))
        edges = [(a, entries + b) for b in range(others) for a in range(entries) if rng.uniform() < 0.7]
        work = [0.0] * entries + rng.integers(1, 12, others).tolist()
        data = rng.choice([1.0, 20.0, 100.0], len(edges)).tolist()
        instance = Instance([Job("j", work, edges, data)], Cluster(speeds=[1.0] * 3, rate=1.0))
        found = optimum(instance, duplicate=False).schedule
        validate(instance, found)
        save_instance(instance, tmp_path / "instance.json")
        every = Run(json.loads((tmp_path / "instance.json").read_text()), {})
        assert found.makespan_s == pytest.approx(brute_force_s(every, False, found.makespan_s), rel=1e-9)
