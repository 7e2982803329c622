"""Records of several types in one process, what may be bound to them, copies, and records with other rows."""

import numpy as np
import pytest
from numba import njit

from decima.core.errors import DecimaError, RecordError
from decima.core.heap import (
    heap_begin,
    heap_code,
    heap_fields,
    heap_length,
    heap_push,
    heap_remove,
    heap_repeat_top,
    heap_subject,
    heap_time,
)
from decima.core.record import (
    ADDRESS,
    BOUND,
    BUFFER,
    F64,
    I32,
    I64,
    LOCAL,
    PLAIN,
    RUN,
    U8,
    FieldGroup,
    Record,
    RecordType,
    fields,
)
from decima.core.relocation import Numbering, Relocation, restart_rows

SHOP = RecordType(
    "the shop",
    FieldGroup.of(
        "all",
        fields(I64, None, customers="in the shop"),
        fields(I64, None, ADDRESS, owner="address of the owner"),
        fields(F64, "shelf", BOUND, price="of what lies there"),
        fields(I32, "shelf", RUN, -1, stock="pieces, -1: never counted"),
        fields(F64, "sale", BUFFER, sales="what was paid"),
        heap_fields("place"),
    ),
)
TRUCK = RecordType("the truck", FieldGroup.of("all", fields(F64, None, customers="served, of another type")))
EXTENTS = {"shelf": 3, "sale": 2, "place": heap_length(8)}


@njit
def _sell(shop_address, truck_address, shelf):
    shop = SHOP_AT(shop_address)
    truck = TRUCK_AT(truck_address)
    shop.customers += 1
    shop.stock[shelf] -= 1
    shop.sales[0] += shop.price[shelf]
    truck.customers += 0.5


SHOP_AT, TRUCK_AT = SHOP.at, TRUCK.at


def test_two_types_in_one_process():
    shop, truck = Record(SHOP, EXTENTS), Record(TRUCK, {})
    shop.restart()
    shop.sales[:] = 0.0
    shop.bind("price", [1.0, 2.0, 4.0])
    for shelf in (1, 1, 2):
        _sell(shop.address, truck.address, shelf)
    assert (shop.customers, truck.customers) == (3, 1.5)
    assert shop.stock.tolist() == [-1, -3, -2]
    assert shop.sales[0] == 8.0
    shop.restart()
    assert (shop.customers, shop.stock.tolist(), shop.price[2]) == (0, [-1, -1, -1], 4.0)


def test_a_copy_goes_its_own_way_and_keeps_its_own_addresses():
    shop, other = Record(SHOP, EXTENTS), Record(SHOP, EXTENTS)
    shop.bind("price", [1.0, 2.0, 4.0])
    shop.configure(customers=5)
    shop.put(owner=7)
    shop.stock[:] = (1, 2, 3)
    shop.copy_into(other)
    assert (other.customers, other.owner, other.stock.tolist()) == (5, 0, [1, 2, 3])
    assert other.price is shop.price
    _sell(other.address, Record(TRUCK, {}).address, 0)
    assert (other.stock.tolist(), shop.stock.tolist()) == ([0, 2, 3], [1, 2, 3])
    with pytest.raises(RecordError, match="same type and extents"):
        shop.copy_into(Record(SHOP, EXTENTS | {"shelf": 4000}))


