"""Every figure of the pipeline: from the tables of an experiment to a titled, captioned figure and its files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas

from decima.evaluation.appendix_a import example_job
from decima.exceptions import ConfigError
from decima.plotting import bars, curves, optimality, style
from decima.plotting import figures_decima as decima
from decima.plotting import figures_fidelity as real
from decima.plotting import figures_learning as training
from decima.plotting import figures_measured as own
from decima.plotting import figures_spark as spark
from decima.plotting.dag import dag, dag_panel
from decima.plotting.run import INTERVAL, Run, Tables, distinct
from decima.plotting.style import Figure, count

# The stages of appendix A are called by the colours of Figure 16; the short ones are grey.
EXAMPLE_COLORS = {
    "green": style.GREEN,
    "blue": style.BLUE,
    "orange": style.ORANGE,
    "left": "0.75",
    "right": "0.5",
    "join": "0.2",
}


def fig01_dags(tables: Tables, run: Run) -> Figure:
    """Figure 1."""
    figure = dag_panel(tables["fig01_stages"], tables["fig01_edges"])
    caption = (
        f"{distinct(tables['fig01_stages'], 'job', 'job')}. A circle is a stage, its area in proportion to its work in "
        "the job; beside it tasks × mean task duration. Data flow downwards."
    )
    return style.entitle(figure, "Figure 1: jobs are graphs of stages", caption, run.workload)


def fig02_parallelism(tables: Tables, run: Run) -> Figure:
    """Figure 2."""
    table = tables["fig02_parallelism"]
    figure = curves.parallelism(table).figure
    caption = (
        f"Each job alone. Mean over {distinct(table, 'seed', 'seed')}, band: one standard deviation; "
        "ring: fewest executors within 10 % of the best."
    )
    return style.entitle(figure, "Figure 2: runtime over parallelism", caption, run.workload)


def effects_jct(tables: Tables, run: Run) -> Figure:
    """§6.2: average JCT with effects on and off."""
    table = untuned(tables["effects"])
    figure = bars.scheduler_bars(table, group="setting").figure
    return style.entitle(figure, "§6.2: real-world effects on and off", _batches(table, run), run.workload)


def effects_change(tables: Tables, run: Run) -> Figure:
    """§6.2: what switching an effect off changes."""
    table = untuned(tables["effects"])
    figure = bars.change_points(bars.changes_against(table, "setting", "all effects"), "setting").figure
    caption = f"Against all effects, paired by seed. {_batches(table, run)}"
    return style.entitle(figure, "§6.2: change when effects are switched off", caption, run.workload)


def waves(tables: Tables, run: Run) -> Figure:
    """§6.2: durations by wave and by level."""
    table = tables["waves"]
    figure = style.new_figure(style.PAGE, 2.6)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.7))
    bars.wave_boxes(table, left)
    bars.level_boxes(table, right)
    left.set_title("(1) first waves are slower", loc="left")
    right.set_title("(3) high parallelism slows tasks (later waves)", loc="left")
    caption = (
        f"{count(table.groupby(['job', 'stage']).ngroups, 'stage')} of {distinct(table, 'job', 'job profile')}. Mean "
        "task duration relative to (1) later waves, (3) the stage's lowest level; boxes: quartiles, whiskers: 5th to "
        "95th percentile."
    )
    return style.entitle(figure, "§6.2: task durations of the profiles", caption, run.workload)


def switches(tables: Tables, run: Run) -> Figure:
    """What each difference between the released rules and the paper's changes."""
    table = untuned(tables["switches"])
    arrivals = list(dict.fromkeys(table["arrivals"]))
    bases = list(dict.fromkeys(table["base"]))
    figure = style.new_figure(style.PAGE, 0.8 + 1.7 * len(bases))
    grid = figure.subplots(len(bases), len(arrivals), sharex="col", sharey="row", squeeze=False)
    for row, base in zip(grid, bases, strict=True):
        for axes, kind in zip(row, arrivals, strict=True):
            rows = table[(table["base"] == base) & (table["arrivals"] == kind)]
            changes = bars.changes_against(rows, "switch", "none")
            bars.change_points(changes, "switch", axes, legend=axes is grid[0, -1])
            axes.set_title(f"{base} rules, {kind}", loc="left")
    for axes in grid[:-1].ravel():
        axes.set_xlabel("")
    caption = (
        f"Each switch alone against the rules above it, paired by seed; bars: {INTERVAL}; "
        f"{distinct(table, 'seed', 'seed')}, {run.cluster}."
    )
    return style.entitle(figure, "Switches between the released rules and the paper's", caption, run.workload)


def batch_heuristics(tables: Tables, run: Run) -> Figure:
    """Figure 9a without Decima, and with the heuristics that it leaves out."""
    table = _heuristics(tables["batch"])
    caption = f"{distinct(table, 'seed', 'batch')} of 20 jobs, one seed each, {run.cluster}."
    return style.entitle(curves.cdf(table).figure, "Heuristics on batched arrivals", caption, run.workload)


