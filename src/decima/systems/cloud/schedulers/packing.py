"""Packing: round robin consolidate (RRC), first fit (FF), and VMs by number.

Source: ``RRConsolidate.java`` and ``FirstFitScheduler.java`` of ``tawfiqul-islam/RM-Simulator``. Differs: VMs that are
equal in the order go by number, where Java's sort keeps the order of the job before.
"""

from numba import njit

from decima.systems.cloud.schedulers.room import fill, look, sort_by_key

_OFF = 1e12  # behind every VM that runs, whatever its price


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
    # The sort is stable: by free cores first, then by price, then those that run.
    for vm in range(s.num_vms):
        s.key[vm] = s.free_cores[vm]
    sort_by_key(s)
    for vm in range(s.num_vms):
        s.key[vm] = s.vm_rate[vm] + (_OFF if s.free_cores[vm] == s.vm_cores[vm] else 0.0)
    sort_by_key(s)
    return fill(s)


@njit
def fill_by_number(s):
    """VMs by number, each filled; one of the two fixed rules of the reference runs."""
    return look(s) and fill(s)
