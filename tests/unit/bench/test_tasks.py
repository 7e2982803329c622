"""Tasks of the benchmark: what defines them is pinned, and their references agree with them."""

import numpy as np
import pytest

from decima.bench import references
from decima.bench.tasks import SEEDS, document, task_named, tasks
from decima.core.errors import ConfigError
from decima.core.system import get_system
from decima.workload.sources import TRAINING_SEED

# A change of a task makes results of earlier versions incomparable: it belongs into a suite of another name.
HASHES = {
    "tpch-batch": "351b2490dfaa88d6",
    "tpch-streams": "ac66761368cb53eb",
    "tpch-no-durations": "69e43fbf63d5f436",
    "tpch-makespan": "5ea3f5f87cc20e92",
    "embedded-batch": "00a5894fe207cbc6",
    "embedded-stream": "c67e5c3e4afb177d",
    "embedded-p95": "1c53d455220f32bd",
    "embedded-classes": "571095d4bd97b0bd",
    "idle-slots": "7fdb443fc6bb5131",
    "unequal": "0f38738a152f45fa",
    "placement": "cc987d2e3b12bea8",
}


def test_hashes_are_pinned():
    assert {name: task.digest[:16] for name, task in tasks().items()} == HASHES


def test_there_are_ten_to_twelve_and_seven_need_no_download():
    assert 10 <= len(tasks()) <= 12
    assert sum(not task.data for task in tasks().values()) >= 7


@pytest.mark.parametrize("name", document()["tasks"])
def test_seeds_are_apart(name):
    task = task_named(name)
    seeds = {use: set(task.seeds(use)) for use in SEEDS}
    assert sum(map(len, seeds.values())) == len(set.union(*seeds.values()))
    # What was trained and tuned elsewhere in the project has seen none of the test seeds.
    assert max(seeds["test"]) < TRAINING_SEED <= min(seeds["training"] | seeds["validation"])
    assert 1 <= task.quick <= len(seeds["test"])


@pytest.mark.parametrize("name", document()["tasks"])
def test_rules_and_policies_are_there(name):
    task = task_named(name)
    for text in (references.tuned_rule(task), *task.policies, *task.choices):
        get_system(task.system).make_scheduler(text)


def test_references_are_of_every_instance():
    for name, task in tasks().items():
        reference = references.references()[name]
        assert len(reference["bound"]) == len(reference["best"]) == len(task.instances()), name
        for bound, best in zip(reference["bound"], reference["best"], strict=True):
            assert bound > 0.0
            assert best is None or bound <= best * (1 + 1e-6)


@pytest.mark.parametrize("name", ["embedded-p95", "unequal", "placement"])
def test_bounds_are_those_of_the_file(name):
    task = task_named(name)
    computed = references.bound(task, task.instances()[-1])
    assert computed == pytest.approx(references.reference_scores(task, "bound")[-1], rel=1e-5)


def test_makespan_is_at_least_path_and_work():
    task = tasks()["embedded-p95"]
    instance = task.instances()[0]
    workload = task.workload(instance)
    floor_s = references.bound(task.__class__(**(vars(task) | {"metric": "makespan"})), instance)
    assert floor_s > workload.arrival_ms.max() / 1000.0


def test_hidden_durations_are_alike_and_true_ones_stay():
    task = tasks()["embedded-batch"]
    instance = task.instances()[0]
    plain = task.workload(instance)
    hidden = task.__class__(**(vars(task) | {"durations_hidden": True})).workload(instance)
    shown = {stage.reported_ms for job in hidden.jobs for stage in job.profile.stages}
    assert shown == {1000.0}
    for one, other in zip(plain.jobs, hidden.jobs, strict=True):
        for before, after in zip(one.profile.stages, other.profile.stages, strict=True):
            np.testing.assert_equal(before.rest, after.rest)


def test_unknown_task_is_one_sentence():
    with pytest.raises(ConfigError, match="unknown task 'embedded-bach'; did you mean"):
        task_named("embedded-bach")
