"""Process workers and kernels of notebooks start warm: each is a fork of one server, which has done their imports."""

import multiprocessing
from multiprocessing.context import ForkServerContext

import pytest

from decima.evaluation import workers
from experiments.kernels import WARMTH, warm_kernels

AS_PUBLISHED = workers._Spawn.__bases__


def pytest_configure(config):
    multiprocessing.set_forkserver_preload([WARMTH])
    if getattr(config.option, "nbval_lax", False):
        warm_kernels()


@pytest.fixture(scope="session", autouse=True)
def warm_processes():
    """Let a worker start in milliseconds instead of seconds; how it is used stays as it is."""
    workers._Spawn.__bases__ = (ForkServerContext,)
    yield
    workers._Spawn.__bases__ = AS_PUBLISHED
