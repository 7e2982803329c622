"""Everything that carries decisions carries all their parts."""

from dataclasses import fields

from decima.compiled.decision import places
from decima.policy.record import CHOICE_COLUMNS
from decima.schedulers import Decision
from decima.schedulers.interface import decision_parts
from decima.schedulers.replay import _ROW
from decima.service import scheduler_pb2 as protocol
from decima.simulator.decision import DECISION_COLUMNS, DEFAULTS, LIMIT, NUM_PARTS, OPTION_PARTS, PARTS, STAGE
from decima.simulator.gym.environment import SparkClusterEnv
from tests.toy_jobs import one_stage, workload


def test_places_are_in_the_order_of_the_parts():
    assert places(PARTS) == tuple(range(NUM_PARTS))
    assert (places(PARTS).stage, places(PARTS).limit) == (STAGE, LIMIT)
    assert all(part.doc for part in PARTS)


def test_decisions_have_every_part_with_its_default():
    defaults = {field.name: field.default for field in fields(Decision)}
    assert list(defaults) == [part.attribute for part in PARTS]
    assert [defaults[part.attribute] for part in OPTION_PARTS] == list(DEFAULTS[1:])
    assert decision_parts(Decision(3)) == (3, *DEFAULTS[1:])


def test_protocol_log_replay_environment_and_record_have_every_part():
    assert {part.name for part in PARTS} <= set(protocol.Decision.DESCRIPTOR.fields_by_name)
    assert {part.column for part in PARTS} <= set(DECISION_COLUMNS)
    assert ("job", *(part.name for part in PARTS)) == _ROW
    assert {part.name for part in OPTION_PARTS} <= set(CHOICE_COLUMNS)
    env = SparkClusterEnv(workload(one_stage(2, 1.0)), executors=3)
    assert env.action_space.nvec.tolist() == [env.padding.size(part.extent) for part in PARTS]
    _, info = env.reset(seed=0)
    assert len(info["action_mask"]) == NUM_PARTS
