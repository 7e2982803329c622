"""Random workloads and settings for tests of the simulator: small, full of ties and of unusual profiles.

Everything comes from one numpy generator, so that a seed is a test case; `clusters` wraps it for hypothesis, which
draws the coarse choices itself and can make a failing example smaller.
"""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from decima.systems.spark.settings import DURATIONS, LEVEL_RULES, Settings
from decima.workload.jobs import Job, Workload
from decima.workload.profile import JobProfile, Stage

LEVELS = (1, 2, 3, 5, 7, 10, 20, 40, 100, 130)
# how the durations of a profile are drawn: rows of ties, exact zeros, or numbers that never agree
DURATION_KINDS = ("equal", "few", "zero", "real")
SWITCHES = ("job_limit", "reoffer", "keep_warm", "commit_ahead", "runnable_only", "first_wave", "startup", "inflation")


def _durations(rng, kind, count):
    if kind == "equal":
        return np.full(count, 1000.0)
    if kind == "few":
        return rng.choice([1000.0, 2000.0, 3000.0], count)
    if kind == "zero":
        return rng.choice([0.0, 0.0, 500.0], count)
    return rng.uniform(100.0, 4000.0, count)


def random_stage(rng, index, num_tasks, parents, kind):
    """A stage with up to four levels, some of whose waves were not recorded."""
    levels = tuple(sorted(rng.choice(LEVELS, rng.integers(1, 5), replace=False).tolist()))
    waves = [[_durations(rng, kind, rng.integers(0, 4)) for _ in levels] for _ in range(3)]
    for position in range(len(levels)):
        if not any(len(wave[position]) for wave in waves):
            waves[rng.integers(3)][position] = _durations(rng, kind, 1)
    return Stage(f"s{index}", num_tasks, parents, levels, *map(tuple, waves))


def random_profile(rng, max_stages=5, max_tasks=6, kind=None):
    """A random DAG; one in three has its stages in an order that is not topological."""
    kind = kind or str(rng.choice(DURATION_KINDS))
    count = int(rng.integers(1, max_stages + 1))
    density = rng.random()
    place = rng.permutation(count) if rng.random() < 1 / 3 else np.arange(count)
    stages = [None] * count
    for index in range(count):
        parents = tuple(int(place[parent]) for parent in range(index) if rng.random() < density)
        stages[place[index]] = random_stage(rng, index, int(rng.integers(1, max_tasks + 1)), parents, kind)
    return JobProfile(f"{kind}{count}", tuple(stages), "test")


def random_workload(rng, max_jobs=5, max_stages=5, max_tasks=6, kind=None):
    """Jobs that share a few profiles; arrivals at the start, at the same instant, or spread out."""
    profiles = [random_profile(rng, max_stages, max_tasks, kind) for _ in range(rng.integers(1, 4))]
    spread = rng.random()
    jobs = []
    for _ in range(rng.integers(1, max_jobs + 1)):
        arrival_ms = 0.0
        if rng.random() < spread:
            arrival_ms = float(rng.choice([0.0, 1000.0, 3000.0, 3000.0, rng.uniform(0.0, 2e4)]))
        initial = arrival_ms == 0.0 and rng.random() < 0.8
        jobs.append(Job(profiles[rng.integers(len(profiles))], arrival_ms, initial))
    return Workload(tuple(jobs), "test")


def random_settings(rng, **fixed):
    """Any combination of the switches, half of the time one of the two modes with at most one of them turned."""
    values = {
        "executors": int(rng.choice([1, 2, 3, 5, 8, 20])),
        "durations": str(rng.choice(DURATIONS)),
        "moving_delay_ms": float(rng.choice([0.0, 1000.0, 1500.0, 2000.0, 5000.0])),
        "warmup_delay_ms": float(rng.choice([0.0, 1000.0, 250.5])),
    }
    mode = str(rng.choice(["paper", "released"]))
    if rng.random() < 0.5:
        plain = Settings.of_mode(mode).as_dict()
        switch = str(rng.choice(SWITCHES))
        values[switch] = plain[switch] != (rng.random() < 0.5)
    else:
        values |= {switch: bool(rng.random() < 0.5) for switch in SWITCHES}
        values["level_rule"] = str(rng.choice(LEVEL_RULES))
    if rng.random() < 0.1:
        values |= {"time_limit_applies": True, "time_limit_ms": float(rng.choice([1.0, 4000.0, 9500.0]))}
    return Settings.of_mode(mode, **with_effect(mode, values | fixed))


def with_effect(mode, values):
    """Values without those that a switch leaves out, which settings refuse."""
    plain = Settings.of_mode(mode).as_dict() | values
    ignored = ["moving_delay_ms", "warmup_delay_ms"] if not plain["startup"] else []
    ignored += ["level_rule"] if not plain["inflation"] else []
    ignored += ["time_limit_ms"] if not plain["time_limit_applies"] else []
    return {name: value for name, value in values.items() if name not in ignored}


