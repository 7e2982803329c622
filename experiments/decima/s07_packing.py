"""§7.3, Figures 11 and 12: executors of four sizes, on TPC-H with requests and Alibaba."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas

from decima import plotting
from decima.evaluation.grid import grid_search, grid_table
from decima.evaluation.run import simulate
from decima.evaluation.tuning import tune
from decima.learning.cards import WARM
from decima.systems.spark.policy import scheduler as learned
from decima.systems.spark.schedulers import CompiledScheduler, Scheduler, make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload.alibaba.trace import thinned
from decima.workload.jobs import Workload
from decima.workload.sources import TRAINING_SEED, WorkloadSource, parse_jobs
from experiments.captions import Run, Tables, distinct
from experiments.comparisons import ROWS, Trainings, changes_by_load, each_training, scores_of_trainings
from experiments.experiment import Context, Experiment, Policies, Profiles
from experiments.rooms import POLICY_ROOMS

ROOMS = (*POLICY_ROOMS, "workload/alibaba")
MEMORY = (0.25, 0.5, 0.75, 1.0)  # of the executor classes, a quarter of the executors each
BASELINES = ("graphene_arrival", "graphene")
# For streams of the run's workload and for the trace: trainings from random weights, and one that imitated a rule.
POLICIES = tuple(tuple(f"{jobs}-classes-continuing{seed}" for seed in ("", "-2", "-3")) for jobs in ("tpch", "alibaba"))
WARM_POLICIES = ("tpch-classes", "alibaba-classes")
PAIRED = (*BASELINES, "priced_srw")  # with policies on more and longer streams at the headline loads
AT_FULL_SIZE = ("fair", "weighted_best_fit", "graphene", "priced_srw")  # with policies on the whole trace
_PARAMETERS = ["alpha", "order", "larger", "by_memory", "long", "frag"]
_WHOLE = ["workload", "jobs", "executors", "scheduler", "training", "avg_jct_s"]
_OFF = {"by_memory": 0.0, "long": 2.0, "frag": -1.0}


@dataclass(frozen=True)
class Case:
    """One workload at one load."""

    workload: str  # label
    setting: str  # what sets the load, for people
    cluster: Settings  # executors in classes
    train: list[Workload]  # to tune on
    test: list[Workload]  # to judge on; seeds 0, 1, ...
    paired: list[Workload]  # to compare the policy on, at the headline loads; seeds 0, 1, ...
    policies: dict[str, Trainings]  # stored policies by their rows
    whole: tuple[Workload, Settings] | None = None  # the trace and its cluster at full size

    @property
    def load(self) -> float:
        """Nominal arriving work over executor capacity until the last arrival, mean over test jobs."""
        parts = [
            sum(job.profile.work_ms for job in jobs.jobs) / (self.cluster.executors * jobs.arrival_ms.max())
            for jobs in self.test
        ]
        return float(np.mean(parts))


def classes(executors: int) -> tuple[tuple[float, int], ...]:
    """Four classes, a quarter of the executors each; larger classes get the remainder."""
    return tuple((memory, (executors + index) // len(MEMORY)) for index, memory in enumerate(MEMORY))


def cases(source: WorkloadSource, params: dict) -> Iterator[Case]:
    """Cases: the run's workload at some gaps, then the trace on some numbers of executors."""
    train_seeds = [TRAINING_SEED + index for index in range(params["sequences"])]
    seeds = range(params["streams"])
    cluster = Settings.of_mode("paper", classes=classes(params["executors"]))
    paired = params["paired"]
    for gap_s in params["interarrival_s"]:
        drawn = [
            [source.stream(count, gap_s, seed, requests="uniform") for seed in group]
            for count, group in ((params["train_jobs"], train_seeds), (params["jobs"], seeds))
        ]
        longer = range(paired["streams"] if gap_s == paired["interarrival_s"] else 0)
        drawn.append([source.stream(paired["jobs"], gap_s, seed, requests="uniform") for seed in longer])
        yield Case(source.label, f"{gap_s:g} s", cluster, *drawn, policies=_policies(0))
    trace = params["trace"]
    for executors in trace["executors"]:
        cluster = Settings.of_mode("paper", classes=classes(thinned(executors, trace["fraction"])))
        parts = [
            [_trace_jobs(trace, part, seed) for seed in group]
            for part, group in (("train", train_seeds), ("test", range(trace["draws"])))
        ]
        whole = None
        if executors == trace.get("whole"):
            jobs = _trace_jobs(trace | {"fraction": 1.0}, "test", 0)
            whole = jobs, Settings.of_mode("paper", classes=classes(executors))
        more = range(paired["draws"] if executors == paired["executors"] else 0)
        parts.append([_trace_jobs(trace, "test", seed) for seed in more])
        setting = f"{cluster.executors:,} executors"
        yield Case(parts[1][0].label, setting, cluster, *parts, policies=_policies(1), whole=whole)


