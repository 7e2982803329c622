"""Deliberate idle slots, followed by hand."""

import json
import math
import re

import numpy as np
import pytest

import decima
from decima.commands.shared.outputs import result_document
from decima.commands.systems import spark as spark_options
from decima.core.errors import ConfigError, InvalidDecisionError, RecordError, SchedulerError
from decima.core.system import get_system
from decima.systems.spark.schedulers import Decision, check_scheduler, make_scheduler
from decima.systems.spark.schedulers.fields import rule_record
from decima.systems.spark.schedulers.interface import decision_parts
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import new_state
from decima.systems.spark.system import run_state
from tests.drivers import Delaying
from tests.stepping import Steps
from tests.toy_jobs import job, one_stage, stage, workload

# Figure 1 of Duan and Wu: one executor, a job of 20 s, and one of 4 s that arrives after 2 s.
LONG_SHORT = workload(one_stage(1, 20.0, name="long"), one_stage(1, 4.0, at_s=2.0, name="short"))
STILL = {"startup": False}  # no moving delay
MODES = pytest.mark.parametrize("mode", ["paper", "released"])
# A stage of two tasks of 3 s, and behind it one of 1 s.
CHAIN = job(stage("a", 2, 3.0), stage("b", 1, 1.0, 0))


class Shortest:
    """The shortest stage of the frontier; delays stages of 20 s by ``delay_ms``."""

    name = "shortest"

    def __init__(self, delay_ms=0.0):
        self.delay_ms = delay_ms

    def reset(self, rng):
        pass

    def decide(self, observation):
        stage = min(observation.frontier, key=lambda stage: stage.mean_duration_ms)
        delay_ms = self.delay_ms if stage.delayable and stage.mean_duration_ms == 20_000.0 else 0.0
        limit = observation.grant(stage, 1).parallelism_limit
        return Decision(stage, limit, delay_ms)


# ---- delays that are refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay_ms", [-1.0, math.nan, math.inf, -math.inf, 1e16])
@MODES
def test_delays_out_of_range(mode, delay_ms):
    steps = Steps(workload(CHAIN), 4, mode)
    with pytest.raises(InvalidDecisionError, match=r"and delay \S+ ms: a delay must be a number of ms from 0 to"):
        steps.choose(0, 0, 1, delay_ms)
    with pytest.raises(SchedulerError, match=r"the delay_ms of a Decision is \S+ \(float\); expected a number"):
        decision_parts(Decision(0, 1, delay_ms))


@pytest.mark.parametrize("delay", [True, "1", None, 1j, np.array([1.0])])
def test_delays_that_are_no_numbers(delay):
    with pytest.raises(SchedulerError, match=r"the delay_ms of a Decision is .*; expected a number from 0 to 1e\+15"):
        decision_parts(Decision(0, 1, delay))


def refused(steps, *decision):
    with pytest.raises(InvalidDecisionError) as caught:
        steps.choose(*decision)
    return re.sub(r"; executors offered.*", "", str(caught.value))


@MODES
def test_stages_that_cannot_be_delayed(mode):
    where = "decision 1 at 0.000 s: cannot choose stage {} of job 0 with limit 4 and delay 5 ms: "
    begun = "a stage cannot be delayed that has a task launched or an executor promised or on its way"
    steps = Steps(workload(job(stage("a", 9, 3.0), stage("b", 1, 1.0, 0))), 4, mode, startup=False)
    steps.choose(0, 0, 2)
    # Only where all executors are assigned does the first of them start; in mode paper a stage is open again then.
    assert refused(steps, 0, 1, 4, 5.0) == where.format(1) + "it is not in the frontier"
    steps = Steps(workload(job(stage("a", 9, 3.0))), 4, mode, startup=False)
    steps.choose(0, 0, 2)
    message = refused(steps, 0, 0, 4, 5.0)
    assert message == where.format(0) + (begun if mode == "paper" else "it is not in the frontier")
    steps = Steps(workload(CHAIN), 4, mode, startup=False)
    steps.choose(0, 0, 2)
    # Its parent's tasks all have an executor, but none has finished.
    assert refused(steps, 0, 1, 4, 5.0) == where.format(1) + (
        "a stage cannot be delayed before its parents have finished"
    )
    steps = Steps(workload(CHAIN), 4, mode, startup=False)
    steps.choose(0, 0, 2, 5.0)
    assert refused(steps, 0, 0, 4, 5.0) == where.format(0) + "it is not in the frontier"
    assert refused(Steps(workload(CHAIN), 4, mode), None, None, 4, 5.0).endswith(
        "cannot choose idling with limit 4 and delay 5 ms: idling has no delay; choose the stage that is to be delayed"
    )
    parts = decision_parts(Decision(None, 0, 7.0))
    assert parts == (-1, None, 7.0, -1)


