"""Offline search: simulated annealing over VMs of executors and waits before jobs.

A candidate is a plan for the rule ``given``: executors go where they are wanted, those that do not fit where they add
least cost, so that every plan is a valid episode. Its loss is that of R_epi, whatever the billing and the rules.
"""

import numpy as np

from decima.core.cache import cached
from decima.core.checks import check_whole
from decima.core.interrupts import check_stop
from decima.core.jit import njit
from decima.core.progress import progress_bar
from decima.core.random import draw_below, draw_uniform, next_raw
from decima.systems.cloud.engine import episode_reward, reset
from decima.systems.cloud.fields import COMPLETE, GOES_ON, placement_at
from decima.systems.cloud.schedulers.compiled import carry_out
from decima.systems.cloud.schedulers.heuristics import follow_plan
from decima.systems.cloud.settings import PlacementSettings
from decima.systems.cloud.state import give_chance, give_plan, new_state
from decima.systems.cloud.workload import PlacementWorkload

# Candidates between two looks at signals.
STEP = 500
# Temperatures, as parts of the range of R_epi.
HOT, COLD = 2e-4, 2e-6


@njit
def _play(s, other):
    reset(s)
    while s.status == GOES_ON:
        carry_out(s, other, follow_plan(s))
    return episode_reward(s) if s.status == COMPLETE else -np.inf


@njit
def _draw(s, bound):
    return draw_below(next_raw(s.rng_next, s.rng), bound)


@njit
def _change(s, job, waits):
    """Want the executors of a job elsewhere."""
    first, count, vms = s.first[job], s.job_executors[job], s.num_vms
    variant = _draw(s, 6 if waits else 5)
    if variant == 0:  # all on one VM
        vm = _draw(s, vms)
        for index in range(count):
            s.wanted[first + index] = vm
    elif variant == 1:  # one after the other from a VM on
        vm = _draw(s, vms)
        for index in range(count):
            s.wanted[first + index] = (vm + index) % vms
    elif variant == 2:  # one elsewhere
        s.wanted[first + _draw(s, count)] = _draw(s, vms)
    elif variant == 3:  # one VM instead of another
        before, after = s.wanted[first + _draw(s, count)], _draw(s, vms)
        for index in range(count):
            if s.wanted[first + index] == before:
                s.wanted[first + index] = after
    elif variant == 4:  # on random VMs, two executors each at most
        for index in range(count):
            s.wanted[first + index] = _draw(s, vms) if index % 2 == 0 else s.wanted[first + index - 1]
    else:
        s.wanted_waits[job] = _draw(s, 3)


@cached(njit(cache=True, nogil=True))
def anneal(state, other, candidates, temperature, cooling, waits, kept, kept_waits, values):
    """Try some candidates.

    Args:
        state: Address of a state with a plan.
        other: Address of a scratch state.
        candidates: How many.
        temperature: Loss that is accepted with a chance of 1/e, at first.
        cooling: Factor of the temperature for every candidate.
        waits: Whether waits before jobs are changed, too.
        kept: int64 [executors], the best plan.
        kept_waits: int64 [jobs], its waits.
        values: float64 [2], R_epi of the present plan and of the best one.
    """
    s, scratch = placement_at(state), placement_at(other)
    old = np.empty(s.first[s.num_jobs], dtype=np.int64)
    for _ in range(candidates):
        job = _draw(s, s.num_jobs)
        first, count = s.first[job], s.job_executors[job]
        for index in range(count):
            old[index] = s.wanted[first + index]
        old_waits = s.wanted_waits[job]
        _change(s, job, waits)
        value = _play(s, scratch)
        change = value - values[0]
        if change >= 0.0 or draw_uniform(next_raw(s.rng_next, s.rng)) < np.exp(change / temperature):
            values[0] = value
            if value > values[1]:
                values[1] = value
                for index in range(len(kept)):
                    kept[index] = s.wanted[index]
                for index in range(len(kept_waits)):
                    kept_waits[index] = s.wanted_waits[index]
        else:
            for index in range(count):
                s.wanted[first + index] = old[index]
            s.wanted_waits[job] = old_waits
        temperature *= cooling


@cached(njit(cache=True, nogil=True))
def value_of(state, other):
    """R_epi of the plan of a state; minus infinity of an incomplete episode."""
    return _play(placement_at(state), placement_at(other))


def search(
    workload: PlacementWorkload,
    settings: PlacementSettings,
    plans: list[np.ndarray],
    *,
    budget: int = 100_000,
    waits: bool = False,
    seed: int = 0,
    progress: str | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Search from the best of some plans.

    Args:
        workload: The jobs.
        settings: VMs, billing, beta, rules.
        plans: VM of every executor, int64 [executors] each; at least one.
        budget: Candidates.
        waits: Whether to look for voluntary waits.
        seed: Source of chance; the same one gives the same result.
        progress: Label of a progress bar; None for no bar.

    Returns:
        VM of every executor, int64 [executors], and waits before every job, int64 [jobs], of the best plan.
    """
    check_whole("budget", budget, least=0)
    check_whole("seed", seed, least=0)
    state, other = new_state(workload, settings), new_state(workload, settings)
    values = []
    for plan in plans:
        give_plan(state, plan, np.zeros(len(workload), dtype=np.int64))
        values.append(value_of(state.address, other.address))
    best = int(np.argmax(values))
    give_plan(state, plans[best], np.zeros(len(workload), dtype=np.int64))
    rng = np.random.default_rng(seed)
    give_chance(state, rng)
    kept, kept_waits = state.wanted.copy(), state.wanted_waits.copy()
    reached = np.array([values[best], values[best]])
    span = settings.rules.fixed_reward
    cooling = (COLD / HOT) ** (1.0 / max(1, budget))
    with progress_bar(progress, budget, "candidate") as bar:
        for done in range(0, budget, STEP):
            count = min(STEP, budget - done)
            temperature = span * HOT * cooling**done
            anneal(state.address, other.address, count, temperature, cooling, waits, kept, kept_waits, reached)
            check_stop()
            bar.update(count)
    return kept, kept_waits
