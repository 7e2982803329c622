"""What an episode's record holds, against what was visible at every decision."""

import pickle

import numpy as np
import pytest

from decima.core.errors import ConfigError
from decima.systems.spark.policy.kernel.observation import SUMMARY
from decima.systems.spark.policy.record import CAPACITIES, RecordFullError, bind_buffers, collect_record
from decima.systems.spark.policy.scheduler import record_episode
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.system import run_state
from decima.workload import synthetic_batch, synthetic_poisson
from tests.unit.systems.spark.policy.policies import (
    BASES,
    finish_times,
    make_policy,
    make_state,
    random_state,
    watch,
)
from tests.unit.systems.spark.policy.test_features import wanted_features


def critic_features(observation):
    """State summary by its definition."""
    state = observation.state
    works = np.array([view.remaining_work_ms / 1000 for view in observation.jobs])
    paths = [
        max(state.row_path_ms[state.stage_row[stage.id]] / 1000 for stage in view.stages if stage.tasks_unfinished > 0)
        for view in observation.jobs
    ]
    near = sum(int(state.job_attached[view.id] + state.job_moving[view.id]) for view in observation.jobs)
    executors, count = observation.num_executors, len(works)
    values = {
        "active_jobs": count,
        "work_s": works.sum(),
        "srw_bound_s": sum((count - k - 0.5) * work / executors for k, work in enumerate(sorted(works))),
        "path_s": sum(paths),
        "executors": near,
        "num_source": observation.num_free_executors,
        "sqrt_work": np.sqrt(works).sum(),
        "bound_s": sum(max(work / executors, path) for work, path in zip(works, paths, strict=True)),
    }
    return [values[name] for name in SUMMARY]


def notes_of(observation, architecture):
    """All that a record says of a decision, before it is taken."""
    state = observation.state
    graphs = {
        view.id: [(stage.index, wanted_features(observation, stage, architecture)) for stage in view.stages if
                  stage.tasks_unfinished > 0]
        for view in observation.jobs
    }  # fmt: skip
    return {
        "graphs": graphs,
        "frontier": [stage.id for stage in observation.frontier],
        "time_ms": observation.time_ms,
        "area_ms": state.area_ms + state.num_active * (state.now_ms - state.area_time_ms),
        "critic": critic_features(observation),
        "allocation": {view.id: view.allocation for view in observation.jobs},
        "room": {stage.id: stage.room for stage in observation.frontier},
        "offered": observation.num_free_executors,
    }


def check_decision(record, d, notes, state, logged):
    """Decision d of the record says what was noted before it and logged after it."""
    instances = record.pair_instance[record.decision_pairs[d] : record.decision_pairs[d + 1]]
    assert len(instances) == len(notes["graphs"])
    for instance, (job, graph) in zip(instances, notes["graphs"].items(), strict=True):
        nodes = slice(*record.instance_first[instance : instance + 2])
        assert record.node_local[nodes].tolist() == [index for index, _ in graph]
        first = state.stage_row[state.job_first_stage[job]]
        np.testing.assert_array_equal(record.node_row[nodes] - record.node_local[nodes], first)
        np.testing.assert_allclose(record.x[nodes], np.array([x for _, x in graph], dtype=np.float32), rtol=2e-7)
    candidates = slice(*record.decision_candidates[d : d + 2])
    jobs = dict(zip(instances.tolist(), notes["graphs"], strict=True))
    named = [
        int(state.job_first_stage[jobs[instance]]) + int(record.node_local[node])
        for node, instance in zip(
            record.candidate_node[candidates], record.candidate_instance[candidates].tolist(), strict=True
        )
    ]
    assert named == notes["frontier"]
    stage = named[record.choice[d] - candidates.start]
    job = int(state.stage_job[stage])
    assert [job, stage - int(state.job_first_stage[job])] == logged[4:6].tolist()
    assert record.time_ms[d] == notes["time_ms"]
    assert record.area_ms[d] == pytest.approx(notes["area_ms"], rel=1e-12)
    np.testing.assert_allclose(record.critic[d], notes["critic"], rtol=1e-5)
    check_limits(record, d, notes, notes["allocation"][job], notes["room"][stage], logged, state)


