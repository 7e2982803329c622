"""Relocation: fields follow from what they refer to, and none can be forgotten."""

import numpy as np
import pytest

from decima.core.errors import RecordError
from decima.core.record import F64, I32, I64, LOCAL, PLAIN, RUN, U8, FieldGroup, Record, RecordType, fields
from decima.core.relocation import Numbering, Relocation, restart_rows


def record_type(*more):
    return RecordType(
        "toy",
        FieldGroup.of(
            "all",
            fields(I64, None, refers=PLAIN, count="a number"),
            fields(I64, None, refers=LOCAL, size="of this memory"),
            fields(I64, None, refers="node", first="a node"),
            fields(F64, "node", weight_ms="a time"),
            fields(U8, "node", refers=PLAIN, open="a flag"),
            fields(I32, "node", RUN, -1, refers="node", after="a node"),
            fields(I32, "node class", refers=PLAIN, by_class="[node, class] a number"),
            fields(I32, "machine", refers="node class", task="node x classes + class"),
            *more,
        ),
    )


TOY = record_type()
EXTENTS = {"node": 4, "node class": 8, "machine": 3}
SPACES = {"renumbered": ("node", "node class"), "unchanged": (None, "machine")}
# Nodes 1 and 3 become 2 and 1; node 0 is gone, and whatever refers to it refers to node 0 of the other memory.
ROWS, NUMBERS = np.array([1, 3], np.int32), np.array([0, 2, 0, 1], np.int32)


def filled():
    record = Record(TOY, EXTENTS)
    record.restart()
    record.put(count=7, size=4, first=3)
    record.weight_ms[:] = [0.5, 1.5, np.nan, 3.5]
    record.open[:] = [1, 0, 1, 1]
    record.after[:] = [3, -1, 0, 1]
    record.by_class[:] = np.arange(8)
    record.task[:] = [3, -1, 6]
    return record


def test_rows_and_references_get_their_new_numbers():
    source, target = filled(), Record(TOY, EXTENTS | {"machine": 5})
    target.restart()
    target.put(size=9)
    Relocation(TOY, **SPACES).copy(source, target, [Numbering(ROWS, NUMBERS), Numbering(ROWS, NUMBERS, width=2)])
    assert (target.count, target.size, target.first) == (7, 9, 1)
    assert target.weight_ms.tolist() == [0.0, 3.5, 1.5, 0.0]
    assert target.open.tolist() == [0, 1, 0, 0]
    assert target.after.tolist() == [-1, 2, -1, -1]
    assert target.by_class.tolist() == [0, 0, 6, 7, 2, 3, 0, 0]
    assert target.task.tolist() == [5, -1, 2, 0, 0]  # classes 1 and 0 of nodes 1 and 3


def test_rows_of_one_record_find_another_position_in_it():
    record = filled()
    numbers = Numbering(np.array([1], np.int32), np.array([2], np.int32), first=1)
    record.after[1] = 1
    Relocation(TOY, ("node",), left=(None, "machine", "node class")).copy(record, record, [numbers])
    assert record.after.tolist() == [3, 1, 2, 1]
    assert record.weight_ms.tolist() == [0.5, 1.5, 1.5, 3.5]


def test_rows_are_put_to_their_beginning():
    record = filled()
    restart_rows(record, {"node": slice(2, 4)})
    assert record.after.tolist() == [3, -1, -1, -1]
    assert record.weight_ms.tolist() == [0.5, 1.5, 0.0, 0.0]
    assert record.by_class.tolist() == list(range(8))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (fields(I32, "node", late="who knows"), "field late of integers lacks what they refer to"),
        (
            fields(U8, "edge", refers=PLAIN, late="a flag"),
            "field late has the extent 'edge', whose numbers nobody gave",
        ),
        (fields(I32, "node", refers="edge", late="an edge"), "field late refers to 'edge', whose numbers nobody gave"),
    ],
)
def test_a_field_cannot_be_forgotten(more, message):
    with pytest.raises(RecordError, match=message):
        Relocation(record_type(more), **SPACES)
