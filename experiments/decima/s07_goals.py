"""§7.4, Figure 13: policies for other goals, in every environment and by every objective."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pandas

from decima import plotting
from decima.core.objectives import get_objective
from decima.evaluation.pool import RunPool
from decima.evaluation.run import simulate
from decima.evaluation.tuning import tune
from decima.plotting.words import count
from decima.systems.spark.policy.scheduler import load_policy
from decima.systems.spark.result import Result
from decima.systems.spark.schedulers import Scheduler, make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload.jobs import Workload
from decima.workload.sources import TRAINING_SEED, WorkloadSource
from experiments.captions import INTERVAL, Run, Tables, distinct
from experiments.comparisons import changes_by_load, each_training
from experiments.experiment import Context, Experiment, PoliciesIn, Profiles
from experiments.rooms import POLICY_ROOMS

OBJECTIVES = ("avg_jct", "makespan", "p90_jct")
# Changes of the settings by what a move of an executor to another job costs. First tasks on an executor that is new to
# the job are slower in both.
ENVIRONMENTS: dict[str, dict[str, float]] = {"cost": {}, "free": {"moving_delay_ms": 0.0}}
# What a policy was trained for -> its home, the environment and the objective.
HOME = {
    "average": ("cost", "avg_jct"),
    "free": ("free", "avg_jct"),
    "makespan": ("cost", "makespan"),
    "p90": ("cost", "p90_jct"),
}
# Fixed values of the heuristics that are tuned for every cell; of several forms the best one on training batches stays.
FORMS = {
    "weighted_fair": [{"order": order, "sticky": sticky} for order in (1, 0) for sticky in (1, 0)],
    "capped_srw": [{"preset": "plain"}],
}
UNTUNED = ("fair",)
# Rows of the tables of a scheduler that was not tuned for a cell.
NOT_TUNED = "none"
BEHAVIOUR = {
    "moves_per_100_tasks": "migrations per 100 tasks",
    "last_fifth_percent": "late completions (%)",
    "busy_percent": "executors busy (%)",
}


def policy_row(goal: str) -> str:
    """Name in tables and figures of the policy that was trained for a goal."""
    return f"goal_{goal}"


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables of scores, paired changes, tuned parameters, behaviour, and the tasks of one batch.

    ``goals`` has the scores of every scheduler by all objectives in both environments, of policies the means over their
    training runs; heuristics stand once for every cell (environment and objective) that they were tuned for.
    ``goals_changes`` compares in every cell with the heuristics tuned for it and with the policy for the average JCT,
    ``goals_trainings`` does so for every training; ``goals_behaviour`` measures what the paper shows by colours.

    Args:
        source: Where batches are drawn from.
        params: ``policies`` by goal (those of ``HOME``), a training or several each, ``batches`` and ``jobs`` of the
            test, ``train`` and ``budget`` of tuning, and ``shown``, the seed of the batch that is drawn.
        context: The run.
    """
    policies = {goal: [load_policy(name) for name in each_training(of)] for goal, of in params["policies"].items()}
    train_seeds = [TRAINING_SEED + index for index in range(params["train"])]
    seeds = list(range(params["batches"]))
    train, test = (source.batches(each, params["jobs"]) for each in (train_seeds, seeds))
    shown = source.batches([params["shown"]], params["jobs"])[0]
    scores, tuned, behaviour, tasks = [], [], [], []
    for environment, changes in ENVIRONMENTS.items():
        settings = context.settings(**changes)
        schedulers: dict[tuple, Scheduler] = {(name, NOT_TUNED, 1): make_scheduler(name) for name in UNTUNED}
        for objective in OBJECTIVES:
            for name in FORMS:
                tuned_values = _tuned(
                    name, objective, train, train_seeds, settings, params["budget"], context, environment
                )
                schedulers[name, objective, 1] = make_scheduler(name, **tuned_values)
                parameters = json.dumps(tuned_values, sort_keys=True)
                what = {"moves": environment, "objective": objective, "scheduler": name}
                tuned.append(what | {"parameters": parameters})
        for goal, trainings in policies.items():
            schedulers |= {(policy_row(goal), NOT_TUNED, number): each for number, each in enumerate(trainings, 1)}
        with RunPool(test, settings, seeds=seeds, workers=context.threads, keep=False) as pool:
            bar = context.bar(f"goals, moves {environment}")
            values = pool.measure(list(schedulers.values()), OBJECTIVES, progress=bar)
        for index, ((name, objective, number), scheduler) in enumerate(schedulers.items()):
            what = {"moves": environment, "scheduler": name, "tuned_for": objective, "training": number}
            columns = {column: values[column][index] for column in map(_column, OBJECTIVES)}
            scores.append(pandas.DataFrame(what | {"seed": seeds} | columns))
            for seed, workload in zip(seeds, test, strict=True):
                result = simulate(workload, scheduler, seed=seed, cluster=settings, log=True)
                behaviour.append(what | {"seed": seed} | measured(result))
        for goal, trainings in policies.items():
            if HOME[goal][0] == environment:
                result = simulate(shown, trainings[0], seed=params["shown"], cluster=settings, log=True)
                tasks.append(result.task_frame().assign(scheduler=policy_row(goal)))
    table = pandas.concat(scores)
    whole, each = _changes(table, list(map(policy_row, policies)))
    return {
        "goals": _over_trainings(table),
        "goals_changes": whole,
        "goals_trainings": each,
        "goals_tuned": pandas.DataFrame(tuned),
        "goals_behaviour": _over_trainings(pandas.DataFrame(behaviour)),
        "goals_tasks": pandas.concat(tasks),
    }


