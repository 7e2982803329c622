"""Real Spark on a machine that may be busy with anything."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def patience():
    """Waiting longer for master, worker and executors costs nothing when they come."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("decima.spark.cluster.START_S", 300.0)
        yield
