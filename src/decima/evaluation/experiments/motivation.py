"""§2: jobs as graphs, what parallelism is worth to them, and one mix of jobs under four schedulers (Figures 1 to 3)."""

from __future__ import annotations

import pandas

from decima.evaluation.experiments.learned import learned_schedulers
from decima.evaluation.experiments.store import Context
from decima.evaluation.experiments.tidy import score_table
from decima.evaluation.run import simulate
from decima.schedulers import make_scheduler
from decima.workload.jobs import Job, Workload
from decima.workload.sources import WorkloadSource

HEURISTICS = ("fifo", "sjf_cp", "fair")
SHOWN = (*HEURISTICS, "decima")
# Size in GB and query of the six DAGs of Figure 1, and of three jobs that gain differently from parallelism (Figure 2).
ILLUSTRATED = tuple((100, query) for query in (2, 5, 8, 9, 18, 21))
CONTRASTING = ((100, 9), (100, 2), (2, 9))


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``fig01_stages``, ``fig01_edges``, ``fig02_parallelism``, ``fig03_tasks`` (one mix), ``fig03_summary``."""
    profiles = [source.profile(*one) for one in ILLUSTRATED]
    stages = [
        {"job": profile.name, "stage": index, "tasks": stage.num_tasks, "duration_s": stage.mean_duration_ms / 1000.0}
        for profile in profiles
        for index, stage in enumerate(profile.stages)
    ]
    edges = [{"job": profile.name, "parent": a, "child": b} for profile in profiles for a, b in profile.graph.edges]
    runtimes = []
    for profile in (source.profile(*one) for one in CONTRASTING):
        alone = Workload((Job(profile),), source.label)
        for executors in params["parallelism"]:
            for seed in range(params["parallelism_seeds"]):
                runtime_s = simulate(alone, "fifo", executors, seed).makespan_s
                runtimes.append({"job": profile.name, "executors": executors, "seed": seed, "runtime_s": runtime_s})
    mixes = range(params["mixes"])
    schedulers = {name: make_scheduler(name) for name in HEURISTICS} | learned_schedulers(context, "batch")
    summary = score_table(
        schedulers,
        source.batches(mixes, params["mix_jobs"]),
        list(mixes),
        context.settings(),
        context,
        "mixes of ten jobs",
    )
    shown = source.batches([params["shown_mix"]], params["mix_jobs"])[0]
    tasks = []
    for name in SHOWN:
        scheduler = schedulers[name]
        result = simulate(shown, scheduler, context.executors, params["shown_mix"], log=True)
        frame = result.log.tasks().drop(columns="wave")
        frame.insert(0, "scheduler", name)
        frame["job_name"] = [shown.jobs[job].name for job in frame["job"]]
        tasks.append(frame)
    return {
        "fig01_stages": pandas.DataFrame(stages),
        "fig01_edges": pandas.DataFrame(edges),
        "fig02_parallelism": pandas.DataFrame(runtimes),
        "fig03_tasks": pandas.concat(tasks),
        "fig03_summary": summary,
    }
