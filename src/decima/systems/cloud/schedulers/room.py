"""What rules share: room per VM, VMs in an order, executors put on them one by one or as many as fit.

A rule fills ``plan``, the VMs of the executors of the job that is shown, and says whether all have one.
"""

from numba import njit

from decima.systems.cloud.engine import fitting

_ALL = 1 << 60


@njit
def look(s):
    """Count per VM how many executors of the job fit, and forget what was put there; returns whether the job fits."""
    total = fitting(s, _ALL)
    for vm in range(s.num_vms):
        s.taken[vm] = 0
        s.order[vm] = vm
    return total >= s.job_executors[s.job]


@njit
def sort_by_key(s):
    """Bring ``order`` into ascending order of ``key``; equal VMs stay as they are."""
    for place in range(1, s.num_vms):
        vm = s.order[place]
        key = s.key[vm]
        at = place
        while at > 0 and s.key[s.order[at - 1]] > key:
            s.order[at] = s.order[at - 1]
            at -= 1
        s.order[at] = vm


@njit
def fill(s):
    """Put executors on VMs by ``order``, on each as many as fit."""
    need, done = s.job_executors[s.job], 0
    for place in range(s.num_vms):
        vm = s.order[place]
        for _ in range(s.room[vm]):
            if done == need:
                return True
            s.plan[done] = vm
            done += 1
    return done == need


@njit
def deal(s, start):
    """Put executors on VMs by number from ``start`` on, one on each that has room, then again from the first."""
    need, done, vm = s.job_executors[s.job], 0, start
    while done < need:
        if s.taken[vm] < s.room[vm]:
            s.taken[vm] += 1
            s.plan[done] = vm
            done += 1
        vm += 1
        if vm == s.num_vms:
            vm = 0
    return True
