"""The compiled environment: one step, exact masks, rewards, and whole episodes of random valid actions.

First come, first served: the job shown is the first that is not placed. Action 0 waits for the next completion, action
i puts one executor of that job on VM i - 1. A job starts when its last executor is placed. Placing takes no time. What
the paper leaves open or its code does otherwise is a switch of :class:`decima.systems.cloud.settings.Rules`.

Source: Islam et al., TPDS 2022, section 4, Table 3, Eqs. 1 to 14; mode ``released``: ``rm_environment.py`` of
``tawfiqul-islam/RM_DeepRL``, commit 8990646.
"""

import numpy as np

from decima.core.jit import njit
from decima.systems.cloud import fields
from decima.systems.cloud.fields import placement_at
from decima.systems.cloud.workload import NETWORK_BOUND

# ---- a heap that keeps ties in the order of Python's heapq, which the published environment uses -------------------


@njit
def _sift_down(s, low, index):
    finish, job = s.heap_finish[index], s.heap_job[index]
    while index > low:
        parent = (index - 1) >> 1
        if finish < s.heap_finish[parent]:
            s.heap_finish[index], s.heap_job[index] = s.heap_finish[parent], s.heap_job[parent]
            index = parent
            continue
        break
    s.heap_finish[index], s.heap_job[index] = finish, job


@njit
def _push(s, job):
    index = s.running
    s.heap_finish[index], s.heap_job[index] = s.finish_s[job], job
    s.running = index + 1
    _sift_down(s, 0, index)


@njit
def _pop(s):
    size = s.running - 1
    s.running = size
    job = s.heap_job[0]
    if size > 0:
        index, child = 0, 1
        finish, last = s.heap_finish[size], s.heap_job[size]
        while child < size:
            right = child + 1
            if right < size and not s.heap_finish[child] < s.heap_finish[right]:
                child = right
            s.heap_finish[index], s.heap_job[index] = s.heap_finish[child], s.heap_job[child]
            index = child
            child = 2 * index + 1
        s.heap_finish[index], s.heap_job[index] = finish, last
        _sift_down(s, 0, index)
    return job


@njit
def _free(s, job):
    cores, memory = s.job_cores[job], s.job_memory[job]
    for index in range(s.first[job], s.first[job + 1]):
        vm = s.where[index]
        s.free_cores[vm] += cores
        s.free_memory[vm] += memory


# ---- billing --------------------------------------------------------------------------------------------------------
# Billed by the second, as in the paper, times are floats and only differences count. Under any other billing a
# comparison decides whether an hour is begun or a VM is still rented: there moments are whole microseconds, so that
# sums are exact whatever their order. Finer parts of a time do not count.


@njit
def microseconds(time_s):
    """A time in whole microseconds."""
    return np.int64(np.rint(time_s * 1e6))


@njit
def _charged_us(s, length_us):
    """Microseconds to be paid for a rental of a length."""
    part_us = microseconds(s.granularity_s)
    if part_us > 0:
        length_us = (length_us + part_us - 1) // part_us * part_us
    return max(length_us, microseconds(s.minimum_s))


@njit
def is_off(s, vm, now_s):
    """Whether a VM has to be rented anew to be used from a moment on."""
    return now_s > s.until_s[vm] if s.per_second else microseconds(now_s) > s.paid_us[vm]


@njit
def ready_at(s, vm):
    """Earliest time that executors can run on a VM that is used now."""
    now = s.now_s
    if s.boot_s <= 0.0:
        return now
    return now + s.boot_s if is_off(s, vm, now) else max(now, s.ready_s[vm])


@njit
def added_seconds(s, vm, start_s, run_s):
    """Billed seconds that a run on a VM adds; it starts at ``now_s`` or later."""
    now = s.now_s
    if s.per_second:
        return run_s if now > s.until_s[vm] else max(0.0, now + run_s - s.until_s[vm])
    begin, finish = s.rented_us[vm], microseconds(start_s + run_s)
    if is_off(s, vm, now):
        return _charged_us(s, finish - microseconds(now)) / 1e6
    until = microseconds(s.until_s[vm])
    return 0.0 if finish <= until else (_charged_us(s, finish - begin) - _charged_us(s, until - begin)) / 1e6


@njit
def _bill(s, vm, now, run, finish):
    """Enter the use of a VM until ``finish``; returns the billed seconds it adds."""
    if s.per_second:
        if now > s.until_s[vm]:
            added = run
        elif finish > s.until_s[vm]:
            added = finish - s.until_s[vm]
        else:
            return 0.0
        s.until_s[vm] = finish
        s.used_s[vm] += added
        return added
    finish_us, before_us = microseconds(finish), 0
    if is_off(s, vm, now):
        s.rented_us[vm] = microseconds(now)
    elif finish_us > microseconds(s.until_s[vm]):
        before_us = s.paid_us[vm] - s.rented_us[vm]
    else:
        return 0.0
    charged_us = _charged_us(s, finish_us - s.rented_us[vm])
    s.paid_us[vm] = s.rented_us[vm] + charged_us
    s.until_s[vm] = finish
    s.used_us[vm] += charged_us - before_us
    s.used_s[vm] = s.used_us[vm] / 1e6
    return (charged_us - before_us) / 1e6


