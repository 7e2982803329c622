"""Appendix D: simulated against real job durations, from event logs in ``data/spark`` (Figure 18)."""

from __future__ import annotations

import pandas

from decima import plotting
from decima.plotting.words import count
from decima.workload.measured import measured_profiles
from decima.workload.sources import WorkloadSource
from experiments.captions import SPARK_WORKLOAD, Run, Tables
from experiments.experiment import Context, Experiment, FilesIn, Policies
from experiments.params import checkout
from experiments.rooms import LOGS, POLICY_ROOMS
from measure.fidelity.simulation import Service
from measure.fidelity.tables import fidelity_tables
from measure.logs import read_alone, read_mixes
from measure.results import read, read_steered, schedulers_of

ALONE, FIRST_RUN, FRESH, MIX = "alone", "alone, first run", "alone, new executors", "mix"
# Decima schedules, as in the paper.
DECIMA_ALONE, DECIMA_MIX = "alone, decima", "mix, decima"
SETTINGS = (ALONE, FIRST_RUN, FRESH, MIX)
SPARK = "spark_fifo"
PAPER = dict.fromkeys((ALONE, FIRST_RUN, FRESH, DECIMA_ALONE), (5.0, 10.0)) | dict.fromkeys(
    (MIX, DECIMA_MIX), (9.0, 20.0)
)
ALL_EFFECTS, REAL = "all effects", "other real repetitions"


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``fidelity_runs``, ``fidelity_floor`` and ``fidelity_summary``.

    Real TPC-H queries, whatever the workload of the run.
    """
    root = checkout()
    alone = [application for folder in params["alone"] for application in read_alone(root / folder)]
    mixes = [application for folder in params["mixes"] for application in read_mixes(root / folder)]
    folders = [root / folder for folder in params["steered"]]
    steered = [application for folder in folders for application in read_steered(folder)]
    measured = [read(folder) for folder in folders]
    schedulers = {name: make for each in measured for name, make in schedulers_of(each.card).items()}
    scales = {each.plan.scale for each in measured if each.plan.durations()}
    durations = {profile.name: profile for scale in scales for profile in measured_profiles(f"{scale:g}g")}
    service = Service(schedulers, durations)
    return fidelity_tables(alone, mixes, params["simulations"], context.threads, steered, service)


def fig18a_alone(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 18a."""
    runs = _main(tables, DECIMA_ALONE)
    caption = (
        f"Scale factor {_scale(runs['name'].iloc[0]):g}, {runs['executors'].iloc[0]} executors, {_repetitions(runs)} "
        f"of each query, Decima schedules. {_simulated(tables)}"
    )
    return _durations_and_errors(runs, DECIMA_ALONE, "Figure 18a: queries alone", caption)


