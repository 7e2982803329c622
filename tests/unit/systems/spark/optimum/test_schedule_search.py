"""The clairvoyant search: between the lower bound and the rule it starts from, and repeatable."""

import itertools

import numpy as np
import pytest

from decima.core.errors import ConfigError
from decima.evaluation.pool import CandidatePool
from decima.evaluation.run import score_matrix, simulate
from decima.systems.spark.optimum.bounds import lower_bound
from decima.systems.spark.optimum.pieces import Pieces, shortest_remaining_work
from decima.systems.spark.optimum.schedule_search import STEERED_BY, search_schedule
from decima.systems.spark.optimum.schedule_search import steered as steered_rule
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload import synthetic_batch
from tests.toy_jobs import job, one_stage, stage, workload

CLUSTER = Settings.paper(executors=10, durations="mean")


def test_search_is_not_worse_than_its_start_nor_better_than_the_bound():
    batch = synthetic_batch(5, 3)
    found = search_schedule(batch, CLUSTER, 300)
    start = score_matrix([batch], [make_scheduler("capped_srw")], CLUSTER)[0, 0]
    assert found.start_avg_jct_s == start
    assert lower_bound(batch, CLUSTER).avg_jct_s <= found.avg_jct_s < start
    assert found.evaluations >= 300
    assert [row["best"] for row in found.curve] == sorted((row["best"] for row in found.curve), reverse=True)


def test_the_schedule_found_can_be_run_again():
    found = search_schedule(synthetic_batch(4, 1), CLUSTER, 120, start={"c0": 2.0})
    again = found.run(log=True)
    assert again.avg_jct_s == found.avg_jct_s < found.start_avg_jct_s
    assert len(again.log.tasks()) == sum(job.profile.num_tasks for job in again.workload.jobs)
    assert found.parameters["c0"] == 2.0
    assert f"{found.avg_jct_s:.2f} s after" in str(found)


def test_without_numbers_the_steered_rule_is_capped_srw():
    batch = synthetic_batch(6, 2)
    for mode in ("paper", "released"):
        for rule in (0, 1):
            values = {"c0": 1.5, "stage_rule": rule}
            cluster = Settings.of_mode(mode, executors=7, durations="sampled")
            plain, steered = (CandidatePool(batch, cluster, seed=3) for _ in range(2))
            zeros = {name: np.zeros((1, steered.tables.extents[name.split("_")[0]])) for name in STEERED_BY}
            found = steered.scores([steered_rule(**values)], zeros)
            assert found == plain.scores([make_scheduler("capped_srw:plain", **values)])


@pytest.mark.parametrize("limit_ms", [1.0, 1e9])
def test_cut_runs_are_refused(limit_ms):
    with pytest.raises(ConfigError, match="no time limit"):
        search_schedule(synthetic_batch(2), CLUSTER.replace(time_limit_ms=limit_ms), 10)


def test_wrong_arguments_are_refused():
    with pytest.raises(ConfigError, match="budget"):
        search_schedule(synthetic_batch(2), CLUSTER, 0)
    with pytest.raises(ConfigError, match="capped_srw has no parameter"):
        search_schedule(synthetic_batch(2), CLUSTER, 1, start={"alpha": 1})


def test_one_who_knows_what_comes_delays_the_long_job():
    """Figure 1 of Duan and Wu: 20 s at 0 s, 4 s at 2 s, one executor; no order is better than 21 s, a slot is."""
    jobs = workload(job(stage("long", 1, 20.0)), job(stage("short", 1, 4.0), at_s=2.0))
    cluster = Settings.simplified(executors=1)
    found = search_schedule(jobs, cluster, 30)
    assert found.avg_jct_s == 21.0
    assert not found.stage_delay_ms.any()
    without = search_schedule(jobs, cluster, 200, begin=found)
    delayed = search_schedule(jobs, cluster, 200, begin=found, delays=True)
    assert without.avg_jct_s == 21.0
    assert 15.0 <= delayed.avg_jct_s < 15.5
    assert 2000.0 <= delayed.stage_delay_ms[0] < 3000.0
    assert delayed.run().avg_jct_s == delayed.avg_jct_s
    assert delayed.start_avg_jct_s == found.start_avg_jct_s
    assert delayed.evaluations >= 200


# ---- lower bounds ----------------------------------------------------------------------------------------------------

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
