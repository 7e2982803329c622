"""The per-job integer program (ILP), solved exactly in compiled code, and what builds on it.

Minimise the price of the additional busy time of the VMs that the job uses, subject to cores and memory (Eqs. 1 to 3).
Executors of a job are alike, so it is a covering problem: choose VMs whose room adds up to the job's executors. A table
over the number of executors still to place enumerates it exactly.

Source: Islam et al., section 7; ``ILPScheduler.java`` of ``tawfiqul-islam/RM-Simulator``. Differs: there VMs that run
count as chosen, so that keeping them longer costs nothing; the program of the paper is solved here. ``ilp`` estimates
the duration of a well placed job whatever the placement; ``ilp_exact`` knows the placement's effect. ``ilp_beta``,
which weighs cost and duration as R_epi does, and ``good_first`` are ours.
"""

import numpy as np

from decima.core.jit import njit
from decima.systems.cloud.engine import badly_placed, is_off, loss_of
from decima.systems.cloud.schedulers.heuristics import count_room, price_vms_from, sort_by_key
from decima.systems.cloud.workload import NETWORK_BOUND

_NONE = np.inf


@njit
def _cover(s):
    """Fill ``plan`` with the cheapest VMs by ``key``; returns their cost, infinite without room."""
    need = s.job_executors[s.job]
    width = need + 1
    s.cover[0] = 0.0
    for left in range(1, width):
        s.cover[left] = _NONE
    for vm in range(s.num_vms):
        row = vm * width
        room = s.room[vm]
        for left in range(need, -1, -1):
            s.choice[row + left] = 0
            if room > 0 and left > 0:
                cost = s.cover[max(0, left - room)] + s.key[vm]
                if cost < s.cover[left]:
                    s.cover[left] = cost
                    s.choice[row + left] = 1
    cost = s.cover[need]
    if cost == _NONE:
        return cost
    left, done = need, 0
    for vm in range(s.num_vms - 1, -1, -1):
        if s.choice[vm * width + left]:
            for _ in range(min(left, s.room[vm])):
                s.plan[done] = vm
                done += 1
                left -= 1
    return cost


@njit
def _next_start(s, number):
    """Time at which a job placed now may start; -1: no VM boots then.

    Number 0 is now, the last one after a boot, the others when a VM has booted.
    """
    if number == 0:
        return s.now_s
    if number > s.num_vms:
        return s.now_s + s.boot_s
    vm = number - 1
    return s.ready_s[vm] if s.ready_s[vm] > s.now_s and not is_off(s, vm, s.now_s) else -1.0


@njit
def _least(s, run_s, good):
    """Fill ``plan`` with the cheapest (good) placement; returns its cost, infinite without one.

    All executors start when the last VM is ready, and VMs that run are also paid for until then: with boot times every
    possible start is tried with the VMs that are ready by then.
    """
    start, last = s.now_s, s.num_vms + 1 if s.boot_s > 0.0 else 0
    if last:
        least = _NONE
        for number in range(last + 1):
            moment = _next_start(s, number)
            if moment >= 0.0:
                price_vms_from(s, moment, run_s)
                cost = _cover_good(s) if good else _cover(s)
                if cost < least:
                    least, start = cost, moment
    price_vms_from(s, start, run_s)
    return _cover_good(s) if good else _cover(s)


@njit
def cheapest(s, run_s):
    """Fill ``plan`` with the cheapest placement; returns its cost, infinite without room."""
    return _least(s, run_s, False)


@njit
def cheapest_good(s):
    """Fill ``plan`` with the cheapest good placement; returns its cost, infinite without one."""
    return _least(s, s.duration_s[s.job], True)


@njit
def _cover_good(s):
    """Fill ``plan`` with the cheapest good placement by ``key``; returns its cost."""
    job = s.job
    need = s.job_executors[job]
    if s.job_type[job] == NETWORK_BOUND or need == 1:
        best = -1
        for vm in range(s.num_vms):
            if s.room[vm] >= need and (best < 0 or s.key[vm] < s.key[best]):
                best = vm
        if best < 0:
            return _NONE
        for index in range(need):
            s.plan[index] = best
        return s.key[best]
    for vm in range(s.num_vms):
        s.order[vm] = vm
    sort_by_key(s)
    cost, done = 0.0, 0
    for index in range(s.num_vms):
        vm = s.order[index]
        if s.room[vm] > 0 and done < need:
            s.plan[done] = vm
            cost += s.key[vm]
            done += 1
    return cost if done == need else _NONE


@njit
def ilp(s):
    """The program with the duration of a well placed job as estimate."""
    return count_room(s) and cheapest(s, s.duration_s[s.job]) < _NONE


@njit
def _better(s, beta):
    """Compare the cheapest good and bad placements; beta below 0 means cost alone.

    Returns:
        Whether the good one is at least as good; it is what ``plan`` has then.
    """
    job = s.job
    run, longer = s.duration_s[job], badly_placed(s, job)
    any_cost = cheapest(s, longer)
    for index in range(s.job_executors[job]):
        s.best[index] = s.plan[index]
    good_cost = cheapest_good(s)
    if beta < 0.0:
        return good_cost <= any_cost
    held = s.beta
    s.beta = beta
    wins = good_cost < _NONE and loss_of(s, good_cost, run) <= loss_of(s, any_cost, longer)
    s.beta = held
    return wins


@njit
def ilp_typed(s, beta):
    """Solve the program with the effect of placement; beta below 0 means cost alone."""
    if not count_room(s):
        return False
    if not _better(s, beta):
        for index in range(s.job_executors[s.job]):
            s.plan[index] = s.best[index]
    return True


@njit
def good_first(s):
    """Choose the cheapest good placement, or the cheapest bad one if there is none."""
    if not count_room(s):
        return False
    if cheapest_good(s) == _NONE:
        cheapest(s, badly_placed(s, s.job))
    return True
