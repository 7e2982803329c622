"""Profiles that have everything a file of profiles must keep."""

import pytest

from tests.profiles import make_profile, make_stage


@pytest.fixture
def profiles():
    return [
        make_profile(
            make_stage("scan", 7, (), (5, 20), [[], [1.5]], [[2, 0], [3]], [[4], []]),
            make_stage("join", 1, (0,), (1,), [[]], [[0.1]], [[]]),
            name="etl",
        ),
        make_profile(name="etl"),
        make_profile(make_stage("last", parents=(1,)), make_stage("start"), name="ünï"),
    ]
