"""Executor-entry cost on streams of 1,000 jobs: loads, numbers of executors, and free ways.

Run from the checkout: ``python -m benchmarks.price_of_coming``. Writes ``benchmarks/results/price_of_coming.csv`` and
prints it: changes of the average JCT in %, paired by stream, with 95 % intervals.

Every case has two comparisons. ``default`` is ``entry_srw:stream`` against ``capped_srw:stream``, which has the same
parameters otherwise. ``tuned`` is ``entry_srw`` with the parameters of ``capped_srw`` that were tuned on the training
streams of the case (500 jobs), and the best of ``PRICES`` there, against that ``capped_srw``. In cases of ``SEARCHED``
there is a third one: ``searched`` has all parameters of ``entry_srw`` tuned there, from its default on; both searches
have three times the candidates there.
"""

import argparse
from pathlib import Path

import pandas
from tqdm.auto import tqdm

from decima.evaluation.run import score_matrix
from decima.evaluation.statistics import paired_change
from decima.evaluation.tuning import tune
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload.arrivals import with_requests
from decima.workload.jobs import Workload
from decima.workload.sources import TRAINING_SEED, get_source

JOBS, TRAINING_JOBS = 1000, 500
EXECUTORS = 50
#: Four executors of a real Spark, started anew for every job in 4.2 s, the mean of `data/spark/runs.csv`.
SPARK = {"executors": 4, "moving_delay_ms": 4200.0, "runnable_only": True, "commit_ahead": False}
#: First seed of the streams that chose nothing, and the first of those to tune on.
FIRST_SEED = 700_000
FIRST_TRAINING_SEED = TRAINING_SEED + 700
PRICES = (0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0)
#: Name of a case -> source, gap in s, settings.
CASES = {
    **{f"gaps of {gap} s": ("tpch", float(gap), {}) for gap in (13, 14, 17, 25, 35, 45)},
    "embedded, gaps of 25 s": ("embedded", 25.0, {}),
    **{
        f"{executors} executors": ("tpch", 14.0 * EXECUTORS / executors, {"executors": executors})
        for executors in (10, 25, 100, 200)
    },
    **{f"moving delay of {delay:g} s": ("tpch", 17.0, {"moving_delay_ms": 1000.0 * delay}) for delay in (0.0, 0.001)},
    "mean durations": ("tpch", 14.0, {"durations": "mean"}),
    **{f"Spark, 4 executors, gaps of {gap} s": ("measured", float(gap), SPARK) for gap in (5, 12)},
    "Spark, 4 warm executors, gaps of 3 s": ("measured", 3.0, SPARK | {"moving_delay_ms": 0.0, "startup": False}),
    "four classes": ("tpch", 25.0, {"classes": ((0.25, 12), (0.5, 12), (0.75, 13), (1.0, 13))}),
}
#: Cases in which all parameters are tuned, too.
SEARCHED = ("gaps of 14 s", "embedded, gaps of 25 s")
RESULTS = Path(__file__).parent / "results"


def measure(name: str, streams: int, training: int, budget: int) -> list[dict]:
    """The rows of one case."""
    source, gap_s, changes = CASES[name]
    settings = Settings.of_mode("paper", **{"executors": EXECUTORS} | changes)
    train_seeds = [FIRST_TRAINING_SEED + index for index in range(training)]
    seeds = [FIRST_SEED + index for index in range(streams)]
    train, test = (
        [_requesting(get_source(source).stream(jobs, gap_s, seed), settings, seed) for seed in each]
        for jobs, each in ((TRAINING_JOBS, train_seeds), (JOBS, seeds))
    )

    def search(scheduler: str) -> dict[str, float]:
        tried = budget * (3 if name in SEARCHED else 1)
        return tune(scheduler, train, settings, train_seeds=train_seeds, budget=tried, workers=1).parameters

    capped = search("capped_srw")
    priced = [make_scheduler("entry_srw", **capped, pay=pay) for pay in PRICES]
    means = score_matrix(train, priced, settings, seeds=train_seeds, workers=1).mean(axis=1)
    best = int(means.argmin())
    pairs = {
        "default": (make_scheduler("entry_srw:stream"), make_scheduler("capped_srw:stream")),
        "tuned": (priced[best], make_scheduler("capped_srw", **capped)),
    }
    if name in SEARCHED:
        pairs["searched"] = (make_scheduler("entry_srw", **search("entry_srw")), pairs["tuned"][1])
    rows = []
    for comparison, pair in pairs.items():
        entry, base = score_matrix(test, pair, settings, seeds=seeds, workers=1)
        change, low, high = paired_change(entry, base)
        rows.append(
            {
                "case": name,
                "comparison": comparison,
                "gap_s": gap_s,
                "streams": streams,
                "pay": pair[0].values["pay"],
                "capped_srw_s": base.mean(),
                "change_percent": change,
                "low": low,
                "high": high,
            }
        )
    return rows


def _requesting(stream: Workload, settings: Settings, seed: int) -> Workload:
    """The stream, on classes of executors with uniform requests of memory."""
    return with_requests(stream, "uniform", seed) if settings.classes else stream


def main() -> None:
    """Measure all cases and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=12, help="streams per case")
    parser.add_argument("--training", type=int, default=3, help="streams to tune on per case")
    parser.add_argument("--budget", type=int, default=30, help="candidates per tuning")
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    options = parser.parse_args()
    rows = []
    for name in tqdm(options.cases, disable=None):
        rows += measure(name, options.streams, options.training, options.budget)
        table = pandas.DataFrame(rows)
        table.to_csv(RESULTS / "price_of_coming.csv", index=False, float_format="%.4f")
    print(table.to_string(index=False, float_format=lambda value: f"{value:.2f}"))


if __name__ == "__main__":
    main()
