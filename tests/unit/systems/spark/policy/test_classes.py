"""Policies that choose classes of executors, and limits on a grid: by definition, recorded, taught, and refused."""

import dataclasses
import json

import numpy as np
import pytest

from decima.core.errors import ConfigError
from decima.learning.store import read_policy, save_policy
from decima.systems.spark.policy.architecture import CLASS_INPUTS, Architecture
from decima.systems.spark.policy.batch import GraphBatch
from decima.systems.spark.policy.record import collect_record
from decima.systems.spark.policy.run import DecimaRun, grown_weights
from decima.systems.spark.policy.scheduler import record_episode
from decima.systems.spark.policy.task import Task
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.systems.spark.system import run_state
from decima.workload.sources import get_source
from tests.unit.learning.small import quick_recipe
from tests.unit.systems.spark.policy.policies import checked_answer, make_policy, random_weights, state_of, watch

pytestmark = pytest.mark.tensorflow

CLASSES = ((0.25, 3), (0.5, 2, 2.0), (0.75, 4), (1.0, 3))
PAIRS = Architecture.classes()
VARIANTS = {
    "classes": PAIRS,
    "few levels": PAIRS.replace(limit_grid=5),
    "every limit": PAIRS.replace(limit_grid=0, features="paper", cluster_mean=False),
    "limit of the stage": PAIRS.replace(limit="stage", limit_grid=4),
    "no limit": PAIRS.replace(limit="none", limit_grid=0),
    "no graph embedding": PAIRS.replace(graph_embedding=False, more_features=("cpu",)),
    "grid only": Architecture.paper(limit_grid=4),
}


def busy_state(seed, mode="paper", log=False, classes=CLASSES, **changes):
    """Jobs with drawn requests that arrive in short succession on a small cluster of four classes."""
    workload = get_source("embedded").stream(6, 4.0, seed, requests="uniform")
    return state_of(workload, Settings.of_mode(mode, classes=classes, **changes), log=log)


@pytest.mark.parametrize("name", VARIANTS)
def test_probabilities_by_definition(name):
    chosen = set()
    for seed, teacher in enumerate((None, None, make_scheduler("priced_srw"))):
        policy = make_policy(VARIANTS[name], greedy=seed == 0, record=True, teacher=teacher)
        state = busy_state(seed)
        record = record_episode(state, policy, seed)
        for d in range(len(record)):
            _, allowed = checked_answer(policy, record, d, state)
            chosen.add(int(record.candidate_class[record.choice[d]]))
            if policy.architecture.limit != "none":
                assert record.class_low[d] == allowed[min(allowed.index(record.limit[d]), record.classes[d] - 1)]
    assert chosen == ({-1} if name == "grid only" else {0, 1, 2, 3})


def test_candidates_are_the_pairs_that_fit_and_are_on_offer():
    policy = make_policy(PAIRS, greedy=False, record=True)
    state = busy_state(3)
    seen = []

    def look(observation):
        pairs = []
        for job in observation.jobs:
            for stage in job.stages:
                if stage.schedulable:
                    pairs += [
                        (job.id, stage.index, kind)
                        for kind in range(len(CLASSES))
                        if observation.offers[kind] > 0 and stage.fits[kind]
                    ]
        seen.append((pairs, observation.offers.copy()))

    watch(state, policy, look, 3)
    record = collect_record(state)
    seen = [each for each in seen if each[0]]
    assert len(record) == len(seen) > 50
    memory = [size for size, *_ in CLASSES]
    for d, (pairs, offers) in enumerate(seen):
        span = slice(record.decision_candidates[d], record.decision_candidates[d + 1])
        locals_ = record.node_local[record.candidate_node[span]]
        kinds = record.candidate_class[span]
        assert list(zip(locals_, kinds, strict=True)) == [pair[1:] for pair in pairs]
        np.testing.assert_allclose(record.class_inputs[span, 0], [memory[kind] for kind in kinds], rtol=1e-6)
        np.testing.assert_allclose(record.class_inputs[span, 2], np.log1p(offers[kinds]) / 4, rtol=1e-6)
        smallest = {pair[:2]: min(kind for *one, kind in pairs if tuple(one) == pair[:2]) for pair in pairs}
        for (job, stage, kind), larger in zip(pairs, record.class_inputs[span, 3], strict=True):
            assert larger >= kind - smallest[job, stage]


def decision_of(row):
    """A row of the decision log as a file to replay has it: job, stage, limit, delay, class; None for none."""
    job, stage, limit, _, delay, kind = row[4:]
    if job < 0:
        return (None, None, int(limit))
    return (int(job), int(stage), int(limit), delay, int(kind) if kind >= 0 else None)


