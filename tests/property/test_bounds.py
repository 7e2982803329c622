"""No scheduler ever beats the lower bound, whatever the jobs, the mode and the draw of durations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decima.core.errors import ConfigError
from decima.evaluation.run import simulate
from decima.systems.spark.optimum.bounds import lower_bound
from decima.systems.spark.optimum.exhaustive import exhaustive_search
from decima.systems.spark.optimum.schedule_search import search_schedule
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload import embedded_batch, synthetic_batch
from decima.workload.jobs import Job, Workload
from decima.workload.profile import JobProfile, Stage
from tests.drivers import IN_CORE
from tests.profiles import job_profiles


@st.composite
def workloads(draw):
    """Batches and streams of random DAGs."""
    drawn = draw(st.lists(job_profiles(), min_size=1, max_size=5))
    arrivals = draw(st.lists(st.floats(0.0, 20_000.0), min_size=len(drawn), max_size=len(drawn)))
    batch = draw(st.booleans())
    jobs = [Job(profile, 0.0 if batch else at) for profile, at in zip(drawn, arrivals, strict=True)]
    return Workload(tuple(jobs), "random")


@settings(deadline=None, max_examples=150)
@given(
    workload=workloads(),
    executors=st.integers(1, 12),
    mode=st.sampled_from(["paper", "released", "simplified"]),
    durations=st.sampled_from(["mean", "sampled"]),
    scheduler=st.sampled_from([name for name in IN_CORE if name != "priority"]),
    seed=st.integers(0, 5),
)
def test_no_run_is_below_the_bound(workload, executors, mode, durations, scheduler, seed):
    cluster = Settings.of_mode(mode, executors=executors, durations=durations)
    bound = lower_bound(workload, cluster, rounds=40, price_rounds=3)
    result = simulate(workload, scheduler, executors, seed, mode=mode, durations=durations)
    slack = 1e-9 * max(1.0, result.avg_jct_ms)
    assert bound.avg_jct_ms <= result.avg_jct_ms + slack
    assert np.all(bound.job_path_ms <= result.jct_ms + 1e-9 * np.maximum(1.0, result.completion_ms))


@pytest.mark.parametrize("executors", [2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_no_searched_schedule_is_below_the_bound(seed, executors):
    """Nor is the best of all orders, nor what a search finds that knows the future; in waves and without."""
    batch = embedded_batch(4, seed)
    simple = Settings.of_mode("simplified", executors=executors, durations="mean")
    best = exhaustive_search(batch, executors, distribution=False)
    least = min(best.best_avg_jct_s, best.replayed_best_avg_jct_s)
    assert lower_bound(batch, simple, price_rounds=10).dual_ms <= 1000.0 * least * (1.0 + 1e-9)
    for mode in ("paper", "released"):
        cluster = Settings.of_mode(mode, executors=executors, durations="mean")
        found = search_schedule(batch, cluster, 100, seed=seed, workers=1)
        bound = lower_bound(batch, cluster, price_rounds=10)
        assert 0.2 * found.avg_jct_s < bound.dual_ms / 1000.0 <= found.avg_jct_s * (1.0 + 1e-9)


def test_prices_know_that_tasks_take_longer_beside_each_other():
    """Sixty tasks of 1 s, of n s with n at one time: twelve executors are no faster than one, and the rest is idle."""
    lists = tuple(np.array([1000.0 * level]) for level in (1, 12))
    stage = Stage("slow", 60, (), (1, 12), lists, lists, lists)
    jobs = tuple(Job(JobProfile("job", (stage,), "json")) for _ in range(4))
    cluster = Settings.of_mode("simplified", executors=12, durations="mean", inflation=True)
    bound = lower_bound(Workload(jobs, "slow"), cluster)
    assert bound.dual_ms > 1.1 * bound.combined_ms


def test_short_work_at_a_late_time():
    """Squared times have no digits left for it."""
    durations = {"short": 1e-7, "none": 0.0}
    stages = tuple(Stage(name, 1, (), (1,), ([value],), ([],), ([],)) for name, value in durations.items())
    late = Workload((Job(JobProfile("late", stages, "json"), arrival_ms=11585.625, initial=False),), "late")
    bound = lower_bound(late, Settings.of_mode("simplified", executors=2, durations="mean"))
    assert 0.0 < bound.avg_jct_ms <= 1e-7 + 1e-9


def test_bound_is_not_vacuous():
    batch = synthetic_batch(20, 0)
    cluster = Settings.paper(durations="mean")
    bound = lower_bound(batch, cluster, price_rounds=5)
    best = min(simulate(batch, make_scheduler(name), durations="mean").avg_jct_ms for name in ("fair", "capped_srw"))
    assert 0.4 * best < bound.avg_jct_ms < best
    assert bound.combined_ms >= max(bound.path_ms, bound.work_ms) * 0.999


@pytest.mark.parametrize("limit_ms", [1.0, 1e9])
def test_no_bound_for_runs_that_are_cut(limit_ms):
    with pytest.raises(ConfigError, match="no time limit"):
        lower_bound(synthetic_batch(2), Settings.paper(time_limit_ms=limit_ms))
