"""Random valid placements."""

from numba import njit

from decima.core.random import draw_below, next_raw
from decima.systems.cloud.schedulers.room import look


@njit
def _draw(s, bound):
    return draw_below(next_raw(s.rng_next, s.rng), bound)


@njit
def random_valid(s, may_wait):
    """Every executor on any VM with room, all equally likely; between jobs waiting is one more choice if it may."""
    if not look(s):
        return False
    for done in range(s.job_executors[s.job]):
        valid = 0
        for vm in range(s.num_vms):
            valid += s.taken[vm] < s.room[vm]
        waits = may_wait and done == 0 and s.running > 0
        number = _draw(s, valid + waits) - waits
        if number < 0:
            return False
        for vm in range(s.num_vms):
            if s.taken[vm] < s.room[vm]:
                if number == 0:
                    s.taken[vm] += 1
                    s.plan[done] = vm
                    break
                number -= 1
    return True
