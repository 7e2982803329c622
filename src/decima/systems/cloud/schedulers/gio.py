"""Greedy iterative optimisation (GIO): each executor where it adds least cost.

Source: ``GIOScheduler.java`` of ``tawfiqul-islam/RM-Simulator``, with the duration of a well placed job as estimate.
Differs: a VM that is off costs the whole run time, where Java counts from time 0, so that running VMs come first.
"""

import numpy as np
from numba import njit

from decima.systems.cloud.engine import added_seconds, ready_at
from decima.systems.cloud.schedulers.room import look


@njit
def greedy_step(s, done):
    """Put one executor where it adds least cost by ``key``; among equals the VM of the smallest number."""
    best = -1
    for vm in range(s.num_vms):
        if s.taken[vm] < s.room[vm] and (best < 0 or s.key[vm] < s.key[best]):
            best = vm
    s.taken[best] += 1
    s.key[best] = 0.0
    s.plan[done] = best


@njit
def price_vms(s, run_s):
    """Let ``key`` be the price added by using each VM on its own from now, for a run as soon as it has booted."""
    for vm in range(s.num_vms):
        s.key[vm] = s.vm_rate[vm] * added_seconds(s, vm, ready_at(s, vm), run_s)


@njit
def price_vms_from(s, start_s, run_s):
    """The same for a run that starts at a time; infinite for VMs that are not ready by then."""
    for vm in range(s.num_vms):
        ready = ready_at(s, vm) <= start_s
        s.key[vm] = s.vm_rate[vm] * added_seconds(s, vm, start_s, run_s) if ready else np.inf


@njit
def greedy(s):
    """GIO."""
    if not look(s):
        return False
    price_vms(s, s.duration_s[s.job])
    for done in range(s.job_executors[s.job]):
        greedy_step(s, done)
    return True


@njit
def given(s):
    """Follow a given plan: executors on the VMs that it wants, those that do not fit where they add least cost."""
    job = s.job
    if s.job_waits < s.wanted_waits[job] and s.running > 0:
        return False
    if not look(s):
        return False
    price_vms(s, s.duration_s[job])
    for done in range(s.job_executors[job]):
        vm = s.wanted[s.first[job] + done]
        if vm >= 0 and s.taken[vm] < s.room[vm]:
            s.taken[vm] += 1
            s.key[vm] = 0.0
            s.plan[done] = vm
        else:
            greedy_step(s, done)
    return True
