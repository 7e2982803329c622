"""Commands `decima exhaustive`, `decima bound` and `decima idle-value`: the best possible, and what it needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decima.commands.shared import options
from decima.commands.shared.outputs import check_output, write_json, write_table
from decima.commands.shared.schedulers import opened
from decima.core.errors import ConfigError
from decima.plotting.words import count

if TYPE_CHECKING:
    from decima.systems.spark.optimum.idle_value import IdleValue

ResultOut = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result (.json).")]


def register(root: typer.Typer) -> None:
    """Add the commands."""
    root.command()(bound)
    root.command()(exhaustive)
    root.command("idle-value")(idle_value)


@dataclass(frozen=True)
class KnownCluster(options.Cluster):
    """Options of a simulated cluster whose task durations are known beforehand."""

    durations: Annotated[
        str,
        typer.Option(metavar="sampled|mean", help="The search knows the durations; bounds of sampled ones are loose."),
    ] = "mean"


@options.grouped
def bound(
    schedulers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCHEDULER...",
            help="Heuristics to set beside the bounds, as in 'decima compare'.",
            show_default="fair weighted_fair capped_srw",
        ),
    ] = None,
    *,
    jobs: options.Jobs = "tpch",
    instances: Annotated[int, typer.Option(metavar="N", min=1, max=options.MOST, help="Workloads to draw.")] = 1,
    budget: Annotated[
        int, typer.Option(metavar="N", min=0, max=options.MOST, help="Schedules to try on each; 0: no search.")
    ] = 2000,
    delays: Annotated[
        bool,
        typer.Option(
            "--delays",
            help="Go on from the schedule found, without and with delays of stages: what deliberate idling can gain.",
        ),
    ] = False,
    cluster: KnownCluster,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the search and of the first workload.")] = 0,
    workers: options.Workers = None,
    backend: options.Backend = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write instance, policy, avg_jct_s (.csv or .parquet).")
    ] = None,
) -> None:
    """Set heuristics beside a searched schedule and a lower bound."""
    import pandas

    from decima.evaluation.run import score_matrix
    from decima.systems.spark.optimum.bounds import lower_bound
    from decima.systems.spark.optimum.schedule_search import search_schedule
    from decima.workload.sources import parse_jobs

    if delays and budget == 0:
        raise ConfigError("--delays goes on from a search, which --budget 0 leaves out; expected a budget above 0")
    spec = parse_jobs(jobs)
    check_output(out, ".csv", ".parquet", inputs=(spec.path,))
    settings = cluster.settings()
    seeds = range(seed, seed + instances)
    workloads = spec.workloads(seeds)
    together = {"workers": workers, "backend": backend}
    with opened(schedulers or ["fair", "weighted_fair", "capped_srw"]) as made:
        scores = score_matrix(workloads, list(made.values()), settings, seeds=seeds, progress="heuristics", **together)
    # The search steers capped_srw; it begins with the parameters that this has here.
    start = next((scheduler.values for scheduler in made.values() if scheduler.name == "capped_srw"), None)
    rows = []
    for instance, workload in enumerate(workloads):
        values = dict(zip(made, scores[:, instance].tolist(), strict=True))
        if budget > 0:
            label = f"search, instance {instance + 1} of {instances}"
            found = search_schedule(
                workload, settings, budget, start=start, seed=seeds[instance], progress=label, **together
            )
            values["search"] = found.avg_jct_s
            if delays:
                # Both have tried as much in the end.
                for name, delayed in (("search_twice", False), ("search_delays", True)):
                    longer = search_schedule(
                        workload, settings, budget, begin=found, delays=delayed, seed=seeds[instance],
                        progress=f"{name}, instance {instance + 1} of {instances}", **together,
                    )  # fmt: skip
                    values[name] = longer.avg_jct_s
        values["lower_bound"] = lower_bound(workload, settings).avg_jct_s
        rows += [{"instance": seeds[instance], "policy": name, "avg_jct_s": value} for name, value in values.items()]
    table = pandas.DataFrame(rows)
    if out is not None:
        write_table(out, table)
    means = table.groupby("policy", sort=False)["avg_jct_s"].mean()
    floor = means["lower_bound"]
    typer.echo(f"{'policy':<24} {'average JCT [s]':>16} {'above lower bound':>18}")
    for name, mean in means.items():
        above = f"{100.0 * (mean / floor - 1.0):.1f} %" if floor > 0.0 else "-"
        typer.echo(f"{name:<24} {mean:>16.2f} {above:>18}")
    if delays:
        gain = 100.0 * (1.0 - means["search_delays"] / means["search_twice"])
        typer.echo(f"delays gain {gain:.2f} % for one who knows what comes (search_delays against search_twice)")
    best = means.drop("lower_bound").idxmin()
    typer.echo(
        f"{workloads[0].label} ({count(instances, 'instance')}, {count(len(workloads[0]), 'job')} each, "
        f"{settings.durations} durations): best found {means[best]:.2f} s by {best}, lower bound {floor:.2f} s"
        + ("" if out is None else f"; wrote {out}")
    )


def exhaustive(
    jobs: options.Jobs = "tpch:n=10",
    seed: options.Seed = 0,
    executors: options.Executors = 50,
    runnable_only: Annotated[
        bool,
        typer.Option(
            "--runnable-only", help="Executors go to the first job with a runnable stage instead of waiting for stages."
        ),
    ] = False,
    best_only: Annotated[
        bool, typer.Option("--best-only", help="Rule orders out by a bound: the same best order, no distribution.")
    ] = False,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=20, help="Largest batch accepted.")] = 10,
    threads: options.Threads = None,
    out: ResultOut = None,
) -> None:
    """Try every order of a batch, simplified as in appendix H; time grows with the factorial of its jobs."""
    from decima.systems.spark.optimum.exhaustive import exhaustive_search
    from decima.workload.sources import parse_jobs

    spec = parse_jobs(jobs)
    check_output(out, ".json", inputs=(spec.path,))
    workload = spec.workload(seed)
    result = exhaustive_search(
        workload,
        executors,
        runnable_only=runnable_only,
        distribution=not best_only,
        limit=limit,
        threads=threads,
        progress="exhaustive",
    )
    if out is not None:
        skipped = ("workload", "distribution", "elapsed_s")
        document = {"label": workload.label, "jobs": [job.name for job in workload.jobs]}
        document |= {name: value for name, value in vars(result).items() if name not in skipped}
        document["distribution"] = None if result.distribution is None else vars(result.distribution)
        write_json(out, document)
    typer.echo(
        f"{workload.label} ({count(len(workload), 'job')}, {count(result.executors, 'executor')}): {result}"
        + ("" if out is None else f"; wrote {out}")
    )


def idle_value(
    executors: Annotated[int, typer.Option(metavar="N", help="Executors of the cluster, 1 to 4.")] = 2,
    long_s: Annotated[float, typer.Option(metavar="S", help="Length of long jobs, seconds.")] = 200.0,
    short_s: Annotated[float, typer.Option(metavar="S", help="Length of short jobs, seconds.")] = 10.0,
    share: Annotated[float, typer.Option(metavar="X", help="Part of the jobs that are long, 0 to 1.")] = 0.1,
    load: Annotated[
        float, typer.Option(metavar="X", help="Work that arrives over what the executors can do, up to 0.95.")
    ] = 0.6,
    step_s: Annotated[
        float | None,
        typer.Option(metavar="S", help="Step of time; both lengths are multiples.", show_default="half a short job"),
    ] = None,
    rule: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the best rule (.csv or .parquet): when does a long job have to wait?"),
    ] = None,
    out: ResultOut = None,
) -> None:
    """Find what deliberate idling gains at best: two classes of single-task jobs, Poisson arrivals, few executors."""
    from dataclasses import asdict

    from decima.systems.spark.optimum import idle_value as optimum

    check_output(out, ".json")
    check_output(rule, ".csv", ".parquet")
    cluster = optimum.TwoClassCluster(executors, long_s, short_s, share, load)
    result = optimum.idle_value(cluster, step_s=step_s, progress="idle value")
    written = []
    if out is not None:
        document = asdict(cluster) | result.as_dict()
        write_json(out, document | {"most_short": result.queues[0], "most_long": result.queues[1]})
        written.append(str(out))
    if rule is not None:
        write_table(rule, result.rule())
        written.append(str(rule))
    typer.echo(f"{'average JCT [s]':<24} {'steps of ' + format(result.step_s, 'g') + ' s':>16} ", nl=False)
    typer.echo(f"{format(result.coarse_step_s, 'g') + ' s':>16}")
    typer.echo(f"{'without idling':<24} {result.without_s:>16.3f} {result.coarse_without_s:>16.3f}")
    typer.echo(f"{'best rule':<24} {result.with_s:>16.3f} {result.coarse_with_s:>16.3f}")
    typer.echo(f"{'gain of idling [%]':<24} {result.gain_percent:>16.3f} {result.coarse_gain_percent:>16.3f}")
    typer.echo(
        f"value iteration is within {result.residual_s:.3g} s; at most {result.turned_away:.1g} of the jobs find "
        f"{result.queues[0]} short or {result.queues[1]} long ones waiting and are left out"
    )
    for sentence in _idles(result):
        typer.echo(sentence)
    typer.echo(
        f"{count(executors, 'executor')}, {long_s:g} and {short_s:g} s, {share:.3g} of the jobs long, load {load:g}: "
        f"{result}" + ("" if not written else f"; wrote {' and '.join(written)}")
    )


def _idles(result: IdleValue) -> list[str]:
    """Sentences about the best rule: where an executor stays idle beside 1, 2, ... waiting long jobs."""
    import numpy as np

    sentences = []
    for waiting, rows in result.rule(4).groupby("waiting_long"):
        idle = rows[rows["started"] < np.minimum(rows["free"], waiting)]
        text = f"{count(waiting, 'long job')} waiting: an executor stays idle in {len(idle)} of {len(rows)} situations"
        if result.cluster.executors == 2 and len(idle):
            spans = _spans(sorted(set(idle["remaining_1_s"])), result.step_s)
            text += f", the other one being busy for another {spans} s"
        sentences.append(text)
    return sentences


def _spans(times_s: list[float], step_s: float) -> str:
    """Text of ascending times, neighbours drawn together: ``20 to 60, 90``."""
    spans: list[list[float]] = []
    for time_s in times_s:
        if spans and time_s - spans[-1][1] < 1.5 * step_s:
            spans[-1][1] = time_s
        else:
            spans.append([time_s, time_s])
    return ", ".join(f"{low:g}" if low == high else f"{low:g} to {high:g}" for low, high in spans)
