"""The build with bounds checks ends a process that reads outside of an array; the usual build is left alone."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
from numba import njit
from decima.core.record import F64, BOUND, FieldGroup, Record, RecordType, fields

SHOP = RecordType("the shop", FieldGroup.of("all", fields(F64, "shelf", BOUND, price="of what lies there")))
shop_at = SHOP.at

@njit
def total(address, count):
    shop = shop_at(address)
    sum = 0.0
    for shelf in range(count):
        sum += shop.price[shelf]
    return sum

@njit
def set_price(address, shelf):
    shop_at(address).price[shelf] = 1.0

shop = Record(SHOP, {"shelf": 3})
shop.bind("price", [1.0, 2.0, 4.0])
print(total(shop.address, 3), flush=True)
if sys.argv[1] == "read":
    total(shop.address, 4)
elif sys.argv[1] == "write":
    set_price(shop.address, -1)
print("end")
"""


def run(action, checks="1"):
    environment = os.environ | {"DECIMA_BOUNDS_CHECKS": checks}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, action], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(("action", "index"), [("read", 3), ("write", -1)])
def test_an_index_outside_of_an_array_ends_the_process(action, index):
    done = run(action)
    assert done.stdout == "7.0\n"
    assert done.returncode != 0
    assert f"index {index} is outside of array price, which has 3 entries" in done.stderr


def test_indices_inside_of_arrays_are_well():
    done = run("nothing")
    assert (done.returncode, done.stdout) == (0, "7.0\nend\n")
