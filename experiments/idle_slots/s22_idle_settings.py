"""What slots depend on: lengths and gaps (Figure 6), insertion points, executors, foresight."""

from __future__ import annotations

import itertools

import numpy as np
import pandas

from decima import plotting
from decima.evaluation.run import score_matrix, simulate
from decima.evaluation.statistics import mean_interval, paired_change
from decima.plotting.words import count
from decima.systems.spark.optimum.schedule_search import search_schedule
from decima.systems.spark.policy.scheduler import load_policy
from decima.systems.spark.result import Result
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload.sources import TRAINING_SEED, WorkloadSource, parse_jobs
from experiments.captions import Run, Tables
from experiments.experiment import Context, Experiment, Policies
from experiments.idle_slots.s22_idle_rules import BASE, shortest_first, streams, tuned_rule
from experiments.rooms import POLICY_ROOMS

# Weights that the tuning of the linear rule found for rare long jobs on two executors at a load of 60 %.
TWO = {
    "base": -4.046, "busy": 1.141, "length": 1.075, "remaining": 1.818, "since": 0.635, "soon": 1.411,
    "waiting": -0.172,
}  # fmt: skip
SHORT_S = 10.0
RULE = "idle_rule"
# Stored policies of Figure 6: executors and part of long jobs of their training; bound: in the paper's model.
AGENTS = {
    "idle-rare-long-2": (2, 0.1), "idle-bound-rare-long-2": (2, 0.1), "idle-rare-long-5": (5, 0.1),
    "idle-half-long-3": (3, 0.5), "idle-bound-half-long-3": (3, 0.5),
}  # fmt: skip
SLOTS = ["scheduler", "executors", "share", "long_s", "load", "gap_s", "mean_slot_s", "low", "high", "left_idle_s"]
# Of mixed jobs, by what a case is called; offline all jobs are there within a millisecond.
ARRIVALS = {"": {"load": 0.6, "executors": 10}, ", offline": {"interarrival_s": 1e-6}}


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``idle_mean_slot``, ``idle_insertion``, ``idle_executors`` and ``idle_foresight``."""
    return {
        "idle_mean_slot": _mean_slots(params["mean_slot"]),
        "idle_insertion": _insertion(params["insertion"], context),
        "idle_executors": _executors(params["executors"], context),
        "idle_foresight": _foresight(params["foresight"], context),
    }


def _mean_slots(params: dict) -> pandas.DataFrame:
    """Slots of the rule and of stored policies per long job, mean over streams.

    ``left_idle_s``: executor time without a task while a job waits; ``mean_slot_s``: time of slots with a timer, the
    other where a policy holds.
    """
    rows = []
    for name, (executors, share) in {RULE: (2, 0.1), **AGENTS}.items():
        scheduler = make_scheduler(RULE, **BASE, **TWO) if name == RULE else load_policy(name)
        holds = name != RULE and scheduler.architecture.idle == "hold"
        settings = Settings.simplified(executors=executors, job_bound="bound" in name)
        for long_s, load in itertools.product(params["long_s"], params["load"]):
            jobs = f"two_class:long_s={long_s:g},sigma_s={long_s / 6:g},short_s={SHORT_S:g},share={share:g}"
            workloads = streams(jobs, params["streams"], params["jobs"], load=load, executors=executors)
            results = [simulate(each, scheduler, cluster=settings, log=True) for each in workloads]
            idle, slots = np.array([_idle_and_slots(result) for result in results]).T
            mean, _, low, high = mean_interval(idle if holds else slots)
            gap_s = float(workloads[0].arrival_ms.max()) / 1000.0 / params["jobs"]
            rows.append((name, executors, share, long_s, load, gap_s, mean, low, high, np.mean(idle)))
    return pandas.DataFrame(rows, columns=SLOTS).round(3)


def _idle_and_slots(result: Result) -> tuple[float, float]:
    """Seconds per long job: executors idle while a job waits, slots; jobs of one task."""
    log, arrival_ms = result.log, result.workload.arrival_ms
    ones = np.ones(len(arrival_ms), dtype=np.int64)
    times = np.concatenate([arrival_ms, log.start_ms, log.finish_ms])
    order = np.argsort(times, kind="stable")
    waiting = np.cumsum(np.concatenate([ones, -ones, 0 * ones])[order])[:-1]
    idle = result.num_executors - np.cumsum(np.concatenate([0 * ones, ones, -ones])[order])[:-1]
    longs = sum(job.name.startswith("long") for job in result.workload.jobs)
    idle_s = float(np.minimum(idle, waiting) @ np.diff(times[order])) / 1000.0
    delays = log.delays()
    return idle_s / longs, float((delays["end_s"] - delays["start_s"]).sum()) / longs


def _insertion(params: dict, context: Context) -> pandas.DataFrame:
    """Slots before any stage, or a job's first stage, against none: jobs of several stages.

    Both rules are tuned alike on other streams.
    """
    settings = Settings.simplified(executors=5)
    jobs = f"two_class:long_s=200,short_s=10,share=0.1,stages={params['stages']},load=0.8,executors=5"
    seeds = [TRAINING_SEED + index for index in range(params["train"])]
    train = [parse_jobs(f"{jobs},n={params['train_jobs']}").workload(seed) for seed in seeds]
    kinds = {"none": shortest_first()}
    for first, before in enumerate(("stage", "job")):
        label = f"slots before a {before}"
        kinds[before] = tuned_rule(train, seeds, settings, params["budget"], {"first": first}, context, label).make()
    workloads = streams(jobs, params["streams"], params["jobs"])
    scores = score_matrix(workloads, list(kinds.values()), settings, workers=context.threads)
    rows = [
        (before, float(row.mean()), *paired_change(row, scores[0]))
        for before, row in zip(list(kinds)[1:], scores[1:], strict=True)
    ]
    return pandas.DataFrame(rows, columns=["insertion", "avg_jct_s", "change_percent", "low", "high"])


def _executors(params: dict, context: Context) -> pandas.DataFrame:
    """Average JCT of equal streams on more executors, with and without holding, and the speed-up."""
    workloads = streams("rare_long", params["streams"], params["jobs"], load=0.8, executors=params["executors"][0])
    hold = {"hold": 1, "base": -2.476, "busy": -0.186, "length": 0.944, "remaining": 4.859, "since": -0.595}
    schedulers = {
        "capped_srw": shortest_first(),
        "idle_rule_hold": make_scheduler("idle_rule", **BASE, **hold, soon=-0.13),
    }
    rows = []
    for executors in params["executors"]:
        settings = Settings.simplified(executors=executors)
        means = score_matrix(workloads, list(schedulers.values()), settings, workers=context.threads).mean(axis=1)
        rows += [(executors, name, float(mean)) for name, mean in zip(schedulers, means, strict=True)]
    table = pandas.DataFrame(rows, columns=["executors", "scheduler", "avg_jct_s"])
    first = table[table["scheduler"] == "capped_srw"]["avg_jct_s"].iloc[0]
    return table.assign(speed_up=first / table["avg_jct_s"])


def _foresight(params: dict, context: Context) -> pandas.DataFrame:
    """Gain of delays with future knowledge: two searches of equal budget per instance.

    Streams of the paper's jobs by executors; then batches (``offline``) and streams of mixed jobs in both models.
    """
    cases = [
        ("half long", executors, Settings.simplified(executors=executors), params | {"source": "half_long"},
         {"load": 0.8, "executors": executors})
        for executors in params["executors"]
    ]  # fmt: skip
    for name, bound in (("mixed", False), ("mixed, bound", True)):
        settings = Settings.paper(executors=10, durations="mean", job_bound=bound)
        cases += [(f"{name}{when}", 10, settings, params["mixed"], arrivals) for when, arrivals in ARRIVALS.items()]
    rows = []
    for case, executors, settings, sizes, arrivals in cases:
        workloads = streams(sizes["source"], params["instances"], sizes["jobs"], **arrivals)
        for instance, workload in enumerate(workloads):
            search = {"workers": context.threads, "seed": instance, "budget": sizes["budget"]}
            begin = search_schedule(workload, settings, **search)
            without, delayed = (
                search_schedule(workload, settings, begin=begin, delays=delays, **search).avg_jct_s
                for delays in (False, True)
            )
            rows.append((case, executors, instance, without, delayed, 100.0 * (1.0 - delayed / without)))
    return pandas.DataFrame(rows, columns=["case", "executors", "instance", "without_s", "with_s", "gain_percent"])


def fig6_mean_slot(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 6: slots over the gap between arrivals, of a rule and of policies."""
    table = tables["idle_mean_slot"]
    longest = table.groupby("scheduler")[["mean_slot_s", "left_idle_s"]].max().max(axis=1)
    shown = [name for name in (RULE, *AGENTS) if longest[name] > 0.0]
    never = len(AGENTS) + 1 - len(shown)
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.9)
    for axes, name in zip(panels := figure.subplots(1, len(shown)), shown, strict=True):
        rows = table[table["scheduler"] == name]
        plotting.curves.slot_over_gap(rows, axes, legend=axes is panels[-1])
        axes.set_xlabel("interarrival\ntime (s)")
        how = "heuristic" if name == RULE else "policy, bound" if "bound" in name else "policy"
        axes.set_title(f"{how},\n{rows['executors'].iloc[0]} executors", loc="left", fontsize=8)
    caption = (
        "Mean idle slot per long job (0 if none). Left: linear heuristic tuned for rare long jobs. Others: stored "
        "policies that hold executors until the next event; executor time left idle while a job waits. A tenth of the "
        "jobs is long, N(μ, μ/6), the others take 10 s. "
        + (f"Not shown: {count(never, 'policy')} that never idle (half of the jobs long)." if never else "")
    )
    return plotting.style.entitle(figure, "Figure 6: length of idle slots", caption, "two classes of jobs")


EXPERIMENT = Experiment(
    "idle_settings",
    "Duan and Wu, Figure 6",
    compute,
    rooms=(*POLICY_ROOMS, "systems/spark/optimum"),
    figures=(fig6_mean_slot,),
    inputs=(Policies(tuple(AGENTS)),),
    tiny={
        "mean_slot": {"long_s": [50, 200], "load": [0.6, 0.8], "streams": 2, "jobs": 40},
        "insertion": {"stages": 3, "streams": 2, "jobs": 10, "train": 2, "train_jobs": 10, "budget": 8},
        "executors": {"executors": [5, 8], "streams": 2, "jobs": 10},
        "foresight": {
            "executors": [1], "instances": 1, "jobs": 5, "budget": 20,
            "mixed": {"source": "half_tpch:base=embedded", "jobs": 3, "budget": 20},
        },
    },
)  # fmt: skip
