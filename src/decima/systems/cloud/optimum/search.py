"""Offline search: simulated annealing over VMs of executors and waits before jobs.

A candidate is a plan for the rule ``given``: executors go where they are wanted, those that do not fit where they add
least cost, so that every plan is a valid episode. Its loss is that of R_epi, whatever the billing and the rules.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decima.core.checks import check_whole
from decima.core.interrupts import check_stop
from decima.core.jit import njit
from decima.core.progress import progress_bar
from decima.core.random import draw_below, draw_uniform, next_raw
from decima.systems.cloud.engine import episode_reward, reset
from decima.systems.cloud.fields import COMPLETE, GOES_ON, placement_at
from decima.systems.cloud.optimum import bounds
from decima.systems.cloud.schedulers.compiled import carry_out
from decima.systems.cloud.schedulers.heuristics import follow_plan
from decima.systems.cloud.settings import PlacementSettings
from decima.systems.cloud.state import give_chance, give_plan, new_state
from decima.systems.cloud.workload import NETWORK_BOUND, PlacementWorkload

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


@njit(cache=True, nogil=True)
def anneal(state, other, candidates, temperature, cooling, waits, kept, kept_waits, values):
    """Try some candidates.

    Args:
        state: Address of a state with a plan.
        other: Address of a scratch state.
        candidates: How many.
        temperature: Loss that is accepted with a chance of 1/e, at first.
        cooling: Factor of the temperature for every candidate.
        waits: Whether waits before jobs are also changed.
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


@njit(cache=True, nogil=True)
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
        seed: Random seed; the same one gives the same result.
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


# ---- the problem as arrays, for the exact search and bounds ----------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """Jobs, VMs and weights as arrays, of a whole workload."""

    jobs: bounds.Jobs
    vms: bounds.Vms
    prices: np.ndarray  # float64 [4], see the bounds
    weights: np.ndarray  # float64 [3], see the kernel

    @classmethod
    def of(cls, workload: PlacementWorkload, settings: PlacementSettings) -> Problem:
        """Arrays of a workload; losses are those of R_epi (Eq. 14)."""
        state, rules = new_state(workload, settings), settings.rules
        arrival, job_type, cores, memory, executors, duration = (
            getattr(state, name).copy()
            for name in ("arrival_s", "job_type", "job_cores", "job_memory", "job_executors", "duration_s")
        )
        worst = duration + duration * rules.penalty_percent / 100
        least = np.where([_can_be_good(job, settings) for job in workload.jobs], duration, worst)
        vm_cores, vm_memory, rate, vm_type = (
            getattr(state, name).copy() for name in ("vm_cores", "vm_memory", "vm_rate", "vm_type")
        )
        by_cores = (rate / vm_cores).min(), np.gcd.reduce(vm_cores)
        by_memory = (rate / vm_memory).min(), np.gcd.reduce(vm_memory)
        spread = duration.mean() * rules.penalty_percent / 100.0 * len(workload)
        of_cost = rules.fixed_reward * settings.beta / state.cost_max
        of_time = rules.fixed_reward * (1.0 - settings.beta) / spread
        return cls(
            bounds.Jobs(arrival, job_type, cores, memory, executors, duration, least),
            bounds.Vms(vm_cores, vm_memory, rate, vm_type, np.argsort(rate, kind="stable")),
            np.array([*by_cores, *by_memory]),
            np.array([of_cost, of_time, rules.penalty_percent]),
        )

    def part(self, first: int, last: int) -> Problem:
        """The same with some of the jobs."""
        jobs = bounds.Jobs(*(array[first:last].copy() for array in self.jobs))
        return Problem(jobs, self.vms, self.prices, self.weights)

    def __len__(self) -> int:
        return len(self.jobs.arrival)

    def loss(self, cost: np.ndarray, run_s: np.ndarray) -> float:
        """Loss of jobs from what they add to the bill and their run times."""
        return float(self.weights[0] * np.sum(cost) + self.weights[1] * np.sum(run_s))

    def work_bound(self) -> float:
        """Least cost of all cores or memory at the lowest price; also holds with waits."""
        jobs = self.jobs
        by_cores = self.prices[0] * float(np.sum(jobs.cores * jobs.executors * jobs.least))
        return max(by_cores, self.prices[2] * float(np.sum(jobs.memory * jobs.executors * jobs.least)))

    def interval_bound(self) -> float:
        """Least cost moment by moment of what runs at that moment for certain."""
        return of_empty(self)[0]

    def cost_bound(self) -> float:
        """Least cost of a period without voluntary waits: the higher of both bounds."""
        return max(self.work_bound(), self.interval_bound())

    def least_loss(self, cost: float) -> float:
        """Loss for a cost and the least run times of all jobs."""
        return self.loss(np.array([cost]), self.jobs.least)


