"""Appendix D: simulated against real job durations, from event logs in ``data/spark`` (Figure 18)."""

from __future__ import annotations

import pandas

from decima import plotting
from decima.plotting.words import count
from decima.workload.sources import WorkloadSource
from experiments.captions import SPARK_WORKLOAD, Run, Tables
from experiments.experiment import Context, Experiment, FilesIn
from experiments.params import checkout
from experiments.rooms import LOGS, SPARK_ROOMS
from measure.fidelity.tables import fidelity_tables
from measure.logs import read_alone, read_mixes

ALONE, FIRST_RUN, FRESH, MIX = "alone", "alone, first run", "alone, new executors", "mix"
SETTINGS = (ALONE, FIRST_RUN, FRESH, MIX)
SPARK = "spark_fifo"
PAPER = {ALONE: (5.0, 10.0), FIRST_RUN: (5.0, 10.0), FRESH: (5.0, 10.0), MIX: (9.0, 20.0)}
ALL_EFFECTS, REAL = "all effects", "other real repetitions"


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``fidelity_runs``, ``fidelity_floor`` and ``fidelity_summary``.

    Real TPC-H queries, whatever the workload of the run.
    """
    root = checkout()
    alone = [application for folder in params["alone"] for application in read_alone(root / folder)]
    mixes = [application for folder in params["mixes"] for application in read_mixes(root / folder)]
    return fidelity_tables(alone, mixes, params["simulations"], context.threads)


def fig18a_alone(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 18a."""
    runs = _main(tables, ALONE)
    shown = runs[runs["executors"] == runs["executors"].max()]
    size = max(shown["name"], key=_scale)
    shown = shown[shown["name"].map(_scale) == _scale(size)]
    caption = (
        f"Above: scale factor {_scale(size):g}, {shown['executors'].iloc[0]} executors, {_repetitions(shown)} of each "
        f"query. Below: {count(len(runs), 'run')} at {_settings(runs)}. {_simulated(tables)}"
    )
    return _durations_and_errors(shown, runs, ALONE, "Figure 18a: queries alone", caption)


def fig18b_mix(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 18b."""
    runs = _main(tables, MIX)
    caption = (
        f"{count(runs['repetition'].nunique(), 'mix')} of all {runs['name'].nunique()} queries, submitted at once on "
        f"{runs['executors'].iloc[0]} executors under Spark's FIFO. {_simulated(tables, 'of the queries alone')}"
    )
    return _durations_and_errors(runs, runs, MIX, "Figure 18b: a mix on a shared cluster", caption)


def fidelity_points(tables: Tables, run: Run) -> plotting.style.Figure:
    """Draw every run, simulated against real."""
    figure = plotting.style.new_figure(plotting.style.PAGE, 3.2)
    settings = [name for name in (ALONE, FIRST_RUN, MIX) if name in set(tables["fidelity_runs"]["setting"])]
    parts = []
    for axes, setting in zip(figure.subplots(1, len(settings), squeeze=False)[0], settings, strict=True):
        runs = _main(tables, setting)
        plotting.fidelity.simulated_against_real(runs, axes)
        axes.set_title(setting, loc="left")
        parts.append(f"{setting}: {count(len(runs), 'run')}")
    origin = "of other repetitions (mix: of the queries alone)"
    caption = f"A point is a run; {', '.join(parts)}. {_simulated(tables, origin)}"
    return plotting.style.entitle(figure, "Simulated and real job durations", caption, SPARK_WORKLOAD)


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
    return "alone" if setting == MIX else "held out"


def _as_spark(runs: pandas.DataFrame, setting: str) -> pandas.Series:
    """Mask of runs by FIFO as in Spark, which binds no executor to stages."""
    if setting != MIX:
        return pandas.Series(True, index=runs.index)
    return (runs["scheduler"] == SPARK) & ~runs["bound"].astype(bool)


def _durations_and_errors(
    shown: pandas.DataFrame, runs: pandas.DataFrame, setting: str, title: str, caption: str
) -> plotting.style.Figure:
    figure = plotting.style.new_figure(plotting.style.PAGE, 4.4)
    upper, lower = figure.subplots(2, 1, height_ratios=(1.2, 1))
    plotting.fidelity.duration_bars(shown, upper)
    plotting.fidelity.error_ranges(_by_query(runs), lower, paper_percent=PAPER[setting][0])
    return plotting.style.entitle(figure, title, caption, SPARK_WORKLOAD)


def _by_query(runs: pandas.DataFrame) -> pandas.DataFrame:
    """The same query at all sizes under one name."""
    return runs.assign(name=runs["name"].str.split("-").str[0])


def _scale(name: str) -> float:
    size = name.partition("-")[2].removesuffix("g")
    return float(size) if size else 1.0


def _settings(runs: pandas.DataFrame) -> str:
    scales = ", ".join(f"{scale:g}" for scale in sorted(runs["name"].map(_scale).unique()))
    executors = ", ".join(str(number) for number in sorted(runs["executors"].unique()))
    return f"scale factor {scales} and {executors} executors"


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
    rooms=(*SPARK_ROOMS, *LOGS, "measure", "measure/fidelity"),
    figures=(fig18a_alone, fig18b_mix, fidelity_points, fidelity_errors, fidelity_effects),
    inputs=(FilesIn("fidelity", ("alone", "mixes"), ("runs.csv", "card.json", "events", "runs")),),
    tiny={"alone": ["data/alone"], "mixes": ["data/mix"], "simulations": 2},
)
