"""Paths of favourite parents, and the executors that they go to."""

from itertools import pairwise

import numpy as np

from decima.systems.unequal import Cluster, Instance, Job, canonical, plan, validate
from decima.systems.unequal.schedulers.clustering import clusters, merged, times
from tests.unequal_instances import draw_instance

# A fork whose children both wait for the root: sending takes longer than executing it again.
FORK = Job("fork", [2.0, 3.0, 4.0], [(0, 1), (0, 2)], [9.0, 9.0])
TWO = Instance([FORK], Cluster([1.0, 1.0], 1.0))


def test_times_by_hand():
    found = times(TWO)
    assert found.earliest_s.tolist() == [0.0, 2.0, 2.0]
    assert found.completion_s.tolist() == [2.0, 5.0, 6.0]
    assert found.favourite.tolist() == [-1, 0, 0]
    assert found.latest_completion_s.tolist() == [2.0, 6.0, 6.0]
    join = times(Instance([Job("join", [1.0, 2.0, 1.0], [(0, 2), (1, 2)], [5.0, 3.0])], Cluster([1.0], 1.0)))
    # The first parent's data would be there at 6, the second's at 5; behind the first the node starts at 5.
    assert join.favourite.tolist() == [-1, -1, 0]
    assert join.earliest_s.tolist() == [0.0, 0.0, 5.0]


def test_shared_nodes_are_on_both_paths_or_on_one():
    assert clusters(TWO, times(TWO), duplicate=True) == [[0, 1], [0, 2]]
    assert clusters(TWO, times(TWO), duplicate=False) == [[0, 1], [2]]
    schedule = plan(TWO, scheduler="tds")
    assert schedule.makespan_s == 6.0
    assert schedule.duplicate.sum() == 1


def test_every_node_is_on_a_path_and_on_an_executor():
    for seed in range(20):
        instance = draw_instance(seed, ccr=2.0, stream=seed % 2 == 0)
        for duplicate in (False, True):
            paths = clusters(instance, times(instance), duplicate=duplicate)
            start, parents, _ = instance.parents
            for path in paths:
                for above, below in pairwise(path):
                    assert above in parents[start[below] : start[below + 1]]
            nodes = [node for path in paths for node in path]
            assert set(nodes) == set(range(len(instance)))
            assert duplicate or len(nodes) == len(instance)
            placed = merged(instance, paths)
            assert len(placed) == len(instance.cluster)
            assert {node for each in placed for node in each} == set(nodes)


def test_dfrn_takes_copies_back_that_do_not_help():
    cheap = Instance([Job("fork", [2.0, 3.0, 4.0], [(0, 1), (0, 2)], [0.0, 0.0])], Cluster([1.0, 1.0], 1.0))
    assert not plan(cheap, scheduler="dfrn").duplicate.any()
    dear = plan(TWO, scheduler="dfrn")
    validate(TWO, dear)
    assert dear.makespan_s == 6.0
    assert dear.duplicate.sum() == 1


def test_canonical_example():
    lengths = {name: plan(canonical(), scheduler=name).makespan_s for name in ("tds", "tdca", "dfrn")}
    assert lengths == {"tds": 78.0, "tdca": 73.0, "dfrn": 73.0}
    assert np.isfinite(times(canonical()).latest_s).all()
