import re
from dataclasses import fields
from importlib.resources import files

import numpy as np
import pytest

from decima.connect.service import scheduler_pb2 as protocol
from decima.core.decision import places
from decima.core.errors import DeadlockError, InvalidDecisionError
from decima.systems.spark.decision import DECISION_COLUMNS, DEFAULTS, LIMIT, NUM_PARTS, OPTION_PARTS, PARTS, STAGE
from decima.systems.spark.fields import ARRAYS, CLUSTER, SCALARS
from decima.systems.spark.gym.environment import SparkClusterEnv
from decima.systems.spark.policy.kernel.recording import CHOICE_COLUMNS, CHOSEN, VALUE_COLUMNS
from decima.systems.spark.policy.record import EpisodeRecord
from decima.systems.spark.schedulers import Decision, make_scheduler
from decima.systems.spark.schedulers.fields import rule_record
from decima.systems.spark.schedulers.interface import decision_parts
from decima.systems.spark.schedulers.replay import _ROW
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import new_state
from decima.systems.spark.system import run_state
from tests.stepping import Steps
from tests.toy_jobs import job, one_stage, stage, workload

TWO = workload(job(stage("a", 2, 10.0), stage("b", 1, 1.0, 0)), one_stage(3, 10.0))


# ---- fields ---------------------------------------------------------------------------------------------------------


def test_every_field_has_one_name_one_slot_and_a_meaning():
    names = [field.name for field in CLUSTER.fields]
    assert len(set(names)) == len(names) == len(SCALARS) + len(ARRAYS)
    assert all(field.doc for field in CLUSTER.fields)
    assert all(field.dtype.itemsize == 8 for field in SCALARS.values())
    assert len(set(CLUSTER.offsets.values())) == len(CLUSTER.offsets) == len(SCALARS) + 2 * len(ARRAYS)


def test_fields_are_numbers_and_views_of_the_running_state():
    state = new_state(TWO, Settings(executors=4))
    state.start(np.random.default_rng(0), np.random.default_rng(1))
    assert state.num_executors == 4
    assert type(state.num_executors) is int
    assert type(state.now_ms) is float
    free = state.free_executors
    assert free.tolist() == [0, 1, 2, 3]
    assert state.free_executors is free
    assert np.isnan(state.job_finish_ms).all()
    with pytest.raises(AttributeError, match="the cluster state has no field 'executors_of_job'"):
        _ = state.executors_of_job


def test_bound_arrays_are_copies_of_the_right_type():
    record = rule_record(new_state(TWO, Settings(executors=4)))
    given = np.array([1, 2])
    record.bind("job_rank", given)
    given[0] = 9
    assert record.job_rank.tolist() == [1.0, 2.0]


def test_the_decision_log_grows():
    jobs = workload(*[one_stage(1, 1.0) for _ in range(1500)])
    state = new_state(jobs, Settings(executors=5), log_tasks=True, log_decisions=True)
    assert len(state.decision_rows) == 1024 * len(DECISION_COLUMNS)
    counts = []
    for _ in range(2):
        run_state(state, make_scheduler("random"), 0)
        counts.append((state.num_decisions, state.num_decisions_logged))
        rows = state.logged_decisions
        assert (rows[:, 7] >= 1).all()
        assert (np.diff(rows[:, 0]) >= 0).all()
    assert counts[0] == counts[1]
    assert counts[0][0] == counts[0][1] >= 1500
    assert state.num_tasks_logged == 1500


# ---- decisions that cannot be carried out ---------------------------------------------------------------------------


def refused(steps, job, stage, limit):
    with pytest.raises(InvalidDecisionError) as caught:
        steps.choose(job, stage, limit)
    return str(caught.value)


def test_a_stage_outside_the_frontier():
    steps = Steps(TWO, 4)
    assert refused(steps, 0, 1, 1) == (
        "decision 0 at 0.000 s: cannot choose stage 1 of job 0 with limit 1: it is not in the frontier; "
        "executors offered: 4; (job, stage) that can be chosen: [(0, 0), (1, 0)]"
    )


@pytest.mark.parametrize("stage_id", [4, 10**6, -2, -(2**40)])
def test_a_stage_that_does_not_exist(stage_id):
    steps = Steps(TWO, 4)
    steps.state.decide(stage_id, 1)
    with pytest.raises(InvalidDecisionError, match=f"cannot choose stage id {stage_id} with limit 1: it is not in the"):
        steps.state.advance()


@pytest.mark.parametrize("limit", [0, -3])
@pytest.mark.parametrize("mode", ["paper", "released"])
def test_a_limit_of_nothing(mode, limit):
    message = refused(Steps(TWO, 4, mode=mode), 1, 0, limit)
    assert f"stage 0 of job 1 with limit {limit}: the limit gives it no executor; executors offered: 4" in message


def test_a_limit_above_the_offer_is_too_much_only_where_it_counts_offered_executors():
    message = refused(Steps(workload(one_stage(9, 1.0)), 4, mode="released"), 0, 0, 5)
    assert "with limit 5: the limit exceeds the executors offered; executors offered: 4" in message
    # Room caps the number first, as in the published code, and a limit of the job may be anything.
    assert Steps(workload(one_stage(2, 1.0)), 4, mode="released").choose(0, 0, 5) == (0.0, -1, 2)
    assert Steps(workload(one_stage(9, 1.0)), 4).choose(0, 0, 500) == (4.0, 0, 4)


