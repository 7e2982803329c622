"""The third head of the learned policy: idle slots, chosen and recorded by the compiled network."""

import numpy as np
import pytest

from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.scheduler import LearnedScheduler, record_episode
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.system import run_state
from decima.workload import synthetic_poisson
from tests.toy_jobs import one_stage, workload
from tests.unit.systems.spark.policy.policies import checked_answer, make_state, random_state, random_weights, watch

VARIANTS = {
    "heads": Architecture.paper(delays=4),
    "replaced": Architecture.paper(delays=3, job_shape="replaced"),
    "embedding": Architecture.paper(delays=5, delay_context="embedding"),
    "output": Architecture.paper(delays=2, limit="output", job_shape="none"),
    "stage": Architecture.released(delays=2, limit="stage"),
    "unlimited": Architecture.released(delays=2, limit="none", delay_context="embedding"),
    "no graph": Architecture.paper(delays=4, graph_embedding=False),
    "narrow": Architecture.paper(delays=40, hidden=(24,), score_hidden=(9,), embedding=5),
    "hold": Architecture.paper(delays=1, idle="hold"),
}


def eager_weights(architecture, seed=0, none=1.0):
    """Random weights whose head d finds no slot about ``none`` times as likely as each one."""
    weights = random_weights(architecture, seed)
    parts = architecture.split(weights)
    kernel, bias = (parts[f"d/{len(architecture.score_hidden)}/{kind}"] for kind in ("kernel", "bias"))
    kernel[:] = np.random.default_rng(seed).normal(scale=0.3, size=kernel.shape)
    bias[:] = 0.0
    bias[0] = np.log(none)
    return weights


def make_eager(architecture, seed=0, **options):
    none = 0.5 if options.get("greedy", True) else architecture.delays
    return LearnedScheduler(architecture, eager_weights(architecture, seed, none), **options)


def states(count=10, **fixed):
    return [random_state(seed, log=True, **fixed) for seed in range(count)]


@pytest.mark.parametrize("name", VARIANTS)
def test_decisions_by_definition(name):
    """Probabilities are those of the plain network; what is decided is what is recorded and what is carried out."""
    architecture = VARIANTS[name]
    free = delayed = 0
    for seed, state in enumerate(states()):
        policy = make_eager(architecture, record=True, greedy=seed % 2 == 0)
        record = record_episode(state, policy, seed)
        rows = state.logged_decisions
        rows = rows[rows[:, 3] > 0]  # with an empty frontier nothing is asked of the network
        assert len(rows) == len(record)
        for d in range(len(record)):
            checked_answer(policy, record, d, state)
            if architecture.limit != "none" and record.classes[d] > 1:
                assert record.class_low[d] <= record.limit[d] <= record.class_high[d]
            free += int(record.delay_free[d])
            delayed += int(record.delay[d] > 0)
            check_carried_out(state, record, d, rows[d], architecture)
    assert free > 20
    assert delayed > 2


def check_carried_out(state, record, d, row, architecture):
    """Compare a row of the decision log with the record."""
    node = record.candidate_node[record.choice[d]]
    index, profile_row = record.node_local[node], record.node_row[node]
    chosen = int(record.delay[d])
    held = chosen > 0 and architecture.idle == "hold"
    assert row[5] == (-1 if held else index)
    if chosen == 0 or held:
        assert row[8] == 0.0
        return
    assert row[7] == 0
    length = state.row_nominal_ms[profile_row]
    assert row[8] == pytest.approx(chosen * length / architecture.delays)
    assert record.classes[d] == 1


@pytest.mark.parametrize("mode", ["paper", "released"])
@pytest.mark.parametrize("name", ["heads", "embedding", "hold"])
def test_outside_the_core_as_inside(name, mode):
    policy = make_eager(VARIANTS[name], greedy=False)
    inside, outside = (make_state(synthetic_poisson(6, 20, 0), mode, log=True, executors=6) for _ in range(2))
    run_state(inside, policy, 1)
    frees = []
    watch(outside, policy, lambda observation: frees.append(observation.num_free_executors), seed=1)
    np.testing.assert_array_equal(inside.logged_decisions, outside.logged_decisions)
    assert len(frees) > 30
    assert inside.num_done == inside.num_jobs


def test_holding_waits_for_a_running_task():
    """Two of three jobs run; the executor that is free first waits for the other one to end before the third begins."""
    architecture = VARIANTS["hold"]
    weights = eager_weights(architecture)
    head = architecture.split(weights)
    head["d/2/kernel"][:] = 0.0
    head["d/2/bias"][:] = 0.0, 50.0  # holds whenever it may
    state = make_state(
        workload(one_stage(1, 5.0), one_stage(1, 3.0), one_stage(1, 4.0)),
        executors=2,
        log=True,
        startup=False,
        durations="mean",
    )
    record = record_episode(state, LearnedScheduler(architecture, weights, record=True), 0)
    assert record.delay_free.tolist()[0] == 0  # nothing runs: there would be nothing to wait for
    assert record.delay.tolist() == [0, 0, 1, 0]
    first, second, third = sorted(state.job_finish_ms.tolist())
    assert third - second == 12_000.0 - first - second


def test_a_teacher_says_nothing_about_slots():
    architecture = VARIANTS["heads"]
    policy = make_eager(architecture, greedy=False, record=True, teacher=make_scheduler("fair"), teacher_share=0.5)
    for seed, state in enumerate(states(4)):
        record = record_episode(state, policy, seed)
        assert len(record) > 0
        assert not record.delay.any()
        assert not record.delay_free.any()
