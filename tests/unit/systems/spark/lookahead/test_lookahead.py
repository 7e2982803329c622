"""The scheduler ``lookahead``: what its plans may depend on, and what they may not."""

import copy

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError
from decima.core.record import BOUND
from decima.core.system import form_for
from decima.systems.spark.fields import ARRAYS
from decima.systems.spark.lookahead.copies import Draw
from decima.systems.spark.lookahead.planner import Planner, draw_future
from decima.systems.spark.lookahead.projection import NO_FUTURE
from decima.systems.spark.lookahead.scheduler import Lookahead, PlanSettings
from decima.systems.spark.lookahead.search import RunBudget, Search, TimeBudget, Trials
from decima.systems.spark.loop import new_state, spawn_generators
from decima.systems.spark.schedulers import check_scheduler, list_schedulers, make_scheduler, scheduler_text
from decima.systems.spark.settings import Settings
from decima.systems.spark.system import run_state
from decima.workload import embedded_batch, embedded_poisson, synthetic_batch, synthetic_poisson
from decima.workload.arrivals import with_requests
from decima.workload.jobs import Job, Workload
from tests.unit.systems.spark.lookahead.test_other_clusters import bring_to, jobs_there

BATCH, STREAM = synthetic_batch(5, seed=3), synthetic_poisson(7, 8.0, seed=3)
BUDGET = 64


def state_at_decision(workload, number, seed=0, **settings):
    """A state that ``capped_srw`` has brought to a decision."""
    state = new_state(workload, Settings(executors=12, **settings))
    base = form_for(make_scheduler("capped_srw"), workload)
    base.bind(state)
    state.start(*spawn_generators(seed))
    bring_to(number, state, base)
    return state, base


def plan_of(state, base, **options):
    """Jobs, parameters and factors of a first plan, one after the other."""
    jobs, plan = Planner(base, draws=4, seed=5, **options).replan(state, lambda: RunBudget(300))
    return np.concatenate([jobs, plan.parameters, plan.factors.ravel()])


def test_it_keeps_to_the_interface():
    few = {"batch": synthetic_batch(2, seed=1), "stream": synthetic_poisson(3, 3.0, seed=2)}
    report = check_scheduler(f"lookahead:{BUDGET}", workloads=few, executors=(7,))
    assert (report.name, report.kind) == ("lookahead", "Python")


def test_it_is_better_than_its_rule_on_average():
    changes = []
    for seed in range(4):
        jobs = embedded_batch(10, seed)
        plain, planned = (decima.simulate(jobs, text, 20, seed).avg_jct_s for text in ("capped_srw", "lookahead:200"))
        changes.append(planned / plain - 1.0)
    assert np.mean(changes) < 0.0


def test_every_table_of_jobs_is_laid_out_in_a_copy():
    workload = with_requests(synthetic_poisson(7, 2.0, seed=3), "uniform", 1)
    state, base = state_at_decision(workload, 40)
    jobs = jobs_there(state)
    first, last = state.job_first_stage[jobs], state.job_first_stage[jobs + 1]
    stages = np.concatenate([np.arange(*each) for each in zip(first, last, strict=True)])
    rows = {"job": (jobs, len(jobs)), "stage": (stages, len(stages))}
    draw = Draw(state, base, len(jobs), len(stages))
    draw.begin(state, jobs, NO_FUTURE, 0)
    seen = set()
    for name, field in ARRAYS.items():
        if field.storage == BOUND and field.extent in rows and name not in ("job_initial", "stage_job"):
            there, count = rows[field.extent]
            assert np.array_equal(getattr(draw._begin, name)[1 : 1 + count], getattr(state, name)[there]), name
            seen |= {name} if getattr(state, name)[there].any() else set()
    assert {"stage_tasks", "stage_row", "stage_memory", "stage_cpu", "job_arrival_ms", "job_work_ms"} <= seen
    assert np.array_equal(jobs[draw._begin.stage_job[1 : 1 + len(stages)] - 1], state.stage_job[stages])


