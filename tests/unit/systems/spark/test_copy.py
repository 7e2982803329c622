"""Copies of running states and environments go on as their originals, also as pickles and in another process."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from numba import cfunc, types

from decima.core.errors import RecordError
from decima.core.objectives import Objective, get_objective
from decima.systems.spark.gym.environment import SparkClusterEnv
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.record import collect_record
from decima.systems.spark.policy.scheduler import LearnedScheduler
from decima.systems.spark.schedulers import Observation, make_scheduler
from decima.systems.spark.schedulers.fields import rule_record
from decima.systems.spark.schedulers.interface import decision_parts
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import new_state, spawn_generators
from decima.workload import embedded_batch, synthetic_poisson

JOBS = synthetic_poisson(12, 5.0, seed=3)
SETTINGS = Settings(executors=8)
WAYS = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda item: pickle.loads(pickle.dumps(item))}
BATCH = embedded_batch(5, 2)
# Takes what finishes something and that from one file, and writes all to another when they have ended.
FINISH = """
import pickle, sys
from tests.drivers import IN_CORE
source, target = sys.argv[1:]
items = pickle.loads(open(source, "rb").read())
open(target, "wb").write(pickle.dumps([(item, finish(item, more)) for finish, item, more in items]))
"""


@pytest.fixture(params=["deepcopy", "pickle"])
def way(request):
    """A function that makes another one of an object; to a record, a copy is a deep copy."""
    return WAYS[request.param]


@pytest.fixture(params=WAYS)
def any_way(request):
    """As `way`, shallow copies among them."""
    return WAYS[request.param]


def policy(**options):
    architecture = Architecture()
    return LearnedScheduler(architecture, architecture.initial_weights(1), **options)


def begin(scheduler, log=True):
    state = new_state(JOBS, SETTINGS, log_tasks=log, log_decisions=log)
    scheduler.bind(state)
    state.start(*spawn_generators(4))
    return state


def go_on(state, scheduler, decisions=10**9):
    """Take some more decisions, or all."""
    observation = Observation(state)
    for _ in range(decisions):
        if not state.advance():
            return
        state.decide(*(decision_parts(scheduler.decide(observation)) if state.num_frontier else (-1,)))


def everything(state):
    """All numbers of a state and of the records attached to it, but addresses."""
    found = {}
    for record in (state, *state.attached.values()):
        for name in record.layout.fields_of_run:
            found[name] = np.array(getattr(record, name)).tobytes()
    count = state.num_tasks_logged
    for name in ("task_stage", "task_executor", "task_start_ms", "task_finish_ms"):
        found[name] = getattr(state, name)[:count].tobytes()
    return found


def recorded(state):
    """All arrays of the record that a policy has written."""
    record = collect_record(state)
    return {name: np.asarray(value).tobytes() for name, value in vars(record).items()}


@pytest.mark.parametrize(
    ("name", "decisions"), [("random", 0), ("released_fifo", 1), ("random", 25), ("capped_srw", 25)]
)
def test_a_state_goes_on_alike(way, name, decisions):
    scheduler = make_scheduler(name)
    state = begin(scheduler)
    go_on(state, scheduler, decisions)
    twin = way(state)
    assert everything(twin) == everything(state)
    assert twin.address != state.address
    go_on(state, scheduler)
    assert twin.num_done < len(JOBS)
    go_on(twin, way(scheduler))
    assert everything(twin) == everything(state)


@pytest.mark.parametrize("together", [True, False])
def test_a_state_with_a_policy_that_records_goes_on_alike(way, together):
    scheduler = policy(greedy=False, record=True, teacher=make_scheduler("fair"), teacher_share=0.5)
    state = begin(scheduler)
    go_on(state, scheduler, 15)
    twin, its_scheduler = way([state, scheduler]) if together else (way(state), scheduler)
    go_on(twin, its_scheduler)
    go_on(state, scheduler)
    assert everything(twin) == everything(state)
    assert recorded(twin) == recorded(state)
    assert len(collect_record(state)) > 20


def test_the_original_may_be_gone(way):
    state = begin(make_scheduler("fair"))
    twin = way(state)
    expected = way(state)
    go_on(expected, make_scheduler("fair"))
    del state
    for _ in range(20):  # memory of the original goes to others
        begin(make_scheduler("random"))
    go_on(twin, make_scheduler("fair"))
    assert everything(twin) == everything(expected)


def test_a_generator_that_serves_twice_stays_one(way):
    rng = np.random.default_rng(5)
    state = new_state(JOBS, SETTINGS)
    make_scheduler("random").bind(state)
    state.start(rng, rng)
    twin, its_rng = way([state, rng])
    assert twin._generators[0] is twin._generators[1] is its_rng
    assert its_rng is not rng


def test_a_rule_that_no_other_process_would_find_is_one_plain_error():
    rule = cfunc(types.void(types.int64))(lambda address: None)
    state = begin(make_scheduler("fair"))
    state.put(decide_fn=rule.address)
    with pytest.raises(RecordError, match=r"function at address 0x[0-9a-f]+ is not a CompiledDecision; expected one"):
        pickle.dumps(state)
    assert copy.deepcopy(state).decide_fn == rule.address


def test_arrays_given_to_a_copy_are_read_only(way):
    state = new_state(JOBS, SETTINGS)
    rule_record(state).bind("job_rank", np.arange(len(JOBS)))
    twin = way(state)
    with pytest.raises(ValueError, match="read-only"):
        twin.values_ms[0] = 5.0
    if way is WAYS["pickle"]:
        with pytest.raises(ValueError, match="read-only"):
            twin.job_rank[0] = 5.0
    assert twin.job_rank.tolist() == list(range(len(JOBS)))


def test_copies_into_the_same_memory_again_and_again():
    scheduler = make_scheduler("random")
    state, twin = begin(scheduler, log=False), begin(scheduler, log=False)
    finished = []
    go_on(state, scheduler, 8)
    for _ in range(3):
        state.copy_into(twin)
        assert twin.advance()
        go_on(twin, scheduler)
        finished.append(twin.job_finish_ms.copy())
    go_on(state, scheduler)
    for times in finished:
        np.testing.assert_array_equal(times, state.job_finish_ms)


def test_what_does_not_fit_is_refused():
    state = begin(make_scheduler("fair"))
    larger = new_state(JOBS, Settings(executors=9000))
    make_scheduler("fair").bind(larger)
    with pytest.raises(RecordError, match="same type and extents"):
        state.copy_into(larger)
    with pytest.raises(RecordError, match="with rule_record attached needs the same; the other has nothing"):
        state.copy_into(new_state(JOBS, SETTINGS))


def act(env, steps=10**9):
    """Act at random for some steps, or to the end; what was seen."""
    rng, seen = np.random.default_rng(len(env.unwrapped.state.frontier())), []
    masks = env.unwrapped.action_masks().astype(np.int8)
    mask = tuple(masks[cut] for cut in env.unwrapped.cuts)
    env.action_space.seed(int(rng.integers(100)))
    for _ in range(steps):
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample(mask=mask))
        mask = info["action_mask"]
        seen.append((reward, terminated, truncated, info["time_ms"], {k: v.tolist() for k, v in observation.items()}))
        if terminated or truncated:
            break
    return seen


def finish_state(state, scheduler):
    """Decide to the end."""
    go_on(state, scheduler)


def finish_inside(state, _):
    """Run to the end inside the core."""
    state.advance()


def finish_environment(env, _):
    """Act to the end."""
    return act(env)


def test_all_go_on_alike_in_another_process(tmp_path):
    scheduler = policy(greedy=False, record=True, teacher=make_scheduler("fair"), teacher_share=0.5)
    rule = make_scheduler("random")
    state, inside, env = begin(scheduler), begin(rule), SparkClusterEnv(BATCH, 5)
    go_on(state, scheduler, 15)
    go_on(inside, rule, 10)
    inside.put(decide_fn=rule.decision.address)
    env.reset(seed=0)
    act(env, 7)
    items = [(finish_state, state, scheduler), (finish_inside, inside, None), (finish_environment, env, None)]
    (tmp_path / "sent").write_bytes(pickle.dumps(items))
    subprocess.run([sys.executable, "-c", FINISH, tmp_path / "sent", tmp_path / "back"], check=True)
    (finished, _), (finished_inside, _), (_, seen) = pickle.loads((tmp_path / "back").read_bytes())
    go_on(state, scheduler)
    assert everything(finished) == everything(state)
    assert recorded(finished) == recorded(state)
    inside.advance()
    assert inside.num_done == len(JOBS)
    assert everything(finished_inside) == everything(inside)
    assert act(env) == seen


def test_weights_of_another_policy_do_not_change_with_a_copy(any_way):
    first = policy()
    second = any_way(first)
    assert np.array_equal(second.weights, first.weights)
    second.weights = np.zeros_like(first.weights)
    assert first.weights.any()
    with pytest.raises(ValueError, match="read-only"):
        WAYS["pickle"](first).weights[0] = 1.0


def test_registered_objectives_stay_themselves():
    assert WAYS["pickle"](get_objective("p90_jct")) is get_objective("p90_jct")
    own = Objective("own", "own", "", score=len, cost=len)
    assert WAYS["pickle"](own) == own
