"""Real Spark on a machine that may be busy with anything."""

import shutil

import pytest


@pytest.fixture(scope="module", autouse=True)
def patience():
    """No JDK, no Spark. Waiting longer for master, worker and executors costs nothing when they come."""
    if shutil.which("javac") is None:
        pytest.skip("no JDK (javac) on the path")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("decima.connect.cluster.standalone.START_S", 300.0)
        yield
