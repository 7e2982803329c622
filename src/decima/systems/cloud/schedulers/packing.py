"""Packing: round robin consolidate (RRC), first fit (FF), and VMs by number.

Source: ``RRConsolidate.java`` and ``FirstFitScheduler.java`` of ``tawfiqul-islam/RM-Simulator``. Differs: VMs that are
equal in the order go by number, where Java's sort keeps the order of the job before.
"""

from numba import njit

from decima.systems.cloud.engine import is_off
from decima.systems.cloud.schedulers.room import fill, look, sort_by_key


@njit
def consolidate(s):
    """RRC: VMs by free cores ascending, each filled."""
    if not look(s):
        return False
    for vm in range(s.num_vms):
        s.key[vm] = s.free_cores[vm]
    sort_by_key(s)
    return fill(s)


@njit
def first_fit(s):
    """FF: VMs that run first, then by price, each filled."""
    if not look(s):
        return False
    # Sorts are stable: by free cores first, then by price, then VMs that run or are paid for.
    for vm in range(s.num_vms):
        s.key[vm] = s.free_cores[vm]
    sort_by_key(s)
    for vm in range(s.num_vms):
        s.key[vm] = s.vm_rate[vm]
    sort_by_key(s)
    for vm in range(s.num_vms):
        idle = s.free_cores[vm] == s.vm_cores[vm]
        s.key[vm] = 1.0 if idle and (s.per_second or is_off(s, vm, s.now_s)) else 0.0
    sort_by_key(s)
    return fill(s)


@njit
def fill_by_number(s):
    """VMs by number, each filled; one of the two fixed rules of the reference runs."""
    return look(s) and fill(s)