def test_jobs_that_have_not_come_play_no_part():
    later = synthetic_poisson(9, 5.0, seed=8)
    plans = []
    for jobs in (later.jobs[1:4], later.jobs[5:9]):
        known = [Job(job.profile) for job in BATCH.jobs[:3]]
        unknown = [Job(job.profile, 1e6 + job.arrival_ms) for job in jobs]
        universe = tuple(dict.fromkeys((*BATCH.universe, *later.universe)))
        state, base = state_at_decision(Workload((*known, *unknown), "jobs", universe), 2)
        plans.append(plan_of(state, base, arrivals="poisson"))
    assert np.array_equal(*plans)


def test_another_rule_finds_the_state_without_a_plan():
    state = new_state(BATCH, Settings(executors=12))
    run_state(state, make_scheduler("capped_srw"), 3)
    before = state.job_finish_ms.copy()
    run_state(state, make_scheduler("lookahead", budget=BUDGET), 3)
    run_state(state, make_scheduler("capped_srw"), 3)
    assert np.array_equal(before, state.job_finish_ms)


def test_planned_runs_are_repeated_by_their_seed():
    scheduler = make_scheduler("lookahead", budget=BUDGET, arrivals="poisson")
    first, again = (decima.simulate(STREAM, scheduler, 12, 4, log=True) for _ in range(2))
    fresh = decima.simulate(STREAM, copy.deepcopy(scheduler), 12, 4, log=True)
    assert np.array_equal(first.log.decisions, again.log.decisions)
    assert np.array_equal(first.log.decisions, fresh.log.decisions)
    assert scheduler.plans > 2
    assert 0 < scheduler.runs <= scheduler.plans * BUDGET


def test_ends_of_running_tasks_are_drawn_anew():
    state, base = state_at_decision(BATCH, 20)
    jobs = jobs_there(state)
    draw = Draw(state, base, len(jobs), len(state.stage_job))
    found = set()
    for seed in range(40):
        draw.begin(state, jobs, NO_FUTURE, seed)
        begin = draw._begin
        assert begin.heap_size == state.heap_size
        assert (begin.heap_ms[: begin.heap_size] >= state.now_ms).all()
        found.add(tuple(begin.heap_ms[: begin.heap_size].tolist()))
    assert len(found) > 20
    state.put(now_ms=state.now_ms + 1e9)  # they run longer than any was measured
    draw.begin(state, jobs, NO_FUTURE, 0)
    assert tuple(begin.heap_ms[: begin.heap_size].tolist()) not in found


def test_jobs_to_come_are_like_those_seen():
    state, _ = state_at_decision(embedded_poisson(12, 10.0, 1), 60)
    seen = np.flatnonzero(state.job_state != 0)
    assert 2 < len(seen) < 12
    rng, work_ms = np.random.default_rng(0), 12 * 50_000.0 / 1.5
    futures = [draw_future(state, "poisson", work_ms, rng) for _ in range(300)]
    assert set(np.concatenate([future.like for future in futures]).tolist()) == set(seen.tolist())
    times = np.concatenate([future.arrival_ms for future in futures])
    assert state.now_ms < times.min()
    assert times.max() < state.now_ms + 50_000.0
    gap_ms = state.now_ms / np.count_nonzero(state.job_arrival_ms[seen] > 0.0)
    assert np.mean([len(future.like) for future in futures]) == pytest.approx(50_000.0 / gap_ms, rel=0.2)
    assert draw_future(state, "none", work_ms, rng) is NO_FUTURE


def noisy_bowl(goal, noise=0.0):
    rng = np.random.default_rng(0)

    def cost(draw, point):
        return float(100.0 + ((point - goal) ** 2).sum() + noise * rng.standard_normal())

    return cost