def _can_be_good(job, settings: PlacementSettings) -> bool:
    rooms = [min(vm.cores // job.cores, vm.memory_mib // job.memory_mib) for vm in settings.cluster.vms]
    if job.type == NETWORK_BOUND:
        return max(rooms) >= job.executors
    return sum(room > 0 for room in rooms) >= job.executors


def places_taken(problem: Problem) -> np.ndarray:
    """Most places for executors of a job that an earlier job may take.

    An executor takes from a VM at most as many places as its cores or its memory would need, rounded up.

    Returns:
        int64 [jobs, jobs]: first the other job, then the job.
    """
    cores, memory = problem.jobs.cores, problem.jobs.memory
    by_cores, by_memory = -(-cores[:, None] // cores), -(-memory[:, None] // memory)
    return np.maximum(by_cores, by_memory) * problem.jobs.executors[:, None]


def of_empty(problem: Problem) -> tuple[float, np.ndarray, np.ndarray]:
    """Least cost by interval on an empty cluster, latest starts and latest ends."""
    state, room = fresh_state(problem), room_of_bound(problem)
    find_empty(problem, state, 0)
    of_cost = np.array([1.0, 0.0, *problem.weights[2:]])
    taken = places_taken(problem)
    bound = bounds.bound_of_empty(problem.jobs, problem.vms, problem.prices, of_cost, state, taken, room)
    return float(bound), room.latest, room.ends


def latest_starts(problem: Problem) -> np.ndarray:
    """Latest start of each job, float64 [jobs]; the first finds an empty cluster."""
    return of_empty(problem)[1]


def whole(*shape: int) -> np.ndarray:
    """Zeros, int64."""
    return np.zeros(shape, dtype=np.int64)


def fresh_state(problem: Problem) -> bounds.State:
    """Rows by depth, see :mod:`decima.systems.cloud.optimum.kernel`."""
    rows, vms = len(problem) + 1, len(problem.vms.cores)
    return bounds.State(
        whole(rows, vms),
        whole(rows, vms),
        np.zeros((rows, vms)),
        np.zeros(rows),
        np.zeros(rows),
        whole(rows),
        whole(rows, rows),
        whole(rows, vms),
        np.zeros(rows),
    )


def find_empty(problem: Problem, state: bounds.State, job: int) -> None:
    """Let a job find an empty cluster."""
    state.free_cores[job], state.free_memory[job] = problem.vms.cores, problem.vms.memory
    state.until[job], state.clock[job], state.loss[job], state.running[job] = -1.0, problem.jobs.arrival[job], 0.0, 0


def room_of_bound(problem: Problem) -> bounds.Room:
    """The room of :func:`decima.systems.cloud.optimum.bounds.interval_bound`."""
    count, slots = len(problem), bounds.SLOTS
    points = np.empty(4 * count + len(problem.vms.cores))
    tables, latest, ends = np.zeros((4, 1 << slots)), np.zeros(count), np.zeros(count)
    return bounds.Room(points, tables, whole(slots), whole(count), latest, ends)
