"""The clairvoyant search: between the lower bound and the rule it starts from, and repeatable."""

import numpy as np
import pytest

from decima.core.errors import ConfigError
from decima.evaluation.pool import CandidatePool
from decima.evaluation.run import score_matrix
from decima.systems.spark.optimum.bounds import lower_bound
from decima.systems.spark.optimum.schedule_search import STEERED_BY, search_schedule
from decima.systems.spark.optimum.schedule_search import steered as steered_rule
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload import synthetic_batch
from tests.toy_jobs import job, stage, workload

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
