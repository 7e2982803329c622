"""Inputs of placement networks, computed in the core; :mod:`decima.systems.cloud.policy.architecture` names them."""

from math import log, log1p

from decima.core.jit import njit
from decima.systems.cloud.catalog import MIB_PER_GB
from decima.systems.cloud.engine import added_seconds, badly_placed, is_off, ready_at
from decima.systems.cloud.policy.fields import TEACHER_PLAN, TEACHER_PROGRAM
from decima.systems.cloud.schedulers.heuristics import follow_plan
from decima.systems.cloud.schedulers.ilp import ilp_typed
from decima.systems.cloud.workload import NETWORK_BOUND

_GB = float(MIB_PER_GB)


@njit
def update_job(s, p):
    """Update what is kept of the job shown: plans, and executors per VM."""
    if s.job != p.shown:
        p.shown = s.job
        p.voluntary = 0
    if s.placed == 0:
        p.taught_wait = 0
        for vm in range(s.num_vms):
            p.taught[vm] = 0
        if p.teacher == TEACHER_PLAN:
            if follow_plan(s):
                for executor in range(s.job_executors[s.job]):
                    p.taught[s.plan[executor]] += 1
            else:
                p.taught_wait = 1
        for vm in range(s.num_vms):
            p.planned[vm] = 0
        p.fits = 1 if ilp_typed(s, s.beta) else 0
        if p.fits:
            for executor in range(s.job_executors[s.job]):
                p.planned[s.plan[executor]] += 1
        if p.teacher == TEACHER_PROGRAM:
            for vm in range(s.num_vms):
                p.taught[vm] = p.planned[vm]
    for vm in range(s.num_vms):
        p.here[vm] = 0
    first = s.first[s.job]
    for index in range(first, first + s.placed):
        p.here[s.where[index]] += 1


@njit
def _good_so_far(s, p):
    """Whether the executors placed so far can be part of a good placement."""
    for vm in range(s.num_vms):
        if s.job_type[s.job] == NETWORK_BOUND:
            if 0 < p.here[vm] < s.placed:
                return False
        elif p.here[vm] > 1:
            return False
    return True


@njit
def choose_units(s, p):
    """Divisors of the vector: one core, GB and so on, or, scaled, the largest values."""
    p.unit_cores = p.unit_job = p.unit_executors = 1.0
    p.unit_memory = _GB
    if p.scaled:
        p.unit_memory = 0.0
        for vm in range(s.num_vms):
            p.unit_cores = max(p.unit_cores, s.vm_cores[vm])
            p.unit_memory = max(p.unit_memory, s.vm_memory[vm])
        for job in range(s.num_jobs):
            p.unit_executors = max(p.unit_executors, s.job_executors[job])
        p.unit_job = s.num_jobs


@njit
def fill_vector(s, p):
    """Fill the vector of the paper (section 4), in the units of :func:`choose_units`.

    Free cores and GB of every VM, job, its cores and GB, executors left.
    """
    job, count = s.job, s.num_vms
    for vm in range(count):
        p.x[2 * vm] = s.free_cores[vm] / p.unit_cores
        p.x[2 * vm + 1] = s.free_memory[vm] / p.unit_memory
    at = 2 * count
    p.x[at] = (job + 1) / p.unit_job
    p.x[at + 1] = s.job_cores[job] / p.unit_cores
    p.x[at + 2] = s.job_memory[job] / p.unit_memory
    p.x[at + 3] = (s.job_executors[job] - s.placed) / p.unit_executors


