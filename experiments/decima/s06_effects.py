"""§6.2: real-world effects on and off, and each switch between released rules and the paper's."""

from __future__ import annotations

import pandas

from decima import plotting
from decima.plotting.words import count
from decima.systems.spark.schedulers import make_scheduler
from decima.workload.sources import WorkloadSource
from experiments.captions import INTERVAL, Run, Tables, distinct, presets, untuned
from experiments.comparisons import score_table
from experiments.experiment import Context, Experiment, Profiles
from experiments.rooms import POLICY_ROOMS

# Names are shown in figures; values are changes to the settings of mode ``paper``.
EFFECTS = {
    "all effects": {},
    "no first-wave slowdown": {"first_wave": False},
    "no start-up and moving cost": {"startup": False},
    "no slowdown by parallelism": {"inflation": False},
    "none of the three": {"first_wave": False, "startup": False, "inflation": False},
}
# Every named difference between the modes, as seen from the released rules.
SWITCHES = {
    "level_rule": {"level_rule": "interpolate"},
    "reoffer": {"reoffer": True},
    "keep_warm": {"keep_warm": True},
    "job_limit": {"job_limit": True},
}
# Rules that both modes share although the paper can be read otherwise.
VARIANTS = {"commit_ahead": {"commit_ahead": False}, "runnable_only": {"runnable_only": True}}


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``effects``, ``switches`` and ``waves``."""
    seeds = list(range(params["seeds"]))
    schedulers = {text.partition(":")[0]: make_scheduler(text) for text in params["schedulers"]}
    batches = source.batches(seeds)
    streams = source.streams(seeds, params["stream_jobs"], params["interarrival_s"])

    def scores(arrivals: str, settings, **columns) -> pandas.DataFrame:
        workloads = batches if arrivals == "batch" else streams
        return score_table(schedulers, workloads, seeds, settings, context, arrivals, **columns, arrivals=arrivals)

    effects = [scores("batch", context.settings(**changes), setting=name) for name, changes in EFFECTS.items()]
    switches = []
    for arrivals in ("batch", "stream"):
        released = context.settings("released")
        paper = context.settings("paper")
        switches.append(scores(arrivals, released, base="released", switch="none"))
        for name, changes in SWITCHES.items():
            switches.append(scores(arrivals, released.replace(**changes), base="released", switch=name))
        switches.append(scores(arrivals, paper, base="paper", switch="none"))
        for name, changes in VARIANTS.items():
            switches.append(scores(arrivals, paper.replace(**changes), base="paper", switch=name))
    waves = [
        {"job": profile.name, "stage": index, "level": level, "wave": wave, "duration_s": durations.mean() / 1000.0}
        for profile in batches[0].universe
        for index, stage in enumerate(profile.stages)
        for position, level in enumerate(stage.levels)
        for wave in ("fresh", "first", "rest")
        if len(durations := getattr(stage, wave)[position])
    ]
    return {"effects": pandas.concat(effects), "switches": pandas.concat(switches), "waves": pandas.DataFrame(waves)}


def effects_jct(tables: Tables, run: Run) -> plotting.style.Figure:
    """§6.2: average JCT with effects on and off."""
    table = untuned(tables["effects"])
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.6)
    plotting.bars.paired_panels(table, figure, group="setting", against="fair")
    return plotting.style.entitle(figure, "§6.2: real-world effects on and off", _batches(table, run), run.workload)


def effects_change(tables: Tables, run: Run) -> plotting.style.Figure:
    """§6.2: what switching an effect off changes."""
    table = untuned(tables["effects"])
    changes = plotting.bars.changes_against(table, "setting", "all effects")
    figure = plotting.bars.change_points(changes, "setting").figure
    caption = f"Against all effects, paired by seed. {_batches(table, run)}"
    return plotting.style.entitle(figure, "§6.2: change when effects are switched off", caption, run.workload)


def waves(tables: Tables, run: Run) -> plotting.style.Figure:
    """§6.2: durations by wave and by level."""
    table = tables["waves"]
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.6)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.7))
    plotting.bars.wave_boxes(table, left)
    plotting.bars.level_boxes(table, right)
    left.set_title("(1) first waves are slower", loc="left")
    right.set_title("(3) high parallelism slows tasks (later waves)", loc="left")
    caption = (
        f"{count(table.groupby(['job', 'stage']).ngroups, 'stage')} of {distinct(table, 'job', 'job profile')}. Mean "
        "task duration relative to (1) later waves, (3) the stage's lowest level; boxes: quartiles, whiskers: 5th to "
        "95th percentile."
    )
    return plotting.style.entitle(figure, "§6.2: task durations of the profiles", caption, run.workload)


def switches(tables: Tables, run: Run) -> plotting.style.Figure:
    """Draw what each difference between the released rules and the paper's changes."""
    table = untuned(tables["switches"])
    arrivals = list(dict.fromkeys(table["arrivals"]))
    bases = list(dict.fromkeys(table["base"]))
    figure = plotting.style.new_figure(plotting.style.PAGE, 0.8 + 1.7 * len(bases))
    grid = figure.subplots(len(bases), len(arrivals), sharex="col", sharey="row", squeeze=False)
    for row, base in zip(grid, bases, strict=True):
        for axes, arrival in zip(row, arrivals, strict=True):
            rows = table[(table["base"] == base) & (table["arrivals"] == arrival)]
            changes = plotting.bars.changes_against(rows, "switch", "none")
            plotting.bars.change_points(changes, "switch", axes, legend=axes is grid[0, -1])
            axes.set_title(f"{base} rules, {arrival}", loc="left")
    for axes in grid[:-1].ravel():
        axes.set_xlabel("")
    caption = (
        f"Each switch alone against the rules above it, paired by seed; bars: {INTERVAL}; "
        f"{distinct(table, 'seed', 'seed')}, {run.cluster}.{presets(table['scheduler'])}"
    )
    return plotting.style.entitle(figure, "Switches between the released rules and the paper's", caption, run.workload)


def _batches(table: pandas.DataFrame, run: Run) -> str:
    return f"{distinct(table, 'seed', 'batch')} of 20 jobs, one seed each; bars: {INTERVAL}; {run.cluster}." + presets(
        table["scheduler"]
    )


EXPERIMENT = Experiment(
    "effects",
    "§6.2",
    compute,
    rooms=POLICY_ROOMS,
    figures=(effects_jct, effects_change, waves, switches),
    inputs=(Profiles(),),
    tiny={"seeds": 2, "schedulers": ["fifo", "fair"], "stream_jobs": 3, "interarrival_s": 25},
)
