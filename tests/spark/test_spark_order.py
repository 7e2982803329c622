"""`spark_fifo` and `spark_fair` against a real Spark under its own FIFO and FAIR, launch by launch."""

import pytest

from tests.spark import order_runs

pytestmark = pytest.mark.spark_slow


@pytest.mark.parametrize("run", order_runs.RUNS)
def test_the_simulator_launches_in_the_order_of_spark(run, tmp_path):
    rows = order_runs.record(run, tmp_path)
    assert len(rows) == sum(query.tasks + 3 * (query.stages - 1) for query in order_runs.RUNS[run])
    real, simulated, in_gap = order_runs.both_orders(run, rows)
    assert simulated == real
    # One core that is free before the child is submitted, on a busy machine all of them.
    assert in_gap <= (order_runs.EXECUTORS if run == "fifo" else 0)
