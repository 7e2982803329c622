"""Tasks of a suite: jobs, settings, objective, seeds and limit, with a hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from decima.core.errors import ConfigError
from decima.core.grammar import RENAMED, hint
from decima.core.objectives import Objective
from decima.core.system import System, SystemSettings, SystemWorkload, get_system, objective_of
from decima.workload.jobs import Workload
from decima.workload.profile import JobProfile
from decima.workload.sources import get_source, parse_jobs

SUITE = "bench-1"
FOLDER = Path(__file__).parent
SEEDS = ("test", "training", "validation")
HIDDEN_MS = 1000.0  # what schedulers are shown as the duration of every task where durations are hidden


class Instance(NamedTuple):
    """One run of a task."""

    variant: str  # text of the jobs
    seed: int  # random seed of the jobs, the durations and the scheduler


@dataclass(frozen=True)
class Task:
    """Something to be scheduled well; numbers of seeds are (first, count)."""

    name: str
    title: str  # what people read
    system: str  # name of the system
    jobs: tuple[str, ...]  # variants: texts of jobs; of heterogeneous executors the ratio of transfers to execution
    options: dict[str, Any]  # mode and fields of the settings; of heterogeneous executors those of the cluster
    metric: str  # name of the objective
    test: tuple[int, int]  # seeds of scores
    training: tuple[int, int]  # seeds for learning and tuning
    validation: tuple[int, int]  # seeds for choosing among candidates
    limit_s: float  # time that a Python entry may take per instance
    quick: int  # test seeds of each variant in a quick run
    rule: str  # the rule that is tuned, which entries are compared with
    policies: tuple[str, ...]  # stored policies of the task
    choices: tuple[str, ...] = ()  # rules to choose from, where none has parameters
    data: str = ""  # source of jobs that has to be fetched; empty where everything is in the package
    data_sha256: str = ""  # of that data, where its digest cannot be had without it
    learning_jobs: tuple[str, ...] = ()  # variants for training and validation; empty: those of tests
    added: bool = False  # after the first results: files without the task stay valid
    durations_hidden: bool = False  # schedulers are shown the same duration for all tasks

    @property
    def runs_on(self) -> System:
        """The system."""
        return get_system(self.system)

    @property
    def settings(self) -> SystemSettings:
        """Settings of the system."""
        options = {} if self.system == "heterogeneous" else dict(self.options)  # executors come with the jobs there
        return self.runs_on.settings_type.of_mode(options.pop("mode", "paper"), **options)

    @property
    def objective(self) -> Objective:
        """What is scored."""
        return objective_of(self.runs_on, self.metric)

    @property
    def digest(self) -> str:
        """SHA-256, in hexadecimal, of everything that defines the task, the data of its jobs included."""
        keys = ("system", "jobs", "options", "metric", *SEEDS, "limit_s", "durations_hidden")
        content = {key: getattr(self, key) for key in keys}
        sources = ["embedded" if self.system == "heterogeneous" else text for text in self.jobs]
        if self.data_sha256:
            content |= {"sources": [self.data_sha256], "learning_jobs": self.learning_jobs}
        elif self.system != "cloud":
            specs = [parse_jobs(text) for text in sources]
            content["sources"] = [spec.source.digest(**_without_sizes(spec.options)) for spec in specs]
        earlier = {name: old for old, name in RENAMED.items()}  # as they were called when the suite was defined
        content["system"] = earlier.get(self.system, self.system)
        text = json.dumps([SUITE, earlier.get(self.name, self.name), content], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def missing(self) -> str:
        """Why the task cannot be run here; empty if it can."""
        if self.data and not get_source(self.data).available():
            return f"the data of {self.data} is not on this machine; 'decima data fetch {self.data}' fetches it"
        return ""

    def seeds(self, use: str = "test", *, quick: bool = False) -> range:
        """Seeds for a use: ``test``, ``training`` or ``validation``."""
        first, count = getattr(self, use)
        return range(first, first + (min(count, self.quick) if quick else count))

    def instances(self, use: str = "test", *, quick: bool = False) -> list[Instance]:
        """Runs of the task, variant by variant."""
        variants = self.jobs if use == "test" else self.learning_jobs or self.jobs
        return [Instance(variant, seed) for variant in variants for seed in self.seeds(use, quick=quick)]

    def workload(self, instance: Instance) -> SystemWorkload:
        """Jobs of an instance.

        Raises:
            DecimaError: The data is missing.
        """
        if self.system == "heterogeneous":
            from decima.systems.heterogeneous.sources import PAPER_JOBS, ClusterOptions, read_instance

            return read_instance(PAPER_JOBS, ClusterOptions(**self.options), instance.variant, instance.seed)
        workload = self.runs_on.read_jobs(instance.variant).workload(instance.seed)
        return without_durations(workload) if self.durations_hidden else workload

    def workloads(self, use: str) -> Iterator[SystemWorkload]:
        """Jobs of all instances for a use."""
        return map(self.workload, self.instances(use))


def without_durations(workload: Workload) -> Workload:
    """Show schedulers one duration for all tasks; true durations stay unchanged.

    Source: appendix J.
    """
    jobs = tuple(replace(job, profile=_hidden(job.profile)) for job in workload.jobs)
    return Workload(jobs, workload.label, tuple(map(_hidden, workload.universe)))


@cache
def _hidden(profile: JobProfile) -> JobProfile:
    return replace(profile, stages=tuple(replace(stage, reported_ms=HIDDEN_MS) for stage in profile.stages))


def _without_sizes(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "sizes"}


@cache
def document() -> dict[str, Any]:
    """The file of the suite."""
    return yaml.safe_load((FOLDER / f"{SUITE}.yaml").read_text(encoding="utf-8"))


@cache
def tasks() -> dict[str, Task]:
    """Tasks of the suite by name."""
    return {name: _read(name, dict(values)) for name, values in document()["tasks"].items()}


def _read(name: str, values: dict[str, Any]) -> Task:
    values |= {key: tuple(values.get(key, ())) for key in ("jobs", "learning_jobs", "policies", "choices", *SEEDS)}
    return Task(name, options=values.pop("settings"), metric=values.pop("objective"), **values)


def task_named(name: str) -> Task:
    """Task of a name.

    Raises:
        ConfigError: There is none.
    """
    known = tasks()
    if name not in known:
        raise ConfigError(f"unknown task {name!r:.60}{hint(name, known)}; {SUITE} has: {', '.join(known)}")
    return known[name]