def test_idling_more_than_is_offered_or_nothing_or_twice():
    assert "cannot choose idling with limit 5: the limit exceeds" in refused(Steps(TWO, 4), None, None, 5)
    assert "cannot choose idling with limit 0: the limit gives it no executor" in refused(Steps(TWO, 4), None, None, 0)
    steps = Steps(TWO, 4)
    assert steps.idle(1) == (0.0, -1, 3)
    assert "idling was already chosen in this round; executors offered: 3" in refused(steps, None, None, 3)


def test_long_frontiers_are_cut_in_the_message():
    steps = Steps(workload(*[one_stage(1, 1.0) for _ in range(12)]), 4)
    shown = ", ".join(f"({number}, 0)" for number in range(8))
    assert refused(steps, None, None, 9).endswith(f"(job, stage) that can be chosen: [{shown}, ...]")


def idle_for_ever(steps):
    while steps.running:
        steps.idle()


@pytest.mark.parametrize("mode", ["paper", "released"])
def test_parking_every_executor_is_a_deadlock(mode):
    steps = Steps(workload(one_stage(1, 10.0), one_stage(1, 1.0), one_stage(1, 1.0, at_s=3.0)), 2, mode=mode)
    steps.choose(0, 0, 1)
    assert steps.idle(1)[0] == 3.0
    assert steps.idle()[0] == 12.0
    with pytest.raises(DeadlockError) as caught:
        idle_for_ever(steps)
    assert str(caught.value) == (
        "no event is left at 12.0 s but 2 of 3 jobs are unfinished (first: job 1): the scheduler parked every executor"
    )


# ---- everything that carries decisions carries all their parts -------------------------------------------------------


def test_places_are_in_the_order_of_the_parts():
    assert places(PARTS) == tuple(range(NUM_PARTS))
    assert (places(PARTS).stage, places(PARTS).limit) == (STAGE, LIMIT)
    assert all(part.doc for part in PARTS)


def test_decisions_have_every_part_with_its_default():
    defaults = {field.name: field.default for field in fields(Decision)}
    assert list(defaults) == [part.attribute for part in PARTS]
    given = [defaults[part.attribute] for part in OPTION_PARTS]
    assert [-1 if default is None else default for default in given] == list(DEFAULTS[1:])
    assert decision_parts(Decision(3)) == (3, *DEFAULTS[1:])


def test_protocol_log_replay_environment_and_record_have_every_part():
    assert {part.name for part in PARTS} <= set(protocol.Decision.DESCRIPTOR.fields_by_name)
    assert {part.column for part in PARTS} <= set(DECISION_COLUMNS)
    assert ("job", *(part.name for part in PARTS)) == _ROW
    env = SparkClusterEnv(workload(one_stage(2, 1.0)), executors=3)
    always = [part for part in PARTS if part.always]
    assert env.action_space.nvec.tolist() == [env.padding.size(part.extent) for part in always]
    _, info = env.reset(seed=0)
    assert len(info["action_mask"]) == len(always) == 2
    env = SparkClusterEnv(workload(one_stage(2, 1.0)), executors=3, delay_steps=4, classes=((0.5, 1), (1.0, 2)))
    assert env.action_space.nvec.tolist() == [env.padding.size(part.extent) for part in PARTS]
    _, info = env.reset(seed=0)
    assert len(info["action_mask"]) == NUM_PARTS


def test_parts_are_appended_to_the_log_so_that_older_columns_stay():
    old = ("time_ms", "source_job", "num_source_exec", "frontier_size", "job", "stage", "limit_requested")
    assert DECISION_COLUMNS[:8] == (*old, "executors_used")
    assert DECISION_COLUMNS[8:] == tuple(part.column for part in PARTS[2:])


def test_the_record_has_what_the_network_chooses():
    columns = {*CHOICE_COLUMNS, *VALUE_COLUMNS}
    assert {part.name for part in CHOSEN[1:]} | {f"log_prob_{part.name}" for part in CHOSEN} <= columns
    assert columns <= {field.name for field in fields(EpisodeRecord)}


def camel_case(name):
    return re.sub(r"_(\w)", lambda found: found.group(1).upper(), name)


def test_the_plugin_reads_every_part_of_a_reply():
    java = files("decima.connect.plugin") / "java" / "decima" / "spark"
    read = set(re.findall(r"\(reply, \"(\w+)\"\)", (java / "SessionState.java").read_text(encoding="utf-8")))
    assert {part.name for part in PARTS} <= read
    assert read <= set(protocol.Decision.DESCRIPTOR.fields_by_name)
    advice = re.search(r"record Advice\((.*)\)", (java / "Advisor.java").read_text(encoding="utf-8")).group(1)
    assert [entry.split()[1] for entry in advice.split(", ")][:NUM_PARTS] == [camel_case(part.name) for part in PARTS]
