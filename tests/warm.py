"""Process workers of tests start warm: each is a fork of one server, which has done their imports."""

import multiprocessing
from multiprocessing.context import ForkServerContext

import pytest

from decima.evaluation import workers

AS_PUBLISHED = workers._Spawn.__bases__


@pytest.fixture(scope="session", autouse=True)
def warm_processes():
    """Let a worker start in milliseconds instead of seconds; how it is used stays as it is."""
    multiprocessing.set_forkserver_preload(["tests.warmth"])
    workers._Spawn.__bases__ = (ForkServerContext,)
    yield
    workers._Spawn.__bases__ = AS_PUBLISHED


@pytest.fixture
def cold_processes(warm_processes):
    """Start workers as the package does it."""
    workers._Spawn.__bases__ = AS_PUBLISHED
    yield
    workers._Spawn.__bases__ = (ForkServerContext,)
