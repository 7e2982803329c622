"""Adaptive executor placement (AEP): each application type gets the placement that it prefers.

Source: Islam et al., section 7: network-bound jobs packed, others spread. Their code (``AEPScheduler.java`` of
``tawfiqul-islam/RM-Simulator``) has it the wrong way round; ``aep_inverted`` is what that does.
"""

from numba import njit

from decima.systems.cloud.schedulers.packing import consolidate
from decima.systems.cloud.schedulers.round_robin import round_robin
from decima.systems.cloud.workload import NETWORK_BOUND

_NETWORK = NETWORK_BOUND


@njit
def adaptive(s, inverted):
    """Pack network-bound jobs by RRC and spread others by RR, or the other way round."""
    if (s.job_type[s.job] == _NETWORK) != inverted:
        return consolidate(s)
    return round_robin(s, False)