@st.composite
def workloads(draw, max_jobs=4):
    """A random workload; hypothesis chooses sizes, duration kind and arrivals."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(DURATION_KINDS))
    max_stages, max_tasks = draw(st.integers(1, 5)), draw(st.integers(1, 7))
    profiles = [random_profile(rng, max_stages, max_tasks, kind) for _ in range(draw(st.integers(1, 2)))]
    arrivals = st.sampled_from([0.0, 1000.0, 3000.0]) | st.floats(0.0, 20_000.0)
    jobs = []
    for _ in range(draw(st.integers(1, max_jobs))):
        arrival_ms = draw(arrivals)
        jobs.append(Job(draw(st.sampled_from(profiles)), arrival_ms, arrival_ms == 0.0 and draw(st.booleans())))
    return Workload(tuple(jobs), "test")


@st.composite
def clusters(draw, modes=("paper", "released"), switches=(), **fixed):
    """Settings of one of the modes; of `switches` any may differ from the mode."""
    values = {
        "executors": draw(st.sampled_from([1, 2, 3, 4, 6, 10, 25])),
        "durations": draw(st.sampled_from(DURATIONS)),
        "moving_delay_ms": draw(st.sampled_from([2000.0, 0.0, 1000.0, 3333.3])),
        "warmup_delay_ms": draw(st.sampled_from([1000.0, 0.0, 700.7])),
    }
    values |= {switch: draw(st.booleans()) for switch in switches}
    mode = draw(st.sampled_from(modes))
    return Settings.of_mode(mode, **with_effect(mode, values | fixed))


def random_units(rng, settings):
    """The same cluster whose Spark executors come, go and fail, each in one of many ways."""
    cores = int(rng.choice([1, 1, 2, 3]))
    most = int(rng.choice([1, 2, 3, 5, 8]))
    dynamic, loses = ((True, False), (False, True), (True, True))[rng.integers(3)]
    values = {"executors": cores * most, "executor_cores": cores, "shuffle_service": bool(rng.random() < 0.3)}
    # Above 0: else the log does not tell what comes before a loss and what after the new start.
    values["executor_startup_ms"] = float(rng.choice([1.0, 700.0, 2000.0]))
    if dynamic:
        least = int(rng.integers(0, most + 1)) if rng.random() < 0.5 else 0
        values |= {"dynamic": True, "min_executors": least, "initial_executors": int(rng.integers(least, most + 1))}
        values["backlog_timeout_ms"] = float(rng.choice([100.0, 1000.0]))
        values["idle_timeout_ms"] = float(rng.choice([0.0, 500.0, 3000.0]))
        values["sustained_timeout_ms"] = [None, 300.0, 2000.0][rng.integers(3)]
    if loses:
        times = [0.0, 1000.0, 2000.0, *rng.uniform(0, 9e3, 3)]
        values["loss_times_ms"] = tuple(rng.choice(times, rng.integers(0, 4)).tolist())
        # Where executors live shorter than jobs, no job ends: all its outputs have to be there at once.
        values["loss_rate"] = float(rng.choice([0.0, 20.0, 60.0]) if values["loss_times_ms"] else 60.0)
        values["replacement_delay_ms"] = float(rng.choice([0.0, 1500.0]))
    if rng.random() < 0.3:
        values |= {"straggler_share": float(rng.choice([0.1, 1.0])), "straggler_shape": float(rng.choice([1.1, 3.0]))}
    if rng.random() < 0.5:
        values |= {"speculation": True, "speculation_quantile": float(rng.choice([0.1, 0.5, 0.9]))}
        values["speculation_multiplier"] = float(rng.choice([0.0, 1.1, 3.0]))
        values["speculation_interval_ms"] = float(rng.choice([0.3, 100.0, 1000.0]))
    return settings.replace(reoffer=True, **values)


def asking(workload, rng):
    """The same jobs, whose stages ask for memory up to 1 and one CPU."""
    jobs = [replace(job, requests=1.0 - rng.random(len(job.profile.stages))) for job in workload.jobs]
    return Workload(tuple(jobs), workload.label, workload.universe)


def random_classes(rng):
    """Two to four classes of executors; the largest fits everything."""
    memory = [*rng.choice([0.2, 0.4, 0.6, 0.8], rng.integers(1, 4), replace=False).tolist(), 1.0]
    return tuple((each, int(rng.integers(1, 5)), float(rng.choice([1.0, 2.0]))) for each in memory)


#: Executors stay and are alike; come, go and fail; have several sizes.
FIXED, ELASTIC, CLASSES = range(3)


def of_kind(kind, workload, settings, rng):
    """The workload and the settings on one of these clusters."""
    if kind == CLASSES:
        return asking(workload, rng), settings.replace(classes=random_classes(rng))
    return workload, random_units(rng, settings.replace(reoffer=True)) if kind == ELASTIC else settings