def test_search_finds_a_minimum_through_noise():
    goal = np.linspace(-1.0, 1.0, 6)
    trials = Trials(noisy_bowl(goal, noise=1.0), 4, RunBudget(2000))
    found = Search(2, np.random.default_rng(1)).improve(trials, [4, 5, 7, 9])
    assert ((found - goal) ** 2).sum() < 0.1 * (goal**2).sum()
    assert trials.runs == 2000


def test_a_search_goes_on_from_its_distribution_for_jobs_that_are_still_there():
    goal, search = np.array([0.0, 1.0, -1.0, 0.5]), Search(1, np.random.default_rng(1))
    first = search.improve(Trials(noisy_bowl(goal), 4, RunBudget(400)), [3, 4, 8])
    then = search.improve(Trials(noisy_bowl(np.zeros(4)), 4, RunBudget(0)), [4, 6, 8])
    assert np.allclose(first, goal, atol=0.3)
    assert np.array_equal(then, [first[0], first[2], 0.0, first[3]])


def test_plans_that_do_worse_than_the_rule_are_given_up():
    search = Search(0, np.random.default_rng(1))
    found = search.improve(Trials(noisy_bowl(np.ones(3)), 4, RunBudget(200)), range(3))
    assert np.abs(found).max() > 0.5
    for _ in range(2):  # the rule has become best; nothing but the comparison is run
        found = search.improve(Trials(noisy_bowl(np.zeros(3)), 4, RunBudget(2)), range(3))
    assert not found.any()


@pytest.mark.parametrize("ms", [5.0, 10.0, 50.0, 1000.0])
def test_a_budget_in_time_is_kept(ms):
    now = [0.0]

    def cost(draw, point):
        now[0] += 0.0002 + 0.0001 * (draw == 3)
        return float(1.0 + point @ point)

    trials = Trials(cost, 4, TimeBudget(ms, clock=lambda: now[0]))
    Search(0, np.random.default_rng(0)).improve(trials, range(3))
    assert 0.9 * ms <= 1000.0 * now[0] <= 1.1 * ms


def test_a_scheduler_keeps_its_budget_in_time():
    now = [0.0]

    def clock():
        now[0] += 0.001
        return now[0]

    scheduler = Lookahead(make_scheduler("capped_srw"), PlanSettings.of_budget("90ms"), clock=clock)
    decima.simulate(BATCH, scheduler, 12, 0)
    assert scheduler.plans * 30 < scheduler.runs <= scheduler.plans * 90


def test_the_bare_name_has_a_budget():
    made = make_scheduler("lookahead")
    assert made.values["budget"] == 64
    assert not made.settings.idle
    assert "lookahead" in list_schedulers(bare=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lookahead:-1", "budget must be a whole number of at least 0, got -1"),
        ("lookahead:7", "budget is 7 runs; expected 0, or at least"),
        ("lookahead:0ms", "budget is 0.0 ms; expected milliseconds above 0"),
        ("lookahead:-5ms", "expected milliseconds above 0"),
        ("lookahead:soon", "budget is 'soon'; expected a whole number"),
        ("lookahead:64,arrivals=known", "arrivals is 'known'; expected one of none, poisson"),
        ("lookahead:64,base=fair", "scheduler fair has no factors that could be planned"),
        ("lookahead:64,base=lookahead:64", "scheduler lookahead has no factors that could be planned"),
        ("lookahead:64,depth=3", "has no option 'depth'"),
    ],
)
def test_bad_input_is_one_sentence(text, message):
    with pytest.raises(ConfigError, match=message) as error:
        make_scheduler(text)
    assert "\n" not in str(error.value)


def test_the_text_of_a_scheduler_makes_it_again():
    scheduler = make_scheduler("lookahead:100ms,base=capped_srw:c0=2+c1=1,arrivals=poisson")
    again = make_scheduler(scheduler_text(scheduler))
    assert again.values == scheduler.values
    assert again.settings == scheduler.settings
    assert again.base.values == scheduler.base.values
