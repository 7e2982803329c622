"""§6.2: the simulator's real-world effects on and off, and each switch between the released rules and the paper's."""

from __future__ import annotations

import pandas

from decima.evaluation.experiments.store import Context
from decima.evaluation.experiments.tidy import score_table
from decima.schedulers import make_scheduler
from decima.workload.sources import WorkloadSource

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
    schedulers = {name: make_scheduler(name) for name in params["schedulers"]}
    batches = source.batches(seeds)
    streams = source.streams(seeds, params["stream_jobs"], params["interarrival_s"])

    def scores(arrivals: str, settings, **columns) -> pandas.DataFrame:
        workloads = batches if arrivals == "batch" else streams
        return score_table(schedulers, workloads, seeds, settings, context, arrivals, **columns, arrivals=arrivals)

    effects = [
        scores("batch", context.settings(**changes), setting=name) for name, changes in EFFECTS.items()
    ]
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
    return {
        "effects": pandas.concat(effects),
        "switches": pandas.concat(switches),
        "waves": pandas.DataFrame(waves),
    }