def _policies(index: int) -> dict[str, Trainings]:
    """Stored policies of the run's workload (0) or the trace (1), by rows."""
    return {"decima": POLICIES[index], ROWS[WARM]: WARM_POLICIES[index]}


def _trace_jobs(trace: dict, part: str, seed: int) -> Workload:
    joint = "," if ":" in trace["jobs"] else ":"
    return parse_jobs(f"{trace['jobs']}{joint}part={part},fraction={trace['fraction']}").workload(seed)


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``packing`` (scores), ``packing_changes`` (paired) and ``packing_grid`` (tuning).

    Everything that has parameters is tuned at every load, on other jobs than those shown; the learned policies are
    stored ones, the same at every load. ``packing_paired`` has more and longer streams at one load of each workload,
    ``packing_trainings`` every training of a policy there. ``packing_whole`` has the trace on all its executors, with
    what was tuned on a part of it; it is empty where no full size is given.
    """
    scores, changes, grids, paired, each_paired, whole_trace = [], [], [], [], [], []
    for case in cases(source, params):
        where = {"workload": case.workload, "setting": case.setting, "load": case.load}
        schedulers, grid = tuned(case, params, context)
        grids.append(grid.assign(workload=case.workload, setting=case.setting))
        rows = []
        everyone = [*((*rule, 1) for rule in schedulers.items()), *trained(case.policies)]
        for name, scheduler, number in everyone:
            for seed, jobs in enumerate(case.test):
                result = simulate(jobs, scheduler, cluster=case.cluster, seed=seed, log=True)
                score = {"avg_jct_s": result.avg_jct_s, "fragmentation": result.fragmentation}
                rows.append(where | {"scheduler": name, "training": number, "seed": seed} | score)
        table = pandas.DataFrame(rows)
        scores.append(table)
        others = [name for name in (*schedulers, *case.policies) if name not in ("fair", *BASELINES)]
        changes.append(changes_by_load(table, others, BASELINES, by="setting")[0].assign(**where))
        if case.paired:
            rules = {name: schedulers[name] for name in PAIRED}
            known = (case.paired, range(len(case.paired)), case.cluster, context, "paired", rules)
            table = scores_of_trainings(case.policies, *known).assign(**where)
            whole, each = changes_by_load(table, [PAIRED[-1], *case.policies], PAIRED, by="setting")
            paired.append(whole.assign(**where))
            each_paired.append(each.assign(**where))
        if case.whole:
            jobs, cluster = case.whole
            for name, scheduler, number in everyone:
                if name in (*AT_FULL_SIZE, *case.policies):
                    score = simulate(jobs, scheduler, cluster=cluster).avg_jct_s
                    whole_trace.append((case.workload, len(jobs), cluster.executors, name, number, score))
    return {
        "packing": pandas.concat(scores),
        "packing_changes": pandas.concat(changes),
        "packing_grid": pandas.concat(grids),
        "packing_paired": pandas.concat(paired),
        "packing_trainings": pandas.concat(each_paired),
        "packing_whole": pandas.DataFrame(whole_trace, columns=_WHOLE),
    }


def trained(policies: Mapping[str, Trainings]) -> list[tuple[str, Scheduler, int]]:
    """Row, policy and number of every training of some rows, numbers from 1."""
    return [
        (name, learned.decima(policy=stored), number)
        for name, trainings in policies.items()
        for number, stored in enumerate(each_training(trainings), 1)
    ]


def tuned(case: Case, params: dict, context: Context) -> tuple[dict[str, CompiledScheduler], pandas.DataFrame]:
    """Schedulers tuned for one case, and the whole table of the grid search.

    The grid has three parts. The first has exponent, order of jobs and use of larger classes without suppression. The
    second has thresholds at the best of these, and at the best by arrival. The third has the exponent with shares
    counted in memory.
    """
    label = f"{case.workload}, {case.setting}"
    rows = []

    def search(grid: dict[str, list[float]], fixed: dict[str, float]) -> None:
        searched = grid_search("graphene", case.train, case.cluster, grid, fixed=fixed, **context.work(label))
        rows.append(grid_table(searched).assign(**fixed))

    values = params["grid"]
    search({name: values[name] for name in ("alpha", "order", "larger")}, dict(_OFF))
    plain = rows[0]
    best = plain.loc[plain["mean_s"].idxmin(), _PARAMETERS].to_dict()
    by_arrival = plain[plain["order"] == 0.0]
    arrival = by_arrival.loc[by_arrival["mean_s"].idxmin(), _PARAMETERS].to_dict()
    thresholds = {name: values[name] for name in ("long", "frag")}
    for start in [best] if best == arrival else [best, arrival]:
        search(thresholds, {name: value for name, value in start.items() if name not in thresholds})
    rest = {name: value for name, value in best.items() if name != "alpha"}
    search({"alpha": values["alpha"]}, rest | {"by_memory": 1.0})
    table = pandas.concat(rows)[[*_PARAMETERS, "mean_s"]].drop_duplicates(_PARAMETERS, ignore_index=True)
    capped = tune(
        "priced_srw", case.train, case.cluster, budget=params["budget"], **context.work(f"priced_srw, {label}")
    )
    schedulers = {
        "fair": make_scheduler("fair"),
        "weighted_best_fit": _at_best(plain),
        "weighted_best_fit_memory": _at_best(table[table["by_memory"] == 1.0]),
        "tetris": make_scheduler("tetris"),
        "tetris_sticky": make_scheduler("tetris", sticky=1.0),
        **graphene_forms(table),
        "priced_srw": capped.make(),
    }
    return schedulers, table


def graphene_forms(grid: pandas.DataFrame) -> dict[str, CompiledScheduler]:
    """Graphene* with the best parameters of a grid: jobs by arrival (paper), and any order.

    Args:
        grid: Rows of ``packing_grid`` of one workload and load; those without suppression are passed over.
    """
    suppressing = grid[(grid["long"] <= 1.0) | (grid["frag"] >= 0.0)]
    by_arrival = suppressing[suppressing["order"] == 0.0]
    return {"graphene_arrival": _at_best(by_arrival), "graphene": _at_best(suppressing)}


def _at_best(rows: pandas.DataFrame) -> CompiledScheduler:
    """Graphene* with the best row's parameters; without suppression, weighted fair by best fit."""
    return make_scheduler("graphene", **rows.loc[rows["mean_s"].idxmin(), _PARAMETERS].to_dict())


