"""Command `decima capacity`: how many executors, from event logs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decima.commands.from_logs import read_logs
from decima.commands.shared import options
from decima.commands.shared.compilation import watch_compilation
from decima.commands.shared.options import option
from decima.commands.shared.outputs import check_output, write_json, write_text, wrote
from decima.core.errors import ConfigError
from decima.core.extras import require
from decima.core.grammar import changed_texts, read_fields, read_value
from decima.plotting.words import count

if TYPE_CHECKING:
    import pandas

    from decima.connect.eventlog.application import Application
    from decima.connect.eventlog.recordings import LogRecordings
    from decima.systems.spark.capacity import Plan

# Settings that options of their own have, and those that matter where executors are lost from a cluster of one size.
WITH_OPTION = ("min_executors", "executor_cores")
SCHEDULERS = ("spark_fifo", "spark_fair")  # when none is asked for; applications alone need the first
# Shares beyond which a warning stands beside the answer.
UNEXPLAINED, APART = 0.1, 0.05
WARM_UP = 1.5  # first tasks of executors that take so many times the later ones are named as a cause
LOSS_CHANGES = ("executor_startup_ms", "shuffle_service", "replacement_delay_ms")
SIZES = 40  # that are simulated unless others are asked for
ROWS = 12  # of the table on the terminal, per scheduler and load
# Notices that may explain why the recorded run took another time.
_DISTURBED = ("note executor", "note task", "note stage", "note file")
_LIMITS = {
    "few_tasks": "too few tasks for the slots",
    "uneven_tasks": "uneven tasks and last waves",
    "driver": "time of the driver",
    "waiting": "jobs that wait for a slot",
    "unexplained": "time that the log does not explain",
}


def capacity(
    logs: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG",
            help="Event logs: files, eventlog_v2_ folders, folders of these, or http://HOST:18080/APPLICATION of a "
            "history server, which is listed without an application.",
        ),
    ],
    executors: Annotated[
        str | None,
        option("N-N|N+N", "Cluster sizes to simulate (1-40; 2+4+8).", show_default="1 to four times the recorded"),
    ] = None,
    cores: Annotated[int | None, option("N", "Cores of an executor.", min=1, show_default="as recorded")] = None,
    scheduler: Annotated[
        list[str] | None, option("SCHEDULER", "May be given several times.", show_default=", ".join(SCHEDULERS))
    ] = None,
    load: Annotated[str, option("X+X", "Arrival-rate multipliers (1+2); the largest one decides.")] = "1",
    draws: Annotated[int, option("N", "Runs per point.", min=1, max=100_000)] = 20,
    target: Annotated[str | None, option("NAME<TIME", "Bound on run, mean, p50 or p95, such as 'p95<60s'.")] = None,
    budget: Annotated[float | None, option("X", "Maximum cost of the logs.", min=0.0)] = None,
    price: Annotated[
        str | None,
        option(
            "X|LIST:TYPE", "Price of an executor hour; or a type of VM of a list (families:m5.2xlarge, my.csv:large)."
        ),
    ] = None,
    dynamic: Annotated[
        str | None, option("MIN-MAX", "Also simulate dynamic allocation between MIN and MAX executors.")
    ] = None,
    lose: Annotated[float, option("RATE", "Failure rate per executor-hour.", min=0.0)] = 0.0,
    changes: Annotated[
        list[str] | None,
        option(
            "settings.KEY=VALUE",
            "Change a setting of dynamic allocation or losses (settings.idle_timeout_ms=5000); may be repeated.",
            "--set",
        ),
    ] = None,
    data: Annotated[str, option("xX", "Factor on the input, such as x2.")] = "x1",
    unit: Annotated[
        str,
        option(
            "auto|application|query",
            "Run every application alone, or let all queries arrive at one cluster; auto: by their overlap.",
        ),
    ] = "auto",
    hosts: Annotated[
        str,
        option(
            "auto|one|many",
            "Whether all executors share one host, where tasks slow each other down; auto: as recorded.",
        ),
    ] = "auto",
    out: options.ResultOut = None,
    page: Annotated[Path | None, option("FILE", "Write one page with all results (.html).")] = None,
    emit: Annotated[Path | None, option("FILE", "Write the chosen size as options of spark-submit.")] = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Also use logs of which less than half is usable.")] = False,
    threads: options.Threads = None,
) -> None:
    """Simulate the jobs of event logs on clusters of many sizes: time, cost, limits."""
    from decima.connect.eventlog.history import is_server, local_logs
    from decima.systems.spark import capacity as model
    from decima.systems.spark.settings import ELASTIC_SWITCHES, Settings

    watch_compilation()
    files = tuple(Path(log) for log in logs if not is_server(log))
    check_output(out, ".json", inputs=files)
    check_output(page, ".html", inputs=files)
    check_output(emit, inputs=files)
    if page is not None:
        require("plots")
    wanted = None if target is None else model.read_target(target)
    loads = read_value(load, tuple[float, ...], "--load")
    times = read_value(data.removeprefix("x"), float, "--data")
    sizes = None if executors is None else read_sizes(executors)
    bounds = None if dynamic is None else read_bounds(dynamic)
    texts = changed_texts(changes, "settings")["settings"]
    switched = read_fields(texts, Settings, "--set settings.")
    if refused := [name for name in switched if name not in ELASTIC_SWITCHES or name in WITH_OPTION]:
        raise ConfigError(f"--set settings.{refused[0]}: expected a setting of dynamic allocation or of losses")
    if budget is not None and price is None:
        raise ConfigError("--budget bounds the cost; expected --price with it")
    from decima.connect.eventlog.recordings import read_recordings

    with options.opened(scheduler or list(SCHEDULERS)) as schedulers:
        with local_logs(logs) as paths:
            applications = read_logs(paths)
        recorded = read_recordings(applications, unit=unit, data=times, hosts=hosts)
        recorded.report.check(anyway)
        if wanted is None and budget is None and recorded.interval_s > 0.0:
            wanted = model.Target("p95_s", recorded.interval_s)
        cores = cores or recorded.cores
        if recorded.unit == "application":
            if loads != (1.0,):
                raise ConfigError("--load is for queries that arrive at one cluster; expected --unit query with it")
            if scheduler is None:
                schedulers = {SCHEDULERS[0]: schedulers[SCHEDULERS[0]]}
        sizes = sizes or default_sizes(max(recorded.sizes) / cores)
        plan = model.Plan(sizes, cores, loads, draws, lose=lose)
        of_losses = {name: value for name, value in switched.items() if lose and name in LOSS_CHANGES}
        fixed = replace(plan, changes=switched if bounds is None else of_losses)
        hourly = None if price is None else read_price(price, cores)
        run = partial(model.sweep, recorded.recordings, schedulers, price=hourly, threads=threads)
        swept = run(fixed, progress="capacity")
        grown = elastic = None
        if bounds is not None:
            ranged = replace(plan, executors=bounds[1:], dynamic=bounds[0], changes=switched)
            elastic = ranged.cluster(bounds[1])
            grown = run(ranged, progress="dynamic allocation")
        report = _Report(applications, recorded, plan, times, swept, bounds, grown)
        report.choose(wanted, budget)
        report.explain(schedulers, hourly)
    chosen = report.chosen
    drawn = "" if page is None else report.page()
    if out is not None:
        write_json(out, report.document())
    if page is not None:
        write_text(page, drawn)
    if emit is not None:
        write_text(emit, model.spark_options(int(chosen.executors), cores, elastic, recorded.task_cpus))
    for line in report.lines():
        typer.echo(line)
    typer.echo(report.sentence() + wrote(page, out, emit))


def read_sizes(text: str) -> tuple[int, ...]:
    """Sizes of ``1-40``, ``2+4+8`` or ``1-4+8``, ascending.

    Raises:
        ConfigError: The text is not of that form.
    """
    sizes: set[int] = set()
    for part in text.split("+"):
        first, _, last = part.partition("-")
        low = read_value(first, int, "--executors")
        high = read_value(last, int, "--executors") if last else low
        if not 1 <= low <= high or high - low > 10_000:
            raise ConfigError(f"--executors is {text!r}; expected sizes from 1 on, such as 1-40 or 2+4+8")
        sizes |= set(range(low, high + 1))
    return tuple(sorted(sizes))


def read_bounds(text: str) -> tuple[int, int]:
    """Fewest and most executors of ``MIN-MAX``.

    Raises:
        ConfigError: The text is not of that form.
    """
    first, dash, last = text.partition("-")
    if dash:
        least, most = read_value(first, int, "--dynamic"), read_value(last, int, "--dynamic")
        if 0 <= least <= most and most >= 1:
            return least, most
    raise ConfigError(f"--dynamic is {text!r}; expected the fewest and the most executors, such as 1-40")


def default_sizes(recorded: float) -> tuple[int, ...]:
    """Up to :data:`SIZES` sizes from 1 to four times the recorded executors.

    They go to 8 at least.
    """
    import numpy as np

    most = max(8, math.ceil(4.0 * recorded))
    return tuple(sorted({round(size) for size in np.linspace(1, most, min(most, SIZES)).tolist()}))


def read_price(text: str, cores: int) -> Callable[[int], float]:
    """Price per hour of so many executors: a number, or whole VMs.

    Raises:
        ConfigError: There is no such list or type, or an executor does not fit a VM of it.
    """
    from decima.systems.cloud.catalog import CLUSTERS, make_cluster

    name, colon, vm_type = text.rpartition(":")
    if not colon:
        try:
            each = float(text)
        except ValueError:
            raise ConfigError(
                f"--price is {text!r}; expected a price per executor hour, or LIST:TYPE with a list of VMs: "
                f"{', '.join(CLUSTERS)}, or a .csv file"
            ) from None
        if not 0.0 < each < math.inf:
            raise ConfigError(f"--price is {text!r}; expected a number above 0")
        return lambda executors: each * executors
    types = {each.name: each for each in make_cluster(name).types}
    if vm_type not in types:
        raise ConfigError(f"--price: {name} has no type of VM {vm_type!r}; it has: {', '.join(types)}")
    vm = types[vm_type]
    per_vm = vm.cores // cores
    if per_vm < 1:
        raise ConfigError(f"--price: an executor of {cores} cores does not fit {vm.name}, which has {vm.cores}")
    return lambda executors: math.ceil(executors / per_vm) * vm.price_per_hour


class _Report:
    """What a sweep says: choice, limits, errors, as lines, document and page."""

    def __init__(
        self,
        applications: Sequence[Application],
        recorded: LogRecordings,
        plan: Plan,
        data: float,
        draws: pandas.DataFrame,
        bounds: tuple[int, int] | None,
        grown: pandas.DataFrame | None,
    ) -> None:
        from decima.connect.eventlog.prediction import REFERENCE_PERCENT, cross_errors
        from decima.systems.spark.capacity import summarize

        self.recorded, self.plan, self.data = recorded, plan, data
        self.measure = "run_s" if recorded.unit == "application" else "mean_s"
        self.errors = cross_errors(applications)
        self.cores = plan.cores
        self.points = summarize(draws)
        slots = self.points.executors * plan.cores
        self.points["extrapolated"] = (slots < min(recorded.sizes)) | (slots > max(recorded.sizes)) | (data != 1.0)
        errors = [error.query[0] for error in self.errors.values()] or [REFERENCE_PERCENT]
        self.points["error_percent"] = float(sum(errors) / len(errors))
        self.bounds = bounds
        self.dynamic = None if grown is None else summarize(grown).assign(min_executors=bounds[0])
        self.highest = self.points[self.points.load == max(plan.loads)]

    def choose(self, target: Any, budget: float | None) -> None:
        """Choose knee and point; see :func:`decima.systems.spark.capacity.choose_point`."""
        from decima.systems.spark.capacity import choose_point, floors_of

        self.floors = floors_of(self.recorded.recordings, max(self.plan.loads))
        self.target, self.budget = target, budget
        self.knee = choose_point(self.highest, self.measure)
        self.chosen = choose_point(self.highest, self.measure, target, budget, self.floors)

    def explain(self, schedulers: dict[str, Any], price: Callable[[int], float] | None) -> None:
        """Run the chosen and the largest size in detail, and the recorded cluster."""
        import pandas

        from decima.systems.spark.capacity import Plan, limit_of, run_recording, sweep, time_parts

        scheduler = schedulers[self.chosen.scheduler]
        self.parts: dict[str, pandas.DataFrame] = {}
        self.runs: dict[str, Any] = {}
        largest = int(max(self.plan.executors))
        for executors in dict.fromkeys((int(self.chosen.executors), largest)):
            label = count(executors, "executor")
            tables = []
            for recording in self.recorded.recordings:
                run = run_recording(recording, scheduler, executors * self.cores, float(self.chosen.load))
                tables.append(time_parts(recording, run).assign(recording=recording.name))
                self.runs.setdefault(label, run)
            self.parts[label] = pandas.concat(tables, ignore_index=True)
        self.limit = limit_of(self.parts[count(largest, "executor")])
        self.chosen_parts = self.parts[count(int(self.chosen.executors), "executor")]
        # One job per application, whose times are added as those of the table; or all queries of one cluster.
        self.real_s = sum(float(each.recorded_ms.mean()) / 1000.0 for each in self.recorded.compared)
        self.replayed = {self.measure: 0.0, "executor_hours": 0.0}
        self.recorded_cost = 0.0 if price is not None else math.nan
        share = self.recorded.executor_hours / len(self.recorded.recordings)
        for each in self.recorded.compared:
            cluster = each.plan or Plan((each.slots,))
            draws = sweep(
                [each],
                {self.chosen.scheduler: scheduler},
                replace(cluster, draws=self.plan.draws),
                price=price,
                threads=1,
            )
            cores = cluster.cores if each.plan else self.recorded.cores
            self.replayed[self.measure] += float(draws[self.measure].mean())
            self.replayed["executor_hours"] += float(draws.executor_hours.mean()) * cluster.cores / cores
            if price is not None:
                executors = max(1, round(each.slots / cores))
                self.recorded_cost += share * price(executors) / executors
        self.replayed_s = self.replayed[self.measure]
        self.apart = self.replayed_s / self.real_s - 1.0 if self.real_s else 0.0

    def warnings(self) -> list[str]:
        """Sentences on what the answer cannot rest on."""
        from decima.connect.eventlog.report import HALF

        recorded, lines = self.recorded, []
        complete = recorded.report.completeness
        if complete.least < HALF:
            lines.append(f"Less than half of the logs could be used: {complete}. The answer is about that part alone.")
        elif complete.least < 1.0:
            lines.append(f"The logs are not complete: {complete} could be used.")
        if recorded.unexplained_s > UNEXPLAINED * recorded.total_s:
            share = 100.0 * recorded.unexplained_s / recorded.total_s
            lines.append(
                f"{recorded.unexplained_s:.1f} s of the recorded {recorded.total_s:.1f} s ({share:.0f} %) are "
                "unexplained: no query ran, and the log has no reason. Every size has them, and the choice rests on "
                "them."
            )
        if self.data != 1.0 or abs(self.apart) <= APART:
            return lines
        band = self.points.error_percent.iloc[0]
        outside = f", and lies outside of the band of ± {band:.0f} %" if abs(self.apart) * 100.0 > band else ""
        notes = recorded.report.notices
        causes = [f"{note.count} {note.item[5:]}: {note.reason}" for note in notes if note.item in _DISTURBED]
        causes += [f"{recorded.left_out} queries not used"] if recorded.left_out else []
        causes += [f"{count(recorded.late, 'executor')} that came after the first query"] if recorded.late else []
        causes += ["dynamic allocation"] if recorded.dynamic else []
        first, later = recorded.first_s
        if first > WARM_UP * later:
            causes.append(
                f"first tasks of executors took {first:.2g} s, later ones {later:.2g} s, which is not simulated"
            )
        why = "; ".join(causes[:6])
        lines.append(
            f"The recorded time is {self.real_s:.1f} s, the simulated one {self.replayed_s:.1f} s "
            f"({100.0 * self.apart:+.1f} %){outside}; "
            + (
                f"possible causes: {why}."
                if why
                else "the log has no sign of a cause: task times vary, or the machine was busy."
            )
        )
        return lines

    def assumptions(self) -> list[str]:
        """Sentences about what the predictions take for granted."""
        sizes = ", ".join(map(str, self.recorded.sizes))
        lines = []
        if self.plan.lose:
            lines.append(
                f"Every executor is lost {self.plan.lose:g} times an hour on average and replaced; its tasks run again."
            )
        if self.dynamic is not None:
            lines.append(
                "Dynamic allocation, simulated against real Spark: 12 % less run time, 10 % more executor hours "
                "(docs/capacity.md)."
            )
        if len(self.recorded.sizes) == 1:
            lines.append(f"The logs have one size, {sizes} slots: how tasks behave at other sizes is assumed.")
        shared = any(recording.contention.any() for recording in self.recorded.recordings)
        lines.append(
            "All executors share one host: what a task takes beyond its CPU time grows with their number."
            if shared
            else "More executors bring more hosts: tasks take as long as recorded."
        )
        if self.data != 1.0:
            lines.append(
                f"Input x{self.data:g}: stages that read files have that multiple of tasks; tasks of stages that read "
                "shuffles take that multiple of time."
            )
        outside = self.points[self.points.extrapolated].executors.nunique()
        lines.append(
            f"{count(outside, 'size')} (marked *) lie outside what was recorded ({sizes} slots) and are extrapolated."
            if outside
            else f"No size lies outside what was recorded ({sizes} slots)."
        )
        if self.errors:
            error = "; ".join(f"{count(size, 'slot')}: {each.text}" for size, each in self.errors.items())
            lines.append(f"Error when these logs of a size are predicted from those of the others: {error}.")
        else:
            percent = self.points.error_percent.iloc[0]
            lines.append(
                f"Error of predictions from one size for another: {percent:.0f} % on recorded TPC-H runs "
                "(docs/capacity.md); logs of a second size give one of your own."
            )
        return lines

    def lines(self) -> list[str]:
        """Lines of the terminal: table, recorded run, assumptions."""
        queries = f"{count(self.recorded.used, 'query')} used"
        left = f", {self.recorded.left_out} left out" if self.recorded.left_out else ""
        what = "as one cluster's queries" if self.recorded.unit == "query" else "each application alone"
        lines = [f"{count(len(self.recorded.recordings), 'recording')}, {what}: {queries}{left}"]
        lines += [*self.recorded.report.lines(), *self.recorded.streams]
        times = ("run_s",) if self.measure == "run_s" else ("mean_s", "p50_s", "p95_s")
        head = ["executors", *(name[:-2] for name in times), "95 % interval", "hours", "cost", "used", "error"]
        for (scheduler, load), rows in self.points.groupby(["scheduler", "load"], sort=False):
            lines.append(f"{scheduler}, load {load:g}")
            table = [head]
            for row in self._shown(rows).itertuples():
                mark = "*" if row.extrapolated else ""
                low, high = (getattr(row, f"{times[0]}_{side}") for side in ("low", "high"))
                cost = "-" if math.isnan(row.cost) else f"{row.cost:.4g}"
                table.append([
                    f"{row.executors}{mark}", *(f"{getattr(row, name):.1f} s" for name in times),
                    "-" if math.isnan(low) else f"{low:.1f} to {high:.1f}", f"{row.executor_hours:.3g}", cost,
                    f"{100.0 * row.utilization:.0f} %", f"±{row.error_percent:.0f} %",
                ])  # fmt: skip
            widths = [max(map(len, column)) for column in zip(*table, strict=True)]
            lines += [
                "  " + "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
                for cells in table
            ]
        lines += self.dynamic_lines()
        lines += self.recorded_lines()
        lines += [f"warning: {warning}" for warning in self.warnings()]
        lines += self.assumptions()
        lines.append(
            f"knee: {count(int(self.knee.executors), 'executor')} with {self.knee.scheduler}; beyond it: "
            f"{_LIMITS[self.limit]}; critical path with the driver {self.floors[self.measure]:.1f} s"
        )
        return lines

    def recorded_lines(self) -> list[str]:
        """Time, executor hours and cost of the recorded run, beside the simulated ones."""
        recorded = self.recorded
        slots = ", ".join(map(str, recorded.sizes))
        cluster = f"up to {slots} slots with dynamic allocation" if recorded.dynamic else f"{slots} slots"
        lines = [
            f"recorded {self.real_s:.1f} s on {cluster}, simulated there {self.replayed_s:.1f} s "
            f"({100.0 * self.apart:+.1f} %), without the time between queries"
            if self.data == 1.0
            else f"recorded {self.real_s:.1f} s with the recorded input, without the time between queries"
        ]
        lines.append(
            f"recorded run {recorded.total_s:.1f} s: {recorded.left_out_s:.1f} s of it only queries that are not used, "
            f"{recorded.unexplained_s:.1f} s unexplained"
        )
        hours = self.replayed["executor_hours"]
        cost = "" if math.isnan(self.recorded_cost) else f", cost {self.recorded_cost:.4g}"
        lines.append(
            f"recorded {recorded.executor_hours:.3g} executor hours{cost}; simulated there {hours:.3g} for the queries"
        )
        return lines

    def dynamic_lines(self) -> list[str]:
        """Dynamic allocation, a line per scheduler and load, beside the chosen fixed size."""
        if self.dynamic is None:
            return []
        name, lines = self.measure, []
        for row in self.dynamic.itertuples():
            fixed = self.points[(self.points.scheduler == row.scheduler) & (self.points.load == row.load)]
            fixed = fixed[fixed.executors == self.chosen.executors].iloc[0]
            cost = "" if math.isnan(row.cost) else f", cost {row.cost:.4g}"
            lines.append(
                f"dynamic allocation, {self.bounds[0]} to {count(self.bounds[1], 'executor')}, {row.scheduler}, load "
                f"{row.load:g}: {name[:-2]} {getattr(row, name):.1f} s, {row.executor_hours:.3g} executor hours{cost}; "
                f"{count(int(fixed.executors), 'fixed executor')}: {fixed[name]:.1f} s, {fixed.executor_hours:.3g}"
            )
        return lines

    def sentence(self) -> str:
        """The choice in one sentence."""
        chosen, measure = self.chosen, self.measure if self.target is None else self.target.measure
        why = "knee"
        if self.target is not None:
            why = f"smallest for {self.target}" + ("" if self.budget is None else f" and a cost of {self.budget:g}")
        elif self.budget is not None:
            why = f"fastest for a cost of {self.budget:g}"
        cost = "" if math.isnan(chosen.cost) else f", cost {chosen.cost:.4g}"
        mark = ", extrapolated" if chosen.extrapolated else ""
        size = f"{count(int(chosen.executors), 'executor')} of {count(self.cores, 'core')} with {chosen.scheduler}"
        return (
            f"{size} ({why}): {measure[:-2]} {chosen[measure]:.1f} s ± {chosen.error_percent:.0f} %{mark}, "
            f"{chosen.executor_hours:.3g} executor hours{cost}"
        )

    def _shown(self, rows: pandas.DataFrame) -> pandas.DataFrame:
        """Rows for the terminal: all, or sizes in equal ratios with knee and choice."""
        import numpy as np

        rows = rows.sort_values("executors")
        if len(rows) <= ROWS:
            return rows
        ratios = np.geomspace(1.0, len(rows), ROWS - 2).round().astype(int) - 1
        shown = set(rows.executors.to_numpy()[ratios]) | {self.knee.executors, self.chosen.executors}
        return rows[rows.executors.isin(shown)]

    def _jobs(self) -> pandas.DataFrame:
        """Parts of the time of every job at the chosen size, the longest first."""
        parts = self.chosen_parts
        columns = [name for name in parts.columns if name.endswith("_s")]
        jobs = parts.groupby(["recording", "job", "name"], sort=False)[columns].sum().reset_index()
        jobs["time_s"] = jobs[columns].sum(axis=1)
        jobs["limit"] = jobs[columns[1:]].idxmax(axis=1).str[:-2]
        return jobs.sort_values("time_s", ascending=False, ignore_index=True)

    def _stages(self) -> pandas.DataFrame:
        """Stages of the chains of stages, those first that work does not explain."""
        parts = self.chosen_parts
        columns = [name for name in parts.columns if name.endswith("_s")][1:]
        order = parts[columns].sum(axis=1).sort_values(ascending=False, kind="stable").index
        return parts.drop(columns=["job"]).loc[order].head(40)

    def document(self) -> dict[str, Any]:
        """Content of the result file."""
        point = ["scheduler", "load", "executors"]
        return {
            "unit": self.recorded.unit,
            "recorded_slots": list(self.recorded.sizes),
            "cores": self.cores,
            "queries": self.recorded.used,
            "queries_left_out": self.recorded.left_out,
            "data": self.data,
            "report": self.recorded.report.document(),
            "warnings": self.warnings(),
            "recorded_s": self.real_s,
            "simulated_s": self.replayed_s,
            "run_s": self.recorded.total_s,
            "left_out_s": self.recorded.left_out_s,
            "unexplained_s": self.recorded.unexplained_s,
            "dynamic_recorded": self.recorded.dynamic,
            "recorded_executor_hours": self.recorded.executor_hours,
            "simulated_executor_hours": self.replayed["executor_hours"],
            "recorded_cost": None if math.isnan(self.recorded_cost) else self.recorded_cost,
            "stream_interval_s": self.recorded.interval_s if self.recorded.interval_s > 0.0 else None,
            "critical_path_s": self.floors,
            "assumptions": self.assumptions(),
            "errors_percent": {
                str(size): {"total": error.total, "query": error.query} for size, error in self.errors.items()
            },
            "knee": self.knee[point].to_dict(),
            "chosen": self.chosen.to_dict(),
            "limit": self.limit,
            "jobs": self._jobs().to_dict("records"),
            "points": self.points.to_dict("records"),
            "losses_per_hour": self.plan.lose,
            "dynamic": [] if self.dynamic is None else self.dynamic.to_dict("records"),
        }

    def logs(self) -> pandas.DataFrame:
        """Notices and the completeness of the logs."""
        import pandas

        report = self.recorded.report
        share = [["", "completeness", f"{report.completeness} could be used", "", ""]]
        return pandas.concat([pandas.DataFrame(share, columns=report.table.columns), report.table], ignore_index=True)

    def page(self) -> str:
        """The page."""
        from decima.plotting import capacity as plots

        measure = self.measure if self.target is None else self.target.measure
        recorded = []
        if self.data == 1.0 and len(self.recorded.recordings) == 1 and measure == self.measure:
            real_s = float(self.recorded.recordings[0].recorded_ms.mean()) / 1000.0
            recorded = [(max(1, round(self.recorded.recordings[0].slots / self.cores)), real_s)]
        curve = plots.time_curve(
            self.points,
            measure=measure,
            recorded=recorded,
            chosen=int(self.chosen.executors),
            floor_s=self.floors[measure],
        )
        names = ["scheduler", "load", "executors", "extrapolated", "error_percent"]
        values = ["run_s", "run_s_low", "run_s_high", "mean_s", "p50_s", "p95_s", "executor_hours", "cost"]
        table = self.points[[*names, *values, "utilization"]]
        ranged = []
        if self.dynamic is not None:
            columns = ["scheduler", "load", "min_executors", "executors", *values, "utilization"]
            ranged = [("Dynamic allocation", [*(f"{line}." for line in self.dynamic_lines()), self.dynamic[columns]])]
        charts = [plots.schedule(run, label) for label, run in self.runs.items()]
        return plots.page(
            "Capacity from event logs",
            [
                ("Answer", [self.sentence() + ".", self.lines()[-1] + ".", *self.warnings(), *self.assumptions()]),
                ("The logs", [*(f"{line}." for line in [*self.recorded_lines(), *self.recorded.streams]), self.logs()]),
                ("Time", [curve.figure]),
                ("Cost", [plots.cost_curve(self.points, measure=measure).figure]),
                ("What the time is made of", [plots.part_bars(self.parts).figure, self._jobs()]),
                ("Stages that work does not explain", [self._stages()]),
                *ranged,
                ("Schedules", charts),
                ("All points", [table]),
            ],
        )
