"""Command `decima capacity`: how many executors, from event logs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from decima.commands.from_logs import read_logs
from decima.commands.shared import options
from decima.commands.shared.compilation import watch_compilation
from decima.commands.shared.options import option
from decima.commands.shared.outputs import check_output, write_json, write_text, wrote
from decima.core.errors import ConfigError
from decima.core.extras import require
from decima.core.grammar import changed_texts, read_fields, read_value

# Settings that options of their own have, and those that matter where executors are lost from a cluster of one size.
WITH_OPTION = ("min_executors", "executor_cores")
SCHEDULERS = ("spark_fifo", "spark_fair")  # when none is asked for; applications alone need the first
LOSS_CHANGES = ("executor_startup_ms", "shuffle_service", "replacement_delay_ms")


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
    target: Annotated[str | None, option("NAME<TIME", "Target of run, mean, p50 or p95, such as 'p95<60s'.")] = None,
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
    from decima.connect.eventlog.capacity import CapacityReport
    from decima.connect.eventlog.history import is_server, local_logs
    from decima.connect.eventlog.recordings import read_recordings
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
    sizes = None if executors is None else model.read_sizes(executors)
    bounds = None if dynamic is None else model.read_bounds(dynamic)
    texts = changed_texts(changes, "settings")["settings"]
    switched = read_fields(texts, Settings, "--set settings.")
    if refused := [name for name in switched if name not in ELASTIC_SWITCHES or name in WITH_OPTION]:
        raise ConfigError(f"--set settings.{refused[0]}: expected a setting of dynamic allocation or of losses")
    if budget is not None and price is None:
        raise ConfigError("--budget bounds the cost; expected --price with it")
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
        sizes = sizes or model.default_sizes(max(recorded.sizes) / cores)
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
        report = CapacityReport(applications, recorded, plan, times, swept, bounds, grown)
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


def read_price(text: str, cores: int) -> Callable[[int], float]:
    """Price per hour of N executors: a number, or whole VMs.

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