def alpha_batch(tables: Tables, run: Run) -> Figure:
    """Average JCT over alpha, batches."""
    return _alpha(tables["alpha_batch"], "batches of 20 jobs", "batch", run)


def stream_heuristics(tables: Tables, run: Run) -> Figure:
    """Heuristics on streams."""
    table = _heuristics(tables["stream"])
    table = table.assign(gap=[f"every {gap:g} s" for gap in table["interarrival_s"]])
    figure = bars.scheduler_bars(table, group="gap").figure
    caption = f"{distinct(table, 'seed', 'stream')} per gap; bars: {INTERVAL}; {run.cluster}."
    return style.entitle(figure, "Heuristics on continuous arrivals", caption, run.workload)


def alpha_stream(tables: Tables, run: Run) -> Figure:
    """Average JCT over alpha, streams under the heaviest load."""
    table = tables["alpha_stream"]
    gap = table["interarrival_s"].min()
    return _alpha(table[table["interarrival_s"] == gap], f"one job every {gap:g} s", "stream", run)


def alpha_training(tables: Tables, run: Run) -> Figure:
    """The curves from which the tuned alpha is taken."""
    table = tables["alpha_training"]
    kinds = list(dict.fromkeys(table["arrivals"]))
    figure = style.new_figure(style.PAGE, 0.6 + 2.4 * len(kinds))
    for axes, kind in zip(figure.subplots(len(kinds), 1, squeeze=False)[:, 0], kinds, strict=True):
        curves.alpha_curve(table[table["arrivals"] == kind], axes, legend="beside")
        axes.set_title(kind, loc="left")
    caption = f"Training sequences, {distinct(table, 'seed', 'seed')}; band: one standard error; {run.cluster}."
    return style.entitle(figure, "Tuning weighted fair", caption, run.workload)


def released_rules(tables: Tables, run: Run) -> Figure:
    """Heuristics and the policy of the published shape under the released rules."""
    table = untuned(tables["released"])
    figure = bars.scheduler_bars(table, group="arrivals").figure
    caption = (
        f"Up to {distinct(table, 'seed', 'seed')} per group; bars: {INTERVAL}; {run.cluster}; policy "
        f"{run.policies['released']}, trained on TPC-H."
    )
    return style.entitle(figure, "Schedulers under the released rules", caption, run.workload)


def bounds(tables: Tables, run: Run) -> Figure:
    """How far every policy is from the best schedule found and from a bound that none can beat."""
    table = tables["bounds"]
    kinds = list(dict.fromkeys(table["arrivals"]))
    number = int(table.groupby("arrivals")["instance"].nunique().max())
    figure = style.new_figure(style.PAGE, max(2.1, 1.2 + 0.28 * number))
    grid = figure.subplots(1, len(kinds), squeeze=False)[0]
    for axes, kind in zip(grid, kinds, strict=True):
        optimality.distance_from_floor(table[table["arrivals"] == kind], axes, legend=axes is grid[-1])
        axes.set_title(kind, loc="left")
    caption = (
        f"{count(number, 'instance')}{' of each kind' if len(kinds) > 1 else ''}, mean durations, {run.cluster}; "
        f"policy {run.policies['batch']}. The optimum lies on the grey line between lower bound and search."
    )
    return style.entitle(figure, "How far from optimal", caption, run.workload)


def fig16_dag(tables: Tables, run: Run) -> Figure:
    """The DAG of Figure 16."""
    epsilon_s = float(tables["appendix_a"]["epsilon_s"].max())
    profile = example_job(epsilon_s)
    stages = pandas.DataFrame(
        [
            {
                "stage": index,
                "name": stage.name,
                "tasks": stage.num_tasks,
                "duration_s": stage.mean_duration_ms / 1000.0,
            }
            for index, stage in enumerate(profile.stages)
        ]
    )
    edges = pandas.DataFrame(list(profile.graph.edges), columns=["parent", "child"])
    axes = dag(stages, edges, colors=[EXAMPLE_COLORS[stage.name] for stage in profile.stages])
    caption = f"1 job; beside each stage tasks × task duration, ε = {epsilon_s:g} s."
    return style.entitle(axes.figure, "Figure 16: two branches and a join", caption, "the example of appendix A")


def fig16_schedules(tables: Tables, run: Run) -> Figure:
    """Figure 16."""
    tasks, summary = tables["appendix_a_tasks"], tables["appendix_a"]
    names = dict(enumerate(stage.name for stage in example_job().stages))
    colors = {stage: EXAMPLE_COLORS[name] for stage, name in names.items()}
    figure = optimality.example_schedules(tasks, names, colors)
    slots, epsilon_s = tasks["executor"].max() + 1, summary["epsilon_s"].max()
    caption = f"1 job, {slots} executors, ε = {epsilon_s:g} s, exact durations, 1 run per schedule."
    return style.entitle(figure, "Figure 16: a schedule that plans ahead", caption, "the example of appendix A")