def draws(table: pandas.DataFrame) -> str:
    """Text of captions about how many streams and draws a table is of."""
    numbers = [distinct(rows, "seed", noun) for (_, rows), noun in zip(_panels(table), ("stream", "draw"), strict=True)]
    return " and ".join(numbers)


def labels(table: pandas.DataFrame) -> str:
    """Names of the two workloads of a table."""
    return " and ".join(table["workload"].unique())


def _panels(table: pandas.DataFrame) -> list[tuple[str, pandas.DataFrame]]:
    """Label and rows of both workloads, that of the run first."""
    return list(table.groupby("workload", sort=False))


def side_by_side(
    table: pandas.DataFrame, draw: Callable, *about, height: float = 3.2, legend: dict | None = None, **subplots
) -> plotting.style.Figure:
    """Figure with a panel per workload.

    Args:
        table: Rows of two workloads.
        draw: Draws those of one; called with them, ``about`` and the axes.
        *about: What else it is given.
        height: Of the figure, inches.
        legend: Options of the legend next to the second panel; none is drawn without.
        **subplots: Options of the panels.
    """
    figure = plotting.style.new_figure(plotting.style.PAGE, height)
    axes = figure.subplots(1, 2, **subplots)
    for (label, rows), panel, letter in zip(_panels(table), axes, "ab", strict=True):
        draw(rows, *about, panel)
        panel.set_title(f"({letter}) {label}", loc="left")
    axes[1].set_ylabel("")
    if legend is not None:
        plotting.style.legend_beside(axes[1], fontsize=7, **legend)
    return figure


def packing_jct(tables: Tables, run: Run) -> plotting.style.Figure:
    """Average JCT over load, on both workloads (Figure 11)."""
    table = tables["packing"]
    figure = side_by_side(table, plotting.packing.score_over_load, legend={})
    caption = (
        f"{draws(table)} per load, four classes of executors; heuristics tuned at every load, Decima: mean of "
        f"{distinct(table, 'training', 'training seed')}."
    )
    return plotting.style.entitle(figure, "Average JCT with executors of four sizes", caption, labels(table))


def packing_trade(tables: Tables, run: Run) -> plotting.style.Figure:
    """Average JCT over fragmentation at the highest load of both workloads."""
    table = tables["packing"]
    busiest = table[table["load"] == table.groupby("workload")["load"].transform("max")]
    figure = side_by_side(busiest, plotting.packing.score_over_fragmentation, legend={})
    caption = f"{draws(table)} at the highest load. Fragmentation: part of the held memory that no task asked for."
    return plotting.style.entitle(figure, "Average JCT and fragmentation", caption, labels(table))


EXPERIMENT = Experiment(
    "packing",
    "§7.3",
    compute,
    rooms=ROOMS,
    figures=(packing_jct, packing_trade),
    inputs=(Profiles(), Policies((*POLICIES[0], *POLICIES[1], *WARM_POLICIES))),
    tiny={
        "interarrival_s": [4.5],
        "sequences": 1,
        "train_jobs": 3,
        "streams": 2,
        "jobs": 5,
        "executors": 8,
        "budget": 6,
        "grid": {"alpha": [0.0], "order": [0.0], "larger": [0.0], "long": [0.8], "frag": [-1.0]},
        "trace": {"jobs": "alibaba_like:jobs=60", "fraction": 0.3, "executors": [40], "draws": 2, "whole": 40},
        "paired": {"interarrival_s": 4.5, "streams": 2, "jobs": 4, "executors": 40, "draws": 2},
    },
)
