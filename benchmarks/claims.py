"""Measurements that headline claims rest on and no experiment has: ``docs/claims.md`` shows them.

Run from the checkout: ``python -m benchmarks.claims PART ...``. Each part writes ``benchmarks/results/<part>.csv``.
What a part measures is in its docstring. Rows of others' simulators, and of weights that are not kept, stay.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas
from scipy.optimize import linprog

import decima
from decima.evaluation.run import score_matrix
from decima.evaluation.statistics import mean_interval, paired_change
from decima.plotting.curves import sweet_spot
from decima.systems.cloud import PlacementSettings, parse_placement_jobs, simulate
from decima.systems.cloud.optimum.search import Problem
from decima.systems.spark.optimum.schedule_search import search_schedule
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload.alibaba.source import read_trace
from decima.workload.jobs import Job, Workload
from decima.workload.sources import get_source, parse_jobs
from experiments.accounts import RUN
from experiments.decima.s07_packing import cases, graphene_forms
from experiments.experiment import Context
from experiments.heterogeneous.instances import BOUND, OURS, PAPER, changes, drawn, means, schedule_rows, text
from experiments.idle_slots.s22_idle_learned import KINDS, POLICY, measured
from experiments.params import run_params
from experiments.results import results_folder

RESULTS = Path(__file__).parent / "results"
CLASSES = ((0.25, 50), (0.5, 50), (0.75, 50), (1.0, 50))
CONTINUING = ("-continuing", "-continuing-2", "-continuing-3")
CCR, JOBS, BATCHES = (1, 5, 10, 20, 40), (20, 100), 10
BESIDE = ("decima:policy=tpch-batch-random", "decima:policy=tpch-stream-continuing")
#: Algorithm 1 of the Lachesis paper as it is stated, and with returns as targets, beyond a baseline.
AGENTS = {
    "as stated": ("lachesis-batch", 240, ""),
    "with a baseline": (
        "lachesis-batch:jobs=20,ccr=5,executors=50",
        40,
        "sequences=4 rollouts=8 episode_start_s=none validate_every=5 trace=1 baseline=regression scaled=true "
        "critic_steps=3 lr_start=0.003 critic_lr=0.003",
    ),
}
SIZES, BUDGETS = {"all alike": 40, "tail": 20}, (500, 1000, 2000, 4000, 8000, 16000, 32000)
#: Those whose curves Figures 7 and 8 of the Lachesis paper show beside its own, and a training that did not learn.
FILLINGS = ("in order", "largest room first", "spread")
SHOWN, UNLEARNED = ("fifo_deft", "heft", "tdca", "decima_deft"), "decima_deft/not learned"


def published_experiment() -> pandas.DataFrame:
    """Streams of 5,000 jobs, one every 25 s, seven sizes, 50 executors, rules of the published simulator.

    Rows of policies that learned from scratch have the mean of three training runs on every stream.
    """
    trained, others = (
        [f"decima:policy={name}{seed}" for seed in ("", "-2", "-3")]
        for name in ("released-stream-random", "tpch-stream-continuing")
    )
    names = {
        "released_fair": "fair sharing as published",
        "fair:sticky=0": "strict fair sharing",
        "capped_srw:plain": "capped shortest remaining work",
        trained[0]: "Decima, the published network from scratch under these rules",
        others[0]: "Decima, from scratch, trained at 14 s under other rules",
        "decima:policy=tpch-stream-entry-warm": "Decima, imitation first, trained at 14 s under other rules",
    }
    jobs = "tpch:arrivals=poisson,n=5000,interarrival_s=25,sizes=released"
    means_of = {trained[0]: trained, others[0]: others}
    rows = _compared(list(names), jobs, 3, mean_of=means_of, mode="released", executors=50)
    rows = rows.replace({"scheduler": names}).assign(who="this project", jobs=5000, source="")
    path = RESULTS / "published_experiment.csv"
    kept = pandas.read_csv(path, keep_default_na=False)
    return pandas.concat([kept[~kept["scheduler"].isin(names.values())], rows])[list(kept)]


def lachesis_ccr() -> pandas.DataFrame:
    """Every quantity of Figures 7 and 8 for which the paper has a number, on the same batches at every ratio."""
    source, rows = get_source("tpch"), []
    texts = {name: text(name) for name in (*PAPER, OURS)} | {UNLEARNED: "decima_deft:policy=decima-deft-random-7"}
    for ccr in CCR:
        for jobs in JOBS:
            table = pandas.DataFrame(schedule_rows(drawn(source, jobs, ccr, BATCHES, 50), texts, ccr=ccr, jobs=jobs))
            mean, change = means(table, ("ccr", "jobs")).set_index("scheduler"), changes(table, ("ccr", "jobs"))
            change = change.set_index("against")
            spans, second = mean["makespan_s"], mean.loc[list(SHOWN), "makespan_s"].idxmin()
            without = spans[[*SHOWN[:-1], UNLEARNED]].idxmin()
            rows.append(
                {
                    "ccr": ccr,
                    "jobs": jobs,
                    "batches": BATCHES,
                    "speedup": mean.loc[OURS, "speedup"],
                    "heft_slr": mean.loc["heft", "slr"],
                    "fifo_speedup": mean.loc["fifo_deft", "speedup"],
                    "second": second,
                    "second_percent": change.loc[second, "change_percent"],
                    "second_low": change.loc[second, "low"],
                    "second_high": change.loc[second, "high"],
                    "heft_percent": change.loc["heft", "change_percent"],
                    "room_percent": 100.0 * (spans[BOUND] / spans[second] - 1.0),
                    "unlearned_percent": change.loc[without, "change_percent"],
                }
            )
    return pandas.DataFrame(rows)


def graphene_stated() -> pandas.DataFrame:
    """Streams of 800 TPC-H jobs, one every 4.5 s, on 200 executors of four sizes; changes are against Graphene*."""
    policies = [f"decima:policy=tpch-classes{which}" for which in ("", *CONTINUING)]
    jobs = "tpch:arrivals=poisson,n=800,interarrival_s=4.5,requests=uniform"
    rows = _compared(["graphene", *policies], jobs, 4, classes=CLASSES)
    return rows.assign(scheduler=rows["scheduler"].str.removeprefix("decima:policy="))


def strict_fair() -> pandas.DataFrame:
    """Batches of 20 jobs, and streams of 200 jobs at three loads."""
    cases = {0: "tpch:n=20"} | {gap: f"tpch:arrivals=poisson,n=200,interarrival_s={gap}" for gap in (14, 25, 45)}
    schedulers = ["fair", "fair:sticky=0"]
    rows = [
        _compared(schedulers, jobs, 8 if gap else 40, executors=50).assign(interarrival_s=gap)
        for gap, jobs in cases.items()
    ]
    return pandas.concat(rows)


def idle_pair() -> pandas.DataFrame:
    """1,000 jobs at a load of 80 % on three executors, half of them long."""
    jobs = "half_long:n=1000,load=0.8,executors=3"
    return _compared(["fifo", "sjf_cp"], jobs, 20, mode="simplified", executors=3)


def heavier(source, seed: int, share: float = 0.23, held: float = 0.82) -> Workload:
    """A batch of 20 jobs of which the largest ``share`` hold ``held`` of the work, on average (§7.2).

    The seven sizes of 22 queries do not, with any weights of sizes (:func:`tail`). So a job is one of the largest
    profiles with probability ``share``, else one of the smallest; the same number is left out in the middle.
    """
    profiles = sorted(source.profiles(), key=lambda profile: -profile.work_ms)
    work = np.array([profile.work_ms for profile in profiles])
    count = next(
        count
        for count in range(len(work) // 2, 0, -1)
        if share * work[:count].mean() >= held * (share * work[:count].mean() + (1 - share) * work[-count:].mean())
    )
    rng = np.random.default_rng(seed)
    large = rng.random(20) < share
    drawn = np.where(large, rng.integers(count, size=20), len(work) - 1 - rng.integers(count, size=20))
    return Workload([Job(profiles[index]) for index in drawn], "TPC-H with a heavier tail")


def tail(share: float = 0.23) -> pandas.DataFrame:
    """Largest part of the work that the largest ``share`` of jobs can hold, over all weights of sizes.

    For each profile that the quantile may fall on, a linear-fractional program, as a linear one (Charnes and Cooper).
    """
    profiles = sorted(get_source("tpch").profiles(), key=lambda profile: -profile.work_ms)
    work = np.array([profile.work_ms for profile in profiles])
    sizes = [profile.name.split("-")[1] for profile in profiles]
    names = sorted(set(sizes), key=lambda name: int(name.removesuffix("g")))
    mass = np.array([[size == name for name in names] for size in sizes]) / [sizes.count(name) for name in names]
    whole = np.append(mass.T @ (work / work.max()), 0.0)
    best = None
    for last in range(len(work)):  # variables: weights over the mean work, and one over the mean work
        before, until = mass[:last].sum(axis=0), mass[: last + 1].sum(axis=0)
        held = np.append(mass[:last].T @ work[:last] - before * work[last], share * work[last]) / work.max()
        limits = [np.append(before, -share), np.append(-until, share)]
        equal = [whole, np.append(np.ones(len(names)), -1.0)]
        found = linprog(-held, limits, [0.0, 0.0], equal, [1.0, 0.0])
        if found.success and (best is None or found.fun < best.fun):
            best = found
    weights = {f"weight_{name}": weight for name, weight in zip(names, best.x / best.x[-1], strict=False)}
    paper = work[np.array(sizes) != "80g"]  # the six sizes of the paper
    alike = paper[: int(share * len(paper))].sum() / paper.sum()
    return pandas.DataFrame([{"share": share, "held_alike": alike, "held": -best.fun} | weights])


def trace_stages() -> pandas.DataFrame:
    """Jobs of the public hour of the Alibaba trace by their number of stages (§7.3)."""
    stages = np.diff(read_trace().first_stage)
    row = {"jobs": len(stages), "four_stages_percent": 100.0 * (stages >= 4).mean(), "most_stages": stages.max()}
    return pandas.DataFrame([row])


def sweet_spots() -> pandas.DataFrame:
    """Sweet spots of the queries of Figure 2 for several distances from the shortest run time."""
    runtimes = pandas.read_csv(RESULTS.parents[1] / "reports/results/tpch-full/tables/motivation/fig02_parallelism.csv")
    curves = runtimes.groupby(["job", "executors"])["runtime_s"].mean()
    return pandas.DataFrame(
        {"job": job, "slack_percent": slack, "executors": sweet_spot(curves[job], slack / 100)}
        for job, slack in product(curves.index.levels[0], (10, 20, 30, 40, 50))
    )


def batch_room() -> pandas.DataFrame:
    """Mean JCT in seconds of batches of 20 jobs on 50 executors, mean durations; change against fair sharing.

    One search per batch gives all budgets. Its rows are kept as they come, so a run continues where one ended.
    """
    source, settings = get_source("tpch"), Settings.of_mode("paper", executors=50, durations="mean")
    schedulers = ["fair", "weighted_fair", "capped_srw", "decima:policy=tpch-batch-entry"]
    path = RESULTS / "batch_room_batches.csv"
    kept = pandas.read_csv(path) if path.exists() else pandas.DataFrame(columns=["sizes", "batch"])
    done = set(zip(kept["sizes"], kept["batch"], strict=True))
    wanted = ((sizes, batch) for sizes, many in SIZES.items() for batch in range(many))
    for sizes, batch in (each for each in wanted if each not in done):
        jobs = heavier(source, batch) if sizes == "tail" else source.batch(20, batch)
        row = {name: score_matrix([jobs], [make_scheduler(name)], settings)[0][0] for name in schedulers}
        curve = search_schedule(jobs, settings, BUDGETS[-1], seed=batch, workers=1).curve
        for budget in BUDGETS:
            row[f"search, {budget} schedules"] = min(each["best"] for each in curve if each["evaluations"] <= budget)
        kept = pandas.concat([kept, pandas.DataFrame([{"sizes": sizes, "batch": batch} | row])])
        kept.to_csv(path, index=False, float_format="%.4f")
    rows = []
    for sizes, table in kept.groupby("sizes", sort=False):
        for name in table.dropna(axis="columns").columns[2:]:
            change, low, high = paired_change(table[name].to_numpy(), table["fair"].to_numpy())
            changed = {"change_percent": change, "low": low, "high": high} if name != "fair" else {}
            means = {"batches": len(table), "avg_jct_s": table[name].mean()}
            rows.append({"sizes": sizes, "scheduler": name} | means | changed)
    return pandas.DataFrame(rows)


def beside_averages() -> pandas.DataFrame:
    """Quantities of claims other than the average JCT, with changes in percent against the first scheduler of a case.

    Busy times are the tenth (on streams), or the fifth (sizes of executors), in which that one has most jobs.
    """
    source, settings = get_source("tpch"), Settings.of_mode("paper", executors=50)
    batches, streams = ([f"{name}{seed}" for seed in ("", "-2", "-3")] for name in BESIDE)
    ten = {"sjf_cp": ["sjf_cp"], "fifo": ["fifo"], "fair": ["fair"], "decima": batches}
    many = {name: [name] for name in ("weighted_fair", "capped_srw")} | {"on batches": batches, "on streams": streams}
    many["average reward"] = ["decima:policy=tpch-stream-paper"]
    tables = [_beside("ten jobs", ten, source.batches(range(100), 10), settings, 0.1)]
    for gap in (25, 19, 17, 14):
        tables.append(_beside(f"{gap} s", many, source.streams(range(10), 1000, gap), settings, 0.1))
    grids = pandas.read_csv(results_folder(RUN) / "tables" / "packing" / "packing_grid.csv")
    params = run_params(RUN)["packing"] | run_params(RUN)["appendix_g"]
    trace = params["trace"] | {"executors": [params["trace"]["executors"]]}
    one = {"interarrival_s": [params["interarrival_s"]], "trace": trace, "sequences": 0, "train_jobs": 0}
    for case in cases(source, params | one):
        graphene = graphene_forms(grids.query("workload == @case.workload and setting == @case.setting"))["graphene"]
        schedulers = {"graphene": [graphene], "decima": [f"decima:policy={each}" for each in case.policies["decima"]]}
        tables.append(_beside(case.workload, schedulers, case.test, case.cluster, 0.2))
    return pandas.concat(tables)


def _beside(
    name: str, schedulers: Mapping[str, Sequence], workloads: Sequence[Workload], settings: Settings, share: float
) -> pandas.DataFrame:
    """Rows of one case. Intervals are over the training runs of a scheduler with several, else over workloads."""
    found = []
    for seed, jobs in enumerate(workloads):
        busy = None
        for scheduler, training in ((each, one) for each in schedulers for one in range(len(schedulers[each]))):
            result = decima.simulate(jobs, schedulers[scheduler][training], cluster=settings, seed=seed)
            table = result.jobs
            spans = table["arrival_s"], table["completion_s"]
            if busy is None:
                step_s = max(jobs.arrival_ms.max() / 2e5, 1.0)
                times = np.arange(0.0, result.makespan_s, step_s)
                active = _present(*spans, times)
                busy = active >= np.quantile(active, 1.0 - share)
            arrived, ended = (np.append(busy, False)[np.minimum(t // step_s, len(busy)).astype(int)] for t in spans)
            row = {
                "avg_jct_s": result.avg_jct_s,
                "makespan_s": result.makespan_s,
                "five_ended_s": table["completion_s"].nsmallest(5).max(),
                "largest_tenth_s": table.nlargest(len(table) // 10, "work_s")["jct_s"].mean(),
                "longest_s": table["jct_s"].max(),
                "busy_jobs": _present(*spans, times[busy]).mean(),
                "busy_jct_s": table["jct_s"][arrived].mean(),
                "busy_ended_per_min": ended.sum() / (busy.sum() * step_s / 60.0),
            }
            found += [(scheduler, training, quantity, value) for quantity, value in row.items()]
    columns = ["scheduler", "training", "quantity", "value"]
    values = pandas.DataFrame(found, columns=columns).groupby(columns[:3], sort=False)["value"].apply(np.array)
    first, rows = next(iter(schedulers)), []
    for (scheduler, quantity), group in values.groupby(["scheduler", "quantity"], sort=False):
        each = [paired_change(one, values[first, 0, quantity]) for one in group]
        mean, _, low, high = mean_interval(np.array([change for change, _, _ in each]))
        changed = (mean, low, high) if len(each) > 1 else each[0]
        row = (name, scheduler, quantity, len(each), len(workloads), np.mean(list(group)))
        rows.append((*row, *((None,) * 3 if scheduler == first else changed)))
    columns = ["case", "scheduler", "quantity", "trainings", "runs", "mean", "change_percent", "low", "high"]
    return pandas.DataFrame(rows, columns=columns)


def _present(start: np.ndarray, end: np.ndarray, times: np.ndarray) -> np.ndarray:
    """How many of those that start and end then are there at some times."""
    return np.subtract(*(np.searchsorted(np.sort(each), times, "right") for each in (start, end)))


def actor_critic() -> pandas.DataFrame:
    """Makespans over the bound (validation) when actor and critic learn to choose nodes, three seeds each."""
    rows = []
    for (variant, (jobs, iterations, differs)), seed in product(AGENTS.items(), range(3)):
        out = Path("runs/actor-critic") / f"{variant.replace(' ', '-')}-{seed}"
        if not (out / "policy.json").is_file():
            agent = {"recipe": "paper", "architecture": "paper", "iterations": iterations}
            agent["set"] = [f"recipe.{each}" for each in differs.split()]
            decima.train(jobs, system="heterogeneous", seed=seed, workers=1, out=out, **agent)
        curve = pandas.read_csv(out / "curve.csv")
        scores, loss = curve["val_greedy"].dropna().tolist(), curve["critic_loss"]
        row = {"variant": variant, "seed": seed, "iterations": iterations, "first": scores[0], "least": min(scores)}
        rows.append(row | {"last": scores[-1], "first_loss": loss[:40].mean(), "last_loss": loss[-40:].mean()})
    return pandas.DataFrame(rows)


def idle_seeds() -> pandas.DataFrame:
    """Change of the average JCT in percent by idle slots, and by the shape of jobs, of three training runs each.

    Training runs that are not stored take 40 CPU minutes and are kept in ``runs/seeds``.
    """
    params, context = run_params(RUN)["idle_learned"], Context(RUN, tables=dict)
    parts = []
    for key, seed in product(params["workloads"], range(3)):
        case = params["workloads"][key]
        if case[POLICY] not in ("idle-clocked-50", "idle-tpch-stream"):
            policies = {kind: _training(case[kind], seed) for kind in KINDS if kind in case}
            parts.append(measured(key, params, context, policies)[1].assign(seed=seed))
    runs = pandas.concat(parts)
    means = [
        (*about, *np.take(mean_interval(changes.to_numpy()), (0, 2, 3)), "mean")
        for about, changes in runs.groupby(["workload", "against"], sort=False)["change_percent"]
    ]
    return pandas.concat([runs, pandas.DataFrame(means, columns=list(runs))])


def _training(stored: str, seed: int) -> str:
    """Policy of a training run: a stored one, or what it gives with another seed."""
    if not seed:
        return stored
    if seed == 1 and "-bound-" in stored:
        return f"{stored}-1"
    out = Path("runs/seeds") / f"{stored}-{seed}"
    if not (out / "policy.json").is_file():
        command = [sys.executable, "-m", "decima", "train", "--params", stored, "--seed", str(seed), "--workers", "1"]
        subprocess.run([*command, "--out", str(out)], check=True)
    return str(out / "policy.weights.h5")


def idle_offline() -> pandas.DataFrame:
    """Gain of delays in percent, searched on 20 instances with 600 schedules, three times each."""
    jobs = {"batch": "mixed:n=20,arrivals=batch", "stream": "mixed:n=20,load=0.6,executors=10"}
    rows = []
    for model, bound in (("ours", False), ("paper", True)):
        settings = Settings.of_mode("simplified", executors=10, durations="mean", job_bound=bound)
        for kind, text_of_jobs in jobs.items():
            gains = []
            for seed in range(20):
                workload = parse_jobs(text_of_jobs).workload(seed)
                begun = search_schedule(workload, settings, 600, seed=seed)
                plain, delayed = (
                    search_schedule(workload, settings, 600, begin=begun, delays=delays, seed=seed)
                    for delays in (False, True)
                )
                gains.append(100.0 * (1.0 - delayed.avg_jct_s / plain.avg_jct_s))
            mean, _, low, high = mean_interval(np.array(gains))
            row = {"model": model, "jobs": kind, "instances": 20, "gain_percent": mean, "low": low, "high": high}
            rows.append(row | {"least": min(gains), "most": max(gains)})
    return pandas.DataFrame(rows)


class Reading:
    """One reading of the integer program: what running VMs cost, which VMs win ties, how executors fill them.

    The program is solved as :mod:`decima.systems.cloud.schedulers.ilp` solves it, with the VMs in another order.
    """

    name = "reading"

    def __init__(self, free: bool, ties: str, filling: str, seed: int) -> None:
        self.free, self.ties, self.filling, self.rng = free, ties, filling, np.random.default_rng(seed)

    def decide(self, view) -> list[int] | None:
        """VM of every executor, None where they do not fit."""
        if not view.fits:
            return None
        job, room, number = view.job, view.room, len(view.room)
        costs = view.added_cost(job.duration_s)
        if self.free:
            rates = np.array([vm.price_per_hour for vm in view.settings.cluster.vms]) / 3600.0
            costs = np.where(costs < rates * job.duration_s * (1.0 - 1e-9), 0.0, costs)
        order = {"first": range(number), "last": range(number)[::-1]}.get(self.ties)
        chosen = self._cover(costs, room, job.executors, self.rng.permutation(number) if order is None else order)
        if self.filling == "spread":
            dealt = sorted((turn, place, vm) for place, vm in enumerate(chosen) for turn in range(room[vm]))
            return [int(vm) for _, _, vm in dealt[: job.executors]]
        if self.filling == "largest room first":
            chosen = sorted(chosen, key=lambda vm: -room[vm])
        return [int(vm) for vm in chosen for _ in range(room[vm])][: job.executors]

    @staticmethod
    def _cover(costs: np.ndarray, room: np.ndarray, need: int, order: Iterable[int]) -> list[int]:
        """The cheapest VMs with room for all executors; of equal sets the one found first."""
        best = {0: (0.0, [])}
        for vm in order:
            for placed, (cost, chosen) in list(best.items()):
                reached = min(need, placed + int(room[vm]))
                if cost + costs[vm] < best.get(reached, (np.inf, []))[0]:
                    best[reached] = cost + costs[vm], [*chosen, vm]
        return best[need][1]


def cloud_ilp() -> pandas.DataFrame:
    """Dollars of the published traces at beta 1; means of five seeds where ties are drawn."""
    rows = []
    for free, ties, filling in product((False, True), ("first", "last", "random"), FILLINGS):
        row = {"running_vms": "free" if free else "cost", "ties": ties, "filling": filling}
        for pattern in ("normal", "burst"):
            seeds = range(5 if ties == "random" else 1)
            costs = [simulate(pattern, Reading(free, ties, filling, seed)).cost for seed in seeds]
            row[f"{pattern}_dollars"] = float(np.mean(costs))
        rows.append(row)
    return pandas.DataFrame(rows)


def cloud_bound() -> pandas.DataFrame:
    """Dollars below which no placement of the published traces is, waits or not: all cores at the lowest price."""
    traces = {pattern: parse_placement_jobs(pattern).workload(0) for pattern in ("normal", "burst")}
    bounds = {name: Problem.of(trace, PlacementSettings()).work_bound() for name, trace in traces.items()}
    return pandas.DataFrame({"pattern": bounds.keys(), "least_dollars": bounds.values()})


def _compared(
    schedulers: list[str], jobs: str, seeds: int, mean_of: Mapping[str, Sequence[str]] | None = None, **settings
) -> pandas.DataFrame:
    """Mean JCT in seconds of schedulers, and the change of it in percent against the first, paired by seed.

    ``mean_of`` has, for some of the schedulers, several whose mean they stand for.
    """
    mean_of = mean_of or {}
    run = [*schedulers, *(each for several in mean_of.values() for each in several if each not in schedulers)]
    scores = decima.compare(run, jobs, seeds=range(seeds), **settings).scores
    columns = scores.groupby("scheduler", sort=False)["avg_jct_s"].agg(lambda column: column.to_numpy())
    columns = dict(zip(run, columns, strict=True))
    rows = []
    for name in schedulers:
        values = np.mean([columns[each] for each in mean_of.get(name, [name])], axis=0)
        change, low, high = paired_change(values, columns[schedulers[0]])
        changed = {"change_percent": change, "low": low, "high": high} if name != schedulers[0] else {}
        rows.append({"scheduler": name, "streams": seeds, "avg_jct_s": values.mean()} | changed)
    return pandas.DataFrame(rows)


MEASURED = (published_experiment, lachesis_ccr, graphene_stated, strict_fair, cloud_ilp, cloud_bound, batch_room)
MEASURED += (beside_averages, actor_critic, idle_seeds, tail, trace_stages, sweet_spots, idle_offline, idle_pair)
PARTS = {part.__name__: part for part in MEASURED}


def main() -> None:
    """Measure parts and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(PARTS), choices=list(PARTS))
    for name in parser.parse_args().parts:
        table = PARTS[name]()
        table.to_csv(RESULTS / f"{name}.csv", index=False, float_format="%.4f")
        print(table.to_string(index=False))


if __name__ == "__main__":
    main()
