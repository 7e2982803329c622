import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decima.core.errors import ConfigError
from decima.systems.spark.optimum.exhaustive import OrderSearch, exhaustive_search, replay_settings
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.schedulers.fields import rule_record
from decima.systems.spark.state import ClusterState
from decima.systems.spark.system import run_state
from decima.systems.spark.tables import WorkloadTables
from decima.workload import synthetic_batch, tpch_batch
from decima.workload.jobs import Job, Workload
from decima.workload.profile import JobProfile, Stage
from tests.unit.systems.spark.optimum import task_by_task


def stage(name, tasks, duration_ms, parents=()):
    return Stage(name, tasks, parents, (5,), ([],), ([],), ([duration_ms],))


def job_of(*rows, name="job"):
    return JobProfile(name, tuple(stage(f"s{index}", *row) for index, row in enumerate(rows)), "test")


def batch_of(*profiles):
    return Workload(tuple(Job(profile) for profile in profiles), "test")


@st.composite
def small_batches(draw, jobs=4, whole=True):
    """Batches of small random DAGs; some jobs share a profile, many events fall together."""
    value = st.integers(0, 4).map(float) if whole else st.floats(0.5, 100.0)
    profiles = []
    for number in range(draw(st.integers(1, jobs))):
        rows = []
        for index in range(draw(st.integers(1, 4))):
            parents = draw(st.sets(st.integers(0, index - 1), max_size=2)) if index else set()
            rows.append((draw(st.integers(1, 5)), draw(value), tuple(sorted(parents))))
        profiles.append(job_of(*rows, name=f"job {number}"))
    count = draw(st.integers(1, jobs))
    return batch_of(*(profiles[draw(st.integers(0, len(profiles) - 1))] for _ in range(count)))


def replay(workload, order, cluster):
    """Completion times of one order in the event simulator."""
    state = ClusterState(WorkloadTables(workload, cluster), cluster)
    rule_record(state).bind("job_rank", np.argsort(order))
    run_state(state, make_scheduler("priority", stay=-1), 0)
    return state.job_finish_ms.copy()


# ---- one order ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runnable_only", [True, False])
@pytest.mark.parametrize("whole", [True, False])
def test_groups_run_as_single_tasks_do(runnable_only, whole):
    @given(small_batches(whole=whole), st.integers(1, 6), st.randoms(use_true_random=False))
    def check(workload, executors, chance):
        order = list(range(len(workload)))
        chance.shuffle(order)
        found = OrderSearch(workload, executors, runnable_only=runnable_only).completion_ms(order)
        assert found.tolist() == task_by_task.completion_ms(workload, order, executors, runnable_only).tolist()

    check()


@pytest.mark.parametrize("runnable_only", [True, False])
@given(workload=small_batches(whole=False))
def test_one_executor_as_in_the_event_simulator(runnable_only, workload):
    # One executor: no two events at one instant, and the two must agree to the last bit.
    search = OrderSearch(workload, 1, runnable_only=runnable_only)
    order = list(range(len(workload)))[::-1]
    assert search.completion_ms(order).tolist() == replay(workload, order, search.settings).tolist()


@given(st.data())
def test_single_tasks_as_in_the_event_simulator(data):
    # Stages of one task each and durations that never sum to the same instant.
    exponents = data.draw(st.permutations(range(12)))
    profiles = []
    for number in range(3):
        rows = []
        for index in range(4):
            parents = tuple(sorted(data.draw(st.sets(st.integers(0, index - 1), max_size=2)))) if index else ()
            rows.append((1, float(2 ** exponents[4 * number + index]), parents))
        profiles.append(job_of(*rows, name=f"job {number}"))
    workload = batch_of(*profiles)
    search = OrderSearch(workload, data.draw(st.integers(1, 5)), runnable_only=True)
    order = data.draw(st.permutations(range(3)))
    assert search.completion_ms(order).tolist() == replay(workload, order, search.settings).tolist()


def test_jobs_of_more_stages_than_a_word_has_bits():
    wide = job_of(*[(1, float(2 + index % 7)) for index in range(130)], (3, 5.0, tuple(range(130))), name="wide")
    workload = batch_of(wide, job_of((4, 3.0)))
    for order in ((0, 1), (1, 0)):
        for runnable_only in (True, False):
            found = OrderSearch(workload, 7, runnable_only=runnable_only).completion_ms(order)
            assert found.tolist() == task_by_task.completion_ms(workload, order, 7, runnable_only).tolist()


# ---- all orders -----------------------------------------------------------------------------------------------------


def every_order(workload, executors, runnable_only):
    """(average JCT in ms, order) of all n! orders, each simulated for itself."""
    search = OrderSearch(workload, executors, runnable_only=runnable_only)
    orders = itertools.permutations(range(len(workload)))
    return [(search.completion_ms(order).mean(), order) for order in orders]


