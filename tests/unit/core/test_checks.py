import os
import subprocess
import sys

import numpy as np
import pytest

from decima.core.checks import check_whole, checked_seeds, is_name, is_number, is_whole
from decima.core.errors import ConfigError


@pytest.mark.parametrize(
    ("value", "number", "whole"),
    [
        (3, True, True),
        (np.int32(3), True, True),
        (3.0, True, False),
        (np.float64(3.0), True, False),
        (float("nan"), True, False),
        (True, False, False),
        (np.True_, False, False),
        ("3", False, False),
        (None, False, False),
    ],
)
def test_truth_values_and_texts_are_no_numbers(value, number, whole):
    assert is_number(value) is number
    assert is_whole(value) is whole


@pytest.mark.parametrize(
    ("value", "name"), [("é", True), ("\U0001f600", True), ("", False), ("a\ud800", False), (5, False), (None, False)]
)
def test_a_name_is_a_text_that_can_be_written(value, name):
    assert is_name(value) is name


@pytest.mark.parametrize("value", [-1, 0.0, True, None, "5"])
def test_the_message_names_the_value_and_what_is_allowed(value):
    check_whole("seed", 0, least=0)
    with pytest.raises(ConfigError, match=f"^seed must be a whole number of at least 0, got {value!r}$"):
        check_whole("seed", value, least=0)


def test_seeds_are_whole_numbers():
    assert checked_seeds(range(2)) == checked_seeds(np.arange(2)) == checked_seeds(iter([0, 1])) == [0, 1]
    assert all(type(seed) is int for seed in checked_seeds(np.arange(2)))


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ([0.5, 1.5], "seed must be a whole number of at least 0, got 0.5"),
        ([float("nan")], "seed must be a whole number of at least 0, got nan"),
        ([0, True], "seed must be a whole number of at least 0, got True"),
        ([-1], "seed must be a whole number of at least 0, got -1"),
        ("01", "seeds must be a list of whole numbers, got '01'"),
        (5, "seeds must be a list of whole numbers, got 5"),
        (None, "seeds must be a list of whole numbers, got None"),
    ],
)
def test_other_seeds_are_refused(seeds, message):
    with pytest.raises(ConfigError, match=f"^{message}$"):
        checked_seeds(seeds)


# ---- the build with bounds checks ------------------------------------------------------------------------------------

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
