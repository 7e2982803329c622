"""The system of executors on cloud VMs, and functions to run and compare schedulers.

:func:`simulate` runs one rule on one workload, :func:`compare_placements` several on several, with paired intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from decima.core.checks import check_whole, different_seeds, is_whole
from decima.core.errors import ConfigError, SchedulerError
from decima.core.objectives import Outcome
from decima.core.record import Record
from decima.core.system import register_system
from decima.evaluation.comparison import Comparison, scored
from decima.systems.cloud import engine as core
from decima.systems.cloud.fields import GOES_ON
from decima.systems.cloud.objectives import OBJECTIVES, PlacementOutcome, placement_objective
from decima.systems.cloud.result import PlacementResult, outcome_of
from decima.systems.cloud.schedulers import compiled
from decima.systems.cloud.schedulers.registry import CompiledRule, list_placements, make_placement
from decima.systems.cloud.schedulers.view import PlacementScheduler, View
from decima.systems.cloud.settings import PlacementSettings
from decima.systems.cloud.sources import parse_placement_jobs
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
            scheduler.run_episode(self.state, self.other)
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

    def tables(self, workload: PlacementWorkload, settings: PlacementSettings) -> PlacementWorkload:
        """The jobs, checked against the VMs."""
        workload.require_room(settings.cluster)
        return workload

    def state(self, tables: PlacementWorkload, settings: PlacementSettings, *, log: bool = False) -> Episode:
        """Memory of the environment; its log is part of it."""
        return Episode.of(tables, settings)

    def give(self, state: Episode, arrays: Mapping[str, np.ndarray]) -> None:
        """Give a plan to follow: ``wanted`` and ``wanted_waits``, as whole numbers."""
        state.state.release(*state.state.given & ({"wanted", "wanted_waits"} - arrays.keys()))
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

    def objectives(self) -> list[str]:
        """Objectives of every system that apply; :mod:`decima.systems.cloud.objectives` has those of placement."""
        return ["avg_jct", "makespan", "slowdown", "p50_jct", "p90_jct", "p95_jct", "p99_jct"]


VM_PLACEMENT = register_system(VmPlacement())


def _jobs(jobs: PlacementWorkload | str | Path, seed: int) -> PlacementWorkload:
    if isinstance(jobs, PlacementWorkload):
        return jobs
    if isinstance(jobs, (str, Path)):
        return parse_placement_jobs(str(jobs)).workload(seed)
    raise ConfigError(f"jobs must be a PlacementWorkload or a text, got {type(jobs).__name__}")


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
        seed: Source of drawn jobs and of the rule's chance.

    Raises:
        DecimaError: Bad input; the message says what and where.
    """
    check_whole("seed", seed, least=0)
    settings = PlacementSettings() if settings is None else settings
    scheduler = make_placement(scheduler)
    episode = Episode.of(_jobs(jobs, seed), settings)
    episode.run(scheduler, seed)
    return VM_PLACEMENT.result(episode, scheduler.name, seed)


def compare_placements(
    schedulers: Sequence[str | PlacementScheduler] | Mapping[str, str | PlacementScheduler],
    jobs: PlacementWorkload | str | Path | Sequence[PlacementWorkload] = "generated",
    settings: PlacementSettings | None = None,
    seeds: Sequence[int] | int = 20,
    *,
    baseline: str | None = None,
    metric: str = "cost",
    workers: int | None = None,
    backend: str | None = None,
    progress: str | None = None,
) -> Comparison:
    """Run schedulers on the same workloads and seeds; scores have paired intervals.

    Args:
        schedulers: Texts or objects, or a mapping from labels to either.
        jobs: A workload, one per seed, or a text of :mod:`decima.systems.cloud.sources`, whose jobs are drawn by seed.
        settings: VMs, billing, beta, rules.
        seeds: Seeds, or how many from 0 on. Where neither jobs nor schedulers draw, only the first is run.
        baseline: Label of the rule to compare with, the first by default.
        metric: What the summary is about by default: cost, duration, response, good, waits or reward.
        workers: Workers, all cores by default; no result depends on it.
        backend: Where workers are, see :func:`decima.evaluation.workers.make_workers`.
        progress: Label of a progress bar; None for no bar.

    Raises:
        ConfigError: Lists are empty or do not match, a name is unknown, ...
    """
    settings = PlacementSettings() if settings is None else settings
    if not isinstance(schedulers, Mapping):
        labels = [each if isinstance(each, str) else each.name for each in schedulers]
        for label in labels:
            if labels.count(label) > 1:
                raise ConfigError(f"scheduler {label} is given twice; use a mapping from labels to schedulers")
        schedulers = dict(zip(labels, schedulers, strict=True))
    by_label = {str(label): make_placement(each) for label, each in schedulers.items()}
    if not by_label:
        raise ConfigError("no scheduler given; expected at least one")
    baseline = next(iter(by_label)) if baseline is None else baseline
    if baseline not in by_label:
        raise ConfigError(f"baseline {baseline!r} is not among the compared schedulers: {', '.join(by_label)}")
    seeds = different_seeds(range(seeds) if is_whole(seeds) else seeds)
    if isinstance(jobs, (str, Path)):
        workloads = parse_placement_jobs(str(jobs)).workloads(seeds)
    else:
        workloads = [jobs] * len(seeds) if isinstance(jobs, PlacementWorkload) else list(jobs)
    options = {"workers": workers, "backend": backend, "progress": progress}
    objective, all_of_them = placement_objective(metric), OBJECTIVES.values()
    return scored(by_label, workloads, settings, seeds, all_of_them, baseline=baseline, objective=objective, **options)


__all__ = [
    "VM_PLACEMENT",
    "Episode",
    "PlacementOutcome",
    "VmPlacement",
    "compare_placements",
    "simulate",
]
