"""All compiled rules by number, and whole episodes of one of them."""

from decima.core.jit import njit
from decima.systems.cloud.engine import copy_state, reset, take
from decima.systems.cloud.fields import COMPLETE, GOES_ON, placement_at
from decima.systems.cloud.schedulers import heuristics
from decima.systems.cloud.schedulers.ilp import good_first, ilp, ilp_typed

(
    RANDOM, RR, RR_CONTINUING, RRC, FF, FILL, AEP, AEP_INVERTED,
    GIO, ILP, ILP_EXACT, ILP_BETA, GOOD_FIRST, PREPARED, RANDOM_PLACING,
) = range(15)  # fmt: skip


@njit
def choose(s, rule, parameter):
    """Let a rule fill ``plan``; returns False where it waits."""
    if rule in (RANDOM, RANDOM_PLACING):
        return heuristics.random_valid(s, rule == RANDOM)
    if rule in (RR, RR_CONTINUING):
        return heuristics.round_robin(s, rule == RR_CONTINUING)
    if rule == RRC:
        return heuristics.consolidate(s)
    if rule == FF:
        return heuristics.first_fit(s)
    if rule == FILL:
        return heuristics.fill_by_number(s)
    if rule in (AEP, AEP_INVERTED):
        return heuristics.adaptive(s, rule == AEP_INVERTED)
    if rule == GIO:
        return heuristics.greedy(s)
    if rule == ILP:
        return ilp(s)
    if rule == ILP_EXACT:
        return ilp_typed(s, -1.0)
    if rule == ILP_BETA:
        return ilp_typed(s, s.beta if parameter < 0.0 else parameter)
    if rule == GOOD_FIRST:
        return good_first(s)
    return heuristics.follow_plan(s)


@njit
def carry_out(s, other, placing):
    """Put all executors of the job on the VMs of ``plan``, or wait.

    Where the environment looks ahead, a placement is tried on another state first, and a job whose placement would end
    the episode in failure waits while it can. (One call of ``take``: every further one is compiled again.)
    """
    trying = placing and s.lookahead and s.running > 0
    if trying:
        copy_state(s, other)
    while True:
        target = other if trying else s
        actions = s.job_executors[s.job] if placing else 1
        for index in range(actions):
            take(target, s.plan[index] + 1 if placing else 0)
            if target.status != GOES_ON:
                break
        if not trying:
            return
        trying = False
        placing = other.status <= COMPLETE


@njit(cache=True, nogil=True)
def run_rule(state, other, rule, parameter):
    """Run a rule from the beginning; takes addresses of a state and a scratch state."""
    s, scratch = placement_at(state), placement_at(other)
    reset(s)
    while s.status == GOES_ON:
        carry_out(s, scratch, choose(s, rule, parameter))


@njit(cache=True, nogil=True)
def answer(state, other, placing):
    """Follow the plan that the state has, or wait; see :func:`carry_out`."""
    carry_out(placement_at(state), placement_at(other), placing)


@njit(cache=True, nogil=True)
def added_costs(state, run_s, costs):
    """Fill the cost of using each VM, float64 [VMs]; returns whether the job fits."""
    s = placement_at(state)
    fits = heuristics.count_room(s)
    heuristics.price_vms(s, run_s)
    for vm in range(s.num_vms):
        costs[vm] = s.key[vm]
    return fits
