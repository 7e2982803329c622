"""What a scheduler sees and how its decisions are read; schedulers by name."""

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError, InvalidDecisionError, SchedulerError
from decima.systems.spark.schedulers import (
    Decision,
    describe_scheduler,
    list_schedulers,
    make_scheduler,
    register,
    registry,
)
from decima.systems.spark.schedulers.interface import decision_parts
from tests.toy_jobs import job, one_stage, stage, workload


class Recorder:
    """Gives every offered executor to the first stage and writes down what it saw."""

    name = "recorder"

    def __init__(self, look):
        self.look = look
        self.seen = []

    def reset(self, rng):
        self.rng = rng

    def decide(self, observation):
        self.seen.append(self.look(observation))
        return observation.grant(observation.frontier[0], observation.num_free_executors)


def seen(look, jobs, executors, **settings):
    recorder = Recorder(look)
    decima.simulate(jobs, recorder, executors, **({"mode": "simplified"} | settings))
    return recorder.seen


CHAIN = workload(job(stage("a", 3, 1.0), stage("b", 1, 4.0, 0)), one_stage(1, 2.0, at_s=1.0))


def test_observation_of_a_chain():
    def look(observation):
        return (
            observation.time_ms,
            observation.num_executors,
            observation.num_free_executors,
            observation.source_job and observation.source_job.id,
            [view.id for view in observation.jobs],
            [(view.job.id, view.index) for view in observation.frontier],
        )

    rows = seen(look, CHAIN, 2)
    assert rows[0] == (0.0, 2, 2, None, [0], [(0, 0)])
    # At 1 s job 1 comes, one executor takes the last task of a and the other finds none: both are offered.
    assert rows[1] == (1000.0, 2, 2, 0, [0, 1], [(0, 1), (1, 0)])
    assert rows[2] == (1000.0, 2, 1, 0, [0, 1], [(1, 0)])
    # At 2 s a is finished: who waited for b is offered again, who finished a goes to job 1 as decided.
    assert rows[3:] == [(2000.0, 2, 1, 0, [0, 1], [(0, 1)])]


def test_views_of_stages_and_jobs():
    def look(observation):
        owner = observation.jobs[0]
        first, second = owner.stages
        return [
            (owner.arrival_ms, owner.work_ms, owner.remaining_work_ms, owner.allocation),
            (first.num_tasks, first.tasks_to_launch, first.tasks_unfinished, first.room, first.executors),
            (first.mean_duration_ms, first.path_work_ms, second.path_work_ms),
            (first.runnable, first.schedulable, second.runnable, second.schedulable),
        ]

    rows = seen(look, CHAIN, 2)
    assert rows[0] == [(0.0, 7000.0, 7000.0, 0), (3, 3, 3, 3, 0), (1000.0, 7000.0, 4000.0), (True, True, False, False)]
    assert rows[1][1] == (3, 0, 1, 0, 2)


def test_views_are_equal_when_they_show_the_same():
    def look(observation):
        chosen = observation.frontier[-1]
        assert chosen in observation.frontier
        assert chosen in chosen.job.stages
        assert len({*observation.frontier, *observation.frontier}) == len(observation.frontier)
        assert chosen != chosen.job
        assert chosen.job in observation.jobs
        assert repr(chosen) == f"StageView(job={chosen.job.id}, stage={chosen.index})"
        return True

    assert all(seen(look, decima.workload.synthetic_batch(3), 4, mode="paper"))


@pytest.mark.parametrize("mode", ["paper", "released"])
def test_grant_gives_that_many_executors_in_every_mode(mode):
    class Gives:
        name = "gives"

        def reset(self, rng):
            self.rng = rng
            self.wanted = []

        def decide(self, observation):
            chosen = observation.frontier[self.rng.integers(len(observation.frontier))]
            executors = int(self.rng.integers(1, min(observation.num_free_executors, chosen.room) + 1))
            self.wanted.append(executors)
            return observation.grant(chosen, executors)

    scheduler = Gives()
    jobs = decima.workload.synthetic_poisson(5, 10.0, seed=1)
    result = decima.simulate(jobs, scheduler, 8, mode=mode, log=True)
    rows = [row for row in result.log.decision_lists() if row[3] > 0]
    assert len(rows) > 50
    assert [row[7] for row in rows] == scheduler.wanted


def test_reading_decisions():
    assert decision_parts(Decision(4, 7)) == (4, 7, 0.0, -1)
    assert decision_parts(Decision(np.int32(4), np.int64(7))) == (4, 7, 0.0, -1)
    assert decision_parts(Decision.idle()) == (-1, None)
    assert decision_parts(Decision(None, "whatever")) == (-1, None)
    assert decision_parts(Decision(3, 10**40)) == (3, 2**31 - 1, 0.0, -1)
    assert decision_parts(Decision(3, -(10**40))) == (3, 1 - 2**31, 0.0, -1)


def test_simulate_refuses_what_is_no_scheduler_and_no_decision():
    broken = Recorder(None)
    broken.decide = lambda observation: None
    with pytest.raises(SchedulerError, match="decide returned None"):
        decima.simulate(CHAIN, broken, 2)
    broken.decide = lambda observation: Decision(1, 2)
    with pytest.raises(InvalidDecisionError, match=r"decision 0 at 0\.000 s: cannot choose stage 1 of job 0"):
        decima.simulate(CHAIN, broken, 2)
    with pytest.raises(SchedulerError, match="expected an object of it"):
        decima.simulate(CHAIN, Recorder, 2)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("weighted_fair", {"aplha": 1.0}, "weighted_fair has no parameter 'aplha'; did you mean 'alpha'.*has: alpha"),
        ("random", {"seed": 1}, "scheduler random has no parameter 'seed'; it has: none"),
        ("weighted_fair", {"alpha": 7}, "weighted_fair: alpha must be from -5 to 5, got 7"),
        ("entry_srw", {"pay": -1.0}, "scheduler entry_srw: pay must be from 0 to 1000, got -1.0$"),
        ("entry_srw", {"waiting": 0}, "waiting must be a whole number from 1 to 2, got 0$"),
        ("entry_srw", {"level": -1}, "level must be a whole number from 0 to 100, got -1$"),
        ("idle_rule", {"hold": 0.5}, "scheduler idle_rule: hold must be a whole number from 0 to 1, got 0.5"),
        ("idle_rule", {"steps": 2.5}, "steps must be a whole number from 1 to 1000, got 2.5"),
        ("weighted_fair", {"alpha": "high"}, "alpha must be from -5 to 5, got 'high'"),
        ("weighted_fair", {"alpha": None}, "alpha must be from -5 to 5, got None"),
    ],
)
def test_bad_parameters(name, values, message):
    with pytest.raises(ConfigError, match=message):
        make_scheduler(name, **values)


def test_registering_a_scheduler_of_ones_own(monkeypatch):
    list_schedulers()  # loads the others
    monkeypatch.setattr(registry.SCHEDULERS, "_members", dict(registry.SCHEDULERS._members))

    @register("recorder")
    def recorder(**values):
        """Gives everything to the first stage."""
        return Recorder(lambda observation: None)

    assert "recorder" in list_schedulers()
    assert describe_scheduler("recorder") == "Gives everything to the first stage."
    assert decima.simulate(CHAIN, "recorder", 2).scheduler == "recorder"