def fig18b_mix(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 18b."""
    runs = _main(tables, DECIMA_MIX)
    caption = (
        f"{count(runs['repetition'].nunique(), 'mix')} of all {runs['name'].nunique()} queries, submitted at once on "
        f"{runs['executors'].iloc[0]} executors, Decima schedules. {_simulated(tables, 'of the queries alone')}"
    )
    return _durations_and_errors(runs, DECIMA_MIX, "Figure 18b: a mix on a shared cluster", caption)


def fidelity_errors(tables: Tables, run: Run) -> plotting.style.Figure:
    """Distributions of the error, and how far real repetitions are from each other."""
    runs, floor = tables["fidelity_runs"], tables["fidelity_floor"]
    settings = [name for name in SETTINGS if name in set(runs["setting"])]
    rows = (len(settings) + 1) // 2
    figure = plotting.style.new_figure(plotting.style.PAGE, 0.6 + 2.7 * rows)
    grid = figure.subplots(rows, 2, squeeze=False).ravel()
    for axes in grid[len(settings) :]:
        axes.remove()
    for axes, setting in zip(grid[: len(settings)], settings, strict=True):
        mine = runs[(runs["setting"] == setting) & (runs["variant"] == ALL_EFFECTS) & _as_spark(runs, setting)]
        real = floor[(floor["setting"] == setting) & (floor["scheduler"] == SPARK)]
        plotting.fidelity.error_distributions(
            pandas.concat([mine, real.assign(profile=REAL)], ignore_index=True), axes, paper=PAPER[setting]
        )
        axes.set_xlabel(f"size of the error (%), {setting}")
    seeds = count(int(tables["fidelity_summary"]["simulations"].iloc[0]), "seed")
    caption = (
        f"Floor: error of predicting each run by the mean of the other real repetitions. Simulated: mean over {seeds}."
    )
    return plotting.style.entitle(figure, "Prediction errors", caption, SPARK_WORKLOAD)


def fidelity_effects(tables: Tables, run: Run) -> plotting.style.Figure:
    """Draw what the error becomes when real-world effects are switched off."""
    summary = tables["fidelity_summary"]
    settings = [name for name in SETTINGS if name in set(summary["setting"])]
    figure = plotting.style.new_figure(plotting.style.PAGE, 0.9 + 2.2 * len(settings))
    for axes, setting in zip(figure.subplots(len(settings), 1, squeeze=False)[:, 0], settings, strict=True):
        mine = summary[(summary["setting"] == setting) & summary["profile"].isin([_origin(setting), REAL])]
        mine = mine[_as_spark(mine, setting) | (mine["profile"] == REAL)]
        mine = mine[mine["scheduler"] == SPARK]
        order = mine["profile"].eq(REAL)
        plotting.fidelity.ablation_bars(pandas.concat([mine[order], mine[~order]]), axes, legend=axes is figure.axes[0])
        title = f"{setting}, {count(int(mine['runs'].max()), 'run')}"
        axes.set_title(title, loc="left", pad=16 if setting == settings[0] else 4)
    caption = (
        f"{_simulated(tables, 'of other repetitions (mix: of the queries alone)')} Blue: the mean of the other real "
        "repetitions as forecast."
    )
    return plotting.style.entitle(figure, "Effects switched off", caption, SPARK_WORKLOAD)


def _main(tables: Tables, setting: str) -> pandas.DataFrame:
    """Runs with all effects, profiles from other runs, and the rules that Spark had."""
    runs = tables["fidelity_runs"]
    chosen = (runs["setting"] == setting) & (runs["variant"] == ALL_EFFECTS) & (runs["profile"] == _origin(setting))
    return runs[chosen & _as_spark(runs, setting)]


def _origin(setting: str) -> str:
    return "alone" if setting in (MIX, DECIMA_MIX) else "held out"


def _as_spark(runs: pandas.DataFrame, setting: str) -> pandas.Series:
    """Mask of runs by FIFO as in Spark, which binds no executor to stages."""
    if setting != MIX:
        return pandas.Series(True, index=runs.index)
    return (runs["scheduler"] == SPARK) & ~runs["bound"].astype(bool)


def _durations_and_errors(runs: pandas.DataFrame, setting: str, title: str, caption: str) -> plotting.style.Figure:
    figure = plotting.style.new_figure(plotting.style.PAGE, 4.4)
    upper, lower = figure.subplots(2, 1, height_ratios=(1.2, 1))
    plotting.fidelity.duration_bars(runs, upper)
    plotting.fidelity.error_ranges(runs, lower, paper_percent=PAPER[setting][0])
    return plotting.style.entitle(figure, title, caption, SPARK_WORKLOAD)


def _scale(name: str) -> float:
    size = name.partition("-")[2].removesuffix("g")
    return float(size) if size else 1.0


def _repetitions(runs: pandas.DataFrame) -> str:
    numbers = runs.groupby("name").size()
    low, high = int(numbers.min()), int(numbers.max())
    return f"{low if low == high else f'{low} to {high}'} repetitions"


def _simulated(tables: Tables, origin: str = "of other repetitions") -> str:
    seeds = int(tables["fidelity_summary"]["simulations"].iloc[0])
    return f"Simulated: mean over {count(seeds, 'seed')} with profiles {origin}."


EXPERIMENT = Experiment(
    "fidelity",
    "appendix D, Figure 18",
    compute,
    rooms=(*POLICY_ROOMS, *LOGS, "measure", "measure/fidelity"),
    figures=(fig18a_alone, fig18b_mix, fidelity_errors, fidelity_effects),
    inputs=(
        FilesIn("fidelity", ("alone", "mixes"), ("runs.csv", "card.json", "events", "runs")),
        FilesIn("fidelity", ("steered",), ("card.json", "runs.csv", "jobs.csv", "tasks.parquet", "events")),
        Policies(("spark-batch",)),
    ),
    tiny={
        "alone": ["data/alone"],
        "mixes": ["data/mix"],
        "steered": ["data/steered/alone", "data/steered/mix"],
        "simulations": 2,
    },
)
