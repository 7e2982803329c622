"""Whatever is bound to a state: the right length is taken, any other is an error that names the array."""

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from decima.core.errors import RecordError
from decima.core.record import BOUND, Record
from decima.evaluation.pool import CandidatePool
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.scheduler import LearnedScheduler
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.schedulers.fields import RULE
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import new_state
from decima.workload import synthetic_batch

SETTINGS = Settings(executors=5)
JOBS = synthetic_batch(4, seed=1)


def make_state():
    """A state with everything attached that may be."""
    state = new_state(JOBS, SETTINGS)
    make_scheduler("fair").bind(state)
    architecture = Architecture()
    LearnedScheduler(architecture, architecture.initial_weights(0)).bind(state)
    return state


STATE = make_state()
RECORDS = (STATE, *STATE.attached.values())
ARRAYS = [(record, field) for record in RECORDS for field in record.layout.arrays.values() if field.storage == BOUND]


def test_all_records_have_arrays_to_be_given():
    assert {record.layout.name for record, _ in ARRAYS} == {record.layout.name for record in RECORDS}
    assert len(RECORDS) == 3


@pytest.mark.parametrize(("record", "field"), ARRAYS, ids=[field.name for _, field in ARRAYS])
@given(data=st.data())
def test_every_wrong_length_of_every_array_is_refused(record, field, data):
    before = getattr(record, field.name)
    right = len(before)
    length = data.draw(st.one_of(st.integers(0, 3 * right + 5), st.sampled_from([max(0, right - 1), right + 1])))
    copy = data.draw(st.booleans())
    if length == right:
        Record.bind(record, field.name, before.copy(), copy=copy)
        return
    expected = f"array {field.name} of {record.layout.name}: got {length} numbers; expected {right} of {field.dtype}"
    with pytest.raises(RecordError, match=re.escape(expected)):
        Record.bind(record, field.name, np.zeros(length, dtype=field.dtype), copy=copy)
    with pytest.raises(RecordError, match=f"array {field.name} .*2 dimensions"):
        Record.bind(record, field.name, np.zeros((right, 1), dtype=field.dtype), copy=copy)
    assert len(getattr(record, field.name)) == right


@pytest.mark.parametrize("name", [*STATE.tables.arrays, "job_rank", "now_ms"])
def test_tables_of_a_state_are_those_of_its_workload(name):
    what = "is a table of its workload" if name in STATE.tables.arrays else "is none that can be given"
    with pytest.raises(RecordError, match=f"array {name} of the cluster state {what}; expected an array of the record"):
        STATE.bind(name, getattr(STATE, name))


@example(name="job_pool", candidates=1, rows=1, length=len(JOBS))
@given(
    name=st.sampled_from([name for name, field in RULE.arrays.items() if field.extent in ("job", "stage")]),
    candidates=st.integers(1, 3),
    rows=st.integers(0, 4),
    length=st.integers(0, 200),
)
def test_candidates_with_arrays_of_another_shape_are_refused(name, candidates, rows, length):
    pool = CandidatePool(JOBS, SETTINGS, workers=1)
    field = RULE.arrays[name]
    fits = rows == candidates and length == pool.tables.extents[field.extent] and field.storage == BOUND
    schedulers = [make_scheduler("priority")] * candidates
    values = np.zeros((rows, length), dtype=field.dtype)
    if fits:
        assert len(pool.scores(schedulers, {name: values})) == candidates
    else:
        with pytest.raises(RecordError, match=name):
            pool.scores(schedulers, {name: values})
    with pytest.raises(RecordError, match=name):
        pool.scores(schedulers, {name: np.zeros(length)})
