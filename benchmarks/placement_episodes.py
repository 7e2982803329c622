"""Episodes of random valid placements in compiled code, the yardstick of the environment's speed."""

from numba import njit

from decima.core.random import draw_below, next_raw
from decima.systems.cloud.engine import fits_on, reset, take
from decima.systems.cloud.fields import GOES_ON, placement_at


@njit(cache=True, nogil=True)
def random_episodes(state, episodes):
    """Whole episodes of random valid actions, in each step all equally likely; for rules without look-ahead.

    Args:
        state: Address of a state that draws from a generator.
        episodes: How many; the last one stays in the state.

    Returns:
        Steps taken in all episodes.
    """
    s = placement_at(state)
    steps = 0
    for _ in range(episodes):
        reset(s)
        while s.status == GOES_ON:
            job = s.job
            cores, memory = s.job_cores[job], s.job_memory[job]
            # The mask as a list, without branches: they would be guessed wrong every other time.
            valid = 0
            for vm in range(s.num_vms):
                s.order[valid] = vm
                valid += (s.free_cores[vm] >= cores) & (s.free_memory[vm] >= memory)
            waits = 0
            if s.placed == 0:
                waits = 1 if s.running > 0 else 0
                # As many VMs with room as executors are enough; else it is counted how many fit on those with room.
                missing = s.job_executors[job] - valid
                place = 0
                while missing > 0 and place < valid:
                    vm = s.order[place]
                    missing -= fits_on(s, vm, cores, memory) - 1
                    place += 1
                if missing > 0:
                    valid = 0
            chosen = draw_below(next_raw(s.rng_next, s.rng), valid + waits) - waits
            actions = 1 if chosen < 0 else s.job_executors[job]
            for done in range(actions):
                if done > 0:
                    chosen = draw_below(next_raw(s.rng_next, s.rng), valid)
                vm = -1 if chosen < 0 else s.order[chosen]
                take(s, vm + 1)
                # Placing changes the mask of this VM only.
                if vm >= 0 and ((s.free_cores[vm] < cores) | (s.free_memory[vm] < memory)):
                    valid -= 1
                    s.order[chosen] = s.order[valid]
        steps += s.steps
    return steps