def _column(objective: str) -> str:
    return get_objective(objective).column


def _tuned(
    name: str,
    objective: str,
    train: list[Workload],
    seeds: list[int],
    settings: Settings,
    budget: int,
    context: Context,
    environment: str,
) -> dict[str, float]:
    """Parameters of a heuristic for one cell, the best of its forms on training batches."""
    results = [
        tune(
            name,
            train,
            settings,
            train_seeds=seeds,
            metric=objective,
            budget=budget,
            fixed=form,
            **context.work(f"{name}, {objective}, moves {environment}"),
        )
        for form in FORMS[name]
    ]
    return min(results, key=lambda each: each.train["tuned"].mean()).parameters


def measured(result: Result) -> dict[str, float]:
    """What the paper reads off the colours of a schedule, as numbers.

    - ``moves_per_100_tasks``: tasks before which their executor ran one of another job.
    - ``last_fifth_percent``: jobs that complete in the last fifth of the makespan.
    - ``busy_percent``: part of all executor time up to the end in which tasks run.

    Raises:
        ConfigError: The run kept no log.

    Source: §7.4, Figure 13.
    """
    tasks = result.task_frame().sort_values(["executor", "start_s"], kind="stable")
    executor, job = tasks["executor"].to_numpy(), tasks["job"].to_numpy()
    moved = (np.diff(executor) == 0) & (np.diff(job) != 0)
    late = result.completion_ms > 0.8 * result.makespan_ms
    return {
        "moves_per_100_tasks": 100.0 * float(moved.sum()) / len(tasks),
        "last_fifth_percent": 100.0 * float(late.mean()),
        "busy_percent": 100.0 * result.utilization,
    }


def _over_trainings(table: pandas.DataFrame) -> pandas.DataFrame:
    """Means over training runs by batch."""
    groups = table.groupby(["moves", "scheduler", "tuned_for", "seed"], sort=False, as_index=False)
    return groups.mean().drop(columns="training")


