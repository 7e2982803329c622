"""Compiled least loss of one VM whose executors earn dual prices.

What is left of a period costs at least what its executors earn, plus for every VM the least of rent less earnings. Any
prices give a valid bound, as jobs are only allowed more: every VM chooses on its own which executors it takes, whether
their job counts as well placed, and when it starts. What it has to keep is its room, the order of jobs, and rent as
long as something runs. The least of a VM is found by trying all choices job after job; it depends on what runs there
and on the next job only, so it is looked up where it was met before (by hashes of 64 bits).

:mod:`.prices` finds the prices: the dual values of a linear program over what a VM may take.
"""

import numpy as np

from decima.core.cache import cached
from decima.core.jit import njit

PROBES = 8  # places where one hash may be
NOTHING = -1  # the choice of no executor


@njit
def mix(value):
    """A well mixed uint64 of a uint64 (the finalizer of splitmix64)."""
    value ^= value >> np.uint64(30)
    value *= np.uint64(0xBF58476D1CE4E5B9)
    value ^= value >> np.uint64(27)
    value *= np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@njit
def of_time(value):
    """A moment as a uint64, to the millionth of a second."""
    return np.uint64(np.int64(value * 1048576.0) + 1048576)


@njit
def _copy_running(job, moment, row, stack):
    """Copy what runs beyond a moment from the row of a job to any row."""
    entries, finish, cores, memory = stack
    kept = 0
    for entry in range(entries[job]):
        if finish[job, entry] > moment:
            finish[row, kept] = finish[job, entry]
            cores[row, kept] = cores[job, entry]
            memory[row, kept] = memory[job, entry]
            kept += 1
    entries[row] = kept


@njit
def _settle(job, now, arrival, stack):
    """Return the earliest start of a job, and take off what has finished."""
    now = max(now, arrival[job])
    _copy_running(job, now, job, stack)
    return now


@njit
def _add(job, end, cores_more, memory_more, stack):
    """Let executors run on the VM until an end."""
    entries, finish, cores, memory = stack
    for entry in range(entries[job]):
        if finish[job, entry] == end:
            cores[job, entry] += cores_more
            memory[job, entry] += memory_more
            return
    entry = entries[job]
    finish[job, entry] = end
    cores[job, entry] = cores_more
    memory[job, entry] = memory_more
    entries[job] = entry + 1


@njit
def _key(job, now, vm, stack):
    """Hash of all that the least of a VM depends on; never 0."""
    entries, finish, cores, memory = stack
    total = mix(mix(np.uint64(job)) + of_time(now))
    total = mix(total + mix(np.uint64(vm[3])))
    for entry in range(entries[job]):
        entry_hash = mix(of_time(finish[job, entry]) + mix(np.uint64(cores[job, entry])))
        total += mix(entry_hash + np.uint64(memory[job, entry]))
    return total | np.uint64(1)


@njit
def _index_of(key, hashes):
    """Index of a hash in the table, or where it may be entered."""
    last = len(hashes) - 1
    at = np.int64(key >> np.uint64(20)) & last
    for _ in range(PROBES):
        if hashes[at] == key or hashes[at] == 0:
            break
        at = (at + 1) & last
    return at