@pytest.mark.parametrize("runnable_only", [True, False])
def test_sharing_and_bounds_lose_nothing(runnable_only):
    @settings(max_examples=60)
    @given(small_batches(jobs=5), st.integers(1, 6))
    def check(workload, executors):
        every = every_order(workload, executors, runnable_only)
        values = np.array([value for value, _ in every]) / 1000.0
        full = exhaustive_search(workload, executors, runnable_only=runnable_only, threads=2, bins=7)
        pruned = exhaustive_search(workload, executors, runnable_only=runnable_only, threads=2, distribution=False)
        assert full.best_avg_jct_s == pytest.approx(values.min(), rel=1e-12)
        assert pruned.best_avg_jct_s == full.best_avg_jct_s
        assert pruned.best_order == full.best_order
        assert full.num_simulated == full.num_distinct
        assert full.num_ruled_out == 0
        assert pruned.distribution is None
        shape = full.distribution
        assert [shape.min_s, shape.median_s, shape.mean_s, shape.max_s] == pytest.approx(
            [values.min(), np.median(values), values.mean(), values.max()]
        )
        assert shape.counts.sum() == full.num_orders == len(every)

    check()


def test_best_order_beats_shortest_job_first_where_parallelism_decides():
    # The first job has less work (60 against 64), but most of its executors wait at first.
    late = job_of((1, 30.0), (3, 10.0, (0,)), name="late")
    wide = job_of((4, 16.0), name="wide")
    result = exhaustive_search(batch_of(late, wide), 4)
    assert result.sjf_order == (0, 1)
    assert result.sjf_avg_jct_s == pytest.approx(0.048)
    assert result.best_order == (1, 0)
    assert result.best_avg_jct_s == pytest.approx(0.036)
    assert result.best_completion_s.tolist() == pytest.approx([0.056, 0.016])
    assert "best of 2 orders: average JCT 0.04 s, 25.0% below" in str(result)


def test_replayed_numbers_come_from_the_event_simulator():
    workload = synthetic_batch(n=5, seed=2)
    result = exhaustive_search(workload, 10, bins=4)
    cluster = replay_settings(10)
    assert result.replayed_best_avg_jct_s == pytest.approx(replay(workload, result.best_order, cluster).mean() / 1000.0)
    assert result.replayed_sjf_avg_jct_s == pytest.approx(replay(workload, result.sjf_order, cluster).mean() / 1000.0)


def test_tpch_batch_of_ten(tpch_data):
    result = exhaustive_search(tpch_batch(n=10, seed=0), distribution=False)
    assert result.num_orders == 3_628_800
    assert result.num_simulated < 10_000
    assert result.best_avg_jct_s <= result.sjf_avg_jct_s
    assert result.replayed_best_avg_jct_s == pytest.approx(result.best_avg_jct_s, rel=0.005)


def different(count):
    """Jobs of different profiles."""
    return batch_of(*(job_of((1, float(number + 1)), name=str(number)) for number in range(count)))


STREAM = Workload((Job(job_of((1, 1.0))), Job(job_of((1, 1.0)), arrival_ms=5000.0)), "stream")


@pytest.mark.parametrize(
    ("workload", "arguments", "message"),
    [
        (batch_of(*[job_of((1, 1.0))] * 11), {}, r"has 11 jobs, and the number .*; at most 10"),
        (different(12), {"limit": 12}, r"at most 100,000,000 orders, and 12 jobs have more"),
        # The number of orders has too many digits to be shown.
        (different(2000), {}, "has 2,000 jobs, and the number"),
        (different(2000), {"limit": 100_000}, "and 2000 jobs have more"),
        (STREAM, {}, r"'stream': job 1 arrives at 5 s"),
        ([job_of((1, 1.0))], {}, "expected a Workload, got list"),
        (different(3), {"executors": 0}, "executors must be a whole number of at least 1, got 0"),
        (different(3), {"limit": 0}, "limit must be a whole number of at least 1, got 0"),
        (different(3), {"bins": 2.5}, r"bins must be a whole number of at least 1, got 2\.5"),
        (different(3), {"threads": 0}, "workers must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_input_is_refused(workload, arguments, message):
    with pytest.raises(ConfigError, match=message):
        exhaustive_search(workload, **arguments)


@pytest.mark.parametrize("order", [(0, 0), (0,), (1, 2)])
def test_refuses_what_is_no_order(order):
    search = OrderSearch(batch_of(job_of((1, 1.0)), job_of((2, 1.0))))
    with pytest.raises(ConfigError, match="must name each job from 0 to 1 once"):
        search.completion_ms(order)
