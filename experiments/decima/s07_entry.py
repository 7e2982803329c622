"""Executor-entry cost: capped SRW that counts what executors cost, over loads and clusters."""

from __future__ import annotations

import pandas

from decima import plotting
from decima.evaluation.run import score_matrix
from decima.evaluation.statistics import paired_change
from decima.evaluation.tuning import tune
from decima.plotting.words import count
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.schedulers.capped_srw import NAME as CAPPED
from decima.systems.spark.schedulers.entry_srw import NAME as ENTRY
from decima.workload.sources import TRAINING_SEED, WorkloadSource, get_source
from experiments.captions import INTERVAL, Run, Tables
from experiments.experiment import Context, Experiment, Profiles
from experiments.rooms import SPARK_ROOMS

# Streams that chose nothing.
FIRST_SEED = 600_000
# Price where it is not tuned.
PAY = 2.0


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Table ``entry``: change of the average JCT against tuned capped SRW, by case.

    Paired by stream. Two rows per case, with the parameters of capped SRW: ``pay`` 2, and the best of ``prices`` on
    training streams.
    """
    rows = []
    for name, case in params["cases"].items():
        label = case.get("label", name.replace("_", " "))
        case = params["default"] | case
        jobs = get_source(case["source"]) if "source" in case else source
        moving = {"moving_delay_ms": 1000.0 * case["moving_delay_s"]} if "moving_delay_s" in case else {}
        settings = context.settings(**moving).replace(executors=case.get("executors", context.executors))
        train_seeds = [TRAINING_SEED + index for index in range(case["sequences"])]
        train = jobs.streams(train_seeds, case["jobs"], case["interarrival_s"])
        shared = context.work(label)
        capped = tune(CAPPED, train, settings, train_seeds=train_seeds, budget=case["budget"], **shared).parameters
        tried = [make_scheduler(ENTRY, **capped, pay=pay) for pay in case["prices"]]
        means = score_matrix(train, tried, settings, seeds=train_seeds, workers=context.threads).mean(axis=1)
        price = case["prices"][int(means.argmin())]
        seeds = list(range(FIRST_SEED, FIRST_SEED + case["streams"]))
        streams = jobs.streams(seeds, case["jobs"], case["interarrival_s"])
        rules = [make_scheduler(CAPPED, **capped)]
        rules += [make_scheduler(ENTRY, **capped, pay=pay) for pay in (PAY, price)]
        plain, *charged = score_matrix(streams, rules, settings, seeds=seeds, workers=context.threads)
        for chosen, pay, scores in zip(("fixed", "tuned"), (PAY, price), charged, strict=True):
            change = paired_change(scores, plain)
            rows.append((label, chosen, pay, len(seeds), case["jobs"], plain.mean(), *change))
    columns = ["case", "price", "pay", "streams", "jobs", "capped_srw_s", "change_percent", "low", "high"]
    return {"entry": pandas.DataFrame(rows, columns=columns)}


def price_of_coming(tables: Tables, run: Run) -> plotting.style.Figure:
    """Change against capped SRW by case, with the price tuned."""
    table = tables["entry"][tables["entry"]["price"] == "tuned"]
    axes = plotting.load.change_by_case(
        table.assign(case=[f"{row.case}, pay {row.pay:.1f}" for row in table.itertuples()], base=ENTRY)
    )
    numbers = sorted(set(table["streams"]))
    streams = count(numbers[-1], "stream") if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]} streams"
    caption = (
        f"Paired against capped SRW with the same parameters, tuned for the case, {streams} each; bars: {INTERVAL}; "
        f"{run.cluster} where no other number is named."
    )
    return plotting.style.entitle(axes.figure, "Effect of the executor-entry cost", caption, run.workload)


EXPERIMENT = Experiment(
    "entry",
    "executor-entry cost",
    compute,
    rooms=SPARK_ROOMS,
    figures=(price_of_coming,),
    inputs=(Profiles(),),
    tiny={
        "default": {"jobs": 4, "sequences": 2, "streams": 2, "budget": 8, "prices": [1, 2], "interarrival_s": 14},
        "cases": {"14 s": {}, "4 executors": {"executors": 4, "moving_delay_s": 1.0}},
    },
)
