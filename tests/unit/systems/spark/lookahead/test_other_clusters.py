"""Plans for every kind of cluster, for rules that leave executors idle and for residual policies, whose rule factors
act on: copies, and what plans may know.
"""

from dataclasses import replace

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError
from decima.core.system import form_for
from decima.systems.spark.lookahead.copies import Draw, Plan
from decima.systems.spark.lookahead.planner import Space
from decima.systems.spark.lookahead.projection import NO_FUTURE
from decima.systems.spark.lookahead.scheduler import Lookahead
from decima.systems.spark.loop import new_state, offers, spawn_generators
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.scheduler import LearnedScheduler
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.schedulers.interface import decision_parts, run_decision
from decima.systems.spark.settings import Settings
from decima.workload.sources import get_source

CLASSES = ((0.25, 3), (0.5, 3), (0.75, 3), (1.0, 3))


def policy_of(architecture):
    weights = np.random.default_rng(0).normal(0.0, 0.3, architecture.num_parameters)
    return LearnedScheduler(architecture, weights.astype(np.float32))


RESIDUAL = policy_of(Architecture.released(residual="capped_srw:c0=1.5,c1=1"))
# Rule or policy, settings of the cluster, and whether stages ask for memory.
CASES = {
    "plain": ("capped_srw", {"executors": 12}, "none"),
    "classes": ("capped_srw", {"classes": CLASSES}, "uniform"),
    "priced": ("priced_srw", {"classes": CLASSES}, "uniform"),
    "slots": ("idle_rule:base=0.4,remaining=-0.5,soon=0.3,waiting=-0.2,length=0.1", {"executors": 12}, "none"),
    "holding": ("idle_rule:hold=1,base=0.7,busy=-0.3", {"executors": 12}, "none"),
    "policy": (RESIDUAL, {"executors": 12}, "none"),
}
HERE = pytest.mark.parametrize("case", CASES)
MODE = pytest.mark.parametrize("mode", ["paper", "released"])


def jobs_of(requests, streaming):
    source = get_source("synthetic")
    if streaming:
        return source.stream(7, 3.0, seed=3, requests=requests)
    return source.batch(7, seed=3, requests=requests)


def run_of(case, streaming, mode="paper", **changes):
    """A state in which nothing was decided yet, and the rule that is to decide."""
    base, settings, requests = CASES[case]
    workload = jobs_of(requests, streaming)
    state = new_state(workload, Settings.of_mode(mode, **settings, **changes))
    rule = form_for(make_scheduler(base), workload)
    rule.bind(state)
    state.start(*spawn_generators(2))
    return state, rule


def go_on(state, rule):
    state.decide(*decision_parts(run_decision(rule.decision, state)))


def bring_to(number, state, rule):
    """Let a rule decide up to its decision of this number."""
    for count, _ in enumerate(offers(state)):
        if count == number:
            return
        go_on(state, rule)
    raise AssertionError(f"the run has no decision {number}")


def jobs_there(state):
    return state.active[: state.num_active].astype(np.int32)


def spent_ms(state):
    """Time that jobs have spent in the system."""
    return state.area_ms + state.num_active * (state.now_ms - state.area_time_ms)


@HERE
@MODE
@pytest.mark.parametrize("streaming", [False, True], ids=["batch", "stream"])
def test_a_copy_goes_on_as_the_run_does_from_every_decision(case, mode, streaming):
    """With mean durations nothing is drawn, so that a wrong field of a copy shows as another cost."""
    state, rule = run_of(case, streaming, mode, durations="mean")
    own = np.array([rule.values[item.name] for item in rule.parameters])
    found, begun, others = [], [], []
    for number, _ in enumerate(offers(state)):
        if number % 7 == 0 and state.next_arrival == state.num_arrivals:
            jobs = jobs_there(state)
            draw = Draw(state, rule, len(jobs), len(state.stage_job))
            for _ in range(2):  # nothing is left over from a run before
                draw.begin(state, jobs, NO_FUTURE, 0)
                found.append(draw.cost_ms(Plan(own, np.zeros((2, len(jobs))))))
                begun.append(spent_ms(state))
            other = draw.cost_ms(Plan(own, np.random.default_rng(1).normal(0.0, 2.0, (2, len(jobs)))))
            others.append(other != found[-1])
        go_on(state, rule)
    assert len(found) > 10
    assert sum(others) > 2
    assert found == pytest.approx(spent_ms(state) - np.array(begun), rel=1e-10)