@njit
def _next_choice(jobs, options, vm, job, stack, frame):
    """Step to the next option of a job; returns whether there is one."""
    first_start, starts, runs, fewest, most, _earns = options
    entries, finish, cores, memory = stack
    nows, _keys, _best, _chosen, choice, room, rent = frame
    index, way, count = choice[job] >> 13, (choice[job] >> 12) & 1, choice[job] & 4095
    while True:
        if count == 0:  # a start and a way that have not been looked at
            start = starts[index]
            has_cores, has_memory, until = vm[0], vm[1], start
            for entry in range(entries[job]):
                if finish[job, entry] > start:
                    has_cores -= cores[job, entry]
                    has_memory -= memory[job, entry]
                    until = max(until, finish[job, entry])
            room[job] = 0
            if start >= nows[job]:
                room[job] = min(has_cores // jobs[1][job], has_memory // jobs[2][job], most[job, way])
            rent[job] = vm[2] * max(0.0, start + runs[job, way] - until)
            count = fewest[job, way] - 1
        count += 1
        if count <= room[job]:
            choice[job] = ((index * 2 + way) << 12) + count
            return True
        count, way = 0, way + 1
        if way == 2:
            index, way = index + 1, 0
            if index == first_start[job + 1]:
                return False


@njit
def least_of_vm(jobs, options, vm, first, now, stack, table, frame, most_states):
    """Least rent less earnings of a VM; minus infinity beyond ``most_states``.

    Args:
        jobs: Arrival, cores and memory of the jobs.
        options: Where the possible starts of each job begin, int64 [jobs + 1], and these, float64; by job and way (0
            well, 1 badly placed) run time, least and most executors on one VM, what each earns, [jobs, 2].
        vm: Its cores, its memory, loss per second of rent, and its kind.
        first: See above.
        now: When the job before has started.
        stack: What runs on the VM, in the row of ``first``: number of entries, int64 [jobs + 1]; their ends, cores and
            memory, [jobs + 1, jobs + 1].
        table: Hashes, values and what is chosen (first place among the starts, way and number), a power of two of each.
        frame: Room by job: clock, hash, best value and choice so far; choice that is looked at, room and rent.
        most_states: How many may be tried that are not in the table.
    """
    first_start, starts, runs, _fewest, _most, earns = options
    nows, keys, best, chosen, choice, _room, rent = frame
    hashes, values, choices = table
    count = len(jobs[0])
    job, value, down = first, 0.0, True
    while True:
        if down and job < count:
            nows[job] = _settle(job, now, jobs[0], stack)
            keys[job] = _key(job, nows[job], vm, stack)
            at = _index_of(keys[job], hashes)
            if hashes[at] != keys[job]:
                most_states -= 1
                if most_states < 0:
                    return -np.inf
                best[job], chosen[job], choice[job] = np.inf, NOTHING, NOTHING
                now = nows[job]
                _copy_running(job, now, job + 1, stack)
                job += 1
                continue
            value = values[at]
        elif down:
            value = 0.0
        # The value from this job on is known: it belongs to a choice for the job before.
        if job == first:
            return value
        job -= 1
        picked = choice[job]
        if picked == NOTHING:
            choice[job] = first_start[job] << 13
        else:
            value += rent[job] - (picked & 4095) * earns[job, (picked >> 12) & 1]
        if value < best[job]:
            best[job], chosen[job] = value, picked
        down = _next_choice(jobs, options, vm, job, stack, frame)
        if down:
            picked = choice[job]
            number, way, now = picked & 4095, (picked >> 12) & 1, starts[picked >> 13]
            _copy_running(job, now, job + 1, stack)
            _add(job + 1, now + runs[job, way], number * jobs[1][job], number * jobs[2][job], stack)
            job += 1
        else:
            at = _index_of(keys[job], hashes)
            hashes[at] = keys[job]
            values[at] = best[job]
            choices[at] = chosen[job]
            value = best[job]


@cached(njit(cache=True, nogil=True))
def best_of_vm(jobs, options, vm, stack, table, frame, taken, most_states):
    """Least rent less earnings of an empty VM, and the executors it takes.

    Args:
        jobs: See :func:`least_of_vm`.
        options: See there.
        vm: See there.
        stack: Scratch, see there.
        table: See there; kept between calls with the same prices.
        frame: See there.
        taken: int64 [jobs, 2], receives the executors of every job, by way.
        most_states: See there.

    Returns:
        The least, minus infinity where it takes too many states, and the rent in it.
    """
    arrival, job_cores, job_memory = jobs
    _first_start, starts, runs, _fewest, _most, _earns = options
    stack[0][0] = 0
    taken[:] = 0
    now, until, rents = -1.0, -1.0, 0.0
    least = least_of_vm(jobs, options, vm, 0, now, stack, table, frame, most_states)
    if np.isinf(least):
        return least, 0.0
    for job in range(len(arrival)):
        least_of_vm(jobs, options, vm, job, now, stack, table, frame, most_states)
        now = _settle(job, now, arrival, stack)
        choice = table[2][_index_of(_key(job, now, vm, stack), table[0])]
        if choice == NOTHING:
            _copy_running(job, now, job + 1, stack)
            continue
        count, way, now = choice & 4095, (choice >> 12) & 1, starts[choice >> 13]
        end = now + runs[job, way]
        _copy_running(job, now, job + 1, stack)
        _add(job + 1, end, count * job_cores[job], count * job_memory[job], stack)
        rents += vm[2] * max(0.0, end - max(now, until))
        until = max(until, end)
        taken[job, way] = count
    return least, rents
