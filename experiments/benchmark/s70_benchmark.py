"""Worth of schedulers on the benchmark's tasks."""

from __future__ import annotations

import pandas

from decima import plotting
from decima.bench.references import reference_scores
from decima.bench.report import best_known, read_folder, rows
from decima.bench.tasks import Task, tasks
from decima.workload.sources import WorkloadSource
from experiments.captions import Run, Tables
from experiments.experiment import Context, Experiment, Files
from experiments.params import checkout
from experiments.rooms import POLICY_ROOMS

# Tasks of all systems are read, those of Spark are run.
ROOMS = (
    *(*POLICY_ROOMS, "systems/spark/optimum", "bench"),
    *(f"systems/{name}{room}" for name in ("cloud", "heterogeneous") for room in ("", "/schedulers", "/optimum")),
)
FOLDER = "reports/bench"
BEST, BOUND, TUNED = "best known", "lower bound", "tuned"
# Forms of the figure, in its order, with how they are called there.
FORMS = {
    "policy, alone": "from scratch",
    "policy, warm": "after imitation",
    "planner": "planner",
}


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Table ``benchmark_entries``: the committed results with the best known scores and the bounds.

    It has the paired change against the tuned rule in percent. It also has which percentage of the rule's distance an
    entry covers, to the bound (``closed``) and to the best known (``reached``, 0 where that is the tuned rule itself).
    What decides nothing takes 0 µs.
    """
    documents = read_folder(checkout() / FOLDER)
    entries = [row for task in tasks().values() for row in _entries(task, documents)]
    return {"benchmark_entries": pandas.DataFrame(entries)}


def _entries(task: Task, documents: list[dict]) -> list[dict]:
    """Rows of a task, best first, with best known scores and bounds."""
    whole = next(each["tasks"][task.name] for each in documents if each["entry"] == TUNED)
    limits = {BEST: best_known(task, documents), BOUND: reference_scores(task, "bound")}
    limits = {name: values for name, values in limits.items() if None not in values}
    times = {task.name: {"decision_us": None}}
    more = [
        {
            "entry": name,
            "form": "limit",
            "learned": "",
            "times": times,
            "tasks": {task.name: whole | {"scores": values}},
        }
        for name, values in limits.items()
    ]
    table = rows(task, [*documents, *more])
    most = next(row.closed for row in table if row.entry == BEST)
    columns = ("change_percent", "low", "high")
    return [
        {"task": task.name, "entry": row.entry, "how": row.how, "score": row.score}
        | dict(zip(columns, row.change, strict=True))
        | {"closed": row.closed, "reached": 100.0 * row.closed / most if most > 0.0 else 0.0}
        | {"decision_us": row.decision_us or 0.0, "failed": row.failed}
        for row in table
    ]


def learned_and_planned(entries: pandas.DataFrame) -> pandas.DataFrame:
    """Best entry of every task and form that learns or plans."""
    table = entries[entries["how"].isin(FORMS)].sort_values("score", kind="stable")
    table = table.drop_duplicates(["task", "how"])
    ranks = {name: rank for rank, name in enumerate((*tasks(), *FORMS))}
    return table.sort_values(["task", "how"], key=lambda column: column.map(ranks), ignore_index=True)


def benchmark_changes(tables: Tables, run: Run) -> plotting.style.Figure:
    """Change of the best learned and planned entries against the tuned rule."""
    entries = tables["benchmark_entries"]
    table = learned_and_planned(entries)
    shown = table.assign(
        case=[f"{row.task}, {FORMS[row.how]}" for row in table.itertuples()], base=table["entry"].str.replace(":", " ")
    )
    axes = plotting.load.change_by_case(shown)
    best = entries[entries["entry"] == BEST].set_index("task")["change_percent"]
    axes.plot(best[table["task"]], range(len(table)), "|", color=plotting.style.BLACK, markersize=12)
    axes.set_xlabel("change of the score against the tuned heuristic (%)")
    seeds = sorted({len(task.instances()) for task in tasks().values()})
    caption = (
        f"Less is better. Test seeds of the benchmark, {seeds[0]} to {seeds[-1]} instances per task; the best entry of "
        "each form; bars: paired 95 % confidence intervals; strokes: best known by instance."
    )
    return plotting.style.entitle(axes.figure, "Gain from learning and planning", caption, "benchmark")


EXPERIMENT = Experiment(
    "benchmark",
    "fixed tasks",
    compute,
    rooms=ROOMS,
    figures=(benchmark_changes,),
    inputs=(Files([FOLDER]),),
    tiny={},
)