def test_an_array_of_delays_of_another_length_than_the_stages():
    state = new_state(workload(CHAIN, CHAIN), Settings.paper(executors=2))
    record = rule_record(state)
    with pytest.raises(RecordError, match=r"array stage_delay_ms .*: got .*3.*; expected 4 of float64, one per stage"):
        record.bind("stage_delay_ms", [1.0, 2.0, 3.0])
    with pytest.raises(RecordError, match=r"array stage_delay_ms .*: got NaN at place 1"):
        record.bind("stage_delay_ms", [1.0, math.nan, 3.0, 4.0])
    record.bind("stage_delay_ms", [1.0, 1.0, -3.0, 4.0])
    with pytest.raises(InvalidDecisionError, match="delay -3 ms: a delay must be a number"):
        run_state(state, make_scheduler("priority"), 0)


# ---- around the core ------------------------------------------------------------------------------------------------


def delayed_run(mode="paper"):
    """A run in which about half of the stages are delayed."""
    jobs = decima.workload.embedded_poisson(5, 20.0, 3)
    return decima.simulate(jobs, Delaying("fair"), 8, 2, mode=mode, log=True)


@MODES
def test_a_result_file_repeats_its_run(mode, tmp_path):
    first = delayed_run(mode)
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"decisions": first.log.decision_lists()}))
    again = decima.simulate(first.workload, f"replay:{path}", 8, 2, mode=mode, log=True)
    assert len(first.log.delays()) > 5
    assert again.log.decision_lists() == first.log.decision_lists()
    assert again.completion_ms.tolist() == first.completion_ms.tolist()


def test_files_name_the_delay_only_where_there_is_one():
    with_delays, without = delayed_run(), decima.simulate(LONG_SHORT, "fair", 2, log=True)
    assert result_document(spark_options, with_delays, {}, 0)["decision_fields"][7:] == ["executors_used", "delay_ms"]
    assert result_document(spark_options, without, {}, 0)["decision_fields"][7:] == ["executors_used"]
    assert {len(row) for row in without.log.decision_lists()} == {8}


def test_idle_time_is_split():
    result = decima.simulate(LONG_SHORT, Shortest(2000.0), 2, log=True, durations="mean", **STILL)
    # Two executors and one task withheld for 2 s; then 20 and 4 s of work until 22 s.
    idle = result.idle_time()
    assert idle.deliberate_s == pytest.approx(2.0)
    assert idle.deliberate_s + idle.forced_s == pytest.approx(2 * 22.0 - 24.0)
    for run in (delayed_run(), decima.simulate(LONG_SHORT, "fair", 2, log=True)):
        idle = run.idle_time()
        total_ms = run.num_executors * run.end_ms - run.busy_ms
        assert idle.deliberate_s + idle.forced_s == pytest.approx(total_ms / 1000.0)
    assert idle.deliberate_s == 0.0
    with pytest.raises(ConfigError, match="the run kept no log"):
        decima.simulate(LONG_SHORT, "fair", 2).idle_time()


def test_delays_given_as_an_array_delay_every_stage_once():
    jobs = decima.workload.embedded_batch(4, 0)
    system = get_system("spark")
    state = system.state(system.tables(jobs, Settings.paper(executors=10)), Settings.paper(executors=10), log=True)
    system.run(state, make_scheduler("priority"), 0)
    plain = system.result(state, "priority", 0)
    system.give(state, {"stage_delay_ms": np.zeros(state.num_stages)})
    system.run(state, make_scheduler("priority"), 0)
    assert system.result(state, "priority", 0).completion_ms.tolist() == plain.completion_ms.tolist()
    system.give(state, {"stage_delay_ms": np.full(state.num_stages, 3000.0)})
    system.run(state, make_scheduler("priority"), 0)
    delays = system.result(state, "priority", 0).log.delays()
    assert not delays.duplicated(["job", "stage"]).any()
    assert (delays.end_s - delays.start_s).tolist() == pytest.approx([3.0] * len(delays))
    assert len(delays) > 4


def test_schedulers_that_delay_keep_to_the_interface():
    report = check_scheduler(Delaying("fair"), executors=(1, 3))
    assert report.decisions > 0

    class Careless(Delaying):
        def decide(self, observation):
            decision = super().decide(observation)
            return decision if decision.stage is None else Decision(decision.stage, decision.parallelism_limit, 9.0)

    with pytest.raises(SchedulerError, match=r"; delay only where stage\.delayable says so"):
        check_scheduler(Careless("fair"), executors=(3,))
