"""Report on the capacity that event logs ask for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas

from decima.connect.eventlog.application import Application
from decima.connect.eventlog.prediction import REFERENCE_PERCENT, cross_errors
from decima.connect.eventlog.recordings import LogRecordings
from decima.connect.eventlog.report import HALF
from decima.plotting.words import count
from decima.systems.spark.capacity import (
    Plan,
    Target,
    choose_point,
    floors_of,
    limit_of,
    run_recording,
    summarize,
    sweep,
    time_parts,
)

# Shares beyond which a warning stands beside the answer.
UNEXPLAINED, APART = 0.1, 0.05
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


class CapacityReport:
    """What a sweep says: choice, limits, errors, as lines, document and page.

    Args:
        applications: What was read.
        recorded: What was made of it.
        plan: What was swept.
        data: Factor on the input.
        draws: Result of the sweep.
        bounds: Fewest and most executors of dynamic allocation that was also swept; None without it.
        grown: Result of that sweep.
    """

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

    def choose(self, target: Target | None, budget: float | None) -> None:
        """Choose knee and point; see :func:`decima.systems.spark.capacity.choose_point`."""
        self.floors = floors_of(self.recorded.recordings, max(self.plan.loads))
        self.target, self.budget = target, budget
        self.knee = choose_point(self.highest, self.measure)
        self.chosen = choose_point(self.highest, self.measure, target, budget, self.floors)

    def explain(self, schedulers: dict[str, Any], price: Callable[[int], float] | None) -> None:
        """Run the chosen and the largest size in detail, and the recorded cluster."""
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
                "(docs/elastic.md)."
            )
        if self.recorded.unit == "application" and self.recorded.warmup_s > 0.0:
            lines.append(
                "Executors are new when an application begins: where the log does not have their first tasks, these "
                f"take {self.recorded.warmup_s:.2g} s longer than later ones."
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
            table = []
            for row in self._shown(rows).itertuples():
                mark = "*" if row.extrapolated else ""
                low, high = (getattr(row, f"{times[0]}_{side}") for side in ("low", "high"))
                cost = "-" if math.isnan(row.cost) else f"{row.cost:.4g}"
                table.append([
                    f"{row.executors}{mark}", *(f"{getattr(row, name):.1f} s" for name in times),
                    "-" if math.isnan(low) else f"{low:.1f} to {high:.1f}", f"{row.executor_hours:.3g}", cost,
                    f"{100.0 * row.utilization:.0f} %", f"±{row.error_percent:.0f} %",
                ])  # fmt: skip
            shown = pandas.DataFrame(table, columns=head).to_string(index=False)
            lines += [f"  {line}" for line in shown.splitlines()]
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
        """Time, executor hours and cost of the recorded run and of the simulated ones."""
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
        """Dynamic allocation, a line per scheduler and load, and the chosen fixed size."""
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
            "warmup_s": self.recorded.warmup_s,
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
