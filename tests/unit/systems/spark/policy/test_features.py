"""Features of stages: by hand, and against the definition on the public view of the cluster."""

import numpy as np
import pytest

from decima.core.errors import ConfigError
from decima.core.grammar import read_value
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.features import AS_LOGARITHMS, CODES, FEATURES, SETS, WITHOUT_DURATIONS
from decima.systems.spark.schedulers import Observation
from decima.workload.profile import Stage
from tests.stepping import Steps
from tests.toy_jobs import job, one_stage, stage, workload
from tests.unit.systems.spark.policy.policies import make_policy, make_state, random_state, watch

FEATURE_OPTIONS = [
    Architecture.paper(),
    Architecture.paper(feature_log=True),
    Architecture.paper(durations=False),
    Architecture.paper(interarrival_hint=True),
    Architecture.released(),
    Architecture.released(durations=False),
    Architecture.released(interarrival_hint=True),
    Architecture.paper(more_features=("runnable",)),
    Architecture.released(interarrival_hint=True, more_features=("runnable",)),
    Architecture.paper(feature_log=True, durations=False),
    Architecture.paper(interarrival_hint=True, more_features=("runnable", "work", "job_executors")),
]


def wanted_features(observation, view, architecture, hint_ms=0.0):
    """Features of a stage from the public view."""
    state, job_view = observation.state, view.job
    source = observation.source_job
    offered = observation.num_free_executors
    duration = view.mean_duration_ms if architecture.durations else 0.0
    at_work = view.tasks_unfinished
    held = sum(int(getattr(state, name)[job_view.id]) for name in ("job_attached", "job_moving", "job_commit"))
    left = view.tasks_to_launch
    if architecture.features == "paper":
        coming = view.executors + int(state.stage_moving[view.id]) + int(state.stage_commit[view.id])
        first = [at_work / 200, duration / 10_000]
        if architecture.feature_log:
            first = [np.log1p(at_work) / 4, np.log1p(duration / 10) / 4]
        values = [*first, coming / 20, offered / 20, 1.0 if source == job_view else -1.0]
    else:
        values = [held / 20, 2.0 if source == job_view else -2.0, offered / 20, left * duration / 1e5, left / 200]
    if architecture.interarrival_hint:
        values.append(hint_ms / 50_000)
    further = {"runnable": float(view.runnable), "work": left * duration / 1e5, "job_executors": held / 20}
    return values + [further[name] for name in architecture.more_features]


def stored_features(state, architecture):
    """Float32 [stages, F], what the compiled policy stored last."""
    width = architecture.num_features + architecture.embedding
    return state.net_xe.reshape(state.num_stages, width)[:, : architecture.num_features]


def observe(steps, policy):
    """Ask the policy and return the features it saw, by stage."""
    policy.decide(Observation(steps.state))
    return stored_features(steps.state, policy.architecture)


def two_jobs():
    """Stage b after a of 2 s and 4 s; another job of 1 s."""
    return workload(job(stage("a", 5, 2.0), stage("b", 3, 4.0, 0)), one_stage(10, 1.0))


def test_features_of_coming_by_hand():
    """Tasks take their nominal time at any level, executors 2 s to come: a costs 4 s, b 6 s, c 3 s; m = 2, E = 4."""
    names = ("entry_cost", "entry_room", "level_work", "slope")
    steps = Steps(two_jobs(), executors=4)
    policy = make_policy(Architecture.paper(more_features=names))
    room = [np.sqrt(22 * 2 / 4), np.sqrt(22 * 2 / 6), np.sqrt(10 * 2 / 3)]
    costs, works = np.array([4, 6, 3]) / 20, np.array([22, 22, 10]) / 1000
    expected = np.array([costs, np.array(room) / 20, works, np.zeros(3)])
    np.testing.assert_allclose(observe(steps, policy)[:, 5:], expected.T, rtol=1e-6)
    steps.choose(0, 0, 3)  # the job of a and b has three executors
    np.testing.assert_allclose(observe(steps, policy)[:, 6] * 20, np.array(room) - [3, 3, 0], rtol=1e-5)


def test_the_slope_is_how_much_more_work_there_is_on_twice_the_executors():
    waves = (np.array([1000.0]), np.array([1500.0]))
    steps = Steps(workload(job(Stage("a", 9, (), (1, 2), waves, waves, waves))), executors=4)
    policy = make_policy(Architecture.paper(more_features=("slope",)))
    np.testing.assert_allclose(observe(steps, policy)[:, 5], [np.log(1.5)], rtol=1e-6)


