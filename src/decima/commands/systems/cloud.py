"""Options of the command line for executors on cloud VMs, and what files and lines say of episodes there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from decima.core.grammar import MOST, changed_texts, read_fields

if TYPE_CHECKING:
    import pandas

    from decima.evaluation.comparison import Comparison
    from decima.systems.cloud.result import PlacementResult
    from decima.systems.cloud.settings import PlacementSettings
    from decima.systems.cloud.sources import JobsSpec

VMS = "table4, released, families, compute, or a .csv file."
Mode = Annotated[
    str, typer.Option(metavar="paper|released", help="The clock only goes forward, or as in the published code.")
]


@dataclass(frozen=True)
class Options:
    """Options of jobs, VMs, billing and rules."""

    defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({"scheduler": "ilp_exact"})

    jobs: Annotated[
        str,
        typer.Option(
            "--jobs",
            metavar="JOBS",
            help="A source with options (generated; generated:pattern=burst,n=200; normal; burst; "
            "redrawn:trace=burst), see 'decima workload sources --system cloud'; or a .csv file.",
        ),
    ] = "generated"
    vms: Annotated[str, typer.Option(metavar="VMS", help=VMS, show_default="by mode")] = ""
    beta: Annotated[float, typer.Option(metavar="X", help="Weight of cost against mean duration, 0 to 1.")] = 1.0
    mode: Mode = "paper"
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="GROUP.KEY=VALUE",
            help="Change a rule or the billing (billing.granularity_s=3600; rules.lookahead=shares); may be "
            "given several times.",
        ),
    ] = None

    def spec(self) -> JobsSpec:
        """The jobs that the text means, see :func:`decima.systems.cloud.parse_placement_jobs`."""
        from decima.systems.cloud import parse_placement_jobs

        return parse_placement_jobs(self.jobs)

    def files(self) -> tuple[Path | None, ...]:
        """Files that are read, which no output may replace."""
        return (self.spec().path, Path(self.vms) if self.vms.endswith(".csv") else None)

    def settings(self) -> PlacementSettings:
        """VMs, billing, beta and rules.

        Raises:
            DecimaError: An option is out of range, or the file of VMs is not as expected.
        """
        from decima.systems.cloud import Billing, PlacementSettings, Rules, make_cluster

        texts = changed_texts(self.changes, "rules", "billing")
        rules = read_fields(texts["rules"], Rules, "--set rules.")
        billing = Billing(**read_fields(texts["billing"], Billing, "--set billing."))
        cluster = make_cluster(self.vms) if self.vms else None
        return PlacementSettings.of_mode(self.mode, cluster=cluster, beta=self.beta, billing=billing, **rules)


@dataclass(frozen=True)
class SimulateOptions(Options):
    """Options of one episode."""

    def run(self, scheduler: Any, seed: int, *, log: bool) -> tuple[PlacementResult, Mapping[str, Any]]:
        """The episode, of which every job must be placed, and the parameters of its scheduler."""
        from decima.systems.cloud import simulate

        settings = self.settings()
        result = simulate(self.spec().workload(seed), scheduler, settings, seed).require_complete()
        return result, getattr(scheduler, "values", {})


@dataclass(frozen=True)
class CompareOptions(Options):
    """Options of a comparison."""

    defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({"schedulers": None, "metric": "cost"})

    @staticmethod
    def all_schedulers() -> list[str]:
        """Names that are compared where none is given."""
        from decima.systems.cloud import list_placements

        return list_placements()

    def compare(
        self, schedulers: Mapping[str, Any], seeds: Sequence[int], *, baseline: str | None = None, **others: Any
    ) -> CostTable:
        """Scores of schedulers by label."""
        from decima.systems.cloud import compare_placements

        settings = self.settings()
        if baseline is None and "aep" in schedulers:
            baseline = "aep"
        jobs = self.spec().workloads(seeds)
        return CostTable(compare_placements(schedulers, jobs, settings, seeds, baseline=baseline, **others))

    def runs(self, schedulers: Mapping[str, Any], seed: int) -> list[PlacementResult]:
        """Episodes of one seed."""
        from decima.systems.cloud import simulate

        workload, settings = self.spec().workloads([seed])[0], self.settings()
        return [simulate(workload, each, settings, seed) for each in schedulers.values()]


@dataclass(frozen=True)
class CostTable:
    """A comparison as a table of every metric."""

    comparison: Comparison

    @property
    def scores(self) -> pandas.DataFrame:
        """Scores of all runs."""
        return self.comparison.scores

    def __str__(self) -> str:
        import pandas

        from decima.systems.cloud.objectives import OBJECTIVES

        comparison, summary = self.comparison, self.comparison.summary()
        means = comparison.scores.groupby("scheduler")
        table = pandas.DataFrame({"scheduler": summary["scheduler"]})
        digits = {"cost": 4, "reward": 1}
        for each in OBJECTIVES.values():
            column = means[each.column].mean().reindex(summary["scheduler"]).to_numpy()
            shown = f"{each.label} [{each.unit}]" if each.unit else each.label
            table[shown] = [f"{value:.{digits.get(each.name, 2)}f}" for value in column]
        changes = zip(summary["change_percent"], summary["change_low"], summary["change_high"], strict=True)
        interval = " (95 %)" if comparison.num_runs > 1 else ""
        table[f"{comparison.objective.label} against {comparison.baseline}{interval}"] = [
            "baseline" if name == comparison.baseline else _change(*change)
            for name, change in zip(summary["scheduler"], changes, strict=True)
        ]
        return "\n".join(filter(None, (comparison.title, table.to_string(index=False), comparison.note)))


def _change(change: float, low: float, high: float) -> str:
    interval = "" if low != low else f" ({low:+.1f} to {high:+.1f})"
    return "-" if change != change else f"{change:+.1f} %{interval}"


def best(table: CostTable) -> str:
    """Who is best, with its score and the change against the baseline."""
    from decima.plotting.words import count

    comparison, summary = table.comparison, table.comparison.summary()
    first = summary.iloc[0]
    mean = first[comparison.objective.with_unit("mean")]
    money = comparison.objective.name == "cost"
    shown = f"{mean:.4f} {comparison.settings.cluster.currency}" if money else comparison.objective.shown(mean)
    against = ""
    if first.scheduler != comparison.baseline:
        against = f", {first.change_percent:+.1f} % against {comparison.baseline}"
    return f"best of {count(len(summary), 'scheduler')} on {comparison.label}: {first.scheduler} with {shown}{against}"


def schedulers() -> Any:
    """Registry of the schedulers."""
    from decima.systems.cloud.schedulers.registry import SCHEDULERS

    return SCHEDULERS


def make_scheduler(text: str) -> Any:
    """Scheduler of a text."""
    from decima.systems.cloud import make_placement

    return make_placement(text)


def workload_label(result: PlacementResult) -> str:
    """Name of the jobs."""
    return result.workload.label


def result_fields(result: PlacementResult) -> dict[str, Any]:
    """What a result file says beside what it says for all systems."""
    common = ("label", "scheduler", "seed", "settings")
    values = {name: value for name, value in result.as_dict().items() if name not in common}
    return values | {"vms": result.vms().to_dict("records")}


def job_rows(result: PlacementResult) -> list[dict[str, Any]]:
    """A row per job for a result file."""
    return result.jobs().to_dict("records")


def scores(result: PlacementResult) -> dict[str, float]:
    """Scores by column of an objective."""
    from decima.systems.cloud.objectives import OBJECTIVES

    return {each.column: result.score(each) for each in OBJECTIVES.values()}


def task_table(result: PlacementResult) -> pandas.DataFrame:
    """A row per executor, for ``--log``: where it goes, when, and what its job adds to the bill."""
    return result.executors()


def sentence(result: PlacementResult) -> str:
    """One line about an episode."""
    from decima.plotting.words import count

    return (
        f"{result.scheduler} on {result.workload.label} ({count(len(result.workload), 'job')}, "
        f"{result.settings.label}): cost {result.cost:.4f} {result.settings.cluster.currency}, mean duration "
        f"{result.mean_duration_s:.2f} s, response {result.response_s:.2f} s, {result.good_placements} well placed, "
        f"{count(result.waits, 'wait')}"
    )


def figure(results: Sequence[PlacementResult]) -> Any:
    """Gantt charts of episodes above each other."""
    from decima.plotting.gantt import placements_figure

    return placements_figure(results)


@dataclass(frozen=True)
class OptimumOptions(Options):
    """Options of the search for the best placement."""

    nodes: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, max=100 * MOST, help="Placements to try in a busy period; 0: no exact search."
        ),
    ] = 8_000_000
    budget: Annotated[int, typer.Option(metavar="N", min=0, max=MOST, help="Plans to try in the search.")] = 100_000
    waits: Annotated[bool, typer.Option("--waits", help="Search for voluntary waits before jobs, too.")] = False


@dataclass(frozen=True)
class TrainOptions:
    """Options of what is trained for."""

    defaults: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"jobs": "generated;generated:pattern=burst", "architecture": "shared"}
    )

    vms: Annotated[str, typer.Option(metavar="VMS", help="Lists of VMs; several with ; between.")] = "table4"
    betas: Annotated[str, typer.Option(metavar="X", help="Weights of cost, 0 to 1; several with ; between.")] = "1"
    mode: Mode = "paper"
    reward: Annotated[
        str, typer.Option(metavar="per_job|table3", help="What every job takes from R_epi, or the paper's rewards.")
    ] = "per_job"
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="GROUP.KEY=VALUE",
            help="Change a field of rules, billing, recipe or architecture (recipe.lr_start=1e-3; "
            "architecture.masked=true); may be given several times.",
        ),
    ] = None


OPTIONS: Mapping[str, type] = {
    "simulate": SimulateOptions,
    "compare": CompareOptions,
    "optimum": OptimumOptions,
    "train": TrainOptions,
}
