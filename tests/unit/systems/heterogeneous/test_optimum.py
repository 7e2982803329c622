"""Optimum, bounds and searched priorities: proved numbers, HiGHS, and every scheduler on tiny instances."""

import subprocess
import sys
import time

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError, PolicyError
from decima.core.extras import MissingExtraError
from decima.systems.heterogeneous import (
    Cluster,
    Instance,
    Job,
    canonical,
    list_schedulers,
    lower_bound,
    plan,
    search,
    validate,
)
from decima.systems.heterogeneous.optimum import cp_sat
from decima.systems.heterogeneous.optimum.bounds import bounds, unit_s
from decima.systems.heterogeneous.optimum.exact import NotProvedError, optimum
from decima.systems.heterogeneous.sources import ClusterOptions, read_instance
from tests.heterogeneous_instances import draw_instance

KINDS = ("speeds", "rates", "costs")


@pytest.mark.parametrize(("duplicate", "makespan_s"), [(False, 73.0), (True, 69.0)])
def test_canonical_example(duplicate, makespan_s):
    found = optimum(canonical(), duplicate=duplicate)
    validate(canonical(), found.schedule)
    assert found.makespan_s == found.schedule.makespan_s == found.bound_s == makespan_s
    assert found.explored > 0
    assert found.schedule.duplicate.any() == duplicate
    assert found.schedule.scheduler == "optimum"


def test_a_late_copy_is_for_the_short_path_alone():
    """One child of a node is long; the other one's copy of it has to wait for what an executor does before."""
    fork = Job("fork", [1.0, 10.0, 1.0], [(0, 1), (0, 2)], [50.0, 50.0])
    pair = Job("pair", [9.0, 1.0], [(0, 1)], [1.0])
    instance = Instance([fork, pair, Job("alone", [10.0])], Cluster([1.0] * 3, 1.0))
    assert optimum(instance).makespan_s == 11.0
    assert optimum(instance, duplicate=False).makespan_s > 11.0


@pytest.mark.parametrize("duplicate", [False, True])
@pytest.mark.parametrize(
    ("text", "executors", "limit_s"), [("random:nodes=10,ccr=3", 3, 5.0), ("random:nodes=20,ccr=1", 4, 60.0)]
)
def test_cp_sat_proves_in_time(text, executors, limit_s, duplicate):
    instance = read_instance(text, ClusterOptions(executors=executors))
    lower_bound(instance)  # compiles
    found = optimum(instance, duplicate=duplicate, time_limit_s=limit_s)
    validate(instance, found.schedule)
    assert found.makespan_s * (1.0 - cp_sat.TOLERANCE) <= found.bound_s


