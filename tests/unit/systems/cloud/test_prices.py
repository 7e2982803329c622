"""The bound by prices of executors: never above the least loss, and the search with it finds the same."""

import numpy as np
import pytest

from decima.systems.cloud import PlacementSettings, simulate
from decima.systems.cloud.optimum import prices
from decima.systems.cloud.optimum.best import optimum
from decima.systems.cloud.optimum.periods import counts_of, periods, solve_period
from decima.systems.cloud.optimum.prices import find_dual_prices, no_dual_prices, possible_starts
from decima.systems.cloud.optimum.problem import Problem, latest_starts
from decima.systems.cloud.optimum.rental import best_of_vm
from decima.systems.cloud.sources import parse_placement_jobs
from tests.unit.systems.cloud.cases import TWO_KINDS, drawn_jobs


def beginning(workload, chosen, part):
    """A function that begins the search of a whole workload with the results of a rule."""

    def begin(start):
        rest = type(workload)(workload.jobs[start:], "rest")
        result = simulate(rest, "fill", chosen)
        return part.loss(result.job_cost, result.run_s), counts_of(result.where, part.part(start, len(part)))

    return begin


@pytest.mark.parametrize(("beta", "gap"), [(0.4, 12.0), (1.0, 12.0), (1.0, 5.0), (0.0, 5.0)])
def test_the_search_finds_the_same_with_prices_and_bounds_are_below(beta, gap):
    waited = bounded = 0
    for seed in range(4):
        workload = drawn_jobs(seed, n=6, gap=gap)
        chosen = PlacementSettings(cluster=TWO_KINDS, beta=beta)
        problem = Problem.of(workload, chosen)
        latest = latest_starts(problem)
        waited += (latest > problem.jobs[0]).any()
        begin = beginning(workload, chosen, problem)
        plain = solve_period(problem, 10**6, begin)
        priced = find_dual_prices(problem, latest, begin(0)[0])
        assert plain.proved
        bounded += np.isfinite(priced.bound)
        assert priced.bound <= plain.loss + 1e-9
        found = solve_period(problem, 10**6, begin, priced)
        assert found.proved
        assert found.loss == pytest.approx(plain.loss, rel=1e-12)
        assert found.nodes <= plain.nodes
    assert waited > 0
    assert bounded >= 2


def test_any_prices_give_a_bound():
    rng, chosen = np.random.default_rng(0), PlacementSettings(cluster=TWO_KINDS, beta=0.8)
    for seed in range(3):
        workload = drawn_jobs(seed, n=5, gap=5.0)
        problem = Problem.of(workload, chosen)
        least = solve_period(problem, 10**6, beginning(workload, chosen, problem)).loss
        starts = possible_starts(problem, latest_starts(problem))
        for _ in range(10):
            ways, room = prices._options(problem, *starts), prices._room(problem, 12)
            shares = rng.uniform(0.0, 2.0 * least / len(problem), len(problem))
            prices._set_shares(problem, ways, room, shares)
            program = prices._Program(problem, least)
            rents = sum(
                program.numbers[kind] * program.add_best(kind, ways, room) for kind in range(len(program.kinds))
            )
            assert shares.sum() + rents <= least + 1e-9


def test_what_a_vm_takes_adds_up_to_its_least():
    problem = Problem.of(drawn_jobs(1, n=6, gap=4.0), PlacementSettings(cluster=TWO_KINDS, beta=1.0))
    priced = find_dual_prices(problem, latest_starts(problem), 1000.0)
    _after, ways, stack, table, frame = priced.arrays
    tables = problem.jobs[0], problem.jobs[2], problem.jobs[3]
    took = 0
    for cores, memory, rate, kind in sorted(set(zip(*(each.tolist() for each in problem.vms[:4]), strict=True))):
        taken = np.zeros((len(problem), 2), dtype=np.int64)
        vm = cores, memory, float(problem.weights[0] * rate), kind
        least, rent = best_of_vm(tables, ways, vm, stack, table, frame, taken, 10**5)
        assert least == pytest.approx(rent - np.sum(taken * ways[-1]))
        assert (taken <= ways[-2]).all()
        took += taken.sum()
        table[0][:] = 0
        assert best_of_vm(tables, ways, vm, stack, table, frame, taken, 1) == (-np.inf, 0.0)
    assert took > 0


def test_too_many_starts_or_states_mean_no_prices(monkeypatch):
    problem = Problem.of(drawn_jobs(0, n=6, gap=5.0), PlacementSettings(cluster=TWO_KINDS, beta=1.0))
    latest = latest_starts(problem)
    assert np.isfinite(find_dual_prices(problem, latest, 1000.0).bound)
    for name in ("MOST_EXECUTORS", "MOST_STATES"):
        with monkeypatch.context() as patch:
            patch.setattr(prices, name, 1)
            assert np.isnan(find_dual_prices(problem, latest, 1000.0).arrays[0][0])
    monkeypatch.setattr(prices, "MOST_STARTS", len(problem))
    assert possible_starts(problem, latest) is None
    assert find_dual_prices(problem, latest, 1000.0).bound == no_dual_prices(problem).bound == -np.inf


def test_a_drawn_trace_that_needs_prices(published):
    workload, chosen = parse_placement_jobs("redrawn").workload(9), PlacementSettings(beta=1.0)
    problem = Problem.of(workload, chosen)
    first, last = max(periods(problem), key=lambda each: each[1] - each[0])
    assert last - first == 12
    found = optimum(workload, chosen, nodes=100_000)
    assert found.proved_periods == found.periods
    assert found.nodes < 40_000