def _changes(table: pandas.DataFrame, policies: Sequence[str]) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Paired changes of all training runs and of each.

    Policies and heuristics tuned per cell are compared with these heuristics, policies also with ``goal_average``.
    """
    rules, parts = (*UNTUNED, *FORMS), []
    for objective in OBJECTIVES:
        chosen = table[table["tuned_for"].isin([NOT_TUNED, objective])]
        scores = chosen.drop(columns="avg_jct_s").assign(avg_jct_s=chosen[_column(objective)])
        for names, baselines in (((*rules, *policies), rules), (policies, [policy_row("average")])):
            changes = changes_by_load(scores, names, baselines, by="moves")
            parts.append([each.assign(objective=objective) for each in changes])
    whole, each = map(pandas.concat, zip(*parts, strict=True))
    return whole, each


def fig13_schedules(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 13: one batch under policies with different goals, each in its home environment."""
    tasks = tables["goals_tasks"]
    names = plotting.style.display_order(tasks["scheduler"])
    rows = (len(names) + 1) // 2
    figure = plotting.style.new_figure(plotting.style.PAGE, 0.9 + 1.6 * rows)
    grid = figure.subplots(rows, 2, sharex=True, sharey=True, squeeze=False).ravel()
    work = (tasks["finish_s"] - tasks["start_s"])[tasks["scheduler"] == names[0]].groupby(tasks["job"]).sum()
    colors = plotting.gantt.colors_of_largest(work)
    for letter, axes, name in zip("abcd", grid, names, strict=False):
        part = tasks[tasks["scheduler"] == name]
        plotting.gantt.gantt(part, axes, colors=colors, executors=run.executors)
        title = f"({letter}) {plotting.style.scheduler_style(name).label}\n{axes.get_title(loc='left')}, "
        axes.set_title(f"{title}makespan {part['finish_s'].max():.0f} s", loc="left", fontsize=7.5)
    for axes in grid[len(names) :]:
        axes.set_axis_off()
    grid[0].set_xlim(0.0, float(tasks["finish_s"].max()))
    largest = {job: f"{work[job]:,.0f} s" for job in list(colors)[:10]}
    plotting.gantt.jobs_legend(figure, largest, colors, "jobs by\nexecutor time")
    caption = (
        f"One batch of {distinct(tasks, 'job', 'job')}, 1 seed, first training of each, {run.cluster}; moving "
        f"delay 2 s, "
        f"0 for the policy trained with zero delay. Lines: completions. Listed: the {len(largest)} largest jobs under "
        "the first policy; the others are grey."
    )
    return plotting.style.entitle(figure, "Figure 13: one batch, other goals", caption, run.workload)


def goals_matrix(tables: Tables, run: Run) -> plotting.style.Figure:
    """Every policy and heuristic in every cell against capped SRW tuned for that cell."""
    changes = tables["goals_changes"]
    reference = "capped_srw"
    shown = changes[changes["against"] == reference]
    cells = [
        f"{get_objective(objective).label},\n{'zero moving delay' if environment == 'free' else 'moving delay 2 s'}"
        for objective, environment in zip(shown["objective"], shown["moves"], strict=True)
    ]
    figure = plotting.style.new_figure(plotting.style.PAGE, 5.0)
    axes = plotting.bars.change_points(shown.assign(cell=cells), "cell", figure.subplots())
    axes.set_xlabel(f"change against {plotting.style.scheduler_style(reference).label} tuned for the row (%)")
    caption = (
        f"Paired by batch; {int(changes['seeds'].iloc[0])} batches, {run.cluster}; bars: {INTERVAL}, of policies over "
        f"{count(changes['trainings'].max(), 'training seed')}. Tuned heuristics: for environment and objective "
        f"of the row."
    )
    return plotting.style.entitle(figure, "Policies and heuristics by every objective", caption, run.workload)


def goals_behaviour(tables: Tables, run: Run) -> plotting.style.Figure:
    """Measures of Figure 13's colours: executor changes, jobs that end together, executors busy."""
    table = tables["goals_behaviour"]
    table = table[table["tuned_for"] == NOT_TUNED]
    table = table.assign(moves=table["moves"].replace({"cost": "2 s", "free": "zero"}))
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.6)
    panels = figure.subplots(1, len(BEHAVIOUR))
    for axes, (column, label) in zip(panels, BEHAVIOUR.items(), strict=True):
        plotting.bars.scheduler_bars(table, axes, group="moves", value=column, legend=axes is panels[-1])
        axes.set(xlabel="moving delay", ylabel=label)
    number = count(tables["goals_changes"]["trainings"].max(), "training seed")
    caption = f"Means over {distinct(table, 'seed', 'batch')} and {number}, {run.cluster}; bars: {INTERVAL}."
    caption += " Late: in the last fifth of the makespan."
    return plotting.style.entitle(
        figure, "Executor migrations, late completions and utilisation by training objective", caption, run.workload
    )


EXPERIMENT = Experiment(
    "goals",
    "§7.4, Figure 13",
    compute,
    rooms=POLICY_ROOMS,
    figures=(fig13_schedules, goals_matrix, goals_behaviour),
    inputs=(Profiles(), PoliciesIn("goals", ("policies",))),
    tiny={
        "policies": {"average": ["tiny", "tiny"], "free": ["tiny", "tiny"], "makespan": "tiny", "p90": "tiny"},
        "batches": 2, "jobs": 3, "shown": 0, "train": 2, "budget": 4,
    },
)  # fmt: skip
