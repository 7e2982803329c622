"""Command `decima optimum`: the best possible, bounds that nothing passes, and what deliberate idling gains."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from decima.commands.shared import options, outputs
from decima.commands.shared.options import option
from decima.commands.shared.verbs import Verb
from decima.core.errors import ConfigError
from decima.plotting.words import count


def bound(
    system: str,
    schedulers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCHEDULER",
            help="Heuristics to compare with the bounds, as in 'decima compare'.",
            show_default="fair weighted_fair capped_srw",
        ),
    ] = None,
    *,
    instances: Annotated[int, option("N", "Workloads to draw.", min=1, max=options.MOST)] = 1,
    budget: Annotated[int, option("N", "Schedules to try on each; 0: no search.", min=0, max=options.MOST)] = 2000,
    delays: Annotated[
        bool, typer.Option("--delays", help="Continue the search without and with delays: the gain of idling.")
    ] = False,
    cluster: options.SystemOptions,
    seed: Annotated[int, option("N", "Seed of the search and of the first workload.", min=0)] = 0,
    workers: options.Workers = None,
    backend: options.Backend = None,
    out: Annotated[Path | None, option("FILE", "Write instance, policy, avg_jct_s (.csv or .parquet).")] = None,
) -> None:
    """Compare heuristics with a search and a lower bound; other methods: `exhaustive`, `idle-value`."""
    import pandas

    from decima.evaluation.run import score_matrix
    from decima.systems.spark.optimum.bounds import lower_bound
    from decima.systems.spark.optimum.schedule_search import search_schedule

    if delays and budget == 0:
        raise ConfigError("--delays continues a search, but --budget 0 runs none; expected a budget above 0")
    spec = cluster.spec()
    outputs.check_output(out, *outputs.TABLES, inputs=(spec.path,))
    settings = cluster.settings()
    seeds = range(seed, seed + instances)
    workloads = spec.workloads(seeds)
    together = {"workers": workers, "backend": backend}
    with options.opened(schedulers or ["fair", "weighted_fair", "capped_srw"]) as built:
        options.say_remarks(built.values(), workloads)
        scores = score_matrix(workloads, list(built.values()), settings, seeds=seeds, progress="heuristics", **together)
    # The search steers capped_srw; it begins with the parameters that this has here.
    start = next((scheduler.values for scheduler in built.values() if scheduler.name == "capped_srw"), None)
    rows = []
    for instance, workload in enumerate(workloads):
        values = dict(zip(built, scores[:, instance].tolist(), strict=True))
        if budget > 0:
            label = f"search, instance {instance + 1} of {instances}"
            searched = search_schedule(
                workload, settings, budget, start=start, seed=seeds[instance], progress=label, **together
            )
            values["search"] = searched.avg_jct_s
            if delays:
                # Both have tried as much in the end.
                for name, delayed in (("search_twice", False), ("search_delays", True)):
                    longer = search_schedule(
                        workload, settings, budget, begin=searched, delays=delayed, seed=seeds[instance],
                        progress=f"{name}, instance {instance + 1} of {instances}", **together,
                    )  # fmt: skip
                    values[name] = longer.avg_jct_s
        values["lower_bound"] = lower_bound(workload, settings).avg_jct_s
        rows += [{"instance": seeds[instance], "policy": name, "avg_jct_s": value} for name, value in values.items()]
    table = pandas.DataFrame(rows)
    if out is not None:
        outputs.write_table(out, table)
    means = table.groupby("policy", sort=False)["avg_jct_s"].mean()
    floor = means["lower_bound"]
    typer.echo(f"{'policy':<24} {'average JCT [s]':>16} {'above lower bound':>18}")
    for name, mean in means.items():
        above = f"{100.0 * (mean / floor - 1.0):.1f} %" if floor > 0.0 else "-"
        typer.echo(f"{name:<24} {mean:>16.2f} {above:>18}")
    if delays:
        gain = 100.0 * (1.0 - means["search_delays"] / means["search_twice"])
        typer.echo(
            f"delays gain {gain:.2f} % for a scheduler that knows the future (search_delays against search_twice)"
        )
    best = means.drop("lower_bound").idxmin()
    typer.echo(
        f"{workloads[0].label} ({count(instances, 'instance')}, {count(len(workloads[0]), 'job')} each, "
        f"{settings.durations} durations): best found {means[best]:.2f} s by {best}, lower bound {floor:.2f} s"
        + outputs.wrote(out)
    )


def exhaustive(
    system: str,
    *,
    cluster: options.SystemOptions,
    seed: options.Seed = 0,
    limit: Annotated[int, option("N", "Largest number of jobs that is accepted.", min=1, max=20)] = 10,
    threads: options.Threads = None,
    out: options.ResultOut = None,
) -> None:
    """Try every order of a small batch, simplified as in appendix H."""
    from decima.systems.spark.optimum.exhaustive import exhaustive_search

    spec = cluster.spec()
    outputs.check_output(out, ".json", inputs=(spec.path,))
    workload = spec.workload(seed)
    result = exhaustive_search(
        workload,
        cluster.executors,
        limit=limit,
        threads=threads,
        progress="exhaustive",
    )
    if out is not None:
        skipped = ("workload", "distribution", "elapsed_s")
        document = {"label": workload.label, "jobs": [job.name for job in workload.jobs]}
        document |= {name: value for name, value in vars(result).items() if name not in skipped}
        document["distribution"] = None if result.distribution is None else vars(result.distribution)
        outputs.write_json(out, document)
    typer.echo(
        f"{workload.label} ({count(len(workload), 'job')}, {count(result.executors, 'executor')}): {result}"
        + outputs.wrote(out)
    )


def idle_value(
    system: str,
    executors: Annotated[int, option("N", "Executors of the cluster, 1 to 4.")] = 2,
    long_s: Annotated[float, option("S", "Length of long jobs, seconds.")] = 200.0,
    short_s: Annotated[float, option("S", "Length of short jobs, seconds.")] = 10.0,
    share: Annotated[float, option("X", "Part of the jobs that are long, 0 to 1.")] = 0.1,
    load: Annotated[float, option("X", "Arriving work over the capacity of the executors, up to 0.95.")] = 0.6,
    step_s: Annotated[
        float | None, option("S", "Time step; both lengths must be multiples of it.", show_default="half a short job")
    ] = None,
    rule: Annotated[
        Path | None, option("FILE", "Write the best rule (.csv or .parquet): the states in which a long job waits.")
    ] = None,
    out: options.ResultOut = None,
) -> None:
    """Compute the largest gain of deliberate idling for two classes of single-task jobs."""
    from dataclasses import asdict

    from decima.systems.spark.optimum import idle_value as optimum

    outputs.check_output(out, ".json")
    outputs.check_output(rule, ".csv", ".parquet")
    cluster = optimum.TwoClassCluster(executors, long_s, short_s, share, load)
    result = optimum.idle_value(cluster, step_s=step_s, progress="idle value")
    if out is not None:
        document = asdict(cluster) | result.as_dict()
        outputs.write_json(out, document | {"most_short": result.queues[0], "most_long": result.queues[1]})
    if rule is not None:
        outputs.write_table(rule, result.rule())
    typer.echo(f"{'average JCT [s]':<24} {'steps of ' + format(result.step_s, 'g') + ' s':>16} ", nl=False)
    typer.echo(f"{format(result.coarse_step_s, 'g') + ' s':>16}")
    typer.echo(f"{'without idling':<24} {result.without_s:>16.3f} {result.coarse_without_s:>16.3f}")
    typer.echo(f"{'best rule':<24} {result.with_s:>16.3f} {result.coarse_with_s:>16.3f}")
    typer.echo(f"{'gain of idling [%]':<24} {result.gain_percent:>16.3f} {result.coarse_gain_percent:>16.3f}")
    typer.echo(
        f"value iteration is within {result.residual_s:.3g} s; at most {result.turned_away:.1g} of the jobs find "
        f"{result.queues[0]} short or {result.queues[1]} long ones waiting and are left out"
    )
    typer.echo(
        f"{count(executors, 'executor')}, {long_s:g} and {short_s:g} s, {share:.3g} of the jobs long, load {load:g}: "
        f"{result}" + outputs.wrote(out, rule)
    )


TimeLimit = Annotated[float, option("S", "Give up after this number of seconds.")]


def exact(
    system: str,
    *,
    cluster: options.SystemOptions,
    duplicate: Annotated[bool, typer.Option("--duplicate/--single", help="Whether nodes may be copied.")] = True,
    time_limit_s: TimeLimit = 60.0,
    seed: options.Seed = 0,
    out: options.ResultOut = None,
    gantt: options.Gantt = None,
) -> None:
    """Find the shortest schedule of a small instance and prove it; `bound` shows lower bounds."""
    from decima.systems.heterogeneous.optimum.exact import optimum
    from decima.systems.heterogeneous.system import result_of

    files = outputs.RunFiles(options.module_of(system), out, gantt)
    files.check(cluster.files())
    instance = cluster.instance(seed)
    shortest = optimum(instance, duplicate=duplicate, time_limit_s=time_limit_s, progress="optimum")
    wrote = files.write(result_of(shortest.schedule, seed), shortest.schedule.settings, seed)
    copies = "with copies" if duplicate else "without copies"
    typer.echo(
        f"{instance!r}: the shortest schedule {copies} takes {shortest.makespan_s:g} s, proved over "
        f"{shortest.explored:,} branches of CP-SAT{wrote}"
    )


def lower_bounds(system: str, *, cluster: options.SystemOptions, seed: options.Seed = 0) -> None:
    """Show lower bounds: no schedule is shorter."""
    from decima.systems.heterogeneous.optimum.bounds import bounds

    instance = cluster.instance(seed)
    known = bounds(instance)
    for name, meaning in (
        ("path_s", "longest path, every node on its best executor"),
        ("work_s", "all work over all executors"),
        ("transfers_s", "paths with transfers that no placement avoids"),
        ("single_copy_s", "the same with one copy of each node"),
    ):
        typer.echo(f"{name:<14} {getattr(known, name):>14.6g}  {meaning}")
    typer.echo(
        f"{instance!r}: no schedule takes less than {known.floor():g} s, none without copies less than "
        f"{known.floor(duplicate=False):g} s"
    )


def placement(
    system: str,
    *,
    cluster: options.SystemOptions,
    seed: Annotated[int, option("N", "Seed of the jobs and of the search.", min=0)] = 0,
    out: Annotated[Path | None, option("FILE", "Write result and bounds (.json).")] = None,
    log: Annotated[Path | None, option("FILE", "Write every executor with its VM (.csv or .parquet).")] = None,
    gantt: options.Gantt = None,
) -> None:
    """Find the best placement of known jobs, exactly or by search, and lower bounds."""
    from decima.systems.cloud import simulate
    from decima.systems.cloud.optimum.best import optimum

    files = outputs.RunFiles(options.module_of(system), out, gantt, log)
    files.check(cluster.files())
    settings = cluster.settings()
    workload = cluster.spec().workload(seed)
    best = optimum(
        workload, settings, nodes=cluster.nodes, budget=cluster.budget, waits=cluster.waits, seed=seed,
        progress="optimum",
    )  # fmt: skip
    result = best.result
    wrote = files.write(result, {}, seed, optimum=best.as_dict())
    typer.echo(f"{'':<22} {'cost':>10} {'duration [s]':>13} {'R_epi':>10}")
    for name in ("aep", "ilp_exact", "ilp_beta", "good_first"):
        other = simulate(workload, name, settings, seed)
        typer.echo(f"{name:<22} {other.cost:>10.4f} {other.mean_duration_s:>13.2f} {other.reward:>10.2f}")
    typer.echo(f"{best.status:<22} {result.cost:>10.4f} {result.mean_duration_s:>13.2f} {result.reward:>10.2f}")
    shown = "-" if best.reward_bound is None else f"{best.reward_bound:.2f}"
    last = "" if best.interval_bound is not None else shown
    typer.echo(f"{'bound by work':<22} {best.work_bound:>10.4f} {'':>13} {last:>10}")
    if best.interval_bound is not None:
        typer.echo(f"{'bound by interval':<22} {best.interval_bound:>10.4f} {'':>13} {shown:>10}")
    without = "voluntary waits allowed" if cluster.waits else "no voluntary waits"
    typer.echo(
        f"{best.status} of {workload.label} ({count(len(workload), 'job')}, {settings.label}, {without}; "
        f"{best.proved_periods} of {count(best.periods, 'busy period')} proved, {best.nodes:,} placements tried): cost "
        f"{result.cost:.4f} {settings.cluster.currency}, mean duration {result.mean_duration_s:.2f} s" + wrote
    )


def _exhaustive() -> Any:
    return options.grouped(exhaustive, system="spark", record=options.module_of("spark").ExhaustiveOptions)


VERB = Verb(
    "optimum",
    {
        "spark": {
            "bound": options.maker(bound, "spark", "optimum"),
            "exhaustive": _exhaustive,
            "idle-value": lambda: options.grouped(idle_value, system="spark"),
        },
        "heterogeneous": {
            "exact": options.maker(exact, "heterogeneous", "optimum"),
            "bound": options.maker(lower_bounds, "heterogeneous", "optimum"),
        },
        "cloud": {"search": options.maker(placement, "cloud", "optimum")},
    },
)
