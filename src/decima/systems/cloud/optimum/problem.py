"""Jobs, VMs and weights as arrays for the exact search, and bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decima.systems.cloud.optimum import bounds
from decima.systems.cloud.settings import PlacementSettings
from decima.systems.cloud.state import new_state
from decima.systems.cloud.workload import NETWORK_BOUND, PlacementWorkload


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

    @property
    def longest(self) -> np.ndarray:
        """float64 [jobs], run times when badly placed."""
        return self.jobs.duration + self.jobs.duration * self.weights[2] / 100

    def loss(self, cost: np.ndarray, run_s: np.ndarray) -> float:
        """Loss of jobs from what they add to the bill and their run times."""
        return float(self.weights[0] * np.sum(cost) + self.weights[1] * np.sum(run_s))

    def work_bound(self) -> float:
        """Least cost of all cores or memory at the lowest price; holds with waits, too."""
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
