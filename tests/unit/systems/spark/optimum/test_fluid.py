"""The fluid estimate, on jobs whose best fluid schedule can be found by hand."""

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError
from decima.systems.spark.optimum.bounds import lower_bound
from decima.systems.spark.optimum.fluid import fluid_estimate, measure
from decima.systems.spark.settings import Settings
from decima.workload.sources import get_source
from tests.toy_jobs import one_stage, workload

FREE = Settings.simplified(executors=4)


def test_a_job_alone_is_measured_with_every_number_of_executors():
    (job,) = workload(one_stage(8, 1.0)).jobs
    found = measure(job, Settings.paper(executors=4, moving_delay_ms=1000.0))
    assert found.time_ms.tolist() == [9000.0, 5000.0, 4000.0, 3000.0]
    assert found.used_ms.tolist() == [9000.0, 10_000.0, 11_000.0, 12_000.0]  # 8 s, and 1 s for each that came


@pytest.mark.parametrize(
    ("jobs", "avg_s"),
    [
        (workload(one_stage(8, 1.0)), 2.0),
        (workload(one_stage(8, 1.0), one_stage(8, 1.0)), 3.0),  # one after the other
        (workload(one_stage(2, 2.0), one_stage(4, 2.0)), 2.5),  # two executors each for 2 s, then the rest in 1 s
        # At 1 s two of four executors go to the second job for 1 s; the first has the others, then all.
        (workload(one_stage(8, 1.0), one_stage(2, 1.0, at_s=1.0)), 1.75),
    ],
)
def test_by_hand(jobs, avg_s):
    assert fluid_estimate(jobs, FREE) / 1000 == pytest.approx(avg_s)


def test_exchanges_of_events_only_help():
    cluster = Settings.paper(executors=20, durations="mean")
    stream = get_source("embedded").stream(10, 20, 1)
    fixed, free = (fluid_estimate(stream, cluster, exchanges=number) for number in (0, 10))
    assert free < fixed < decima.simulate(stream, "capped_srw", cluster=cluster).avg_jct_ms


@pytest.mark.parametrize("seed", range(3))
def test_it_lies_between_the_bound_and_the_rule(seed):
    cluster = Settings.paper(executors=20, durations="mean")
    batch = get_source("embedded").batch(6, seed)
    estimate = fluid_estimate(batch, cluster)
    assert (
        lower_bound(batch, cluster).avg_jct_ms
        < estimate
        < decima.simulate(batch, "capped_srw", cluster=cluster).avg_jct_ms
    )
    assert np.isclose(estimate, fluid_estimate(batch, cluster.replace(durations="sampled")), rtol=1e-9)


def test_other_clusters_are_refused():
    with pytest.raises(ConfigError, match="no fluid estimate for several classes"):
        fluid_estimate(workload(one_stage(1, 1.0)), Settings.paper(classes=((0.5, 2), (1.0, 2))))
