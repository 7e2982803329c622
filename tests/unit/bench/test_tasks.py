"""Tasks of the benchmark: what defines them is pinned, references agree with them, published results are complete."""

from pathlib import Path

import numpy as np
import pytest

from decima.bench import references
from decima.bench.entries import entry_of
from decima.bench.report import markdown, read_folder
from decima.bench.run import run, score
from decima.bench.tasks import SEEDS, document, task_named, tasks
from decima.core.errors import ConfigError
from decima.core.system import get_system
from decima.workload.alibaba import hour
from decima.workload.sources import TRAINING_SEED, get_source

needs_trace = pytest.mark.usefixtures("trace_data")

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
    "spark-logs": "6b15fbfafa5d5af1",
    "alibaba": "6647492b2bb46355",
    "heterogeneous": "0f38738a152f45fa",
    "placement": "cc987d2e3b12bea8",
}


def test_hashes_are_pinned():
    assert {name: task.digest[:16] for name, task in tasks().items()} == HASHES


def test_hash_needs_no_data_and_a_task_without_is_not_run(monkeypatch, tmp_path):
    monkeypatch.setenv("DECIMA_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("DECIMA_DATA_MIRROR", raising=False)
    monkeypatch.setattr(hour, "_package_file", lambda name: None)
    task = task_named("alibaba")
    assert task.digest[:16] == HASHES["alibaba"]
    document = run(entry_of("fair"), [task], quick=True)
    assert "'decima data fetch alibaba' fetches it" in document["not_run"]["alibaba"]
    assert document["tasks"] == {}


@needs_trace
def test_data_of_the_trace_is_what_its_hash_names():
    assert get_source("alibaba").digest() == task_named("alibaba").data_sha256


@needs_trace
def test_trace_learns_on_the_half_hour_before_the_tests():
    task = task_named("alibaba")
    names = {use: {job.profile.name for each in task.workloads(use) for job in each.jobs} for use in SEEDS}
    assert not names["test"] & (names["training"] | names["validation"])


@pytest.mark.parametrize("name", ["spark-logs", "alibaba"])
def test_a_rule_stays_above_the_bound(name, request):
    if name == "alibaba":
        request.getfixturevalue("trace_data")
    task = task_named(name)
    instance = task.instances()[0]
    row = score(task, task.runs_on.make_scheduler(references.tuned_rule(task)), instance)
    assert row.failure == ""
    assert row.value > references.reference_scores(task, "bound")[0]
    assert row.value < score(task, task.runs_on.make_scheduler("fifo"), instance).value


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


@pytest.mark.parametrize("name", ["embedded-p95", "spark-logs", "heterogeneous", "placement"])
def test_bounds_are_those_of_the_file(name):
    task = task_named(name)
    computed = references.bound(task, task.instances()[-1])
    assert computed == pytest.approx(references.reference_scores(task, "bound")[-1], rel=1e-5)


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


ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "reports" / "bench"


def test_published_results_are_complete_and_small():
    documents = read_folder(FOLDER)
    assert len(documents) >= 15
    assert not any(document["quick"] for document in documents)
    assert {"heuristic", "policy"} <= {document["form"] for document in documents}
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 300_000


def test_page_shows_the_published_results():
    """``decima bench report reports/bench --out docs/benchmark-results.md`` writes it."""
    assert (ROOT / "docs" / "benchmark-results.md").read_text(encoding="utf-8") == markdown(read_folder(FOLDER))
