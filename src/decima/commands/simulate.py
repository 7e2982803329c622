"""Command `decima simulate`: one run of one scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from decima.commands.shared import options
from decima.commands.shared.outputs import (
    TABLES,
    check_chart,
    check_output,
    draw_schedules,
    result_document,
    write_json,
    write_table,
    wrote,
)
from decima.commands.shared.verbs import SYSTEMS, Verb


def simulate(
    system: str,
    *,
    scheduler: options.SchedulerText = "fair",
    cluster: options.SystemOptions,
    seed: options.Seed = 0,
    out: options.ResultOut = None,
    log: Annotated[Path | None, typer.Option(metavar="FILE", help="Write every task (.parquet or .csv).")] = None,
    gantt: options.Gantt = None,
) -> None:
    """Run one scheduler on one workload."""
    from decima.core.system import form_for
    from decima.evaluation.run import simulate as run

    module: Any = options.module_of(system)
    with options.opened([scheduler], system) as schedulers:
        chosen = schedulers[scheduler]
        values = getattr(chosen, "values", {})
        inputs = (*cluster.files(), *(Path(value) for key, value in values.items() if key == "file"))
        for path, endings in {out: (".json",), log: TABLES}.items():
            check_output(path, *endings, inputs=inputs)
        check_chart(gantt, module, inputs)
        settings, workload = cluster.settings(), cluster.spec().workload(seed)
        logged = (out, log, gantt) != (None, None, None)
        result = run(workload, chosen, seed=seed, cluster=settings, log=logged)
        parameters = getattr(form_for(chosen, workload), "values", {})
    result = module.checked(result)
    if log is not None:
        write_table(log, module.task_table(result))
    if gantt is not None:
        draw_schedules(gantt, module, [result])
    if out is not None:
        write_json(out, result_document(module, result, parameters, seed))
    typer.echo(str(result) + wrote(out, log, gantt))


VERB = Verb("simulate", {name: {"": options.maker(simulate, name, "simulate")} for name in SYSTEMS})