# ---- one step -------------------------------------------------------------------------------------------------------


@njit
def reset(s):
    """Begin an episode."""
    for vm in range(s.num_vms):
        s.free_cores[vm] = s.vm_cores[vm]
        s.free_memory[vm] = s.vm_memory[vm]
        s.until_s[vm] = -1.0
        s.ready_s[vm] = -1.0
        s.paid_us[vm] = -1
        s.rented_us[vm] = 0
        s.used_us[vm] = 0
        s.used_s[vm] = 0.0
    s.job = s.placed = s.running = s.waits = s.job_waits = s.steps = s.num_good = 0
    s.status = fields.GOES_ON
    s.last_vm = -1
    s.now_s = s.arrival_s[0]
    s.cost = 0.0


@njit
def is_good(s, job, vms, offset):
    """Whether the job is well placed on the VMs in ``vms`` from ``offset`` on."""
    count, first = s.job_executors[job], vms[offset]
    if s.job_type[job] == NETWORK_BOUND:
        on_one = True
        for index in range(1, count):
            on_one = on_one and vms[offset + index] == first
        return on_one
    met = 0
    for index in range(count):
        vm = vms[offset + index]
        bit = 1 << (vm & 63)
        if met & bit:
            # The same VM, or one 64 places away.
            for before in range(index):
                if vms[offset + before] == vm:
                    return False
        met |= bit
    return True


@njit
def badly_placed(s, job):
    """Run time of a job that is badly placed."""
    duration = s.duration_s[job]
    return duration + duration * s.penalty / 100


@njit
def _start(s, job):
    now = s.now_s
    first, last = s.first[job], s.first[job + 1]
    good = is_good(s, job, s.where, first)
    run = s.duration_s[job] if good else badly_placed(s, job)
    start = now
    if s.boot_s > 0.0:
        for index in range(first, last):
            vm = s.where[index]
            ready = ready_at(s, vm)
            if is_off(s, vm, now):
                s.ready_s[vm] = ready
            start = max(start, ready)
    s.placed_s[job] = now
    s.start_s[job] = start
    s.finish_s[job] = start + run
    s.run_s[job] = run
    s.well_placed[job] = good
    s.num_good += good
    price = 0.0
    for index in range(first, last):
        vm = s.where[index]
        price += s.vm_rate[vm] * _bill(s, vm, now, run, s.finish_s[job])
    s.job_price[job] = price
    s.cost += price
    _push(s, job)


@njit
def _show_next(s):
    """Show the next job at its arrival, and free what has finished by then."""
    job = s.job + 1
    s.job = job
    s.placed = 0
    s.job_waits = 0
    if s.clock_back or s.arrival_s[job] > s.now_s:
        s.now_s = s.arrival_s[job]
    now = s.now_s
    while s.running > 0 and s.heap_finish[0] <= now:
        _free(s, _pop(s))
    if s.frees_one and s.running > 0:
        # Where one of several jobs that end at the same time is freed, the first that ends later is taken out and put
        # back, as the published environment does: ties keep its order.
        _push(s, _pop(s))


@njit
def _next_fits(s):
    """Whether the published environment sees room for the rest of the job."""
    job = s.job
    left = s.job_executors[job] - s.placed
    cores, memory = s.job_cores[job], s.job_memory[job]
    shares = 0.0
    for vm in range(s.num_vms):
        shares += min(s.free_cores[vm] / cores, s.free_memory[vm] / memory)
    return shares >= left


@njit
def mean_run(s):
    """Mean run time of all jobs."""
    total = 0.0
    for job in range(s.num_jobs):
        total += s.run_s[job]
    return total / s.num_jobs


@njit
def bill(s):
    """Cost of the episode so far, VM by VM (Eq. 4)."""
    cost = 0.0
    for vm in range(s.num_vms):
        cost += s.vm_rate[vm] * s.used_s[vm]
    return cost


@njit
def episode_reward(s):
    """R_epi of a complete episode (Eqs. 8, 9 and 12 to 14)."""
    beta = s.beta
    cost = 1 - bill(s) / s.cost_max
    time = 1 - (mean_run(s) - s.mean_min_s) / (s.mean_max_s - s.mean_min_s)
    return s.fixed_reward * (cost * beta + time * (1 - beta))


@njit
def loss_of(s, cost, run_s):
    """Loss of R_epi by a job; losses of all jobs add up to it."""
    beta = s.beta
    spread = (s.mean_max_s - s.mean_min_s) * s.num_jobs
    return s.fixed_reward * (beta * cost / s.cost_max + (1.0 - beta) * run_s / spread)