def test_cp_sat_stops_when_interrupted(monkeypatch):
    instance = read_instance("random:nodes=60,ccr=1", ClusterOptions(executors=8))
    solve, begin = cp_sat.solve, time.monotonic()

    def interrupted(*given, **named):
        def tick():
            raise KeyboardInterrupt

        return solve(*given, **named | {"tick": tick})

    monkeypatch.setattr(cp_sat, "solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        optimum(instance, time_limit_s=300.0)
    assert time.monotonic() - begin < 150.0


@pytest.mark.slow
@pytest.mark.parametrize("order", ["solver first", "tensorflow first"])
def test_the_solver_and_tensorflow_live_in_one_process(order):
    """Both have libraries with symbols of the same names; mixed up, they crash."""
    prove = "assert optimum(random_dag(14, 4, ccr=1.0)).explored > 0"
    learn = "import tensorflow as tf; assert float(tf.reduce_sum(tf.matmul(tf.ones((8, 4)), tf.ones((4, 8))))) == 256.0"
    lines = [prove, learn, prove] if order == "solver first" else [learn, prove, learn]
    names = (("generators", "random_dag"), ("optimum.exact", "optimum"))
    imports = [f"from decima.systems.heterogeneous.{module} import {name}" for module, name in names]
    done = subprocess.run([sys.executable, "-c", "\n".join(imports + lines)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]


def test_a_solver_that_is_not_there_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "ortools", None)
    with pytest.raises(MissingExtraError, match=r"ortools is not installed, .*: pip install '.\[exact\]'"):
        optimum(canonical())
    result = decima.optimum(canonical(), budget=50)
    assert not result.proved


def test_nothing_is_below_the_optimum_on_tiny_instances():
    gains = 0
    for seed in range(50):
        options = {"kind": KINDS[seed % 3], "stream": seed % 5 == 0, "ccr": (0.1, 1.0, 5.0)[seed % 3]}
        instance = draw_instance(seed, jobs=1, nodes=7, executors=2 + seed % 2, **options)
        with_copies, without = (optimum(instance, duplicate=each).makespan_s for each in (True, False))
        slack = 1.0 + 1e-9
        assert with_copies <= without * slack
        gains += with_copies < without
        assert lower_bound(instance) <= with_copies * slack
        assert lower_bound(instance, duplicate=False) <= without * slack
        for name in list_schedulers(bare=True):
            schedule = plan(instance, scheduler=name)
            floor = with_copies if schedule.duplicate.any() else without
            assert floor <= schedule.makespan_s * slack, (seed, name)
    assert gains > 0


def test_bounds_by_hand():
    # Both parents somewhere else, or one after the other in the same place.
    join = Job("join", [4.0, 6.0, 2.0], [(0, 2), (1, 2)], [3.0, 8.0])
    instance = Instance([join], Cluster([2.0, 1.0], 1.0))
    found = bounds(instance)
    assert found.path_s == 4.0  # 3 + 1
    assert found.work_s == 4.0  # 12 / 3
    assert found.transfers_s == 6.0  # the second parent here until 3, the first one's data at 2 + 3; then 1
    assert optimum(instance).makespan_s >= 6.0
    late = Instance([join, Job("late", [30.0], arrival_s=10.0)], Cluster([2.0, 1.0], 1.0))
    assert bounds(late).path_s == 25.0
    assert bounds(late).work_s == 20.0
    fork = Job("fork", [2.0, 2.0, 2.0], [(0, 1), (0, 2)], [5.0, 5.0])
    apart = bounds(Instance([fork], Cluster([1.0, 1.0], 1.0)))
    assert apart.transfers_s == 4.0
    assert apart.single_copy_s == 6.0  # all three in one place


UNITS = {
    "whole": (Job("a", [4.0, 6.0], [(0, 1)], [2.0]), Cluster([1.0, 2.0], 1.0), "1"),
    "common factor": (Job("a", [4.0, 6.0], [(0, 1)], [8.0]), Cluster([1.0, 1.0], 1.0), "2"),
    "decimals": (Job("a", [0.1, 0.3]), Cluster([1.0, 1.0], 1.0), "1/10"),
    "speeds": (Job("a", [1.0, 1.0]), Cluster([1.0, 3.0, 0.4], 1.0), "1/6"),  # 1, 1/3 and 5/2 s
    "latency": (Job("a", [1.0, 1.0], [(0, 1)], [0.0]), Cluster([1.0, 1.0], 1.0, 0.25), "1/4"),
    "rates": (Job("a", [1.0, 1.0], [(0, 1)], [1.0]), Cluster([1.0, 1.0], [[9.0, 5.0], [4.0, 9.0]]), "1/20"),
    "arrival": (Job("a", [2.0], arrival_s=3.0), Cluster([1.0]), "1"),
    "costs": (Job("a", [0.0, 0.0]), Cluster(costs=[[2.0, np.inf], [4.0, 6.0]], rate=np.inf), "2"),
    "nothing": (Job("a", [0.0]), Cluster([1.0]), "None"),
    "one executor": (Job("a", [2.0, 4.0], [(0, 1)], [0.3]), Cluster([1.0]), "2"),
}


@pytest.mark.parametrize("case", UNITS)
def test_units_by_hand(case):
    job, cluster, expected = UNITS[case]
    assert str(unit_s(Instance([job], cluster))) == expected


@pytest.mark.parametrize(("work", "speed"), [(3.0, 1.0), (0.3, 1.0), (3.0, 3.0), (2.1, 0.3)])
def test_a_bound_is_rounded_up_to_the_unit(work, speed):
    """Seven nodes on two equal executors: half of the work is no sum of nodes."""
    bag = Instance([Job("bag", [work] * 7)], Cluster([speed, speed], 1.0))
    found = optimum(bag)
    assert found.explored == 0
    assert found.bound_s == pytest.approx(found.makespan_s) == pytest.approx(4.0 * work / speed)
    assert lower_bound(bag) == pytest.approx(3.5 * work / speed)
    best = decima.optimum(bag, budget=20)
    assert best.proved
    assert best.bound == pytest.approx(4.0 * work / speed)


def test_forty_nodes_of_whole_times_are_proved():
    """Like a standard task graph: the bound, work over executors, is half a second below the optimum."""
    rng = np.random.default_rng(3)
    work = rng.integers(1, 11, 40)
    work[0] += (2 - work.sum()) % 4
    edges = [(a, b) for b in range(40) for a in range(b) if rng.random() < 0.06]
    instance = Instance([Job("graph", work, edges, np.zeros(len(edges)))], Cluster([1.0] * 4, 1.0))
    assert lower_bound(instance, duplicate=False) % 1.0 == 0.5
    found = optimum(instance, duplicate=False, time_limit_s=60.0)
    assert found.makespan_s == found.bound_s == lower_bound(instance, duplicate=False) + 0.5


def test_no_answer_in_time_is_said():
    instance = read_instance("random:nodes=40,ccr=3", ClusterOptions(executors=6))
    with pytest.raises(NotProvedError, match=r"no proof within 0\.01 s: the best schedule found takes .* none takes"):
        optimum(instance, time_limit_s=0.01)
    with pytest.raises(ConfigError, match="has 70 nodes; the search for the optimum takes 64 at most"):
        optimum(read_instance("random:nodes=70"))
    with pytest.raises(ConfigError, match="time_limit_s is 0; expected a number above 0"):
        optimum(instance, time_limit_s=0)


def test_search_gets_shorter_and_repeats():
    instance = read_instance("random:nodes=30,ccr=3", ClusterOptions(executors=4), seed=2)
    found = search(instance, 300, seed=1)
    validate(instance, found.schedule)
    assert found.schedule.makespan_s == found.makespan_s < found.start_s
    assert found.start_s <= plan(instance, scheduler="discounted_rank").makespan_s
    assert found.makespan_s >= lower_bound(instance)
    assert found.tries == 300
    again = search(instance, 300, seed=1)
    assert again.priority.tolist() == found.priority.tolist()
    more = search(instance, 600, seed=1)
    assert more.makespan_s <= found.makespan_s


def test_bad_budgets():
    with pytest.raises(ConfigError, match="budget must be a whole number of at least 1"):
        search(canonical(), 0)
    with pytest.raises(ConfigError, match="seed must be"):
        search(canonical(), 5, seed=-1)


def test_the_best_sample_is_never_longer_than_the_likeliest_plan():
    instance = read_instance("random:nodes=30,ccr=2", ClusterOptions(executors=4), seed=1)
    spans = [plan(instance, scheduler=f"best_sample:samples={count}").makespan_s for count in (0, 8, 64)]
    assert spans[0] == plan(instance, scheduler="lachesis").makespan_s
    assert spans[0] >= spans[1] >= spans[2]
    assert spans[2] < spans[0]
    with pytest.raises(ConfigError, match="samples is -1; expected 0 to"):
        plan(instance, scheduler="best_sample:samples=-1")


def test_the_best_plan_is_the_shortest_of_those_it_makes():
    instance = read_instance("random:nodes=30,ccr=2", ClusterOptions(executors=4), seed=1)
    ranks = [f"discounted_rank:discount={discount}" for discount in (1, 0.5, 0.25, 0.1, 0)]
    rules = [plan(instance, scheduler=name).makespan_s for name in (*ranks, "linear_rank")]
    assert plan(instance, scheduler="best_plan:policy=none").makespan_s == min(rules) < max(rules)
    learned = plan(instance, scheduler="lachesis").makespan_s
    assert plan(instance, scheduler="best_plan").makespan_s == min(*rules, learned)
    with pytest.raises(PolicyError, match="unknown policy 'nobody'"):
        plan(instance, scheduler="best_plan:policy=nobody")
    with pytest.raises(ConfigError, match="decision cannot be set to 'idle'"):
        plan(instance, scheduler="best_plan:decision=idle")
