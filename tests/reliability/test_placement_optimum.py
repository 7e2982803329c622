"""Optimum and bounds of placement beside brute force over all placements of tiny instances, in exact fractions."""

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from decima.systems.cloud import Billing, Cluster, PlacementJob, PlacementSettings, PlacementWorkload, Rules, VmType
from decima.systems.cloud.optimum.best import EXACT, optimum
from tests.knobs import BRUTE_FORCE, FIRST_SEED
from tests.reliability.placement_checker import Placed, Run, reward_of

BLOCK = 12
END = FIRST_SEED + BRUTE_FORCE
NOTHING_PLACED = Placed()


def rooms(run, placed, job):
    """Executors of the job that fit on each VM now."""
    found = []
    for vm, (cores, memory_gb, _) in enumerate(run.vms):
        for finish_s, other, vms in placed.running:
            if finish_s > placed.clock_s:
                cores -= vms.count(vm) * other["cores"]
                memory_gb -= vms.count(vm) * other["memory_gb"]
        found.append(min(cores // job["cores"], math.floor(memory_gb / job["memory_gb"])))
    return found


def all_ends(run, waits, placed=NOTHING_PLACED, number=0):
    """(cost, sum of run times) of every way to place all jobs; ``waits``: also by waiting where a job would fit."""
    if number == len(run.jobs):
        yield placed.cost, placed.run_s
        return
    job = run.jobs[number]
    placed = replace(placed, clock_s=max(placed.clock_s, job["arrival_s"]))
    while True:
        room = rooms(run, placed, job)
        fits = sum(room) >= job["executors"]
        if fits:
            for vms in itertools.combinations_with_replacement(range(len(room)), job["executors"]):
                if all(vms.count(vm) <= room[vm] for vm in set(vms)):
                    yield from all_ends(run, waits, placed.place(run, job, vms), number + 1)
        later = [finish_s for finish_s, _, _ in placed.running if finish_s > placed.clock_s]
        if not later or (fits and not waits):
            return
        placed = replace(placed, clock_s=min(later))


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


def as_run(workload, settings):
    """The instance as the checker reads it from files."""
    rows = workload.frame().to_dict("records")
    jobs = [
        {name: Fraction(value) if name.endswith("_s") else int(value) for name, value in row.items()} for row in rows
    ]
    return Run(jobs, {"settings": json.loads(json.dumps(settings.as_dict()), parse_float=Fraction)}, [])


def check_instance(seed):
    """Compare everything that is said of an instance with all ways to place its jobs; returns how many there are."""
    workload, settings = drawn_instance(seed)
    run = as_run(workload, settings)
    slack, ways = Fraction(1, 10**6), 0
    for waits in (False, True):
        if waits and len(workload) > 3:
            continue
        found = optimum(workload, settings, nodes=200_000, budget=200, waits=waits)
        ends = list(all_ends(run, waits))
        ways += len(ends)
        best = max(reward_of(run, *end) for end in ends)
        least = min(cost for cost, _ in ends)
        assert Fraction(found.result.reward) <= best + slack, f"waits {waits}: better than all placements"
        assert Fraction(found.reward_bound) >= best - slack, f"waits {waits}: reward_bound"
        assert Fraction(found.work_bound) <= least + Fraction(1, 10**12), f"waits {waits}: work_bound"
        if found.status == EXACT:
            assert not waits
            assert abs(Fraction(found.result.reward) - best) <= slack, "exact optimum"
        if found.interval_bound is not None and not waits:
            assert Fraction(found.interval_bound) <= least + Fraction(1, 10**12), "interval_bound"
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
