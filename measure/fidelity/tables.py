"""Tables of appendix D: measured runs, simulations, and the errors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas

from decima.connect.eventlog.application import Application
from decima.core.errors import WorkloadError
from measure.fidelity import simulation
from measure.fidelity.runs import Measurements, measured_floor
from measure.logs import scheduler_of
from measure.records import CONTROL

# Queries alone that their executors ran before, did not run before, and on new executors; then all of them at once.
WARM, FIRST_RUN, FRESH, MIX = "alone", "alone, first run", "alone, new executors", "mix"
# In place of a variant: the mean of the other real repetitions instead of a simulation.
REAL = "other real repetitions"
GROUP = ["setting", "scheduler", "bound", "profile", "variant"]
RUN = ["setting", "name", "executors", "repetition", "scheduler", "bound"]


def fidelity_tables(
    alone: Sequence[Application],
    mixes: Sequence[Application],
    seeds: int,
    threads: int | None = None,
    steered: Sequence[Application] = (),
    service: simulation.Service = simulation.NO_SERVICE,
) -> dict[str, pandas.DataFrame]:
    """Simulate measured runs and tabulate how far the simulator is off.

    Args:
        alone: Logs of queries alone, of which each application ran each query once, as those of the profiler. May be
            empty.
        mixes: Logs with mixes, and with the same queries alone on the same executors, which ran them before. May be
            empty.
        seeds: Simulations of each run.
        threads: Workers, all cores by default; the result does not depend on it.
        steered: Logs with queries alone and with mixes under schedulers of the service, without their warm-up.
        service: These schedulers, and the durations that they went by.

    Returns:
        `fidelity_runs` (a row per run, variant and origin of the profile: real_s, simulated_s, simulated_sd_s, error =
        simulated / real - 1), `fidelity_floor` (a row per run: real_s, others_s, the mean of the other repetitions,
        and error) and `fidelity_summary` (percentages of both by group: mean, median and 95th percentile of its size,
        mean of error as bias, and the mean over the queries of the size of their mean error).

    Raises:
        WorkloadError: there is nothing to compare.
    """
    runs, floors, levels = [], [], {}
    if alone:
        measurements = Measurements(alone)
        table, floor = _alone(measurements, FIRST_RUN, seeds, threads)
        runs.append(table)
        floors.append(floor)
        warm = measurements.runs[measurements.runs.alone & ~measurements.runs.fresh]
        levels = measurements.profiles(warm, dispatch=True)
    if mixes:
        measurements = Measurements(mixes)
        if measurements.runs.alone.any():
            table, floor = _alone(measurements, WARM, seeds, threads, levels)
            runs.append(table)
            floors.append(floor)
        table = simulation.simulate_mixes(measurements, simulation.VARIANTS, seeds, threads, levels)
        runs.append(table.assign(setting=MIX))
        floors.append(_mix_floor(measurements).assign(setting=MIX))
    if steered:
        measurements = Measurements(steered)
        whole = {simulation.ALL_EFFECTS: simulation.VARIANTS[simulation.ALL_EFFECTS]}
        single = simulation.simulate_alone(measurements, whole, seeds, threads, service=service)
        mixed = simulation.simulate_mixes(measurements, whole, seeds, threads, service=service)
        floor = measured_floor(measurements)
        runs += [
            _steered(part, setting) for part, setting in ((single.assign(bound=True), WARM), (mixed, MIX)) if len(part)
        ]
        floors += [_steered(floor[floor.alone], WARM), _steered(_mix_floor(measurements), MIX)]
    table = pandas.concat(runs, ignore_index=True) if runs else pandas.DataFrame()
    if not len(table):
        raise WorkloadError("no run was measured more than once under the same conditions; nothing can be compared")
    # Nothing starts where executors are there already.
    nothing_starts = (table.setting != FRESH) & (table.variant == simulation.NO_STARTUP)
    table = _seconds(table[~nothing_starts], "simulated")
    floor = _seconds(pandas.concat(floors, ignore_index=True), "others").assign(bound=True)
    return {
        "fidelity_runs": table[
            [*RUN, "variant", "profile", "real_s", "simulated_s", "simulated_sd_s", "error"]
        ].reset_index(drop=True),
        "fidelity_floor": floor[[*RUN, "real_s", "others_s", "error"]].reset_index(drop=True),
        "fidelity_summary": _summary(table, floor).assign(simulations=seeds),
    }


def _alone(
    measurements: Measurements, setting: str, seeds: int, threads: int | None, levels: dict | None = None
) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Make the tables of queries that ran alone, with their floor."""
    table = simulation.simulate_alone(measurements, simulation.VARIANTS, seeds, threads, levels)
    table = table.assign(scheduler=CONTROL, bound=True)
    if len(table):
        table["setting"] = np.where(table.fresh, FRESH, setting)
    floor = measured_floor(measurements)
    floor = floor[floor.alone]
    return table, floor.assign(scheduler=CONTROL, setting=np.where(floor.fresh, FRESH, setting))


def _steered(table: pandas.DataFrame, setting: str) -> pandas.DataFrame:
    """Name scheduler and setting of runs under schedulers of the service, as `mix, decima`."""
    scheduler = table["query"].map(scheduler_of)
    return table.assign(scheduler=scheduler, setting=f"{setting}, " + scheduler)


def _mix_floor(measurements: Measurements) -> pandas.DataFrame:
    """Predict each run in a mix by the scheduler's other mixes."""
    mixes = measurements.mixes()
    if not mixes:
        return measurements.runs.iloc[:0].assign(others_ms=0.0, scheduler=CONTROL)
    runs = pandas.concat(mixes)
    runs = runs.assign(scheduler=runs["query"].map(scheduler_of))
    group = runs.groupby(["name", "executors", "scheduler"]).real_ms
    count, total = group.transform("size"), group.transform("sum")
    return runs.assign(others_ms=(total - runs.real_ms) / (count - 1).clip(lower=1))[count > 1]


def _seconds(table: pandas.DataFrame, estimate: str) -> pandas.DataFrame:
    """Add times in seconds, rounded to milliseconds, and the relative error of the estimate."""
    values = {"real_s": (table.real_ms / 1000.0).round(3)}
    for name in (estimate, f"{estimate}_sd"):
        if f"{name}_ms" in table:
            values[f"{name}_s"] = (table[f"{name}_ms"] / 1000.0).round(3)
    return table.assign(**values, error=(table[f"{estimate}_ms"] / table.real_ms - 1.0).round(5))


def _summary(runs: pandas.DataFrame, floor: pandas.DataFrame) -> pandas.DataFrame:
    both = pandas.concat([runs, floor.assign(variant=REAL, profile=REAL)], ignore_index=True)
    rows = []
    for key, group in both.groupby(GROUP, sort=False):
        summary = simulation.error_summary(group.error.to_numpy())
        queries = group.groupby("name").error.mean().to_numpy()
        summary["query_mean_percent"] = 100.0 * float(np.abs(queries).mean())
        rows.append(dict(zip(GROUP, key, strict=True)) | {name: round(value, 3) for name, value in summary.items()})
    return pandas.DataFrame(rows)
