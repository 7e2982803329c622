"""Measurements that headline claims rest on and no experiment has: ``docs/claims.md`` shows them.

Run from the checkout: ``python -m benchmarks.claims PART ...``. Each part writes ``benchmarks/results/<part>.csv``.

- ``published_experiment``: the experiment of the README of the published code. Rows of others' simulators and of
  weights that are not kept stay as they are.
- ``lachesis_ccr``: all claims of the Lachesis paper at once, over the ratio of communication to computation.
- ``graphene_stated``: Graphene* with the thresholds of its paper, not tuned.
- ``strict_fair``: strictly equal shares against fair sharing in which executors stay with their job.
- ``idle_pair``: first come, first served and shortest first on the synthetic jobs of the paper on idle slots.
"""

import argparse
from pathlib import Path

import pandas

import decima
from decima.evaluation.statistics import paired_change
from decima.workload.sources import get_source
from experiments.heterogeneous.instances import BOUND, OURS, PAPER, changes, drawn, means, schedule_rows, text

RESULTS = Path(__file__).parent / "results"
CLASSES = ((0.25, 50), (0.5, 50), (0.75, 50), (1.0, 50))
CCR, JOBS, BATCHES = (1, 5, 10, 20, 40), (20, 100), 10
#: Those whose curves Figures 7 and 8 of the Lachesis paper show beside its own, and a training that did not learn.
SHOWN, UNLEARNED = ("fifo_deft", "heft", "tdca", "decima_deft"), "decima_deft/not learned"


def published_experiment() -> pandas.DataFrame:
    """Streams of 5,000 jobs, one every 25 s, seven sizes, 50 executors, rules of the published simulator."""
    names = {
        "released_fair": "fair sharing as published",
        "fair:sticky=0": "strict fair sharing",
        "capped_srw:plain": "capped shortest remaining work",
        "decima:policy=released-stream-random": "Decima, the published network from scratch under these rules",
        "decima:policy=tpch-stream-random-long": "Decima, from scratch, trained at 14 s under other rules",
        "decima:policy=tpch-stream-entry-warm": "Decima, imitation first, trained at 14 s under other rules",
    }
    jobs = "tpch:arrivals=poisson,n=5000,interarrival_s=25,sizes=released"
    rows = _compared(list(names), jobs, 3, mode="released", executors=50)
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
    policies = [f"decima:policy=tpch-classes{which}" for which in ("", "-random", "-random-1", "-random-2")]
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


def _compared(schedulers: list[str], jobs: str, seeds: int, **settings) -> pandas.DataFrame:
    """Mean JCT in seconds of schedulers, and the change of it in percent against the first, paired by seed."""
    scores = decima.compare(schedulers, jobs, seeds=range(seeds), **settings).scores
    columns = scores.groupby("scheduler", sort=False)["avg_jct_s"].agg(lambda column: column.to_numpy())
    columns = dict(zip(schedulers, columns, strict=True))
    rows = []
    for name, values in columns.items():
        change, low, high = paired_change(values, columns[schedulers[0]])
        changed = {"change_percent": change, "low": low, "high": high} if name != schedulers[0] else {}
        rows.append({"scheduler": name, "streams": seeds, "avg_jct_s": values.mean()} | changed)
    return pandas.DataFrame(rows)


PARTS = {part.__name__: part for part in (published_experiment, lachesis_ccr, graphene_stated, strict_fair, idle_pair)}


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
