"""§2: jobs as graphs, gain from parallelism, and four schedulers on one mix (Figures 1-3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas

from decima import plotting
from decima.evaluation.run import simulate
from decima.systems.spark.schedulers import make_scheduler
from decima.workload.jobs import Job, Workload
from decima.workload.sources import WorkloadSource
from experiments.captions import Run, Tables, distinct, learned_words
from experiments.comparisons import changes_over_trainings, learned_schedulers, score_table, scores_of_trainings
from experiments.experiment import Context, Experiment, PoliciesIn, Profiles, StoredPolicy
from experiments.rooms import POLICY_ROOMS

if TYPE_CHECKING:
    from decima.plotting.style import Figure

# Size in GB and query of the six DAGs of Figure 1, and of three jobs that gain differently from parallelism (Figure 2).
ILLUSTRATED = tuple((100, query) for query in (2, 5, 8, 9, 18, 21))
CONTRASTING = ((100, 9), (100, 2), (2, 9))
HEURISTICS = ("fifo", "sjf_cp", "fair")
SHOWN = (*HEURISTICS, "decima")


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``fig01_stages``, ``fig01_edges``, ``fig02_parallelism``, ``fig03_tasks`` (one mix), ``fig03_summary``.

    ``fig03_trainings`` has the change of every training of Decima, and the interval over its training runs.
    """
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
    where = (source.batches(mixes, params["mix_jobs"]), list(mixes), context.settings(), context, "mixes of ten jobs")
    summary = score_table(schedulers, *where)
    trainings = scores_of_trainings({"decima": params["trainings"]}, *where)
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
        "fig03_trainings": changes_over_trainings(trainings, summary[summary["scheduler"].isin(HEURISTICS)]),
    }


def fig01_dags(tables: Tables, run: Run) -> Figure:
    """Figure 1."""
    figure = plotting.dag.dag_panel(tables["fig01_stages"], tables["fig01_edges"])
    caption = (
        f"{distinct(tables['fig01_stages'], 'job', 'job')}. A circle is a stage, its area in proportion to its work in "
        "the job; label: tasks × mean task duration. Data flow downwards."
    )
    return plotting.style.entitle(figure, "Figure 1: jobs are graphs of stages", caption, run.workload)


def fig02_parallelism(tables: Tables, run: Run) -> Figure:
    """Figure 2."""
    table = tables["fig02_parallelism"]
    figure = plotting.curves.parallelism(table).figure
    caption = (
        f"Each job alone. Mean over {distinct(table, 'seed', 'seed')}, band: one standard deviation; "
        "ring: fewest executors within 10 % of the best."
    )
    return plotting.style.entitle(figure, "Figure 2: runtime over parallelism", caption, run.workload)


def fig03_schedules(tables: Tables, run: Run) -> Figure:
    """Figure 3."""
    tasks = tables["fig03_tasks"]
    policy = learned_words(run, tables["fig03_summary"]["scheduler"], "batch")
    figure = plotting.gantt.gantt_grid(tasks, executors=run.executors)
    caption = (
        f"One batch of {distinct(tasks, 'job', 'job')}, 1 seed, {run.cluster}; {policy}. A colour is a job, white is "
        "idle time, dotted lines are completions."
    )
    return plotting.style.entitle(figure, "Figure 3: one batch under four schedulers", caption, run.workload)


def fig03_mixes(tables: Tables, run: Run) -> Figure:
    """The comparison of Figure 3 over many batches."""
    table = tables["fig03_summary"]
    caption = f"{distinct(table, 'seed', 'batch')} of ten jobs, one seed each, {run.cluster}."
    figure = plotting.curves.cdf(table).figure
    return plotting.style.entitle(figure, "Figure 3 over many batches", caption, run.workload)


EXPERIMENT = Experiment(
    "motivation",
    "§2, Figures 1 to 3",
    compute,
    rooms=POLICY_ROOMS,
    figures=(fig01_dags, fig02_parallelism, fig03_schedules, fig03_mixes),
    inputs=(Profiles(), StoredPolicy("batch"), PoliciesIn("motivation", ("trainings",))),
    tiny={
        "parallelism": [1, 5],
        "parallelism_seeds": 1,
        "mix_jobs": 3,
        "mixes": 2,
        "shown_mix": 0,
        "trainings": ["tiny", "tiny"],
    },
)
