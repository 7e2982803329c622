"""Worth of schedulers on the benchmark's tasks; duel of tuned rule and learned policy."""

from __future__ import annotations

import pandas

from decima import plotting
from decima.bench.duel import DIRECTIONS, TRAITS, UNSEEN, duel
from decima.bench.references import reference_scores, tuned_rule
from decima.bench.report import best_known, read_folder, rows
from decima.bench.tasks import Task, task_named, tasks
from decima.plotting.words import count
from decima.systems.spark.policy.learned import decima
from decima.workload.sources import WorkloadSource
from experiments.captions import Run, Tables
from experiments.experiment import Context, Experiment, Files, Profiles, StoredPolicy
from experiments.params import checkout
from experiments.rooms import POLICY_ROOMS

# Tasks of all systems are read, those of Spark are run.
ROOMS = (
    *(*POLICY_ROOMS, "systems/spark/optimum", "bench"),
    *(f"systems/{name}{room}" for name in ("cloud", "unequal") for room in ("", "/schedulers", "/optimum")),
)
FOLDER = "reports/bench"
BEST, BOUND, TUNED = "best known", "lower bound", "tuned"
SEED = 0  # of the search
# Forms of the figure, in its order, with how they are called there.
FORMS = {
    "policy, alone": "from random weights",
    "policy, warm": "after imitation",
    "policy, residual": "corrects a rule",
    "planner": "planner",
}


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``benchmark_`` with ``entries``, ``duel`` and ``traits``.

    ``entries`` has the committed results, beside the best known scores and the bounds: change against the tuned rule in
    percent, paired, and the parts in percent of its distances from bound (``closed``) and best known (``reached``, 0
    where that is the tuned rule itself); what decides nothing takes 0 µs.
    ``duel`` has the instances that a search started with and kept, ``traits`` means of what they have in common.
    """
    documents = read_folder(checkout() / FOLDER)
    entries = [row for task in tasks().values() for row in _entries(task, documents)]
    rule, policy = tuned_rule(task_named(f"{source.name}-batch")), f"{decima.__name__}:{context.policies['batch']}"
    outcome = duel(
        rule,
        policy,
        jobs=source.name,
        evaluations=params["evaluations"],
        seed=SEED,
        workers=context.threads,
        progress=context.bar("duel"),
    )
    groups = {"start": "start", DIRECTIONS[0]: "rule loses", DIRECTIONS[1]: "policy loses"}
    kept = [_instance(label, row) for group, label in groups.items() for row in outcome[group]]
    means = {
        label: [sum(row["traits"][trait] for row in outcome[group]) / len(outcome[group]) for trait in TRAITS]
        for group, label in groups.items()
    }
    return {
        "benchmark_entries": pandas.DataFrame(entries),
        "benchmark_duel": pandas.DataFrame(kept).assign(tried=outcome["evaluations"], rule=rule, policy=policy),
        "benchmark_traits": pandas.DataFrame({"trait": list(TRAITS.values()), **means}),
    }


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


def _instance(label: str, row: dict) -> dict:
    """Row of a kept instance; the loser's average JCT is in percent above the winner's."""
    percent = {name: 100.0 * (row[name] - 1.0) for name in ("ratio", "confirmed", "low", "high")}
    cluster = {name: row[name] for name in ("executors", "moving_delay_s")}
    return {"side": label, **percent, "rule_s": row["first_s"], "policy_s": row["second_s"], **cluster} | {
        "jobs": len(row["jobs"])
    }


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
    axes.set_xlabel("change of the score against the tuned rule (%)")
    seeds = sorted({len(task.instances()) for task in tasks().values()})
    caption = (
        f"Less is better. Test seeds of the benchmark, {seeds[0]} to {seeds[-1]} instances per task; the best entry of "
        "each form; bars: paired 95 % confidence intervals; strokes: best known by instance."
    )
    return plotting.style.entitle(axes.figure, "What learning and planning gain", caption, "benchmark")


def benchmark_duel(tables: Tables, run: Run) -> plotting.style.Figure:
    """Losses on the instances that a search kept, in the search and confirmed."""
    table = tables["benchmark_duel"]
    table = table[table["side"] != "start"].reset_index(drop=True)
    numbers = table.groupby("side").cumcount() + 1
    shown = table.rename(columns={"confirmed": "change_percent"})
    shown["case"] = [
        f"{row.side}, {number}: {count(row.jobs, 'job')}"
        for row, number in zip(table.itertuples(), numbers, strict=True)
    ]
    shown["base"] = [count(number, "executor") for number in table["executors"]]
    axes = plotting.load.change_by_case(shown)
    axes.plot(table["ratio"], range(len(table)), "o", color=plotting.style.GREY, fillstyle="none")
    axes.set_xlabel("average JCT of the loser above the winner's (%)")
    caption = (
        f"Tuned capped SRW against {table['policy'][0].removeprefix('decima:')}; {table['tried'][0]} instances tried, "
        f"search seed {SEED}. Circles: in the search, with 3 seeds of durations; crosses: confirmed with "
        f"{len(UNSEEN)} others, bars: paired 95 % confidence intervals."
    )
    return plotting.style.entitle(axes.figure, "A duel", caption, run.workload)


EXPERIMENT = Experiment(
    "benchmark",
    "fixed tasks, and a duel",
    compute,
    rooms=ROOMS,
    figures=(benchmark_changes, benchmark_duel),
    inputs=(Profiles(), StoredPolicy("batch"), Files([FOLDER])),
    tiny={"evaluations": 4},
)
