"""The price of coming: by hand, against a plain version, and where it must be capped SRW itself."""

import math

import pytest

import decima
from decima.core.errors import ConfigError
from decima.systems.spark.schedulers import Decision, make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload.sources import parse_jobs
from tests.differential.oracle_durations import FIRST, FRESH, REST, DurationModel
from tests.toy_jobs import one_stage, workload

# 12 s of work on 4 executors, one job: an executor that comes costs 1 s on its way and 1 s for its first task.
TWELVE = workload(one_stage(12, 1.0))
CLUSTER = {"executors": 4, "moving_delay_ms": 1000.0}
WIDE = {"c0": 10.0, "leftover": 2}


def executors_used(jobs=TWELVE, cluster=CLUSTER, **parameters):
    result = decima.simulate(jobs, "entry_srw:batch", parameters=WIDE | parameters, log=True, **cluster)
    return len(set(result.log.executor.tolist()))


@pytest.mark.parametrize(("pay", "executors"), [(25, 1), (12, 2), (6, 2), (3, 3), (2, 4), (0, 4)])
def test_the_third_executor_comes_once_the_price_is_halved(pay, executors):
    """The (n+1)th comes while n (n + 1) is at most W E / (pay m c) = 12 x 4 / (pay x 1 x 2) = 24 / pay."""
    assert executors_used(pay=pay) == executors


@pytest.mark.parametrize("jobs", ["embedded:n=12", "embedded:n=20,arrivals=poisson"])
@pytest.mark.parametrize("values", [{"pay": 0.0}, {"pay": 2.0, "moving": 0.0}])
@pytest.mark.parametrize("mode", ["paper", "released"])
def test_without_a_price_or_a_way_it_is_capped_srw(jobs, values, mode):
    moving = {"moving_delay_ms": values["moving"]} if "moving" in values else {}
    jobs = parse_jobs(jobs).workload(3)
    capped, entry = (
        decima.simulate(jobs, name, 10, 4, mode=mode, parameters=given, log=True, **moving)
        for name, given in (("capped_srw", {}), ("entry_srw", {"pay": values["pay"]}))
    )
    assert capped.log.decision_lists() == entry.log.decision_lists()


class Plain:
    """The rule in plain Python, with the durations of the oracle."""

    name = "plain_entry"

    def __init__(self, workload, **values):
        self.workload = workload
        self.values = make_scheduler("entry_srw:stream", **values).values
        self.durations = DurationModel(Settings(durations="mean"))

    def reset(self, rng):
        pass

    def duration_ms(self, stage, wave, executors):
        return self.durations.duration_ms(self.workload.jobs[stage.job.id].profile.stages[stage.index], wave, executors)

    def work_ms(self, job):
        level, work = int(self.values["level"]), 0.0
        if level == 0:
            return job.remaining_work_ms
        for stage in job.stages:
            first = max(0, min(stage.num_tasks, level) - (stage.num_tasks - stage.tasks_to_launch))
            if stage.tasks_unfinished:
                work += first * self.duration_ms(stage, FIRST, level)
                work += (stage.tasks_unfinished - first) * self.duration_ms(stage, REST, level)
        return work

    def next_stage(self, observation, job):
        state, frontier = observation.state, [stage for stage in observation.frontier if stage.job == job]
        runnable = state.runnable_head[job.id]
        while runnable != -1:
            if any(stage.id == runnable for stage in frontier):
                return next(stage for stage in frontier if stage.id == runnable)
            runnable = state.runnable_next[runnable]
        return frontier[0]

    def decide(self, observation):
        values, jobs, offered = self.values, observation.jobs, observation.num_free_executors
        choices = [job for job in jobs if any(stage.job == job for stage in observation.frontier)]
        powers = [job.remaining_work_ms ** values["power"] if job.remaining_work_ms > 0 else 0.0 for job in jobs]
        shares, keys = {}, {}
        for job, power in zip(jobs, powers, strict=True):
            part = power / sum(powers) if sum(powers) > 0 else 1.0
            shares[job.id] = max(1, math.ceil(values["c0"] * observation.num_executors * part + values["c1"]))
            can = any(stage.job == job and stage.runnable for stage in observation.frontier)
            keys[job.id] = (not can, job.remaining_work_ms)
        own = observation.source_job
        if own in choices:
            keep = offered
            # Those promised to other jobs still count.
            held = own.allocation + offered + observation.state.job_outgoing[own.id]
            if held > values["release"] * shares[own.id]:
                keep = min(offered, shares[own.id] - own.allocation)
            if keep > 0:
                return observation.grant(self.next_stage(observation, own), keep)
        works = {job.id: job.remaining_work_ms for job in jobs}
        waiting = {job.id: sum(works[other.id] >= works[job.id] for other in jobs) for job in jobs}
        if values["waiting"] == 1:
            waiting = dict.fromkeys(waiting, len(jobs))

        def may_have(job):
            """Executors up to which others may come, found by counting them."""
            if job == own or values["pay"] == 0 or observation.state.moving_delay_ms == 0:
                return math.inf
            stage = self.next_stage(observation, job)
            cost = 1000 * values["entry_s"]
            if cost == 0:
                cost = observation.state.moving_delay_ms + self.duration_ms(stage, FRESH, job.allocation + 1)
            worth = self.work_ms(job) * observation.num_executors / (values["pay"] * waiting[job.id] * cost)
            count = 1
            while count * (count + 1) <= worth:
                count += 1
            return count

        open_jobs = [job for job in choices if job.allocation < may_have(job)]
        below = [job for job in open_jobs if job.allocation < shares[job.id]]
        if not open_jobs:
            return Decision.idle()
        chosen = min(below or open_jobs, key=lambda job: keys[job.id])
        stage = self.next_stage(observation, chosen)
        used = shares[chosen.id] - chosen.allocation if below else (offered - 1) // len(observation.frontier) + 1
        return observation.grant(stage, min(used, may_have(chosen) - chosen.allocation, stage.room, offered))


@pytest.mark.parametrize(
    "values", [{}, {"waiting": 2, "pay": 4}, {"level": 0, "pay": 3}, {"entry_s": 7.0, "level": 12, "release": 1.0}]
)
@pytest.mark.parametrize("seed", range(4))
def test_the_compiled_rule_decides_as_the_plain_one(seed, values):
    jobs = parse_jobs("embedded:n=25,arrivals=poisson,interarrival_s=12").workload(seed)
    executors = (6, 20, 50, 50)[seed]
    compiled, plain = (
        decima.simulate(jobs, scheduler, executors, seed, log=True).log.decision_lists()
        for scheduler in (make_scheduler("entry_srw:stream", **values), Plain(jobs, **values))
    )
    assert compiled == plain
    if executors > 6:
        assert compiled != decima.simulate(jobs, "capped_srw", executors, seed, log=True).log.decision_lists()


def test_a_cost_of_coming_needs_a_way():
    with pytest.raises(ConfigError, match="entry_s is 7 s, but executors move without delay; expected 0, or a cluster"):
        decima.simulate(TWELVE, "entry_srw:entry_s=7", 4, moving_delay_ms=0.0)
