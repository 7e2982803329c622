"""Compiled inference of placement policies, with recorded decisions."""

from math import log, log1p

from decima.core.jit import njit
from decima.core.random import draw_uniform, next_raw
from decima.core.record import BOUND, CODE, F32, F64, I32, I64, FieldGroup, RecordType, fields
from decima.learning.choosing import best_of, draw, weigh
from decima.learning.dense import call_dense, matrix_at, rows_at
from decima.systems.cloud.catalog import MIB_PER_GB
from decima.systems.cloud.engine import added_seconds, badly_placed, fill_mask, is_off, loss_of, ready_at, take
from decima.systems.cloud.fields import COMPLETE, GOES_ON, placement_at
from decima.systems.cloud.schedulers.heuristics import follow_plan
from decima.systems.cloud.schedulers.ilp import ilp_typed
from decima.systems.cloud.workload import NETWORK_BOUND

_GB = float(MIB_PER_GB)


@njit
def update_job(s, p):
    """Update what is kept of the job shown: plans, and executors per VM."""
    if s.job != p.shown:
        p.shown = s.job
        p.voluntary = 0
    if s.placed == 0:
        p.taught_wait = 0
        for vm in range(s.num_vms):
            p.taught[vm] = 0
        if p.teacher == TEACHER_PLAN:
            if follow_plan(s):
                for executor in range(s.job_executors[s.job]):
                    p.taught[s.plan[executor]] += 1
            else:
                p.taught_wait = 1
        for vm in range(s.num_vms):
            p.planned[vm] = 0
        p.fits = 1 if ilp_typed(s, s.beta) else 0
        if p.fits:
            for executor in range(s.job_executors[s.job]):
                p.planned[s.plan[executor]] += 1
        if p.teacher == TEACHER_PROGRAM:
            for vm in range(s.num_vms):
                p.taught[vm] = p.planned[vm]
    for vm in range(s.num_vms):
        p.here[vm] = 0
    first = s.first[s.job]
    for index in range(first, first + s.placed):
        p.here[s.where[index]] += 1


@njit
def _good_so_far(s, p):
    """Whether the executors placed so far can be part of a good placement."""
    for vm in range(s.num_vms):
        if s.job_type[s.job] == NETWORK_BOUND:
            if 0 < p.here[vm] < s.placed:
                return False
        elif p.here[vm] > 1:
            return False
    return True


@njit
def choose_units(s, p):
    """Divisors of the vector: one core, GB and so on, or, scaled, the largest values."""
    p.unit_cores = p.unit_job = p.unit_executors = 1.0
    p.unit_memory = _GB
    if p.scaled:
        p.unit_memory = 0.0
        for vm in range(s.num_vms):
            p.unit_cores = max(p.unit_cores, s.vm_cores[vm])
            p.unit_memory = max(p.unit_memory, s.vm_memory[vm])
        for job in range(s.num_jobs):
            p.unit_executors = max(p.unit_executors, s.job_executors[job])
        p.unit_job = s.num_jobs


@njit
def fill_vector(s, p):
    """Fill the vector of the paper (section 4), in the units of :func:`choose_units`.

    Free cores and GB of every VM, job, its cores and GB, executors left.
    """
    job, count = s.job, s.num_vms
    for vm in range(count):
        p.x[2 * vm] = s.free_cores[vm] / p.unit_cores
        p.x[2 * vm + 1] = s.free_memory[vm] / p.unit_memory
    at = 2 * count
    p.x[at] = (job + 1) / p.unit_job
    p.x[at + 1] = s.job_cores[job] / p.unit_cores
    p.x[at + 2] = s.job_memory[job] / p.unit_memory
    p.x[at + 3] = (s.job_executors[job] - s.placed) / p.unit_executors


