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
from numba import njit

from decima.systems.cloud.engine import badly_placed, is_off, loss_of
from decima.systems.cloud.schedulers.gio import price_vms_from
from decima.systems.cloud.schedulers.room import look, sort_by_key
from decima.systems.cloud.workload import NETWORK_BOUND

_NETWORK = NETWORK_BOUND
_NONE = np.inf


@njit
def _cover(s, need, done, skip):
    """Cheapest VMs, but one to skip, with room for ``need`` executors, by ``key``; fills ``plan`` from ``done`` on.

    Returns:
        The cost; infinite if there is no room.
    """
    width = need + 1
    s.cover[0] = 0.0
    for left in range(1, width):
        s.cover[left] = _NONE
    for vm in range(s.num_vms):
        row = vm * width
        room = 0 if vm == skip else s.room[vm]
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
    left = need
    for vm in range(s.num_vms - 1, -1, -1):
        if s.choice[vm * width + left]:
            for _ in range(min(left, s.room[vm])):
                s.plan[done] = vm
                done += 1
                left -= 1
    return cost


@njit
def _next_start(s, number):
    """A time at which a job placed now may start: now, when a VM has booted, or after a boot; -1: no VM boots then."""
    if number == 0:
        return s.now_s
    if number > s.num_vms:
        return s.now_s + s.boot_s
    vm = number - 1
    return s.ready_s[vm] if s.ready_s[vm] > s.now_s and not is_off(s, vm, s.now_s) else -1.0


@njit
def _least(s, run_s, good):
    """Fill ``plan`` with the placement, or the good one, that adds least cost; returns the cost, infinite without one.

    All executors start when the last VM is ready, and VMs that run are paid for until then, too: with boot times every
    possible start is tried with the VMs that are ready by then.
    """
    start, last = s.now_s, s.num_vms + 1 if s.boot_s > 0.0 else 0
    if last:
        least = _NONE
        for number in range(last + 1):
            moment = _next_start(s, number)
            if moment >= 0.0:
                price_vms_from(s, moment, run_s)
                cost = _cover_good(s) if good else _cover(s, s.job_executors[s.job], 0, -1)
                if cost < least:
                    least, start = cost, moment
    price_vms_from(s, start, run_s)
    return _cover_good(s) if good else _cover(s, s.job_executors[s.job], 0, -1)


@njit
def cheapest(s, run_s):
    """Fill ``plan`` with a placement that adds least cost for a run time; returns the cost, infinite without room."""
    return _least(s, run_s, False)


@njit
def cheapest_good(s):
    """Fill ``plan`` with the good placement that adds least cost; returns the cost, infinite where there is none."""
    return _least(s, s.duration_s[s.job], True)


@njit
def _cover_good(s):
    """Cheapest good placement by ``key``; fills ``plan`` and returns the cost, infinite where there is none."""
    job = s.job
    need = s.job_executors[job]
    if s.job_type[job] == _NETWORK or (need == 1 and not s.not_all_one):
        best = -1
        for vm in range(s.num_vms):
            if s.room[vm] >= need and (best < 0 or s.key[vm] < s.key[best]):
                best = vm
        if best < 0:
            return _NONE
        for place in range(need):
            s.plan[place] = best
        return s.key[best]
    if s.not_all_one:
        return _two_at_least(s, need)
    for vm in range(s.num_vms):
        s.order[vm] = vm
    sort_by_key(s)
    cost, done = 0.0, 0
    for place in range(s.num_vms):
        vm = s.order[place]
        if s.room[vm] > 0 and done < need:
            s.plan[done] = vm
            cost += s.key[vm]
            done += 1
    return cost if done == need else _NONE


@njit
def _two_at_least(s, need):
    """The cheapest placement on more than one VM: each VM in turn is used, but not for all executors."""
    best, chosen = _NONE, -1
    for vm in range(s.num_vms):
        if s.room[vm] > 0 and need > 1:
            here = min(s.room[vm], need - 1)
            cost = s.key[vm] + _cover(s, need - here, here, vm)
            if cost < best:
                best, chosen = cost, vm
    if chosen >= 0:
        here = min(s.room[chosen], need - 1)
        for place in range(here):
            s.plan[place] = chosen
        _cover(s, need - here, here, chosen)
    return best


@njit
def ilp(s):
    """The program with the duration of a well placed job as estimate."""
    return look(s) and cheapest(s, s.duration_s[s.job]) < _NONE


@njit
def _better(s, beta):
    """The good and the bad placement of least cost, compared; a beta below 0 stands for cost alone.

    Returns:
        Whether the good one is at least as good; it is what ``plan`` has then.
    """
    job = s.job
    run, longer = s.duration_s[job], badly_placed(s, job)
    any_cost = cheapest(s, longer)
    for place in range(s.job_executors[job]):
        s.best[place] = s.plan[place]
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
    """The program that knows what a bad placement does, for cost alone (beta below 0) or for both objectives."""
    if not look(s):
        return False
    if not _better(s, beta):
        for place in range(s.job_executors[s.job]):
            s.plan[place] = s.best[place]
    return True


@njit
def good_first(s):
    """The good placement of least cost where there is one, else the bad one of least cost."""
    if not look(s):
        return False
    if cheapest_good(s) == _NONE:
        cheapest(s, badly_placed(s, s.job))
    return True