def check_limits(record, d, notes, base, room, logged, state):
    """The limit, its bounds and its effect class."""
    last = state.settings.executors
    usable = min(notes["offered"], room)
    effects = [min(limit - base, usable) for limit in range(base + 1, last + 1)]
    assert (record.limit_low[d], record.limit_high[d]) == (base + 1, last)
    assert record.classes[d] == len(set(effects))
    effect = effects[record.limit[d] - base - 1]
    same = [base + 1 + index for index, other in enumerate(effects) if other == effect]
    assert (record.class_low[d], record.class_high[d]) == (same[0], same[-1])
    assert logged[7] == effect
    assert logged[6] == (record.limit[d] if state.job_limit else effect)


@pytest.mark.parametrize("name", BASES)
def test_record_holds_what_was_seen(name):
    policy = make_policy(name, greedy=False, record=True)
    decisions = 0
    for seed in range(20):
        state = random_state(seed, log=True)
        notes = []
        watch(state, policy, lambda observation, notes=notes: notes.append(notes_of(observation, policy.architecture)))
        record = collect_record(state)
        rows = state.logged_decisions
        rows = rows[rows[:, 4] >= 0]
        assert len(record) == len(notes) == len(rows)
        for d, (note, row) in enumerate(zip(notes, rows, strict=True)):
            check_decision(record, d, note, state, row)
        decisions += len(record)
        assert record.end_ms == state.now_ms
        assert record.end_area_ms == state.area_ms
        np.testing.assert_array_equal(record.completion_ms, state.job_finish_ms)
        np.testing.assert_array_equal(record.arrival_ms, state.job_arrival_ms)
        assert record.truncated == bool(state.truncated)
    assert decisions > 150


def assert_equal_records(one, other):
    for name, value in vars(one).items():
        np.testing.assert_array_equal(value, getattr(other, name), err_msg=name)


@pytest.mark.parametrize("name", BASES)
def test_same_record_inside_the_core_and_through_decide(name):
    policy = make_policy(name, greedy=False, record=True)
    for seed in range(10):
        state = random_state(seed)
        inside = record_episode(state, policy, seed)
        watch(state, policy, lambda observation: None, seed)
        assert_equal_records(inside, collect_record(state))


def test_graphs_are_recorded_once_while_nothing_changes():
    record = record_episode(make_state(synthetic_poisson(20, 10, 0), executors=10), make_policy(record=True), 0)
    pairs = len(record.pair_instance)
    assert len(record.instance_first) - 1 < pairs
    # a graph is taken again only by the decisions that follow it at once: its features are those of one moment
    for instance in np.unique(record.pair_instance):
        decision = np.searchsorted(record.decision_pairs, np.flatnonzero(record.pair_instance == instance), "right")
        np.testing.assert_array_equal(np.diff(decision), 1)


def test_small_buffers_are_enlarged():
    policy = make_policy(greedy=False, record=True)
    state = make_state(synthetic_batch(6), executors=10)
    wanted = record_episode(state, policy, 0)
    for tight in CAPACITIES:
        bind_buffers(state, 5, {name: 3 if name == tight else 4_000 for name in CAPACITIES})
        run_state(state, policy, 0)
        with pytest.raises(RecordFullError):
            collect_record(state)
        assert_equal_records(record_episode(state, policy, 0), wanted)


def test_records_can_be_pickled():
    record = record_episode(make_state(synthetic_batch(3), executors=10), make_policy(record=True), 0)
    assert_equal_records(pickle.loads(pickle.dumps(record)), record)


def test_a_scheduler_that_does_not_record():
    with pytest.raises(ConfigError, match="record=True"):
        record_episode(make_state(synthetic_batch(3), executors=10), make_policy(), 0)


