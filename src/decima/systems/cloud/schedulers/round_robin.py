"""Round robin (RR): one executor per VM in turn.

Source: ``RRScheduler.java`` of ``tawfiqul-islam/RM-Simulator``, which begins with the first VM for every job; Apache
Spark's standalone master goes on where it stopped.
"""

from numba import njit

from decima.systems.cloud.schedulers.room import deal, look


@njit
def round_robin(s, continuing):
    """Spread from the first VM on, or from behind the VM of the last executor placed."""
    return look(s) and deal(s, (s.last_vm + 1) % s.num_vms if continuing else 0)
