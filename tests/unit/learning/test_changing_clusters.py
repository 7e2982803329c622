"""Training on a cluster whose executors come, go and fail: its card, and exact runs."""

import pytest

from decima.core.errors import ConfigError
from decima.systems.spark.policy.run import DecimaRun
from decima.systems.spark.policy.task import Task
from decima.systems.spark.settings import Settings
from tests.unit.learning.small import NETWORK, assert_exact, quick_recipe

CLUSTER = Settings(
    executors=8, executor_cores=2, dynamic=True, min_executors=1, idle_timeout_ms=3000.0, loss_rate=3.0,
    straggler_share=0.1,
)  # fmt: skip
TASK = Task.on(CLUSTER, source="embedded", jobs=5)


def test_the_task_has_the_cluster_and_so_has_its_card():
    assert TASK.cluster == CLUSTER
    assert Task.from_dict(TASK.as_dict()).cluster == CLUSTER
    with pytest.raises(ConfigError, match="unknown objective 'executor_hours'"):
        Task.on(CLUSTER, source="embedded", objective="executor_hours")
    with pytest.raises(ConfigError, match="speculation and losses of executors needs shuffle_service"):
        Task.on(CLUSTER.replace(speculation=True), source="embedded")
    assert Task.on(CLUSTER.replace(speculation=True, shuffle_service=True), source="embedded").cluster.speculation


@pytest.mark.tensorflow
def test_resumed_runs_are_exact_with_any_number_of_workers(tmp_path, monkeypatch):
    recipe = quick_recipe(teacher=None, teacher_iterations=0, validate_every=100)
    assert_exact(DecimaRun(TASK, recipe, NETWORK, 1), tmp_path, monkeypatch)
