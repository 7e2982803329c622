"""Optimum and bounds: proved numbers, HiGHS, and every scheduler on tiny instances."""

import pytest

from decima.exceptions import ConfigError
from decima.heterogeneous import Cluster, Instance, Job, canonical, list_schedulers, lower_bound, plan, validate
from decima.heterogeneous.bounds import bounds
from decima.heterogeneous.exact import NotProvedError, optimum
from decima.heterogeneous.sources import ClusterOptions, read_instance
from tests.differential.heterogeneous_program import shortest_s
from tests.heterogeneous_instances import draw_instance


@pytest.mark.parametrize(("duplicate", "makespan_s"), [(False, 73.0), (True, 69.0)])
def test_canonical_example(duplicate, makespan_s):
    found = optimum(canonical(), duplicate=duplicate)
    validate(canonical(), found.schedule)
    assert found.makespan_s == found.schedule.makespan_s == makespan_s
    assert found.schedule.duplicate.any() == duplicate
    assert found.schedule.scheduler == "optimum"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("duplicate", [False, True])
def test_optimum_is_that_of_highs(seed, duplicate):
    kind = ("speeds", "rates", "costs")[seed % 3]
    instance = draw_instance(
        seed, jobs=1 + seed % 2, nodes=4, executors=2, ccr=2.0, kind=kind, stream=seed > 3, whole=seed % 2 == 1
    )
    found = optimum(instance, duplicate=duplicate)
    validate(instance, found.schedule)
    assert found.makespan_s == pytest.approx(shortest_s(instance, duplicate=duplicate), rel=2e-4)


def test_nothing_is_below_the_optimum_on_tiny_instances():
    gains = 0
    for seed in range(50):
        kind = ("speeds", "rates", "costs")[seed % 3]
        instance = draw_instance(
            seed,
            jobs=1,
            nodes=7,
            executors=2 + seed % 2,
            ccr=(0.1, 1.0, 5.0)[seed % 3],
            kind=kind,
            stream=seed % 5 == 0,
        )
        with_copies, without = (optimum(instance, duplicate=each).makespan_s for each in (True, False))
        slack = 1.0 + 1e-9
        assert with_copies <= without * slack
        gains += with_copies < without
        assert lower_bound(instance) <= with_copies * slack
        assert lower_bound(instance, duplicate=False) <= without * slack
        for name in list_schedulers():
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


def test_no_answer_in_time_is_said():
    instance = read_instance("random:nodes=40,ccr=3", ClusterOptions(executors=6))
    with pytest.raises(NotProvedError, match=r"no proof within 0\.01 s: the best schedule found takes .* none takes"):
        optimum(instance, time_limit_s=0.01)
    with pytest.raises(ConfigError, match="has 70 nodes; the search for the optimum takes 64 at most"):
        optimum(read_instance("random:nodes=70"))
    with pytest.raises(ConfigError, match="time_limit_s is 0; expected a number above 0"):
        optimum(instance, time_limit_s=0)
