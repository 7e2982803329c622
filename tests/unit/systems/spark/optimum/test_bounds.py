"""The parts of the lower bound against examples by hand and against every order of small cases."""

import itertools

import numpy as np
import pytest

from decima.evaluation.run import simulate
from decima.systems.spark.optimum.bounds import lower_bound
from decima.systems.spark.optimum.pieces import Pieces, shortest_remaining_work
from decima.systems.spark.settings import Settings
from decima.workload import synthetic_batch
from tests.toy_jobs import job, one_stage, stage, workload

FREE = {"mode": "simplified", "executors": 2}


def slots(rule, release, size):
    """Serve unit time slots one by one, each to the released unfinished piece that the rule likes best."""
    left = list(size)
    middle, end = np.zeros(len(size)), np.zeros(len(size))
    for now in range(100):
        ready = [piece for piece in range(len(size)) if release[piece] <= now and left[piece] > 0]
        if ready:
            piece = min(ready, key=lambda piece: rule(piece, left))
            left[piece] -= 1
            middle[piece] += (now + 0.5) / size[piece]
            end[piece] = now + 1
    return middle, end


@pytest.mark.parametrize("seed", range(5))
def test_shortest_remaining_work_is_the_least_of_all_orders(seed):
    rng = np.random.default_rng(seed)
    release, size = rng.integers(0, 6, 5), rng.integers(1, 5, 5)
    least, ends = shortest_remaining_work(release.astype(float), size.astype(float))
    served = slots(lambda piece, left: left[piece], release, size)[1]
    assert list(ends.values()) == sorted(served)
    assert least == sum(served - release)
    for order in itertools.permutations(range(5)):
        assert least <= sum(slots(lambda piece, left, order=order: order[piece], release, size)[1] - release)


@pytest.mark.parametrize("seed", range(5))
def test_weight_over_work_gives_the_least_mean_busy_times(seed):
    rng = np.random.default_rng(seed)
    release, size, weight = rng.integers(0, 6, 5), rng.integers(1, 5, 5), rng.uniform(0.1, 1.0, 5)
    pieces = object.__new__(Pieces)
    pieces.head, pieces.size = release.astype(float), size.astype(float)
    middle = pieces._mean_busy_ms(weight)
    assert middle == pytest.approx(slots(lambda piece, left: -weight[piece] / size[piece], release, size)[0])
    for order in itertools.permutations(range(5)):
        other = slots(lambda piece, left, order=order: order[piece], release, size)[0]
        assert weight @ middle <= weight @ other + 1e-9


def test_path_and_work_by_hand():
    chain = job(stage("a", 2, 3.0), stage("b", 1, 5.0, 0))  # path 8 s, work 11 s
    small = one_stage(4, 1.0)  # path 2 s, work 4 s
    bound = lower_bound(workload(chain, small), Settings.of_mode(durations="mean", **FREE))
    assert bound.job_path_ms.tolist() == [8000.0, 2000.0]
    assert bound.path_ms == 5000.0
    assert bound.work_ms == (2000.0 + 7500.0) / 2
    # The small job first ends at 2 s, the chain then at 10 s; no schedule is better on average.
    best = simulate(workload(chain, small), "sjf_cp", **FREE).avg_jct_ms
    assert 5000.0 < bound.combined_ms <= best == 6000.0
    assert bound.avg_jct_s == pytest.approx(bound.combined_ms / 1000.0)


def test_the_second_executor_is_slower_where_parallelism_costs():
    """Four tasks of 1 s alone, of 2 s each with two executors: rates 1 and 1/2 per second."""
    slow = stage("a", 4, 1.0)
    lists = tuple(np.array([1000.0 * level]) for level in (1, 2))
    costly = type(slow)("a", 4, (), (1, 2), lists, lists, lists)
    bound = lower_bound(workload(job(costly)), Settings(executors=2, durations="mean", moving_delay_ms=0.0))
    assert bound.path_ms == pytest.approx(4000.0 / 1.5)


def test_sampled_durations_have_a_looser_bound():
    batch = synthetic_batch(8, 3)
    mean, sampled = (lower_bound(batch, Settings(durations=name), price_rounds=5) for name in ("mean", "sampled"))
    assert sampled.avg_jct_ms < mean.avg_jct_ms
    assert str(sampled).endswith("sampled durations)")
    assert mean.as_dict()["lower_bound_s"] == max(mean.as_dict().values())