@njit
def fill_rows(s, p, count):
    """One row of inputs for each of ``count`` actions to choose from."""
    job, now, width = s.job, s.now_s, p.inputs
    cores, memory = s.job_cores[job], s.job_memory[job]
    executors = s.job_executors[job]
    left = executors - s.placed
    run, longer = s.duration_s[job], badly_placed(s, job)
    unit = max(run * p.core_rate * cores, 1e-12)
    by_cost = s.beta * unit * executors / s.cost_max
    by_time = (1.0 - s.beta) * (longer - run) / ((s.mean_max_s - s.mean_min_s) * s.num_jobs)
    share = by_cost / max(by_cost + by_time, 1e-12)
    good = _good_so_far(s, p)
    while p.queue_at < s.num_jobs and s.arrival_s[p.queue_at] <= now:
        p.queue_at += 1
    free = all_cores = 0
    for vm in range(s.num_vms):
        free += s.free_cores[vm]
        all_cores += s.vm_cores[vm]
    for row in range(count):
        at = row * width
        for k in range(width):
            p.x[at + k] = 0.0
        action = p.actions[row]
        if action == 0:
            p.x[at] = 1.0
            ends = s.heap_finish[0] if s.running > 0 else now
            p.x[at + 20] = log1p(max(0.0, ends - now) / run)
            p.x[at + 21] = p.fits
            p.x[at + 22] = p.voluntary
        else:
            vm = action - 1
            room = min(s.free_cores[vm] // cores, s.free_memory[vm] // memory)
            used = min(room, left)
            busy = max(0.0, s.until_s[vm] - now)
            on = not is_off(s, vm, now) and s.until_s[vm] >= 0.0
            start = ready_at(s, vm)
            added = s.vm_rate[vm] * added_seconds(s, vm, start, run) / unit
            added_bad = s.vm_rate[vm] * added_seconds(s, vm, start, longer) / unit
            if s.job_type[job] == NETWORK_BOUND:
                keeps = good and p.here[vm] == s.placed and room >= left
            else:
                keeps = good and p.here[vm] == 0
            planned = max(0, p.planned[vm] - p.here[vm])
            fresh = p.here[vm] == 0
            p.x[at + 1] = log1p(room) / 2.0
            p.x[at + 2] = used / left
            p.x[at + 3] = room >= left
            p.x[at + 4] = s.free_cores[vm] / 16.0
            p.x[at + 5] = s.free_memory[vm] / (64.0 * _GB)
            p.x[at + 6] = (s.free_cores[vm] - used * cores) / 16.0
            p.x[at + 7] = (s.free_memory[vm] - used * memory) / (64.0 * _GB)
            p.x[at + 8] = on
            p.x[at + 9] = log1p(busy / run)
            p.x[at + 10] = busy >= run
            # What the job has paid for already is free.
            p.x[at + 11] = log1p(added) if fresh else 0.0
            p.x[at + 12] = log1p(added_bad) if fresh else 0.0
            p.x[at + 13] = s.vm_rate[vm] / s.vm_cores[vm] / p.core_rate if p.core_rate > 0.0 else 0.0
            p.x[at + 14] = s.vm_cores[vm] / 16.0
            p.x[at + 15] = p.here[vm] / executors
            p.x[at + 16] = keeps
            p.x[at + 17] = planned / left
            p.x[at + 18] = planned > 0
            cost = 0.0
            if fresh:
                cost = added if keeps else added_bad
            p.x[at + 19] = log1p(share * cost / executors + (0.0 if keeps or not good else 1.0 - share))
        p.x[at + 22 + s.job_type[job]] = 1.0
        p.x[at + 26] = cores / 4.0
        p.x[at + 27] = memory / (16.0 * _GB)
        p.x[at + 28] = executors / 8.0
        p.x[at + 29] = left / executors
        p.x[at + 30] = log(max(run, 1e-3) / 60.0)
        p.x[at + 31] = log1p(max(0.0, now - s.arrival_s[job]) / 60.0)
        p.x[at + 32] = s.running / 10.0
        p.x[at + 33] = s.placed == 0
        p.x[at + 34] = good
        p.x[at + 35] = s.beta
        p.x[at + 36] = share
        p.x[at + 37] = log1p(max(0, p.queue_at - job - 1))
        p.x[at + 38] = log1p((s.arrival_s[job] - s.arrival_s[0]) / 60.0 / job) if job > 0 else 0.0
        p.x[at + 39] = free / all_cores
