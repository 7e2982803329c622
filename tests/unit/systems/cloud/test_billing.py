"""Boot times, started hours and prices where a rounded sum or a forgotten moment would decide: toys, brute force."""

import numpy as np
import pytest

from decima.core.errors import DecimaError
from decima.systems.cloud import Billing, Cluster, PlacementJob, PlacementSettings, PlacementWorkload, VmType, simulate
from decima.systems.cloud.workload import jobs_of_rows
from tests.unit.systems.cloud.cases import Fixed, drawn_jobs, placements

ONE_CORE = Cluster((VmType("a", 1, 16.0, 1, 3.6),))
FOUR = Cluster((VmType("small", 4, 8.0, 2, 0.24), VmType("large", 8, 16.0, 2, 0.4)))
HOURS = Billing(granularity_s=3600.0)


def one_core_jobs(*times):
    """Jobs of an executor with one core and 1 GB: (arrival, duration)."""
    return PlacementWorkload(
        tuple(PlacementJob(at, number, 1, 1, 1.0, 1, run) for number, (at, run) in enumerate(times)), "toy"
    )


def test_a_job_on_a_vm_that_boots_waits_until_it_is_up():
    cluster = Cluster((VmType("a", 4, 16.0, 1, 3.6),))
    result = simulate(
        one_core_jobs((0.0, 60.0), (5.0, 60.0), (40.0, 60.0)),
        "ff",
        PlacementSettings(cluster=cluster, billing=Billing(boot_s=30.0)),
    )
    assert result.placed_s.tolist() == [0.0, 5.0, 40.0]
    assert result.start_s.tolist() == [30.0, 30.0, 40.0]
    assert result.billed_s.tolist() == [100.0]


@pytest.mark.parametrize("begin", [0.0, 0.1, 0.7, 1.3])
@pytest.mark.parametrize(("granularity_s", "minimum_s"), [(0.0, 0.0), (0.0, 10.0), (7.6, 0.0)])
def test_a_vm_whose_job_ends_now_does_not_boot_again(begin, granularity_s, minimum_s):
    """Whatever the rounding of the sums of times: each of four jobs begins at the end of the one before."""
    billing = Billing(granularity_s, minimum_s, 30.0)
    jobs = one_core_jobs(*((begin, run) for run in (8.3, 0.1, 7.7, 2.9)))
    result = simulate(jobs, "fill", PlacementSettings(cluster=ONE_CORE, billing=billing))
    assert result.start_s.tolist() == pytest.approx([begin + 30.0 + before for before in (0.0, 8.3, 8.4, 16.1)])
    assert result.billed_s.tolist() == [53.2 if granularity_s else 49.0]  # 6.4 parts of 7.6 s are seven


def test_exactly_an_hour_is_one_hour():
    rng = np.random.default_rng(0)
    settings = PlacementSettings(cluster=ONE_CORE, billing=HOURS)
    for _ in range(60):
        begin, first = float(rng.integers(1, 20_000)) / 10, float(rng.integers(1, 36_000)) / 10
        jobs = one_core_jobs((begin, first), (begin, round(3600 - first, 1)))
        assert simulate(jobs, "fill", settings).billed_s.tolist() == [3600.0], (begin, first)
        longer = one_core_jobs((begin, first), (begin, round(3600.001 - first, 3)))
        assert simulate(longer, "fill", settings).billed_s.tolist() == [7200.0], (begin, first)


def test_first_fit_prefers_a_vm_that_is_paid_for():
    cluster = Cluster((VmType("cheap", 2, 16.0, 1, 0.1), VmType("dear", 4, 16.0, 1, 0.2)))
    rows = [(0, 1, 1, 4, 1, 1, 60), (100, 2, 1, 1, 1, 1, 60)]  # the first one fits the dear VM only
    for billing, expected in ((HOURS, "dear-1"), (Billing(), "cheap-1")):
        settings = PlacementSettings(cluster=cluster, billing=billing)
        assert simulate(jobs_of_rows(rows, "toy"), "ff", settings).jobs()["vms"].tolist() == ["dear-1", expected]


@pytest.mark.parametrize(
    "billing", [Billing(boot_s=12.0), Billing(60.0, 0.0, 7.5), Billing(minimum_s=30.0, boot_s=4.0)]
)
def test_exact_programs_add_the_least_with_boot_times(billing):
    """The last of three jobs: against all placements after the program's own first ones."""
    different = 0
    for seed in range(40):
        workload = drawn_jobs(seed, n=3, gap=3.0, most=3, cores=2)
        for name, beta in (("ilp_exact", 1.0), ("ilp_beta", 0.5), ("good_first", 1.0)):
            settings = PlacementSettings(cluster=FOUR, billing=billing, beta=beta)
            result = simulate(workload, name, settings)
            plan = [result.where[result._job_of == job].tolist() for job in range(3)]
            if result.waits:
                continue
            losses = {}
            for last in placements(workload.jobs[2], FOUR):
                try:
                    tried = simulate(workload, Fixed(plan=[*plan[:2], last]), settings)
                except DecimaError:
                    continue  # no room beside the other jobs
                if name != "good_first" or tried.well_placed[2]:
                    losses[tuple(last)] = -tried.reward
            if losses:
                different += max(losses.values()) > min(losses.values()) + 1e-9
                assert -result.reward == pytest.approx(min(losses.values()), abs=1e-6), (seed, name)
    assert different > 40