@HERE
@MODE
def test_no_candidates_are_the_rule(case, mode):
    base, settings, requests = CASES[case]
    workload = jobs_of(requests, True)
    schedulers = (base, make_scheduler("lookahead", budget=0, base=base))
    plain, idle = (decima.simulate(workload, each, seed=4, mode=mode, log=True, **settings) for each in schedulers)
    assert np.array_equal(plain.log.decisions, idle.log.decisions)
    assert np.array_equal(plain.completion_ms, idle.completion_ms)


@HERE
def test_plans_are_made_and_every_job_finishes(case):
    base, settings, requests = CASES[case]
    scheduler = make_scheduler("lookahead", budget=64, arrivals="poisson", base=base)
    decided = []
    for streaming in (False, True, True):
        result = decima.simulate(jobs_of(requests, streaming), scheduler, seed=4, log=True, **settings)
        assert result.num_unfinished == 0
        assert scheduler.plans > 2
        decided.append(result.log.decisions)
    assert np.array_equal(*decided[1:])


@pytest.mark.parametrize("case", ["plain", "classes", "slots"])
def test_true_durations_play_no_part(case):
    """Neither the ends of running tasks nor the sum of durations, which holds theirs, may be seen through a copy."""
    state, rule = run_of(case, False)
    bring_to(30, state, rule)
    other = state.copy()
    size = other.heap_size
    tasks = np.flatnonzero(other.heap_event[:size] >> 32 == 0)
    assert len(tasks) > 1
    later_ms = np.random.default_rng(0).uniform(1.0, 1e6, len(tasks))
    other.heap_ms[tasks] += later_ms
    other.put(busy_ms=other.busy_ms + later_ms.sum())
    jobs = jobs_there(state)
    rng = np.random.default_rng(1)
    own = np.array([rule.values[item.name] for item in rule.parameters])
    plans = [Plan(own, rng.normal(0.0, 0.5, (2, len(jobs)))) for _ in range(20)]
    costs = []
    for each in (state, other):
        draw = Draw(each, rule, len(jobs), len(state.stage_job))
        draw.begin(each, jobs, NO_FUTURE, 3)
        costs.append([draw.cost_ms(plan) for plan in plans])
    assert len(set(costs[0])) > 10
    assert costs[0] == pytest.approx(costs[1], rel=1e-9)


@HERE
def test_a_state_copied_in_mid_episode_goes_on_alike(case):
    state, rule = run_of(case, True)
    bring_to(25, state, rule)
    other = state.copy()
    for each in (state, other):
        go_on(each, rule)
        while each.advance():
            go_on(each, rule)
    assert np.array_equal(state.job_finish_ms, other.job_finish_ms)


@pytest.mark.parametrize(
    ("text", "classes", "part"), [("priced_srw", 4, 0.4), ("priced_srw", 1, 0.05), ("capped_srw", 4, 0.05)]
)
def test_parameters_that_nobody_tuned_for_batches_get_large_steps_on_classes(text, classes, part):
    rule = form_for(make_scheduler(text, c1=2.0), jobs_of("none", False))
    space = Space(rule, classes)
    point = np.zeros(space.common + 1)  # one job
    point[[item.name for item in rule.parameters if item.tunable].index("c1")] = 1.0
    place = [item.name for item in rule.parameters].index("c1")
    assert space.plan(point, np.zeros((2, 1))).parameters[place] == pytest.approx(2.0 * (1.0 + part))


def test_a_rule_outside_of_the_registry_can_be_planned():
    rule = form_for(make_scheduler("priced_srw"), jobs_of("none", False))
    assert Space(replace(rule, name="mine"), 4).common == Space(rule, 4).common


def test_policies_without_a_rule_are_refused():
    with pytest.raises(ConfigError, match="the policy decima has no factors that could be planned"):
        Lookahead(policy_of(Architecture.released()))
    with pytest.raises(ConfigError, match="no factors that could be planned"):
        make_scheduler("lookahead:64,base=decima")
