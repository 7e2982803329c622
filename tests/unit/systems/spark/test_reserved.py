"""Executors that wait for a stage of their job are offered when another stage of it became runnable meanwhile."""

import decima
from decima.workload import synthetic_poisson


def test_executors_that_decided_to_wait_too_early_are_offered():
    # At 7,100 s most executors follow a decision to wait for a stage whose own parent became runnable after it; kept
    # reserved, they idled while 25 jobs piled up, and the average JCT was 192 s.
    jobs = synthetic_poisson(200, 45, 100_000)
    result = decima.simulate(jobs, "weighted_fair", seed=100_000, parameters={"alpha": -1.9, "sticky": 0})
    assert result.avg_jct_s < 30.0
