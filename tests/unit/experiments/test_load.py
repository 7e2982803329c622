"""The three meanings of load, on jobs small enough to count by hand."""

import pytest

import decima
from experiments.decima.s07_load import loads
from tests.toy_jobs import one_stage, workload

JOBS = (one_stage(4, 2.0), one_stage(1, 3.0, at_s=1.0), one_stage(1, 5.0, at_s=10.0))


@pytest.mark.parametrize(("delay_s", "held_s"), [(0.0, 11.0), (1.0, 14.0)])
def test_only_what_happens_before_the_last_arrival_counts(delay_s, held_s):
    """Two executors run the first job until 4 s and one of them the second for 3 s; each move takes the delay."""
    result = decima.simulate(
        workload(*JOBS), "fifo", 2, log=True, warmup_delay_ms=0.0, moving_delay_ms=1000.0 * delay_s
    )
    measured = loads(result)
    assert measured == pytest.approx({"nominal": 16.0 / 20.0, "busy": 11.0 / 20.0, "held": held_s / 20.0})


def test_an_executor_is_held_until_its_job_ends_or_it_leaves():
    """Of the two executors of the first job one has no task in its last 4 s, and nowhere to go."""
    jobs = workload(one_stage(3, 4.0), one_stage(1, 1.0, at_s=20.0))
    measured = loads(decima.simulate(jobs, "fifo", 2, log=True, warmup_delay_ms=0.0, moving_delay_ms=0.0))
    assert measured["busy"] == pytest.approx(12.0 / 40.0)
    assert measured["held"] == pytest.approx(16.0 / 40.0)