# ---- teacher --------------------------------------------------------------------------------------------------------


def logged_choices(state):
    """Stage ids and executors used of all decisions that do not idle."""
    rows = state.logged_decisions
    rows = rows[rows[:, 4] >= 0]
    return state.job_first_stage[rows[:, 4].astype(int)] + rows[:, 5].astype(int), rows[:, 7].astype(int)


@pytest.mark.parametrize("name", ["capped_srw", "fair", "fifo"])
@pytest.mark.parametrize("mode", ["paper", "released"])
def test_a_teacher_that_is_followed(name, mode):
    teacher = make_scheduler(name)
    workload = synthetic_poisson(12, 15, 0)
    alone = make_state(workload, mode, executors=12, log=True)
    run_state(alone, teacher, 5)
    state = make_state(workload, mode, executors=12, log=True)
    record = record_episode(state, make_policy(greedy=False, record=True, teacher=teacher), 5)
    np.testing.assert_array_equal(state.job_finish_ms, alone.job_finish_ms)
    stages, used = logged_choices(alone)
    assert len(record) == len(stages)
    locals_ = record.node_local[record.candidate_node[record.choice]]
    np.testing.assert_array_equal(locals_, stages - state.job_first_stage[state.stage_job[stages]])
    np.testing.assert_array_equal(record.class_low - record.limit_low + 1, used)
    np.testing.assert_array_equal(record.limit, record.class_low)


def test_a_teacher_that_is_only_asked():
    workload = synthetic_poisson(12, 15, 0)
    teacher = make_scheduler("capped_srw")
    alone = finish_times(make_state(workload, executors=12), make_policy(), 5)
    state = make_state(workload, executors=12, log=True)
    policy = make_policy(record=True, teacher=teacher, teacher_share=0.0)
    record = record_episode(state, policy, 5)
    np.testing.assert_array_equal(state.job_finish_ms, alone)
    stages, _ = logged_choices(state)
    carried_out = stages - state.job_first_stage[state.stage_job[stages]]
    recorded = record.node_local[record.candidate_node[record.choice]]
    assert len(record) == len(stages)
    assert np.mean(carried_out != recorded) > 0.2


def test_a_teacher_that_idles_is_not_recorded():
    workload = synthetic_poisson(12, 15, 0)
    teacher = make_scheduler("capped_srw", leftover=0, c0=0.5)
    alone = make_state(workload, executors=12, log=True)
    run_state(alone, teacher, 0)
    asked = alone.logged_decisions
    idled = int(np.sum((asked[:, 4] < 0) & (asked[:, 3] > 0)))
    assert idled > 5
    state = make_state(workload, executors=12)
    record = record_episode(state, make_policy(record=True, teacher=teacher), 0)
    np.testing.assert_array_equal(state.job_finish_ms, alone.job_finish_ms)
    assert len(record) == int(np.sum(asked[:, 4] >= 0))


def test_half_of_the_decisions_are_the_teachers():
    state = make_state(synthetic_batch(15), executors=12, log=True)
    policy = make_policy(greedy=False, record=True, teacher=make_scheduler("fifo"), teacher_share=0.5)
    record = record_episode(state, policy, 0)
    stages, _ = logged_choices(state)
    recorded = record.node_local[record.candidate_node[record.choice]]
    agree = np.mean(stages - state.job_first_stage[state.stage_job[stages]] == recorded)
    assert 0.4 < agree < 0.95


@pytest.mark.parametrize("teacher", ["fifo", object()])
def test_a_teacher_of_the_wrong_kind(teacher):
    with pytest.raises(ConfigError, match="the teacher must be a scheduler, got"):
        make_policy(teacher=teacher)


def test_a_policy_cannot_be_the_teacher():
    with pytest.raises(ConfigError, match="would teach itself"):
        make_policy(teacher=make_policy())