@njit
def fill_rows(s, p, count):
    """One row of inputs for each of ``count`` actions to choose from."""
    job, now, width = s.job, s.now_s, p.inputs
    cores, memory = s.job_cores[job], s.job_memory[job]
    executors = s.job_executors[job]
    left = executors - s.placed
    run, longer = s.duration_s[job], badly_placed(s, job)
    unit = max(run * p.core_rate * cores, 1e-12)
    by_cost = s.beta * unit * executors / s.cost_max
    by_time = (1.0 - s.beta) * (longer - run) / ((s.mean_max_s - s.mean_min_s) * s.num_jobs)
    share = by_cost / max(by_cost + by_time, 1e-12)
    good = _good_so_far(s, p)
    while p.queue_at < s.num_jobs and s.arrival_s[p.queue_at] <= now:
        p.queue_at += 1
    free = all_cores = 0
    for vm in range(s.num_vms):
        free += s.free_cores[vm]
        all_cores += s.vm_cores[vm]
    for row in range(count):
        at = row * width
        for k in range(width):
            p.x[at + k] = 0.0
        action = p.actions[row]
        if action == 0:
            p.x[at] = 1.0
            ends = s.heap_finish[0] if s.running > 0 else now
            p.x[at + 20] = log1p(max(0.0, ends - now) / run)
            p.x[at + 21] = p.fits
            p.x[at + 22] = p.voluntary
        else:
            vm = action - 1
            room = min(s.free_cores[vm] // cores, s.free_memory[vm] // memory)
            used = min(room, left)
            busy = max(0.0, s.until_s[vm] - now)
            on = not is_off(s, vm, now) and s.until_s[vm] >= 0.0
            start = ready_at(s, vm)
            added = s.vm_rate[vm] * added_seconds(s, vm, start, run) / unit
            added_bad = s.vm_rate[vm] * added_seconds(s, vm, start, longer) / unit
            if s.job_type[job] == NETWORK_BOUND:
                keeps = good and p.here[vm] == s.placed and room >= left
            else:
                keeps = good and p.here[vm] == 0
            planned = max(0, p.planned[vm] - p.here[vm])
            fresh = p.here[vm] == 0
            p.x[at + 1] = log1p(room) / 2.0
            p.x[at + 2] = used / left
            p.x[at + 3] = room >= left
            p.x[at + 4] = s.free_cores[vm] / 16.0
            p.x[at + 5] = s.free_memory[vm] / (64.0 * _GB)
            p.x[at + 6] = (s.free_cores[vm] - used * cores) / 16.0
            p.x[at + 7] = (s.free_memory[vm] - used * memory) / (64.0 * _GB)
            p.x[at + 8] = on
            p.x[at + 9] = log1p(busy / run)
            p.x[at + 10] = busy >= run
            # What the job has paid for already is free.
            p.x[at + 11] = log1p(added) if fresh else 0.0
            p.x[at + 12] = log1p(added_bad) if fresh else 0.0
            p.x[at + 13] = s.vm_rate[vm] / s.vm_cores[vm] / p.core_rate if p.core_rate > 0.0 else 0.0
            p.x[at + 14] = s.vm_cores[vm] / 16.0
            p.x[at + 15] = p.here[vm] / executors
            p.x[at + 16] = keeps
            p.x[at + 17] = planned / left
            p.x[at + 18] = planned > 0
            cost = 0.0
            if fresh:
                cost = added if keeps else added_bad
            p.x[at + 19] = log1p(share * cost / executors + (0.0 if keeps or not good else 1.0 - share))
        p.x[at + 22 + s.job_type[job]] = 1.0
        p.x[at + 26] = cores / 4.0
        p.x[at + 27] = memory / (16.0 * _GB)
        p.x[at + 28] = executors / 8.0
        p.x[at + 29] = left / executors
        p.x[at + 30] = log(max(run, 1e-3) / 60.0)
        p.x[at + 31] = log1p(max(0.0, now - s.arrival_s[job]) / 60.0)
        p.x[at + 32] = s.running / 10.0
        p.x[at + 33] = s.placed == 0
        p.x[at + 34] = good
        p.x[at + 35] = s.beta
        p.x[at + 36] = share
        p.x[at + 37] = log1p(max(0, p.queue_at - job - 1))
        p.x[at + 38] = log1p((s.arrival_s[job] - s.arrival_s[0]) / 60.0 / job) if job > 0 else 0.0
        p.x[at + 39] = free / all_cores


@njit
def _alike(s, p, one, other):
    """Whether two VMs are interchangeable for the job, its plans and the bill."""
    now = s.now_s
    if s.vm_type[one] != s.vm_type[other] or s.vm_rate[one] != s.vm_rate[other]:
        return False
    if s.free_cores[one] != s.free_cores[other] or s.free_memory[one] != s.free_memory[other]:
        return False
    if p.here[one] != p.here[other] or p.planned[one] != p.planned[other] or p.taught[one] != p.taught[other]:
        return False
    if max(s.until_s[one], now) != max(s.until_s[other], now):
        return False
    if s.per_second:
        return (s.until_s[one] < now) == (s.until_s[other] < now)
    if is_off(s, one, now) or is_off(s, other, now):
        return is_off(s, one, now) and is_off(s, other, now)
    same_rental = s.paid_us[one] == s.paid_us[other] and s.rented_us[one] == s.rented_us[other]
    return same_rental and ready_at(s, one) == ready_at(s, other)


@njit
def list_actions(s, scratch, p, mask):
    """List the actions to choose from; of interchangeable VMs the first one."""
    if not p.masked:
        for action in range(s.num_vms + 1):
            p.actions[action] = action
        return s.num_vms + 1
    fill_mask(s, scratch, mask)
    if mask[0] and p.fits and p.voluntary >= p.most_waits:
        mask[0] = 0
    count = 0
    for action in range(s.num_vms + 1):
        if mask[action]:
            repeated = False
            if action > 0 and not p.vector:
                for index in range(count):
                    before = p.actions[index]
                    if before > 0 and _alike(s, p, before - 1, action - 1):
                        repeated = True
                        break
            if not repeated:
                p.actions[count] = action
                count += 1
    return count


@njit
def score_actions(s, p, count):
    """Put the scores of the actions to choose from into ``score``."""
    if p.vector:
        fill_vector(s, p)
    else:
        fill_rows(s, p, count)
    rows = 1 if p.vector else count
    half = (s.num_vms + 1) * p.width
    source = rows_at(p.x, 0, p.inputs)
    for layer in range(p.num_layers):
        at = 4 * layer
        outputs = p.layers[at + 3]
        matrix = matrix_at(p.weights, p.layers[at], p.layers[at + 2], outputs)
        target = rows_at(p.hidden, (layer & 1) * half, outputs)
        bias = rows_at(p.weights, p.layers[at + 1], 0)
        call_dense(p.net_dense, source, rows, matrix, bias, target, 1 if layer < p.num_layers - 1 else 0)
        source = target
    for index in range(count):
        p.score[index] = p.hidden[source.first + (p.actions[index] if p.vector else index)]


@njit
def _uniform(s):
    return draw_uniform(next_raw(s.rng_next, s.rng))


@njit
def _choose(s, p, count, total):
    if p.explore > 0.0 and _uniform(s) < p.explore:
        return min(count - 1, int(_uniform(s) * count))
    if p.greedy or p.explore > 0.0:
        return best_of(p.score, count)
    return draw(p.weight, count, _uniform(s) * total)


@njit
def _taught(s, p, count):
    """Index of the teacher's choice, or of the policy's best after a deviation."""
    for index in range(count):
        action = p.actions[index]
        if action == 0:
            if p.taught_wait and s.placed == 0:
                return index
        elif p.taught[action - 1] > p.here[action - 1] and not p.taught_wait:
            return index
    return best_of(p.score, count)


@njit
def _record_inputs(s, p, count):
    d, width = p.decisions, p.inputs
    p.rec_first[d] = p.rows
    numbers, at = (width, d * width) if p.vector else (count * width, p.rows * width)
    for k in range(numbers):
        p.rec_x[at + k] = p.x[k]
    for index in range(count):
        p.rec_action[p.rows + index] = p.actions[index]
    p.rec_job[d] = s.job
    p.rec_step[d] = s.steps
    p.rec_first[d + 1] = p.rows + count


@njit
def _start(s, p):
    """What holds for the whole episode."""
    price, cores = 0.0, 0
    for vm in range(s.num_vms):
        price += s.vm_rate[vm]
        cores += s.vm_cores[vm]
    p.core_rate = price / cores
    choose_units(s, p)
    p.decisions = p.rows = 0
    if s.steps == 0:
        p.shown = -1
        p.queue_at = 0
        p.total = 0.0


@njit(cache=True, nogil=True)
def play(state, other, policy, mask):
    """Continue an episode until its end, or for ``limit`` decisions.

    Decisions with a choice are recorded, if that is wanted; and so are the inputs of the one after the last.

    Args:
        state: Address of the episode.
        other: Address of a second one, which is scratch.
        policy: Address of the policy's record.
        mask: int8 [VMs + 1], scratch.
    """
    s, scratch, p = placement_at(state), placement_at(other), policy_at(policy)
    _start(s, p)
    while s.status == GOES_ON:
        update_job(s, p)
        count = list_actions(s, scratch, p, mask)
        action = p.actions[0] if count > 0 else 0
        if s.steps < p.num_forced:
            action = p.forced[s.steps]
        elif count > 1:
            score_actions(s, p, count)
            if p.record:
                _record_inputs(s, p, count)
            if p.decisions == p.limit:
                return
            total = weigh(p.score, p.weight, count)
            chosen = _choose(s, p, count, total)
            recorded = chosen
            if p.teacher != NO_TEACHER:
                recorded = _taught(s, p, count)
                if p.teacher_share > 0.0 and _uniform(s) < p.teacher_share:
                    chosen = recorded
            action = p.actions[chosen]
            if p.record:
                d = p.decisions
                p.rec_chosen[d] = recorded
                p.rec_log_prob[d] = log(max(p.weight[recorded], 1e-300) / total)
                p.rec_reward[d] = 0.0
                p.rows += count
            p.decisions += 1
        if action == 0 and p.fits:
            p.voluntary += 1
        job = s.job
        reward = take(s, action)
        if p.per_job:
            reward = 0.0
            if s.status == COMPLETE or (s.status == GOES_ON and s.job > job):
                reward = -loss_of(s, s.job_price[job], s.run_s[job])
        p.total += reward
        if p.record and p.decisions > 0:
            p.rec_reward[p.decisions - 1] += reward


# Whose decisions are recorded: the policy's own, those of the per-job program with beta, those of a given plan.
NO_TEACHER, TEACHER_PROGRAM, TEACHER_PLAN = range(3)

POLICY = FieldGroup.of(
    "what the policy is",
    fields(I64, None, CODE, net_dense="the compiled dense layer"),
    fields(
        I64,
        None,
        vector="1: the input is the vector of the paper, 0: one row per action",
        masked="1: invalid actions are left out",
        most_waits="voluntary waits before a job",
        scaled="1: numbers of the vector are divided by their largest values",
        num_layers="layers of the network",
        inputs="width of the input",
        width="widest layer",
        greedy="1: the best action, 0: drawn",
        record="1: decisions are recorded",
        per_job="1: rewards are the losses of jobs, 0: those of Table 3",
        teacher="whose decisions are recorded",
        limit="decisions until the kernel stops",
        num_forced="actions at the beginning of the episode that are given",
    ),
    fields(
        F64,
        None,
        explore="probability of a random action in place of the best one (eps-greedy)",
        teacher_share="probability that the teacher's decision is carried out",
    ),
    fields(F32, "weight", BOUND, weights="all kernels and biases"),
    fields(I64, "layer x 4", BOUND, layers="per layer: kernel, bias, inputs, outputs"),
    fields(I64, "forced", BOUND, forced="the given actions"),
)
WORKSPACE = FieldGroup.of(
    "workspace",
    fields(
        I64,
        None,
        shown="job that was seen last",
        voluntary="voluntary waits before it",
        fits="1: it could be placed when it was seen first",
        taught_wait="1: the teacher waits",
        queue_at="first job that has not arrived",
    ),
    fields(F64, None, core_rate="mean price of a core per second", total="sum of rewards"),
    fields(
        F64,
        None,
        unit_cores="what cores are divided by in the vector",
        unit_memory="memory",
        unit_job="number or type of the job",
        unit_executors="executors left",
    ),
    fields(
        I64,
        "vm",
        planned="executors of the job that the per-job program puts there",
        taught="the same of the teacher",
        here="executors of the job there",
    ),
    fields(I64, "action", actions="actions to choose from"),
    fields(F32, "action x input", x="inputs"),
    fields(F32, "buffer", hidden="activations, two buffers"),
    fields(F32, "action", score="outputs"),
    fields(F64, "action", weight="exponentials of scores"),
)
RECORDING = FieldGroup.of(
    "recorded decisions",
    fields(I64, None, decisions="decisions", rows="(decision, action) pairs"),
    fields(I64, "decision + 1", rec_first="first pair"),
    fields(I32, "pair", rec_action="action of the pair"),
    fields(F32, "recorded input", rec_x="inputs, per pair or, of a vector, per decision"),
    fields(I32, "decision", rec_chosen="place of the chosen action among the pairs of the decision"),
    fields(F32, "decision", rec_log_prob="its log-probability"),
    fields(F64, "decision", rec_reward="rewards from this decision up to the next one"),
    fields(I64, "decision", rec_job="job that was shown", rec_step="step of the episode"),
)
PLACEMENT_POLICY = RecordType("placement policy", POLICY, WORKSPACE, RECORDING)
#: Compiled function from an address to the record there.
policy_at = PLACEMENT_POLICY.at