def fig19_expressiveness(tables: Tables, run: Run) -> Figure:
    """Figure 19."""
    table, graphs = tables["appendix_e"], tables["appendix_e_graphs"].iloc[0]
    figure = curves.expressiveness(table, float(graphs["guess_accuracy"])).figure
    caption = (
        f"Share of {count(int(graphs['test_graphs']), 'unseen DAG')} of {graphs['stages']:g} stages in which the stage "
        f"with the longest critical path is found; {graphs['graphs_per_iteration']:g} new DAGs per iteration. "
        f"Mean over {distinct(table, 'seed', 'seed')}, band: lowest to highest."
    )
    return style.entitle(figure, "Figure 19: learning critical paths", caption, "random DAGs")


def fig22_optimality(tables: Tables, run: Run) -> Figure:
    """Figure 22."""
    table = tables["appendix_h"]
    figure = style.new_figure(style.PAGE, 0.9 + 0.36 * table["policy"].nunique())
    left, right = figure.subplots(1, 2)
    optimality.policy_bars(table, left)
    optimality.ratio_bars(table, right, reference="exhaustive")
    bars_mean = f"; error bars: {INTERVAL}" if table["batch"].nunique() >= 3 else ""
    caption = (
        f"{distinct(table, 'batch', 'batch')} (dots), simplified environment, {run.cluster}{bars_mean}; policy "
        f"{run.policies['batch']}."
    )
    return style.entitle(figure, "Figure 22: Decima and heuristics against exhaustive search", caption, run.workload)


def _heuristics(table: pandas.DataFrame) -> pandas.DataFrame:
    return table[~table["scheduler"].str.startswith("decima")]


def untuned(table: pandas.DataFrame) -> pandas.DataFrame:
    """Scores of schedulers with their default parameters, weighted fair under a name that says so."""
    return table.replace({"scheduler": {"weighted_fair": "weighted_fair_default"}})


def _batches(table: pandas.DataFrame, run: Run) -> str:
    return f"{distinct(table, 'seed', 'batch')} of 20 jobs, one seed each; bars: {INTERVAL}; {run.cluster}."


def _alpha(table: pandas.DataFrame, arrivals: str, noun: str, run: Run) -> Figure:
    figure = style.new_figure(style.PAGE, 2.9)
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
    curves.alpha_curve(table, left)
    curves.best_alpha(table, right)
    caption = f"{distinct(table, 'seed', noun)}, {run.cluster}; band: one standard error."
    return style.entitle(figure, f"Weighted fair scheduling over α, {arrivals}", caption, run.workload)


FIGURES: dict[str, tuple[Callable[[Tables, Run], Figure], ...]] = {
    "tuning": (alpha_training,),
    "motivation": (fig01_dags, fig02_parallelism, decima.fig03_schedules, decima.fig03_mixes),
    "policy": (training.fig05_embeddings, training.fig06_choice),
    "variance": (training.fig07_sequences, training.fig07_baselines),
    "measured": (own.measured_slowdown, own.measured_residuals, own.measured_jobs),
    "effects": (effects_jct, effects_change, waves, switches),
    "batch": (decima.fig09a_batch, decima.batch_changes, batch_heuristics, alpha_batch),
    "stream": (
        decima.fig09b_stream,
        decima.fig09b_mean,
        decima.stream_changes,
        decima.fig10_stream,
        stream_heuristics,
        alpha_stream,
    ),
    "latency": (training.fig15b_latency,),
    "learning": (training.fig15a_curve, training.training_curves, training.training_ingredients),
    "real_spark": (
        spark.real_spark_gantt,
        spark.real_spark_bars,
        spark.real_spark_changes,
        spark.real_spark_jobs,
    ),
    "released": (released_rules,),
    "bounds": (bounds,),
    "fidelity": (
        real.fig18a_alone,
        real.fig18b_mix,
        real.fidelity_points,
        real.fidelity_errors,
        real.fidelity_effects,
    ),
    "appendix_a": (fig16_dag, fig16_schedules),
    "appendix_e": (fig19_expressiveness,),
    "appendix_h": (fig22_optimality,),
}


def figure_names(experiment: str) -> list[str]:
    """Names of the figures of an experiment, which are also their file names."""
    if experiment not in FIGURES:
        raise ConfigError(f"no figures for experiment {experiment!r}; known: {', '.join(FIGURES)}")
    return [make.__name__ for make in FIGURES[experiment]]


def make(name: str, tables: Tables, run: str = "auto") -> Figure:
    """One figure by name, from the tables of its experiment.

    Raises:
        ConfigError: There is no such figure or run.
    """
    known = {function.__name__: function for functions in FIGURES.values() for function in functions}
    if name not in known:
        raise ConfigError(f"unknown figure {name!r}; known: {', '.join(known)}")
    with style.context():
        return known[name](tables, Run.named(run))


def draw(experiment: str, run: str, tables: Tables, folder: str | Path) -> list[Path]:
    """Draw all figures of an experiment into a folder, as png and pdf.

    Returns:
        Paths of the files.
    """
    paths: list[Path] = []
    for name in figure_names(experiment):
        paths += style.save(make(name, tables, run), Path(folder) / name)
    return paths
