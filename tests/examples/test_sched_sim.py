"""Agents of spark-sched-sim: what they see and decide here, alone and as entries."""

import json
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from sched_sim import SchedSimEnv, SchedSimScheduler, observe

from decima.bench.entries import entry_of
from decima.bench.run import score
from decima.bench.tasks import tasks
from decima.core.errors import SchedulerError
from decima.systems.spark.gym.environment import SparkClusterEnv
from decima.systems.spark.schedulers.interface import Observation, decision_parts
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import new_state, offers, spawn_generators
from tests import toy_jobs
from tests.examples.agents import ChanceAgent, FairAgent, sched_sim_fair

FILE = Path(__file__).with_name("agents.py")
RECORDED = json.loads(Path(__file__).with_name("sched_sim_decisions.json").read_text(encoding="utf-8"))
TASK = replace(tasks()["embedded-batch"], jobs=("embedded:n=4",), test=(60000, 1))
# Two chains and a single stage.
JOBS = toy_jobs.workload(
    toy_jobs.job(toy_jobs.stage("a", 6, 3.1), toy_jobs.stage("b", 3, 2.3, 0), toy_jobs.stage("c", 1, 1.7, 1)),
    toy_jobs.one_stage(9, 4.9),
    toy_jobs.job(toy_jobs.stage("a", 7, 2.07), toy_jobs.stage("b", 5, 5.3, 0), at_s=7),
)
CLUSTER = Settings.released(executors=8, durations="mean", first_wave=False, inflation=False, warmup_delay_ms=0.0)


def decisions(scheduler, workload=JOBS, settings=CLUSTER):
    """Time, job, stage and executors of every decision, and the JCTs, ms."""
    state = new_state(workload, settings)
    state.start(*spawn_generators(0))
    scheduler.reset(np.random.default_rng(0))
    rows = []
    for _ in offers(state):
        decision = scheduler.decide(Observation(state))
        stage = decision.stage
        place = [-1, -1] if stage is None else [stage.job.id, stage.index]
        rows.append([round(state.now_ms, 3), *place, decision.parallelism_limit])
        state.decide(*decision_parts(decision))
    return rows, (state.job_finish_ms - state.job_arrival_ms).round(3).tolist()


def small(agent=FairAgent):
    agent = agent()
    agent.num_executors = 8
    return agent


def test_decisions_are_those_of_the_other_simulator():
    rows, jct_ms = decisions(SchedSimScheduler(small()))
    assert rows == RECORDED["decisions"]
    assert jct_ms == RECORDED["jct_ms"]


def test_observation_has_unfinished_stages_and_offers():
    state = new_state(JOBS, CLUSTER)
    state.start(*spawn_generators(0))
    next(offers(state))
    seen, stages = observe(state)
    assert seen["dag_batch"].nodes.tolist() == [
        [6, np.float32(3100.0), 1], [3, np.float32(2300.0), 0], [1, np.float32(1700.0), 0], [9, np.float32(4900.0), 1]
    ]  # fmt: skip
    assert seen["dag_batch"].edge_links.tolist() == [[0, 1], [1, 2]]
    assert stages.tolist() == [0, 3]
    rest = {name: value for name, value in seen.items() if name != "dag_batch"}
    assert rest == {"dag_ptr": [0, 3, 4], "num_committable_execs": 8, "source_job_idx": 2, "exec_supplies": [0, 0]}
    for _ in range(8):  # until the first job releases executors
        state.decide(*decision_parts(SchedSimScheduler(small()).decide(Observation(state))))
        state.advance()
    seen, _ = observe(state)
    assert seen["source_job_idx"] < 2
    assert seen["exec_supplies"][seen["source_job_idx"]] >= seen["num_committable_execs"]


def test_an_agent_is_an_entry_that_decides_as_here():
    instance, entry = TASK.instances()[0], entry_of(f"{FILE}:sched_sim_fair")
    far, here = score(TASK, entry.scheduler(TASK), instance), score(TASK, sched_sim_fair(), instance)
    assert (entry.form, far.failure, here.failure) == ("Python", "", "")
    assert (far.value, far.decisions) == (here.value, here.decisions)


def test_chance_of_an_agent_comes_from_the_run():
    scheduler = SchedSimScheduler(small(ChanceAgent))
    assert decisions(scheduler) == decisions(scheduler)


def test_environment_goes_as_the_scheduler():
    env = SchedSimEnv(SparkClusterEnv(JOBS, 8, "released", **{
        name: getattr(CLUSTER, name) for name in ("durations", "first_wave", "inflation", "warmup_delay_ms")
    }))  # fmt: skip
    agent, over, total, steps = small(), False, 0.0, 0
    seen, info = env.reset(seed=0)
    while not over:
        assert env.observation_space["num_committable_execs"].contains(seen["num_committable_execs"])
        seen, reward, over, truncated, info = env.step(agent.schedule(seen)[0])
        total, steps = total + reward, steps + 1
        assert not truncated
    rows, jct_ms = decisions(SchedSimScheduler(agent))
    assert (steps, info["wall_time"]) == (len(rows), 7000.0 + jct_ms[2])
    assert total == pytest.approx(-sum(jct_ms))


def test_wrappers_of_an_agent_are_applied():
    class OneLess(gymnasium.ActionWrapper):
        def action(self, action):
            return {"stage_idx": action["stage_idx"], "num_exec": action["num_exec"] + 1}

    class Counted(gymnasium.ObservationWrapper):
        def observation(self, seen):
            return seen | {"executors": self.env.unwrapped.num_executors}

    class Wrapped(FairAgent):
        num_executors = 8
        env_wrapper_cls = staticmethod(lambda env: Counted(OneLess(env)))

        def schedule(self, seen):
            assert seen["executors"] == 8
            action, more = super().schedule(seen)
            return action | {"num_exec": action["num_exec"] - 1}, more

    assert decisions(SchedSimScheduler(Wrapped())) == decisions(SchedSimScheduler(small()))


@pytest.mark.parametrize(
    ("action", "sentence"),
    [
        ({"stage_idx": 2, "num_exec": 1}, "stage_idx is 2; expected -1 to 1"),
        ({"stage_idx": 0, "num_exec": 9}, "num_exec is 9; expected 1 to 8"),
        ({"stage_idx": 0, "num_exec": 0}, "num_exec is 0; expected 1 to 8"),
        ({"stage": 0}, "expected a dict with stage_idx and num_exec"),
    ],
)
def test_invalid_actions_are_refused(action, sentence):
    agent = small()
    agent.schedule = lambda seen: (action, {})
    with pytest.raises(SchedulerError, match=sentence):
        decisions(SchedSimScheduler(agent))


def test_what_is_no_agent_is_refused():
    with pytest.raises(SchedulerError, match="object has no method schedule"):
        SchedSimScheduler(object())
