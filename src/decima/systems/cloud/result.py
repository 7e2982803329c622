"""Outcome of an episode in detail: jobs, executors, VMs, use over time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from decima.core.display import ShownRun
from decima.core.errors import ConfigError
from decima.core.objectives import Objective, Outcome, objective_at_end
from decima.core.record import Record
from decima.core.system import TASK_COLUMNS
from decima.systems.cloud import engine as core
from decima.systems.cloud.fields import COMPLETE, STATUS_TEXTS
from decima.systems.cloud.settings import PlacementSettings
from decima.systems.cloud.workload import PlacementWorkload

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class PlacementOutcome(Outcome):
    """Outcome of an episode; NaN where it is incomplete."""

    cost: float  # of all VMs, in the currency of the list
    mean_duration_s: float  # mean run time
    good_placements: int
    waits: int
    reward: float  # R_epi of Eq. 14


COST = objective_at_end("cost", "cost", "", lambda outcome: outcome.cost, digits=4)
DURATION = objective_at_end("duration", "mean duration", "s", lambda outcome: outcome.mean_duration_s)
RESPONSE = objective_at_end(
    "response", "mean response time", "s", lambda outcome: float(np.mean(outcome.jct_ms)) / 1000.0
)
GOOD = objective_at_end("good", "good placements", "", lambda outcome: float(outcome.good_placements), "max")
WAITS = objective_at_end("waits", "waits", "", lambda outcome: float(outcome.waits))
REWARD = objective_at_end("reward", "episodic reward", "", lambda outcome: outcome.reward, "max", digits=1)
OBJECTIVES = {objective.name: objective for objective in (COST, DURATION, RESPONSE, GOOD, WAITS, REWARD)}


@dataclass(frozen=True, eq=False)
class PlacementResult(ShownRun):
    """Result of an episode; jobs not placed have NaN for times, -1 for VMs."""

    workload: PlacementWorkload
    settings: PlacementSettings
    scheduler: str
    seed: int
    outcome: PlacementOutcome
    status: str  # what ended the episode
    complete: bool  # whether all jobs were placed
    steps: int
    table_3_return: float  # sum of the rewards of Table 3, the last one R_epi where the episode is complete
    where: np.ndarray  # int64 [executors of all jobs], VM numbers from 0
    placed_s: np.ndarray  # float64 [jobs], when the last executor was placed
    start_s: np.ndarray  # float64 [jobs]
    finish_s: np.ndarray  # float64 [jobs]
    run_s: np.ndarray  # float64 [jobs]
    well_placed: np.ndarray  # bool [jobs]
    job_cost: np.ndarray  # float64 [jobs], what each job added to the bill
    losses: np.ndarray  # float64 [jobs], what each job takes from R_epi, less a constant
    billed_s: np.ndarray  # float64 [VMs]
    actions: np.ndarray  # int64 [steps], 0 waits, i is VM i
    action_s: np.ndarray  # float64 [steps], the clock before

    @classmethod
    def of_state(
        cls, state: Record, workload: PlacementWorkload, settings: PlacementSettings, scheduler: str, seed: int
    ) -> PlacementResult:
        """Copy the outcome out of a state that has run."""
        jobs = len(workload)
        done = state.job + (state.status == COMPLETE)  # jobs that started
        losses = np.full(jobs, np.nan)
        outcome = outcome_of(state, workload, losses)
        where = state.where.copy()
        where[state.first[done] :] = -1

        def times(name: str) -> np.ndarray:
            values = getattr(state, name).copy()
            values[done:] = np.nan
            return values

        waits = float(state.waits) * settings.rules.wait_reward
        placements = float(state.steps - state.waits - 1) * settings.rules.placement_reward
        last = outcome.reward
        if state.status != COMPLETE:
            partly = state.action[state.steps - 1] == 0 and state.placed > 0 if state.steps else False
            last = settings.rules.partial_wait_reward if partly else settings.rules.invalid_reward
        return cls(
            workload,
            settings,
            scheduler,
            seed,
            outcome,
            STATUS_TEXTS[state.status],
            state.status == COMPLETE,
            state.steps,
            waits + placements + last,
            where,
            times("placed_s"),
            times("start_s"),
            times("finish_s"),
            times("run_s"),
            (state.well_placed != 0) & (np.arange(jobs) < done),
            times("job_price"),
            losses,
            state.used_s.copy(),
            state.action[: state.steps].copy(),
            state.action_s[: state.steps].copy(),
        )

    def __str__(self) -> str:
        from decima.plotting.words import count

        return (
            f"{self.scheduler} on {self.workload.label} ({count(len(self.workload), 'job')}, "
            f"{self.settings.label}): cost {self.cost:.4f} {self.settings.cluster.currency}, mean duration "
            f"{self.mean_duration_s:.2f} s, response {self.response_s:.2f} s, {self.good_placements} well placed, "
            f"{count(self.waits, 'wait')}"
        )

    __repr__ = ShownRun.__repr__

    # ---- numbers ----------------------------------------------------------------------------------------------------

    @property
    def cost(self) -> float:
        """Bill of all VMs (Eq. 4) so far, in the currency of the list."""
        return self.outcome.cost

    @property
    def mean_duration_s(self) -> float:
        """Mean run time (Eq. 5); it excludes waiting and booting."""
        return self.outcome.mean_duration_s

    @property
    def response_s(self) -> float:
        """Mean time from arrival to the end of the run."""
        return float(np.mean(self.finish_s - self.arrival_s))

    @property
    def arrival_s(self) -> np.ndarray:
        """float64 [jobs]."""
        return self.workload.arrival_ms / 1000.0

    @property
    def good_placements(self) -> int:
        """Jobs that are well placed."""
        return self.outcome.good_placements

    @property
    def waits(self) -> int:
        """Actions that waited."""
        return self.outcome.waits

    @property
    def reward(self) -> float:
        """R_epi (Eq. 14), NaN of an incomplete episode."""
        return self.outcome.reward

    def score(self, objective: Objective) -> float:
        """Score by an objective of :data:`OBJECTIVES`, or by any other."""
        return objective.measure(self.outcome)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready numbers by name."""
        return {
            "label": self.workload.label,
            "scheduler": self.scheduler,
            "seed": self.seed,
            "settings": self.settings.as_dict(),
            "complete": self.complete,
            "status": self.status,
            "cost": self.cost,
            "currency": self.settings.cluster.currency,
            "mean_duration_s": self.mean_duration_s,
            "response_s": self.response_s,
            "good_placements": self.good_placements,
            "waits": self.waits,
            "steps": self.steps,
            "reward": self.reward,
        }

    # ---- tables -----------------------------------------------------------------------------------------------------

    @cached_property
    def _job_of(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.workload)), [job.executors for job in self.workload.jobs])

    def jobs(self) -> pandas.DataFrame:
        """Table of the jobs, one row each, with times, cost and VMs.

        Columns: those of the workload, placed_s, start_s, finish_s, run_s, well_placed, cost, vms (names joined by +).
        """
        table = self.workload.frame()
        names = self.settings.cluster.names
        table["placed_s"], table["start_s"], table["finish_s"] = self.placed_s, self.start_s, self.finish_s
        table["run_s"], table["well_placed"], table["cost"] = self.run_s, self.well_placed, self.job_cost
        table["vms"] = [
            "+".join(names[vm] for vm in self.where[self._job_of == job] if vm >= 0)
            for job in range(len(self.workload))
        ]
        return table

    def executors(self) -> pandas.DataFrame:
        """Table of the executors placed, one row each.

        Columns: job (id), executor, vm (number), vm_name, cores, memory_gb, placed_s (when all executors of the job
        are placed), start_s, finish_s, type (of the VM), well_placed, job_cost: what the whole job adds to the bill.
        """
        import pandas

        jobs, cluster = self.workload.jobs, self.settings.cluster
        placed = np.flatnonzero(self.where >= 0)
        job, vms = self._job_of[placed], self.where[placed]
        return pandas.DataFrame(
            {
                "job": [jobs[number].id for number in job],
                "executor": placed - np.searchsorted(self._job_of, job),
                "vm": vms,
                "vm_name": [cluster.names[vm] for vm in vms],
                "cores": [jobs[number].cores for number in job],
                "memory_gb": [jobs[number].memory_gb for number in job],
                "placed_s": self.placed_s[job],
                "start_s": self.start_s[job],
                "finish_s": self.finish_s[job],
                "type": [cluster.vms[vm].name for vm in vms],
                "well_placed": self.well_placed[job],
                "job_cost": self.job_cost[job],
            }
        )

    def vms(self) -> pandas.DataFrame:
        """Table of the VMs: vm, vm_name, type, billed_s, cost, executors (ever placed there)."""
        import pandas

        cluster = self.settings.cluster
        hours = self.billed_s / 3600.0
        return pandas.DataFrame(
            {
                "vm": np.arange(len(cluster)),
                "vm_name": cluster.names,
                "type": [vm.name for vm in cluster.vms],
                "billed_s": self.billed_s,
                "cost": hours * np.array([vm.price_per_hour for vm in cluster.vms]),
                "executors": np.bincount(self.where[self.where >= 0], minlength=len(cluster)),
            }
        )

    def use(self) -> pandas.DataFrame:
        """Use over time: time_s, and from then on vms, cores (of executors), price_per_hour."""
        import pandas

        log, cluster = self.executors(), self.settings.cluster
        times = np.unique(np.concatenate([log["placed_s"], log["finish_s"]]))
        rows = []
        for time in times.tolist():
            there = log[(log["placed_s"] <= time) & (log["finish_s"] > time)]
            on = there["vm"].unique()
            price = sum(cluster.vms[vm].price_per_hour for vm in on)
            rows.append({"time_s": time, "vms": len(on), "cores": int(there["cores"].sum()), "price_per_hour": price})
        return pandas.DataFrame(rows, columns=["time_s", "vms", "cores", "price_per_hour"])

    # ---- as a system of this project --------------------------------------------------------------------------------

    @cached_property
    def _lanes(self) -> tuple[np.ndarray, np.ndarray]:
        """Lane of every executor on its VM, and lanes per VM (at least one)."""
        lanes = np.full(len(self.where), -1)
        count = np.ones(len(self.settings.cluster), dtype=np.int64)
        for vm in range(len(count)):
            ends: list[float] = []
            here = np.flatnonzero(self.where == vm)
            for index in here[np.argsort(self.placed_s[self._job_of[here]], kind="stable")]:
                job = self._job_of[index]
                lane = next((n for n, end in enumerate(ends) if end <= self.placed_s[job]), len(ends))
                ends[lane : lane + 1] = [self.finish_s[job]]
                lanes[index] = lane
            count[vm] = max(1, len(ends))
        return lanes, count

    @property
    def num_executors(self) -> int:
        """Rows of a Gantt chart: per VM the most executors at one time."""
        return int(self._lanes[1].sum())

    def vm_rows(self) -> np.ndarray:
        """First Gantt row of every VM, and all rows, int64 [VMs + 1]."""
        return np.concatenate([[0], np.cumsum(self._lanes[1])])

    def task_frame(self) -> pandas.DataFrame:
        """One row per executor placed, :data:`.TASK_COLUMNS`; ``executor`` is a row of a Gantt chart."""
        import pandas

        placed = np.flatnonzero(self.where >= 0)
        job, lanes = self._job_of[placed], self._lanes[0][placed]
        rows = self.vm_rows()[self.where[placed]] + lanes
        stage = np.zeros(len(placed), dtype=np.int64)
        quality = np.where(self.well_placed[job], "well placed", "badly placed")
        columns = (job, stage, rows, self.start_s[job], self.finish_s[job], quality)
        return pandas.DataFrame(dict(zip(TASK_COLUMNS, columns, strict=True)))

    def require_complete(self) -> PlacementResult:
        """The result itself.

        Raises:
            ConfigError: Not all jobs were placed.
        """
        if not self.complete:
            at = self.workload.jobs[min(int(np.isfinite(self.placed_s).sum()), len(self.workload) - 1)].id
            raise ConfigError(f"{self.scheduler}: the episode ended at job {at}: {self.status}")
        return self


def outcome_of(state: Record, workload: PlacementWorkload, losses: np.ndarray | None = None) -> PlacementOutcome:
    """Copy the outcome out of a state; fills the losses of a complete episode."""
    jobs = len(workload)
    losses = np.empty(jobs) if losses is None else losses
    complete = state.status == COMPLETE
    done = state.job + complete
    completion_ms = 1000.0 * state.finish_s
    completion_ms[done:] = np.nan
    cost, mean, reward = state.cost, float("nan"), float("nan")
    if complete:
        cost, mean, reward = core.summary(state.address, losses)
    return PlacementOutcome(
        workload.arrival_ms.copy(),
        completion_ms,
        1000.0 * state.duration_s,
        cost=cost,
        mean_duration_s=mean,
        good_placements=state.num_good,
        waits=state.waits,
        reward=reward,
    )
