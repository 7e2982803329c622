"""Everything that carries decisions carries all their parts."""

import re
from dataclasses import fields
from importlib.resources import files

from decima.connect.service import scheduler_pb2 as protocol
from decima.core.decision import places
from decima.systems.spark.decision import DECISION_COLUMNS, DEFAULTS, LIMIT, NUM_PARTS, OPTION_PARTS, PARTS, STAGE
from decima.systems.spark.gym.environment import SparkClusterEnv
from decima.systems.spark.policy.kernel.recording import CHOICE_COLUMNS, CHOSEN, VALUE_COLUMNS
from decima.systems.spark.policy.record import EpisodeRecord
from decima.systems.spark.schedulers import Decision
from decima.systems.spark.schedulers.interface import decision_parts
from decima.systems.spark.schedulers.replay import _ROW
from tests.toy_jobs import one_stage, workload


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