@njit
def take(s, action):
    """Take an action, 0 to the number of VMs; returns the reward of Table 3."""
    s.action[s.steps] = action
    s.action_s[s.steps] = s.now_s
    s.steps += 1
    job = s.job
    if action == 0:
        if s.placed > 0:
            s.status = fields.PARTLY_PLACED
            return s.partial_reward
        if s.running == 0 and s.waits >= s.idle_waits:
            s.status = fields.NOTHING_RUNS
            return s.invalid_reward
        if s.running > 0:
            done = _pop(s)
            s.now_s = s.finish_s[done]
            _free(s, done)
        while not s.frees_one and s.running > 0 and s.heap_finish[0] <= s.now_s:
            _free(s, _pop(s))
        s.waits += 1
        s.job_waits += 1
        return s.wait_reward
    vm = action - 1
    cores, memory = s.job_cores[job], s.job_memory[job]
    if cores > s.free_cores[vm] or memory > s.free_memory[vm]:
        s.status = fields.NO_ROOM
        return s.invalid_reward
    s.free_cores[vm] -= cores
    s.free_memory[vm] -= memory
    s.where[s.first[job] + s.placed] = vm
    s.placed += 1
    s.last_vm = vm
    if s.placed == s.job_executors[job]:
        _start(s, job)
        if job + 1 == s.num_jobs:
            s.status = fields.COMPLETE
            return episode_reward(s)
        _show_next(s)
    if s.lookahead and not _next_fits(s):
        s.status = fields.NEXT_DOES_NOT_FIT
        return s.invalid_reward
    return s.placement_reward


@njit
def fits_on(s, vm, cores, memory):
    """Executors that fit on a VM; floored quotients of integers below 2**52 are exact."""
    return int(min(s.free_cores[vm] / cores, s.free_memory[vm] / memory))


@njit
def fitting(s, most):
    """Count executors of the job that fit, up to ``most``; fills ``room``."""
    job = s.job
    cores, memory = s.job_cores[job], s.job_memory[job]
    total = 0
    for vm in range(s.num_vms):
        s.room[vm] = fits_on(s, vm, cores, memory)
        total += s.room[vm]
        if total >= most:
            return total
    return total


@njit
def copy_state(source, target):
    """Copy all that the next action depends on."""
    for vm in range(source.num_vms):
        target.free_cores[vm] = source.free_cores[vm]
        target.free_memory[vm] = source.free_memory[vm]
        target.until_s[vm] = source.until_s[vm]
        target.ready_s[vm] = source.ready_s[vm]
        target.paid_us[vm] = source.paid_us[vm]
        target.rented_us[vm] = source.rented_us[vm]
        target.used_us[vm] = source.used_us[vm]
    for index in range(source.running):
        job = source.heap_job[index]
        target.heap_job[index] = job
        target.heap_finish[index] = source.heap_finish[index]
        target.finish_s[job] = source.finish_s[job]
        for executor in range(source.first[job], source.first[job + 1]):
            target.where[executor] = source.where[executor]
    for executor in range(source.first[source.job], source.first[source.job] + source.placed):
        target.where[executor] = source.where[executor]
    target.job = source.job
    target.placed = source.placed
    target.running = source.running
    target.steps = source.steps
    target.status = source.status
    target.last_vm = source.last_vm
    target.now_s = source.now_s


@njit
def fill_mask(s, other, mask):
    """Write which actions are valid, int8 [VMs + 1].

    An executor may go to a VM that has room if the job can be finished without waiting; executors are alike, so each
    takes one place wherever it goes, and a job can be finished if that number fits at its first executor. One may wait
    between jobs while something runs. With the look-ahead of the published environment, an action is tried on
    ``other``, a second state, and is valid if it does not end the episode in failure; there may be no valid one.
    """
    mask[:] = 0
    if s.status != fields.GOES_ON:
        return
    cores, memory = s.job_cores[s.job], s.job_memory[s.job]
    if s.placed == 0:
        mask[0] = s.running > 0 or s.waits < s.idle_waits
        if fitting(s, s.job_executors[s.job]) < s.job_executors[s.job]:
            return
    for vm in range(s.num_vms):
        mask[vm + 1] = s.free_cores[vm] >= cores and s.free_memory[vm] >= memory
    if s.lookahead:
        for action in range(1, len(mask)):
            if mask[action]:
                copy_state(s, other)
                take(other, action)
                mask[action] = other.status <= fields.COMPLETE


@njit(cache=True, nogil=True)
def begin(state):
    """Begin an episode; callers in Python give addresses of states."""
    reset(placement_at(state))


@njit(cache=True, nogil=True)
def step(state, action):
    """Take one action; see :func:`take`."""
    return take(placement_at(state), action)


@njit(cache=True, nogil=True)
def masked(state, other, mask):
    """Fill the mask; see :func:`fill_mask`."""
    fill_mask(placement_at(state), placement_at(other), mask)


@njit(cache=True, nogil=True)
def summary(state, losses):
    """Bill, mean run time and R_epi of a complete episode; fills losses, float64 [J]."""
    s = placement_at(state)
    for job in range(s.num_jobs):
        losses[job] = loss_of(s, s.job_price[job], s.run_s[job])
    return bill(s), mean_run(s), episode_reward(s)
