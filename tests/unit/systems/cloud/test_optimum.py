"""The optimum: bounds, periods and known values (`tests/reliability/test_placement_optimum.py`: all ways)."""

import pytest

from decima.core.errors import ConfigError, WorkloadError
from decima.systems.cloud import Billing, PlacementSettings, simulate
from decima.systems.cloud.optimum.best import EXACT, SEARCHED, STARTS, optimum, periods
from decima.systems.cloud.optimum.search import Problem, search
from decima.systems.cloud.sources import Generator, load_trace
from decima.systems.cloud.workload import jobs_of_rows
from tests.unit.systems.cloud.cases import drawn_jobs


def test_bounds_optimum_and_rules_are_in_order():
    for seed in range(3):
        workload = Generator(n=10).draw(seed)
        for beta in (0.5, 1.0):
            chosen = PlacementSettings(beta=beta)
            found = optimum(workload, chosen, nodes=200_000, budget=2000)
            assert found.reward_bound >= found.result.reward - 1e-6
            assert found.work_bound <= found.interval_bound <= found.result.cost + 1e-9
            for name in ("rr", "aep", "ff", *STARTS, "random_placing"):
                other = simulate(workload, name, chosen, seed=1)
                assert other.reward <= found.result.reward + 1e-6, name
                assert other.cost >= found.interval_bound
            assert simulate(workload, "random", chosen, seed=1).cost >= found.work_bound


def test_periods_are_independent():
    workload = Generator(n=40).draw(5)
    problem = Problem.of(workload, PlacementSettings())
    found = periods(problem)
    assert [first for first, _ in found[1:]] == [last for _, last in found[:-1]]
    assert len(found) > 5
    for seed in range(10):
        result = simulate(workload, "random_placing", PlacementSettings(), seed)
        for first, _ in found[1:]:
            assert result.finish_s[:first].max() <= result.arrival_s[first]


def test_the_published_normal_trace(published):
    normal = load_trace("normal")
    for beta, cost, duration in (
        (1.0, 0.5272, 56.61),
        (0.9, 0.6054, 52.02),
        (0.75, 0.6397, 51.38),
        (0.25, 0.6397, 51.38),
    ):
        found = optimum(normal, PlacementSettings(beta=beta))
        assert found.status == EXACT
        assert (round(found.result.cost, 4), round(found.result.mean_duration_s, 2)) == (cost, duration)
        assert found.proved_periods == found.periods > 10
    assert round(found.work_bound, 3) == 0.408
    waits = optimum(normal, waits=True, budget=3000)
    assert waits.status == SEARCHED
    assert waits.result.cost < 0.5272


def test_the_search_is_repeatable_and_no_worse_than_what_it_begins_with():
    workload, chosen = Generator("burst", n=15).draw(2), PlacementSettings(beta=0.8)
    first, again = (optimum(workload, chosen, nodes=0, budget=1500, seed=3) for _ in range(2))
    assert first.status == SEARCHED
    assert first.result.where.tolist() == again.result.where.tolist()
    assert first.result.reward >= max(simulate(workload, name, chosen).reward for name in STARTS)
    unchanged = optimum(workload, chosen, nodes=0, budget=0)
    assert unchanged.result.reward == pytest.approx(max(simulate(workload, name, chosen).reward for name in STARTS))


@pytest.mark.parametrize(
    "chosen",
    [
        PlacementSettings(billing=Billing(granularity_s=3600.0)),
        PlacementSettings(billing=Billing(boot_s=20.0)),
        PlacementSettings.of_mode("released"),
    ],
)
def test_where_periods_depend_on_each_other_it_is_searched(chosen):
    workload = Generator(n=8).draw(1)
    found = optimum(workload, chosen, budget=500)
    assert found.status == SEARCHED
    assert found.proved_periods == 0
    assert found.interval_bound is None
    assert found.work_bound <= found.result.cost
    assert (found.reward_bound is None) == (chosen.mode == "released")


def test_a_period_that_is_too_long_is_searched():
    workload = Generator("burst", n=20).draw(2)
    found = optimum(workload, nodes=300, budget=200)
    assert found.status == SEARCHED
    assert found.proved_periods < found.periods
    assert found.reward_bound > found.result.reward


def test_bad_input():
    with pytest.raises(ConfigError, match="nodes must be a whole number of at least 0"):
        optimum(drawn_jobs(0), nodes=-1)
    with pytest.raises(ConfigError, match="budget must be a whole number"):
        search(drawn_jobs(0), PlacementSettings(), [simulate(drawn_jobs(0), "rr").where], budget=1.5)
    with pytest.raises(WorkloadError, match="fit the empty cluster"):
        optimum(jobs_of_rows([(0, 1, 1, 9, 1, 20, 10)], "huge"))
