"""Optimum and bounds of placement beside brute force over all placements of tiny instances, by the oracle."""

import itertools

import numpy as np
import pytest

from decima.systems.cloud import Billing, Cluster, PlacementJob, PlacementSettings, PlacementWorkload, Rules, VmType
from decima.systems.cloud.optimum.best import EXACT, optimum
from tests.knobs import BRUTE_FORCE, FIRST_SEED
from tests.placement_oracle import PlainPlacement
from tests.reliability.replays import exact, exact_jobs

BLOCK = 12
END = FIRST_SEED + BRUTE_FORCE


def all_ends(oracle, waits):
    """(cost, reward) of every way to place all jobs; ``waits``: also by waiting where a job would fit."""
    job, vms, first = oracle.jobs[oracle.job], range(len(oracle.vms)), oracle.job
    fits = any(oracle.mask()[1:])
    for chosen in itertools.combinations_with_replacement(vms, int(job.executors)) if fits else ():
        placed = oracle.twin()
        for vm in chosen:
            reward = placed.step(vm + 1)
        if placed.complete:
            yield placed.cost(), reward
        elif placed.job == first + 1 and not placed.over:
            yield from all_ends(placed, waits)
    if oracle.heap and (waits or not fits):
        later = oracle.twin()
        later.step(0)
        yield from all_ends(later, waits)


def drawn_instance(seed):
    """Up to four jobs on up to three VMs; half of the instances under the paper's billing."""
    rng = np.random.default_rng([seed, 77])
    types = [VmType(f"kind{index}", int(rng.choice([2, 4, 8])), 16.0, 1, float(rng.choice([0.1, 0.2, 0.24, 0.48])))
             for index in range(int(rng.integers(1, 4)))]  # fmt: skip
    jobs, now_s = [], 0
    for number in range(int(rng.integers(1, 5))):
        now_s += int(rng.choice([0, 5, 20, 60]))
        cores, memory_gb = int(rng.integers(1, 4)), int(rng.integers(1, 9))
        room = sum(min(each.cores // cores, 16 // memory_gb) for each in types)
        if room:
            executors, took_s = int(rng.integers(1, min(room, 3) + 1)), int(rng.integers(1, 13)) * 10
            jobs.append(PlacementJob(now_s, number, int(rng.integers(1, 4)), cores, memory_gb, executors, took_s))
    jobs = jobs or [PlacementJob(0.0, 0, 1, 1, 1.0, 1, 10.0)]
    billing = Billing()
    if rng.random() < 0.5:
        billing = Billing(
            granularity_s=float(rng.choice([0, 60, 600])),
            minimum_s=float(rng.choice([0, 60])),
            boot_s=float(rng.choice([0, 30])),
        )
    rules = Rules(penalty_percent=float(rng.choice([30.0, 30.0, 100.0])))
    beta = float(rng.choice([0.0, 0.5, 0.75, 1.0]))
    settings = PlacementSettings(Cluster(tuple(types), label="drawn"), beta, billing, rules)
    return PlacementWorkload(tuple(jobs), "drawn"), settings


def check_instance(seed):
    """Compare everything that is said of an instance with all ways to place its jobs; returns how many there are."""
    workload, settings = drawn_instance(seed)
    oracle = PlainPlacement(exact_jobs(workload.frame().to_dict("records")), exact(settings.as_dict()))
    slack, ways = 1e-6, 0
    for waits in (False, True):
        if waits and len(workload) > 3:
            continue
        found = optimum(workload, settings, nodes=200_000, budget=200, waits=waits)
        ends = list(all_ends(oracle, waits))
        ways += len(ends)
        best = max(reward for _, reward in ends)
        least = min(cost for cost, _ in ends)
        assert found.result.reward <= best + slack, f"waits {waits}: better than all placements"
        assert found.reward_bound >= best - slack, f"waits {waits}: reward_bound"
        assert found.work_bound <= least + 1e-12, f"waits {waits}: work_bound"
        if found.status == EXACT:
            assert not waits
            assert abs(found.result.reward - best) <= slack, "exact optimum"
        if found.interval_bound is not None and not waits:
            assert found.interval_bound <= least + 1e-12, "interval_bound"
        if not waits and settings.billing.per_second:
            assert found.status == EXACT
    return ways


@pytest.mark.parametrize("first", range(FIRST_SEED, END, BLOCK))
def test_optimum_and_bounds_beside_all_placements(first, tally):
    placements = 0
    for seed in range(first, min(first + BLOCK, END)):
        try:
            placements += check_instance(seed)
        except Exception as error:
            error.add_note(f"seed {seed}: repeat with DECIMA_FIRST_SEED={seed} DECIMA_BRUTE_FORCE=1")
            raise
    tally("placements on VMs beside all others", instances=min(BLOCK, END - first), placements=placements)