@pytest.mark.parametrize("name", ["classes", "every limit"])
@pytest.mark.parametrize("mode", ["paper", "released"])
def test_same_run_inside_the_core_through_decide_and_replayed(name, mode, tmp_path):
    policy = make_policy(VARIANTS[name], greedy=False, record=True)
    for seed in range(2):
        state = busy_state(seed, mode, log=True)
        inside = record_episode(state, policy, seed)
        decisions, finish_ms = state.logged_decisions.copy(), state.job_finish_ms.copy()
        watch(state, policy, lambda observation: None, seed)
        outside = collect_record(state)
        for field in dataclasses.fields(inside):
            np.testing.assert_array_equal(getattr(inside, field.name), getattr(outside, field.name), field.name)
        path = tmp_path / f"{seed}.json"
        path.write_text(json.dumps([decision_of(row) for row in decisions.tolist()]))
        with make_scheduler(f"replay:{path}") as scheduler:
            run_state(state, scheduler, seed)
        np.testing.assert_array_equal(state.job_finish_ms, finish_ms)


@pytest.mark.parametrize("name", ["priced_srw", "weighted_best_fit", "fair"])
def test_a_teacher_that_is_followed(name):
    teacher = make_scheduler(name)
    alone = busy_state(5, log=True)
    run_state(alone, teacher, 5)
    state = busy_state(5, log=True)
    record = record_episode(state, make_policy(PAIRS, greedy=False, record=True, teacher=teacher), 5)
    np.testing.assert_array_equal(state.job_finish_ms, alone.job_finish_ms)
    rows = alone.logged_decisions
    rows = rows[rows[:, 4] >= 0]
    np.testing.assert_array_equal(record.node_local[record.candidate_node[record.choice]], rows[:, 5])
    kinds = record.candidate_class[record.choice]
    named = rows[:, 9] if rows.shape[1] > 9 else np.full(len(rows), -1)
    assert (kinds >= 0).all()
    np.testing.assert_array_equal(kinds[named >= 0], named[named >= 0])
    if name == "priced_srw":
        # Every limit up to 12 is a level: the recorded effect is that of the teacher.
        used = np.minimum(record.class_low - record.limit_low + 1, record.classes)
        np.testing.assert_array_equal(used, rows[:, 7])


def test_limits_on_a_grid():
    levels = PAIRS.limit_levels(30_000)
    assert (len(levels), levels[0], levels[-1]) == (60, 1, 30_000)
    assert (np.diff(levels) >= 1).all()
    assert (levels[1:] <= np.maximum(levels[:-1] + 1, 1.2 * levels[:-1] + 1)).sum() >= 59
    assert PAIRS.limit_levels(7).tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert PAIRS.replace(limit_grid=3).limit_levels(100).tolist() == [1, 10, 100]
    assert Architecture.paper().limit_levels(100).tolist() == []


def test_a_policy_of_another_number_of_classes():
    policy = make_policy(PAIRS)
    with pytest.raises(ConfigError, match="made for 4 classes of executors, the cluster has 1"):
        policy.bind(busy_state(0, classes=(), executors=12))
    with pytest.raises(ConfigError, match="made for 4 classes of executors, the cluster has 2"):
        policy.bind(busy_state(0, classes=((0.5, 3), (1.0, 3))))
    task = Task("stream", source="embedded", jobs=4, executors=8)
    with pytest.raises(ConfigError, match="4 classes of executors, the task has 1"):
        DecimaRun(task, quick_recipe(), PAIRS, 0)


def test_records_of_clusters_of_different_size_are_no_batch():
    policy = make_policy(PAIRS, greedy=False, record=True)
    larger = tuple((memory, 10 * count, *cpu) for memory, count, *cpu in CLASSES)
    states = [busy_state(0), busy_state(0, classes=larger)]
    records = [record_episode(state, policy, 0) for state in states]
    with pytest.raises(ConfigError, match="different grids"):
        GraphBatch(records, states[0].child_offset, states[0].child)


def test_a_stored_policy_grows_into_one_that_chooses_classes(tmp_path):
    small = Architecture.paper()
    stored = read_policy(save_policy(tmp_path / "small", small, random_weights(small), {}))
    grown = small.replace(executor_classes=4)
    arrays = grown.split(grown_weights(stored, grown, 0))
    kernel = arrays["q/0/kernel"]
    first = small.num_features + small.embedding
    assert not kernel[first : first + len(CLASS_INPUTS)].any()
    rest = np.delete(kernel, range(first, first + len(CLASS_INPUTS)), axis=0)
    np.testing.assert_array_equal(rest, small.split(stored.weights)["q/0/kernel"])
