"""Command-line options and output of heterogeneous executors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from decima.commands.shared.options import option, set_option
from decima.core.grammar import MOST

if TYPE_CHECKING:
    import pandas

    from decima.systems.heterogeneous.result import HeterogeneousResult
    from decima.systems.heterogeneous.sources import InstanceText
    from decima.systems.heterogeneous.workload import Instance

EXPLORED = False  # no page of a schedule
DEFAULTS = {"scheduler": "heft", "schedulers": None}


@dataclass(frozen=True)
class Options:
    """Options of jobs and of a cluster of heterogeneous executors."""

    jobs: Annotated[
        str | None,
        option(
            "JOBS",
            "canonical; random:nodes=100,ccr=5; gauss:size=8; fft:points=16; jobs of stages (embedded:n=20); "
            "or a file with jobs (.json, .dax, .dot, .stg). A comparison also takes a folder of files.",
            "--jobs",
            show_default="embedded:n=20 at the paper's sizes",
        ),
    ] = None
    executors: Annotated[
        int | None, option("N", "Number of executors.", max=MOST, show_default="50, or the file's")
    ] = None
    speeds: Annotated[str | None, option("V+V", "Speed of each executor.", show_default="drawn from 2.1 to 3.6")] = None
    rate: Annotated[float | None, option("X", "Data per second between two executors.", show_default="125")] = None
    latency_s: Annotated[float | None, option("S", "Latency of every transfer.", show_default="0")] = None
    edges: Annotated[
        str | None,
        option(
            "ccr=X|measured|own",
            "Data between stages, for jobs of stages; own: as in the file (data_mb).",
            show_default="own, or ccr=1",
        ),
    ] = None

    def files(self) -> tuple[Path | None, ...]:
        """Files that are read, which no output may replace."""
        return (path,) if (path := self.spec().path) is not None else ()

    def spec(self) -> InstanceText:
        """Instances of the text; by default the jobs of the paper at CCR 1."""
        from decima.systems.heterogeneous.sources import ClusterOptions, InstanceText

        cluster = ClusterOptions(self.executors, self.speeds, self.rate, self.latency_s)
        return InstanceText(self.jobs, cluster, self.edges)

    def instance(self, seed: int) -> Instance:
        """The instance of a seed."""
        return self.spec().workload(seed)

    def settings(self) -> Any:
        """Settings of the system; executors come with the instances."""
        from decima.systems.heterogeneous.settings import Settings

        return Settings()


@dataclass(frozen=True)
class CompareOptions(Options):
    """Options of a comparison."""

    search: Annotated[int, option("N", "Priorities to try on each instance; 0: none.", min=0, max=MOST)] = 0

    def searches(self) -> dict[str, Any]:
        """The search over priorities, if it was asked for."""
        from decima.systems.heterogeneous.optimum.exact import PrioritySearch

        return {"search": PrioritySearch(self.search)} if self.search else {}


def all_schedulers() -> list[str]:
    """Names that are compared by default."""
    from decima.systems.heterogeneous import list_schedulers

    return list_schedulers(bare=True)


def result_fields(result: HeterogeneousResult) -> dict[str, Any]:
    """What a result file has in addition to the parts of all systems: all copies."""
    from decima.systems.heterogeneous.json_format import schedule_document

    document = schedule_document(result.schedule)
    return {name: document[name] for name in ("makespan_s", "copies")}


def job_rows(result: HeterogeneousResult) -> list[dict[str, Any]]:
    """A row per job for a result file."""
    completion_s = result.schedule.completion_s
    return [
        {"name": job.name, "arrival_s": job.arrival_s, "finish_s": float(completion_s[index])}
        for index, job in enumerate(result.workload.jobs)
    ]


def scores(result: HeterogeneousResult) -> dict[str, float]:
    """Scores by name."""
    return asdict(result.outcome.metrics)


def task_table(result: HeterogeneousResult) -> pandas.DataFrame:
    """A row per copy, for ``--log``."""
    import pandas

    return pandas.DataFrame(result_fields(result)["copies"])


@dataclass(frozen=True)
class TrainOptions:
    """Options of what is trained for; JOBS says all of the rest."""

    changes: Annotated[
        list[str] | None,
        set_option("Change a field of the recipe or the architecture (recipe.lr_start=2e-3); may be repeated."),
    ] = None


OPTIONS: Mapping[str, type] = {
    "simulate": Options,
    "compare": CompareOptions,
    "tune": Options,
    "optimum": Options,
    "train": TrainOptions,
}
