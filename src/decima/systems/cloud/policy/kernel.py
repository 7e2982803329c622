"""Compiled inference of placement policies, with recorded decisions."""

from math import log

from decima.core.cache import cached
from decima.core.jit import njit
from decima.core.random import draw_uniform, next_raw
from decima.learning.choosing import best_of, draw, weigh
from decima.learning.dense import call_dense, matrix_at, rows_at
from decima.systems.cloud.engine import fill_mask, is_off, loss_of, ready_at, take
from decima.systems.cloud.fields import COMPLETE, GOES_ON, placement_at
from decima.systems.cloud.policy.features import choose_units, fill_rows, fill_vector, update_job
from decima.systems.cloud.policy.fields import NO_TEACHER, policy_at


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
    """Index of the policy's choice."""
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
    """Record the inputs of the decision."""
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


@cached(njit(cache=True, nogil=True))
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
