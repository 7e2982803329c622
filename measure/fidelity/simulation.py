"""Simulations of runs that were measured on real Spark (appendix D).

Every measured run is simulated with profiles that come from other repetitions. Times run from the submission of a
query's first Spark job to the end of its last one, on either side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from decima.core.decision import CompiledDecision
from decima.core.errors import WorkloadError
from decima.evaluation.workers import map_threads
from decima.systems.spark.fields import NONE, state_at
from decima.systems.spark.rules.choices import choose, choose_idle
from decima.systems.spark.rules.frontier import stage_room
from decima.systems.spark.schedulers import CompiledScheduler
from decima.systems.spark.schedulers.fields import rule_of, rule_record
from decima.systems.spark.settings import Settings, cluster_settings
from decima.systems.spark.state import ClusterState, new_state
from decima.systems.spark.system import run_state
from decima.workload import arrivals, measured
from decima.workload.jobs import Job, Workload
from decima.workload.profile import JobProfile, at_level
from decima.workload.sources import TRAINING_SEED
from measure.experiment import Plan
from measure.fidelity.runs import Measurements
from measure.fidelity.variants import comparable, fill_first_waves, one_task_per_stage, with_levels
from measure.logs import scheduler_of
from measure.records import CONTROL

if TYPE_CHECKING:
    import pandas


@CompiledDecision.reading((), ("stage_rank",))
def _first_in_order(address):
    state = state_at(address)
    rank = rule_of(state).stage_rank
    best = NONE
    for stage in range(state.num_stages):
        if state.stage_in_frontier[stage] and (best == NONE or rank[stage] < rank[best]):
            best = stage
    if best == NONE:
        choose_idle(state)
    else:
        choose(state, best, min(stage_room(state, best), state.num_source))


class RecordedOrder(CompiledScheduler):
    """Scheduler that serves the first runnable stage in an order of all stages.

    Ordered by Spark job, then by Spark stage, this is Spark's FIFO, except that Spark decides anew after every task
    (see `measure.fidelity.variants.one_task_per_stage`).
    """

    def __init__(self, rank: Sequence[float]) -> None:
        super().__init__("recorded_order", _first_in_order)
        self.rank = np.asarray(rank, dtype=np.float64)

    def bind(self, state: ClusterState) -> None:
        """Hand the order to a state before its run starts.

        Raises:
            RecordError: there is not one rank per stage of the workload.
        """
        rule_record(state).bind("stage_rank", self.rank)
        super().bind(state)


LABEL = "TPC-H on Spark"


@dataclass(frozen=True)
class Service:
    """Schedulers of the service, and the durations that they went by."""

    schedulers: Mapping[str, Callable[[], CompiledScheduler]] = field(
        default_factory=dict
    )  # makers by name in the logs
    durations: Mapping[str, JobProfile] = field(default_factory=dict)  # profiles by name

    def scheduler(self, name: str, rank: np.ndarray) -> CompiledScheduler:
        """Scheduler of a run; that of Spark is the recorded order.

        Raises:
            WorkloadError: there is no such scheduler.
        """
        if name == CONTROL:
            return RecordedOrder(rank)
        if name not in self.schedulers:
            raise WorkloadError(f"runs under {name} cannot be simulated without the scheduler that they had")
        return self.schedulers[name]()

    def reported(self, profile: JobProfile) -> JobProfile:
        """The profile with the durations that the service had, where it had some."""
        known = self.durations.get(profile.name)
        if known is None or len(known.stages) != len(profile.stages):
            return profile
        pairs = zip(profile.stages, known.stages, strict=True)
        stages = tuple(replace(stage, reported_ms=other.mean_duration_ms) for stage, other in pairs)
        return replace(profile, stages=stages)


NO_SERVICE = Service()


@dataclass(frozen=True)
class Variant:
    """Way to simulate measured runs."""

    settings: Mapping[str, object]  # changes to the settings of the simulator, which switch effects off
    # Whether durations count as in `measure.logs.with_slot_times`, else from launch to end.
    dispatch: bool = True
    # Durations of the level that equals the number of executors in use by *this job* in the simulator, as in
    # training; else those measured with as many executors as the cluster has.
    level_of_job: bool = False
    lowest_level: bool = False  # durations of the lowest level measured, whatever the cluster


# Where the profile of a simulation comes from.
HELD_OUT, TRAINING, SAME_RUN, ALONE = "held out", "training", "same run", "alone"
# Names are shown in tables and figures.
ALL_EFFECTS, NO_STARTUP = "all effects", "no start-up of executors"
VARIANTS: Mapping[str, Variant] = {
    ALL_EFFECTS: Variant({}),
    "no first-wave slowdown": Variant({"first_wave": False}),
    NO_STARTUP: Variant({"startup": False}),
    "no slowdown by parallelism": Variant({}, lowest_level=True),
    "none of the three": Variant({"first_wave": False, "startup": False}, lowest_level=True),
    "no dispatch times": Variant({}, dispatch=False),
    "level by the job's executors": Variant({}, level_of_job=True),
}


def _shaped(
    profile: JobProfile | None, variant: Variant, executors: int, other: JobProfile | None
) -> JobProfile | None:
    """Reduce a profile to the levels of a variant; None if not measured."""
    if profile is None or executors not in profile.stages[0].levels:
        return None
    if (variant.lowest_level or variant.level_of_job) and executors > 1 and len(profile.stages[0].levels) == 1:
        if not comparable(profile, other, executors):
            return None
        profile = with_levels(profile, other)
    if variant.level_of_job:
        return profile
    return at_level(profile, profile.stages[0].levels[0] if variant.lowest_level else executors)


def simulate_alone(
    measurements: Measurements,
    variants: Mapping[str, Variant],
    seeds: int,
    threads: int | None = None,
    levels: Mapping[str, JobProfile] | None = None,
    service: Service = NO_SERVICE,
) -> pandas.DataFrame:
    """Simulate every run of a query alone, under the scheduler that the real run had.

    Args:
        measurements: What was measured.
        variants: Ways to simulate by name.
        seeds: Simulations of each run.
        threads: Workers, all cores by default; the result does not depend on it.
        levels: Profiles of the same queries at several executor counts, for variants that need others than were
            measured here; such variants are left out where there are none.
        service: What scheduled the runs with the plugin.

    Returns:
        Columns of `runs`, then variant, profile (`held out`: made of the other repetitions, of warm runs for warm ones
        and of fresh runs for fresh ones; `training`: of all repetitions; `same run`: of the compared run alone),
        simulated_ms (mean), simulated_sd_ms. A query that was not measured in other repetitions, or not with this
        number of executors, has no row.
    """
    alone = measurements.runs[measurements.runs.alone]
    work = []
    for (fresh, repetition), runs in alone.groupby(["fresh", "repetition"]):
        same = alone[alone.fresh == fresh]
        same_run = same.repetition == repetition
        for source, chosen in ((HELD_OUT, same[~same_run]), (TRAINING, same), (SAME_RUN, same[same_run])):
            for name, variant in variants.items():
                if source != HELD_OUT and name != ALL_EFFECTS:
                    continue
                profiles = measurements.profiles(chosen, dispatch=variant.dispatch)
                if fresh:
                    warm = measurements.profiles(
                        alone[~alone.fresh & (alone.repetition != repetition)], dispatch=variant.dispatch
                    )
                    profiles = {of: fill_first_waves(profile, warm.get(of)) for of, profile in profiles.items()}
                startup_ms = chosen.groupby("executors").startup_ms.mean()
                work += [
                    (run, name, variant, source, profiles.get(run.name), startup_ms.get(run.executors, 0.0))
                    for run in runs.itertuples(index=False)
                ]

    def simulate(item):
        run, name, variant, source, profile, startup_ms = item
        profile = _shaped(profile, variant, run.executors, (levels or {}).get(run.name))
        if profile is None:
            return None
        settings = cluster_settings(run.executors, fresh=run.fresh, moving_delay_ms=startup_ms, **variant.settings)
        rank = measurements.stage_ranks(run.app, run.query)
        if len(rank) != len(profile.stages):
            return None
        order = service.scheduler(scheduler_of(run.query), rank)
        workload = Workload((Job(service.reported(profile)),), LABEL)
        times = job_times_ms(workload, settings, order, range(seeds))[:, 0]
        return run._asdict() | _simulated(name, source, times)

    return _table(map_threads(simulate, work, threads))


def simulate_mixes(
    measurements: Measurements,
    variants: Mapping[str, Variant],
    seeds: int,
    threads: int | None = None,
    levels: Mapping[str, JobProfile] | None = None,
    service: Service = NO_SERVICE,
) -> pandas.DataFrame:
    """Simulate every mix, with the recorded arrivals, under the scheduler that the real run had.

    Spark's own FIFO is replayed as the recorded order of its jobs and stages; schedulers of the service run as usual.

    Args:
        measurements: What was measured.
        variants: Ways to simulate by name.
        seeds: Simulations of each mix.
        threads: Workers, all cores by default; the result does not depend on it.
        levels: As in :func:`simulate_alone`.
        service: As in :func:`simulate_alone`.

    Returns:
        As :func:`simulate_alone`, with mix (0, 1, ...), scheduler, and bound (whether executors are bound to stages, as
        in the simulator, the paper and Spark with the plugin, or decide anew after every task, as in Spark's own FIFO;
        both ways for the latter). `profile` is `alone` (warm runs of the queries alone on the same executors),
        `held out` (the other mixes under the same scheduler) or `same run` (the mix itself).
    """
    mixes = measurements.mixes()
    runs = measurements.runs
    work = []
    for number, mix in enumerate(mixes):
        executors = int(mix.executors.max())
        alone = runs[runs.alone & ~runs.fresh]
        scheduler = scheduler_of(mix["query"].iloc[0])
        others = runs.loc[[
            row for other, rows in enumerate(mixes)
            if other != number and scheduler_of(rows["query"].iloc[0]) == scheduler for row in rows.index
        ]]  # fmt: skip
        for source, chosen in ((ALONE, alone), (HELD_OUT, others), (SAME_RUN, mix)):
            for name, variant in variants.items():
                if name != ALL_EFFECTS and source != ALONE:
                    continue
                profiles = measurements.profiles(chosen, dispatch=variant.dispatch)
                for bound in (False, True) if scheduler == CONTROL else (True,):
                    work.append((number, mix, executors, scheduler, name, variant, source, bound, profiles))

    def simulate(item):
        number, mix, executors, scheduler, name, variant, source, bound, profiles = item
        if not set(mix.name) <= set(profiles):
            return []
        begin = mix.submit_ms.min()
        jobs, ranks = [], []
        for run in mix.itertuples(index=False):
            profile, rank = profiles[run.name], measurements.stage_ranks(run.app, run.query)
            profile = _shaped(profile, variant, executors, (levels or {}).get(run.name))
            if profile is None or len(rank) != len(profile.stages):
                return []
            if not bound:
                profile, origin = one_task_per_stage(profile, executors)
                rank = rank[origin]
            jobs.append(Job(service.reported(profile), run.submit_ms - begin))
            ranks.append(rank)
        settings = cluster_settings(executors, **variant.settings)
        order = service.scheduler(scheduler, np.concatenate(ranks))
        times = job_times_ms(Workload(tuple(jobs), LABEL), settings, order, range(seeds))
        about = {"mix": number, "scheduler": scheduler, "bound": bound}
        return [
            run._asdict() | about | _simulated(name, source, times[:, index])
            for index, run in enumerate(mix.itertuples(index=False))
        ]

    return _table([row for rows in map_threads(simulate, work, threads) for row in rows])


def job_times_ms(
    workload: Workload, settings: Settings, scheduler: CompiledScheduler, seeds: Sequence[int]
) -> np.ndarray:
    """Job durations, float64 ms [seeds, jobs], from arrival to completion."""
    state = new_state(workload, settings)
    times = []
    for seed in seeds:
        run_state(state, scheduler, seed)
        times.append(state.job_finish_ms - state.job_arrival_ms)
    return np.array(times)


def _simulated(variant: str, profile: str, times_ms: np.ndarray) -> dict:
    spread = float(np.std(times_ms, ddof=1)) if len(times_ms) > 1 else 0.0
    return {"variant": variant, "profile": profile, "simulated_ms": float(np.mean(times_ms)), "simulated_sd_ms": spread}


def _table(rows: Sequence[dict | None]) -> pandas.DataFrame:
    import pandas

    return pandas.DataFrame([row for row in rows if row is not None])


def error_summary(errors: np.ndarray) -> dict[str, float]:
    """Summarize relative errors in percent: mean, median, 95th percentile, bias.

    Args:
        errors: float64 [n], (simulated - real) / real.
    """
    size = 100.0 * np.abs(errors)
    return {
        "runs": len(errors),
        "mean_percent": float(size.mean()),
        "median_percent": float(np.median(size)),
        "p95_percent": float(np.quantile(size, 0.95)),
        "bias_percent": 100.0 * float(np.mean(errors)),
    }


def plan_profiles(plan: Plan) -> dict[str, JobProfile]:
    """Measured profiles by name, with durations at the plan's number of executors.

    Raises:
        WorkloadError: nothing was measured at this scale or with this number of executors.
    """
    profiles = measured.measured_profiles(f"{plan.scale:g}g")
    return {profile.name: at_level(profile, plan.executors) for profile in profiles}


def batch_workload(
    plan: Plan, number: int, profiles: Mapping[str, JobProfile], arrivals_ms: Sequence[float]
) -> Workload:
    """Jobs of a batch in its order.

    Args:
        plan: the experiment.
        number: which batch.
        profiles: by name.
        arrivals_ms: of the jobs, float64 [queries].

    Raises:
        WorkloadError: a profile is missing.
    """
    names = [plan.profile(query) for query in plan.batch(number)]
    if missing := [name for name in names if name not in profiles]:
        raise WorkloadError(f"there is no profile {missing[0]} for batch {number}")
    jobs = tuple(Job(profiles[name], arrival_ms) for name, arrival_ms in zip(names, arrivals_ms, strict=True))
    return Workload(jobs, measured.LABEL, tuple(profiles.values()))


def training_workloads(plan: Plan, count: int) -> list[Workload]:
    """Batches to tune on, from the same queries with seeds of training.

    Raises:
        WorkloadError: nothing was measured at this scale or with this number of executors.
    """
    profiles = tuple(plan_profiles(plan).values())
    seeds = range(TRAINING_SEED, TRAINING_SEED + count)
    return [arrivals.batch(profiles, plan.queries, seed, label=measured.LABEL) for seed in seeds]