def test_the_shape_of_a_job_is_that_of_the_published_example():
    """Duan and Wu, Figure 3: a critical path of 15 and an average width of 27 / 15; six stages with these numbers."""
    lengths, parents = [3, 7, 4, 5, 6, 2], [(), (0,), (0,), (1,), (2,), (0,)]
    stages = [stage(str(at), 1, lengths[at], *parents[at]) for at in range(6)]
    policy = make_policy(Architecture.paper(job_shape="replaced"))
    seen = observe(Steps(workload(job(*stages)), executors=4), policy)[:, -2:]
    np.testing.assert_allclose(seen, np.tile([15_000 / 100_000, 27 / 15 / 20], (6, 1)), rtol=1e-6)


@pytest.mark.parametrize("architecture", FEATURE_OPTIONS, ids=str)
def test_features_by_definition(architecture):
    policy = make_policy(architecture, greedy=False, interarrival_s=7.0)
    seen = 0
    for seed in range(12):
        state = random_state(seed)
        expected = []

        def look(observation, expected=expected, state=state):
            check(state, expected)
            expected[:] = [
                (view.id, wanted_features(observation, view, architecture, 7000.0))
                for jobs in observation.jobs
                for view in jobs.stages
                if view.tasks_unfinished > 0
            ]

        def check(state, expected):
            nonlocal seen
            if expected:
                stages, values = zip(*expected, strict=True)
                stored = stored_features(state, architecture)[list(stages)]
                np.testing.assert_allclose(stored, np.array(values, dtype=np.float32), rtol=2e-7, atol=0)
                seen += len(expected)

        watch(state, policy, look)
        check(state, expected)
    assert seen > 300


@pytest.mark.parametrize(
    ("arrivals_s", "given_s", "hint"),
    [((0, 10, 40), None, 20.0 / 50), ((0, 10, 40), 5.0, 0.1), ((0, 0), 7.0, 0.14), ((0, 0), 0.0, 0.0)],
)
def test_interarrival_hint(arrivals_s, given_s, hint):
    jobs = workload(*(one_stage(2, 1.0, at_s=at) for at in arrivals_s))
    policy = make_policy(Architecture.paper(interarrival_hint=True), interarrival_s=given_s)
    state = make_state(jobs, executors=2)
    watch(state, policy, lambda observation: None)
    assert stored_features(state, policy.architecture)[0, 5] == pytest.approx(hint)


@pytest.mark.parametrize("arrivals_s", [(0, 0, 0), (0,)])
def test_jobs_without_gaps_are_refused_by_a_policy_that_wants_the_hint(arrivals_s):
    jobs = workload(*(one_stage(2, 1.0, at_s=at) for at in arrivals_s))
    state = make_state(jobs, executors=2)
    with pytest.raises(ConfigError, match="mean gap between arrivals, and these jobs have none"):
        make_policy(Architecture.paper(interarrival_hint=True), interarrival_s=None).bind(state)
    make_policy(Architecture.paper(), interarrival_s=None).bind(state)  # others do not ask


def names(architecture):
    return [feature.name for feature in architecture.stage_features]


def test_options_are_tuples_of_entries():
    assert names(Architecture.paper()) == ["tasks", "duration", "executors", "offered", "own"]
    assert names(Architecture.paper(feature_log=True))[:2] == ["log_tasks", "log_duration"]
    assert names(Architecture.paper(feature_log=True, durations=False))[:2] == ["log_tasks", "hidden"]
    assert names(Architecture.released(durations=False))[3:] == ["hidden", "tasks_to_launch"]
    more = Architecture.released(interarrival_hint=True, more_features=("runnable", "tasks"))
    assert names(more)[5:] == ["interarrival", "runnable", "tasks"]
    assert more.num_features == 8
    assert more == Architecture(**more.as_dict())
    assert Architecture.paper(more_features="runnable").more_features == ("runnable",)
    assert [read_value(text, tuple[str, ...], "more_features") for text in ("", "own+work")] == [(), ("own", "work")]
    with pytest.raises(ConfigError, match="more_features: unknown feature 'colour'; known: tasks, duration"):
        Architecture.paper(more_features=("colour",))


def test_every_entry_can_be_found_and_is_described():
    assert len(CODES) == len(FEATURES)
    for exchange in (AS_LOGARITHMS, WITHOUT_DURATIONS, *({name: name for name in names} for names in SETS.values())):
        assert set(exchange) | set(exchange.values()) <= set(CODES)
    for feature in FEATURES:
        assert feature.doc
        assert feature.scale > 0.0
