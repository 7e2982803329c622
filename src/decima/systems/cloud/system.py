"""The system of executors on cloud VMs, and functions to run and compare schedulers.

:func:`simulate` runs one scheduler on one workload; :func:`decima.compare` compares several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from decima.core.checks import check_whole
from decima.core.errors import SchedulerError
from decima.core.objectives import Objective, Outcome
from decima.core.record import Record
from decima.core.system import register_system
from decima.evaluation.run import simulate as simulate_system
from decima.systems.cloud import engine as core
from decima.systems.cloud.fields import GOES_ON
from decima.systems.cloud.result import OBJECTIVES, PlacementResult, outcome_of
from decima.systems.cloud.schedulers import compiled
from decima.systems.cloud.schedulers.registry import (
    CompiledRule,
    PlacementScheduler,
    View,
    list_placements,
    make_placement,
)
from decima.systems.cloud.settings import PlacementSettings
from decima.systems.cloud.sources import JobsSpec, parse_placement_jobs
from decima.systems.cloud.state import give_chance, new_state
from decima.systems.cloud.workload import PlacementWorkload


@dataclass
class Episode:
    """Memory of one run: the state, a scratch state, and a random generator."""

    workload: PlacementWorkload
    settings: PlacementSettings
    state: Record
    other: Record
    rng: np.random.Generator | None = None

    @classmethod
    def of(cls, workload: PlacementWorkload, settings: PlacementSettings) -> Episode:
        """Memory for a workload."""
        return cls(workload, settings, new_state(workload, settings), new_state(workload, settings))

    def start(self, seed: int) -> None:
        """Begin an episode; the same seed gives rules the same chance."""
        check_whole("seed", seed, least=0)
        self.rng = np.random.default_rng(int(seed))
        give_chance(self.state, self.rng)
        core.begin(self.state.address)

    def run(self, scheduler: CompiledRule | PlacementScheduler, seed: int) -> None:
        """Run a rule to the end of the episode.

        Raises:
            SchedulerError: A rule in Python answered something that cannot be done.
        """
        self.start(seed)
        if isinstance(scheduler, CompiledRule):
            compiled.run_rule(self.state.address, self.other.address, scheduler.code, float(scheduler.parameter))
            return
        if hasattr(scheduler, "run_episode"):
            scheduler.run_episode(self)
            return
        state, view = self.state, View(self.workload, self.settings, self.state)
        while state.status == GOES_ON:
            chosen = scheduler.decide(view)
            if chosen is not None:
                state.plan[: view.job.executors] = self._checked(chosen, view, scheduler.name)
            elif not view.may_wait:
                raise SchedulerError(f"scheduler {scheduler.name} waits with job {view.job.id} although nothing runs")
            compiled.answer(state.address, self.other.address, chosen is not None)

    def _checked(self, chosen: Sequence[int], view: View, name: str) -> np.ndarray:
        vms = np.asarray(chosen)
        job, count = view.job, len(self.settings.cluster)
        where = f"scheduler {name}, job {job.id}"
        if vms.shape != (job.executors,) or vms.dtype.kind not in "iu":
            raise SchedulerError(
                f"{where}: got {chosen!r:.80}; expected {job.executors} numbers of VMs, or None to wait"
            )
        if vms.min() < 0 or vms.max() >= count:
            raise SchedulerError(f"{where}: got {chosen!r:.80}; expected numbers of VMs from 0 to {count - 1}")
        over = np.flatnonzero(np.bincount(vms, minlength=count) > view.room)
        if len(over):
            vm = int(over[0])
            raise SchedulerError(
                f"{where}: {int((vms == vm).sum())} executors on VM {vm}, which has room for {int(view.room[vm])}"
            )
        return vms


class VmPlacement:
    """Executors of jobs on cloud VMs; see :class:`decima.core.system.System` for the methods."""

    name = "cloud"
    label = "placement on cloud VMs"
    settings_type = PlacementSettings
    workload_type = PlacementWorkload
    scored = tuple(OBJECTIVES)

    def read_jobs(self, text: str) -> JobsSpec:
        """Jobs of a source or a file; see :func:`decima.systems.cloud.sources.parse_placement_jobs`."""
        return parse_placement_jobs(text)

    def tables(self, workload: PlacementWorkload, settings: PlacementSettings) -> PlacementWorkload:
        """The jobs, checked against the VMs."""
        workload.require_room(settings.cluster)
        return workload

    def state(self, tables: PlacementWorkload, settings: PlacementSettings, *, log: bool = False) -> Episode:
        """Memory of the environment; its log is part of it."""
        return Episode.of(tables, settings)

    def give(self, state: Episode, arrays: Mapping[str, np.ndarray]) -> None:
        """Give a plan to follow: ``wanted`` and ``wanted_waits``, as whole numbers."""
        state.state.release(*state.state.bound & ({"wanted", "wanted_waits"} - arrays.keys()))
        for name, values in arrays.items():
            state.state.bind(name, np.asarray(values).astype(np.int64))

    def run(self, state: Episode, scheduler: CompiledRule | PlacementScheduler, seed: int) -> None:
        """Run to the end."""
        state.run(scheduler, seed)

    def outcome(self, state: Episode) -> Outcome:
        """Arrivals, completions, cost and the rest."""
        return outcome_of(state.state, state.workload)

    def result(self, state: Episode, scheduler: str, seed: int) -> PlacementResult:
        """Outcome in detail."""
        return PlacementResult.of_state(state.state, state.workload, state.settings, scheduler, seed)

    def make_scheduler(self, scheduler: str | PlacementScheduler, **parameters: Any) -> Any:
        """A rule by name; see :func:`decima.systems.cloud.schedulers.registry.make_placement`."""
        return make_placement(scheduler, **parameters)

    def list_schedulers(self) -> list[str]:
        """Names of all registered rules."""
        return list_placements()

    def objectives(self) -> list[str | Objective]:
        """Objectives of every system that apply, and those of placement."""
        return ["avg_jct", "makespan", "slowdown", "p50_jct", "p90_jct", "p95_jct", "p99_jct", *OBJECTIVES.values()]


VM_PLACEMENT = register_system(VmPlacement())


def simulate(
    jobs: PlacementWorkload | str | Path = "generated",
    scheduler: str | PlacementScheduler = "ilp_exact",
    settings: PlacementSettings | None = None,
    seed: int = 0,
) -> PlacementResult:
    """Run one rule on one workload.

    Args:
        jobs: The jobs, or a text of :mod:`decima.systems.cloud.sources`.
        scheduler: Name with options, or an object with ``name`` and ``decide(view)``.
        settings: VMs, billing, beta, rules; mode ``paper`` on the VMs of Table 4 when omitted.
        seed: Random seed of drawn jobs and of the heuristic.

    Raises:
        DecimaError: Bad input; the message has the input and the place.
    """
    settings = PlacementSettings() if settings is None else settings
    return simulate_system(jobs, scheduler, seed=seed, cluster=settings)