def test_buffers_keep_what_they_hold_when_they_grow():
    shop = Record(SHOP, EXTENTS)
    shop.sales[:] = (1.0, 2.0)
    shop.resize(sale=4)
    assert shop.sales[:2].tolist() == [1.0, 2.0]
    assert len(shop.sales) == 4


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("price", [1.0, 2.0], "array price of the shop: got 2 numbers; expected 3 of float64, one per shelf"),
        ("price", 1.0, "array price of the shop: got 0 dimensions"),
        ("price", [[1.0, 2.0, 3.0]], r"got 2 dimensions, shape \(1, 3\); expected 3"),
        ("price", [1.0, np.nan, 2.0], "got NaN at place 1; expected 3"),
        ("price", ["a", "b", "c"], "got type <U1"),
        ("price", [1j, 2j, 3j], "got type complex128; expected 3 of float64"),
        ("price", [[1.0], [2.0, 3.0], []], "got rows of different lengths"),
        ("cost", [1.0, 2.0, 3.0], "the shop has no input array 'cost'; it has: price"),
        ("stock", [1, 2, 3], "no input array 'stock'"),
        ("customers", [1], "no input array 'customers'"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(name, values, message):
    shop = Record(SHOP, EXTENTS)
    shop.bind("price", [1.0, 2.0, 4.0])
    with pytest.raises(RecordError, match=message) as caught:
        shop.bind(name, values)
    assert isinstance(caught.value, DecimaError)
    assert shop.price.tolist() == [1.0, 2.0, 4.0]


def test_arrays_that_are_not_copied_are_of_the_very_type():
    shop = Record(SHOP, EXTENTS)
    own = np.ones(3)
    shop.bind("price", own, copy=False)
    assert shop.price is own
    with pytest.raises(RecordError, match="got type int64; expected 3 of float64"):
        shop.bind("price", np.ones(3, dtype=np.int64), copy=False)
    with pytest.raises(RecordError, match="not contiguous"):
        shop.bind("price", np.ones(6)[::2], copy=False)


def test_arrays_that_a_rule_needs_must_have_been_given():
    shop = Record(SHOP, EXTENTS)
    with pytest.raises(RecordError, match="the till reads the array price, which is not set; expected 3 of float64"):
        shop.require(("price",), "the till")
    shop.bind("price", [1, 2, 3])
    shop.require(("price",), "the till")
    shop.release("price")
    assert shop.price.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(RecordError, match="which is not set"):
        shop.require(("price",), "the till")


def test_every_extent_has_a_length():
    with pytest.raises(RecordError, match="array sales of the shop: the extent 'sale' has no length"):
        Record(SHOP, {"shelf": 1, "place": 1})


@njit
def _push_and_pop(address, times, kinds, order):
    shop = SHOP_AT(address)
    heap_begin(shop, len(times))
    for index in range(len(times)):
        heap_push(shop, times[index], kinds[index], index)
    count = 0
    repeated = False
    while shop.heap_size > 0:
        order[count, 0] = heap_code(shop)
        order[count, 1] = heap_subject(shop)
        count += 1
        if heap_code(shop) == 2 and not repeated:
            repeated = True
            heap_repeat_top(shop, heap_time(shop) + 100.0)
        else:
            heap_remove(shop, heap_subject(shop))


def test_events_come_by_time_then_in_the_order_of_their_pushes_with_kind_and_subject():
    shop = Record(SHOP, EXTENTS)
    times = np.array([3.0, 1.0, 2.0, 1.0, 1.0, 2.0])
    kinds = np.array([0, 1, 2, 3, 1, 0])
    order = np.zeros((7, 2), dtype=np.int64)
    _push_and_pop(shop.address, times, kinds, order)
    assert order.tolist() == [[1, 1], [3, 3], [1, 4], [2, 2], [0, 5], [0, 0], [2, 2]]


@njit
def _change_events(address, chances, order):
    shop = SHOP_AT(address)
    heap_begin(shop, len(chances[0]))
    for step in range(len(chances)):
        for subject in range(len(chances[0])):
            if chances[step, subject] == 0:
                heap_push(shop, float(step + subject % 3), 0, subject)
            elif chances[step, subject] == 1:
                heap_remove(shop, subject)
        if shop.heap_size > 0:
            order[step] = heap_subject(shop)
            heap_repeat_top(shop, heap_time(shop) + 2.0)


@pytest.mark.parametrize("subjects", [1, 2, 4, 5, 17, 70])
def test_events_of_any_number_of_subjects_that_come_and_go(subjects):
    rng, events, pushed, expected = np.random.default_rng(subjects), {}, 0, []
    chances = rng.integers(0, 6, (200, subjects))
    for step, row in enumerate(chances):
        for subject in range(subjects):
            if row[subject] > 1 or (row[subject] == 0) == (subject in events):
                row[subject] = 2
            elif row[subject] == 0:
                events[subject] = step + subject % 3, pushed
                pushed += 1
            else:
                del events[subject]
        expected.append(min(events, key=events.get) if events else -1)
        if events:
            events[expected[-1]] = events[expected[-1]][0] + 2, pushed
            pushed += 1
    order = np.full(200, -1)
    shop = Record(SHOP, EXTENTS | {"place": heap_length(subjects)})  # its memory must outlive the call
    _change_events(shop.address, chances, order)
    assert order.tolist() == expected


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
TOY_EXTENTS = {"node": 4, "node class": 8, "machine": 3}
SPACES = {"renumbered": ("node", "node class"), "unchanged": (None, "machine")}
# Nodes 1 and 3 become 2 and 1; node 0 is gone, and whatever refers to it refers to node 0 of the other memory.
ROWS, NUMBERS = np.array([1, 3], np.int32), np.array([0, 2, 0, 1], np.int32)


def filled():
    record = Record(TOY, TOY_EXTENTS)
    record.restart()
    record.put(count=7, size=4, first=3)
    record.weight_ms[:] = [0.5, 1.5, np.nan, 3.5]
    record.open[:] = [1, 0, 1, 1]
    record.after[:] = [3, -1, 0, 1]
    record.by_class[:] = np.arange(8)
    record.task[:] = [3, -1, 6]
    return record


def test_rows_and_references_get_their_new_numbers():
    source, target = filled(), Record(TOY, TOY_EXTENTS | {"machine": 5})
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
