"""The value of idling against queueing theory, the simulator and a plain loop that follows the best rule."""

import heapq
import re
from collections import deque
from pathlib import Path

import numpy as np
import pytest
from numba import njit

from decima.core.errors import ConfigError
from decima.evaluation.run import simulate
from decima.systems.spark.optimum import idle_value as optimum
from decima.systems.spark.optimum.idle_value import TwoClassCluster, idle_value
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload.sources import get_source

RARE_LONG = TwoClassCluster(executors=2, long_s=200.0, short_s=10.0, share=0.1, load=0.6)
PAPER = TwoClassCluster(executors=3, long_s=50.0, short_s=10.0, share=0.5, load=0.8)


@pytest.fixture(scope="module")
def rare_long():
    return idle_value(RARE_LONG, step_s=10.0, tolerance=1e-3, turned_away=1e-5)


def priority_queue_jct_s(cluster):
    """Average JCT of one executor that serves short jobs first without interruption (Cobham 1954)."""
    rate, share = cluster.rate, cluster.share
    residual_s = 0.5 * rate * (share * cluster.long_s**2 + (1 - share) * cluster.short_s**2)
    short_load = rate * (1 - share) * cluster.short_s
    short_s = residual_s / (1 - short_load) + cluster.short_s
    long_s = residual_s / (1 - short_load) / (1 - cluster.load) + cluster.long_s
    return share * long_s + (1 - share) * short_s


def stream(cluster, seed, n):
    options = {"long_s": cluster.long_s, "short_s": cluster.short_s, "share": cluster.share}
    gap_s = get_source("two_class").interarrival_s(cluster.load, cluster.executors, **options)
    assert gap_s == pytest.approx(1.0 / cluster.rate, rel=1e-12)
    return get_source("two_class").poisson(n, gap_s, seed, initial=0, **options)


def followed_jct_s(workload, cluster, starts=None):
    """Average JCT when free executors take short jobs first and long ones as ``starts`` says, in plain Python.

    ``starts`` is a function of the remaining times of running tasks and of the number of waiting long jobs; it is asked
    again whenever something happens and every half second. None: whatever waits is started.
    """
    arrivals = deque((job.arrival_ms / 1000.0, job.name == "long") for job in workload.jobs)
    short, long, ends, total, now = deque(), deque(), [], 0.0, 0.0
    while arrivals or ends or long:
        free = cluster.executors - len(ends)
        coming = [arrivals[0][0]] if arrivals else []
        coming += ends[:1]
        if long and free:  # an executor idles: perhaps not for long
            coming.append(now + 0.5)
        now = min(coming)
        while arrivals and arrivals[0][0] <= now:
            arrived, is_long = arrivals.popleft()
            (long if is_long else short).append(arrived)
        while ends and ends[0] <= now:
            heapq.heappop(ends)
        while short and len(ends) < cluster.executors:
            total += now + cluster.short_s - short.popleft()
            heapq.heappush(ends, now + cluster.short_s)
        if len(ends) < cluster.executors and long:
            most = min(cluster.executors - len(ends), len(long))
            count = most if starts is None else starts([end - now for end in ends], len(long))
            for _ in range(count):
                total += now + cluster.long_s - long.popleft()
                heapq.heappush(ends, now + cluster.long_s)
    return total / len(workload)


@pytest.mark.parametrize(
    ("long_s", "share", "load"),
    [(50.0, 0.5, 0.6), (50.0, 0.2, 0.8), (100.0, 0.1, 0.6), (40.0, 1.0, 0.7), (40.0, 0.0, 0.7)],
)
def test_one_executor_is_the_queue_of_theory_and_gains_nothing(long_s, share, load):
    cluster = TwoClassCluster(1, long_s, 10.0, share, load)
    result = idle_value(cluster)
    exact_s = priority_queue_jct_s(cluster)
    error_s, coarse_s = result.without_s - exact_s, result.coarse_without_s - exact_s
    # The error is of second order in the step.
    assert abs(error_s) < 0.025 * exact_s
    assert abs(error_s) <= 0.3 * abs(coarse_s) + 2e-4 * exact_s
    assert abs(result.gain_percent) < 0.03
    assert abs(result.coarse_gain_percent) < 0.03
    assert result.residual_s <= 1.1e-4 * result.without_s
    table = result.rule()
    assert (table["started"] == 1).all()


def test_rare_long_jobs_should_wait(rare_long):
    assert rare_long.gain_percent == pytest.approx(15.0, abs=0.7)
    assert rare_long.turned_away <= 1e-5
    assert rare_long.with_s < rare_long.without_s


def test_the_best_rule_gains_that_much_in_a_loop_that_follows_it(rare_long):
    best = {(row.waiting_long, row.remaining_1_s): row.started for row in rare_long.rule().itertuples(index=False)}
    most = max(waiting for waiting, _ in best)

    def starts(remaining_s, waiting):
        steps = np.ceil(max(remaining_s, default=0.0) / rare_long.step_s - 1e-9)
        return best[min(waiting, most), steps * rare_long.step_s]

    workloads = [stream(RARE_LONG, seed, 6000) for seed in range(6)]
    without = [followed_jct_s(workload, RARE_LONG) for workload in workloads]
    followed = [followed_jct_s(workload, RARE_LONG, starts) for workload in workloads]
    gain = 100.0 * (1.0 - np.sum(followed) / np.sum(without))
    assert gain == pytest.approx(rare_long.gain_percent, abs=2.0)


@pytest.mark.parametrize("cluster", [PAPER, RARE_LONG], ids=["half long", "rare long"])
def test_without_idling_it_is_what_the_simulator_gives(cluster, request):
    settings = Settings.simplified(executors=cluster.executors)
    scores = []
    for seed in range(8):
        workload = stream(cluster, seed, 20_000)
        scores.append(simulate(workload, make_scheduler("sjf_cp"), cluster=settings).avg_jct_s)
        if seed == 0:
            assert scores[0] == pytest.approx(followed_jct_s(workload, cluster), rel=1e-9)
    if cluster is RARE_LONG:
        result = request.getfixturevalue("rare_long")
    else:
        result = idle_value(cluster, step_s=5.0, tolerance=1e-3, turned_away=1e-4)
    # Three standard errors of eight streams, and the step: what twice as long a one changes, or one in a hundred.
    interval_s = 3.0 * np.std(scores, ddof=1) / np.sqrt(len(scores))
    step_s = max(abs(result.without_s - result.coarse_without_s), 0.01 * result.without_s)
    assert result.without_s == pytest.approx(np.mean(scores), abs=interval_s + step_s)


@njit
def event_loop_jct_s(executors, long_s, short_s, share, rate, jobs, seed):
    """Average JCT of short jobs first without idling, of jobs drawn on the way."""
    np.random.seed(seed)  # noqa: NPY002
    free_s, arrived_s = np.zeros(executors), np.empty((2, jobs))
    head, tail, total = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64), 0.0
    next_s = np.random.exponential(1.0 / rate)  # noqa: NPY002
    for _ in range(jobs):
        first = np.argmin(free_s)
        now = free_s[first] if (tail > head).any() else max(free_s[first], next_s)
        while next_s <= now:
            kind = int(np.random.random() < share)  # noqa: NPY002
            arrived_s[kind, tail[kind]] = next_s
            tail[kind] += 1
            next_s += np.random.exponential(1.0 / rate)  # noqa: NPY002
        kind = 0 if tail[0] > head[0] else 1
        free_s[first] = now + (long_s if kind else short_s)
        total += free_s[first] - arrived_s[kind, head[kind]]
        head[kind] += 1
    return total / jobs


def documented():
    """Rows of the table in docs/idle-slots.md: cluster, average JCT without idling."""
    page = (Path(__file__).parents[5] / "docs" / "idle-slots.md").read_text(encoding="utf-8")
    form = r"\| (\d) \| (\d+):(\d+) s \| (\d+) % \| (\d+) % \| ([\d.]+) s \|"
    for executors, long_s, short_s, share, load, jct_s in re.findall(form, page):
        cluster = TwoClassCluster(int(executors), float(long_s), float(short_s), int(share) / 100, int(load) / 100)
        yield pytest.param(cluster, float(jct_s), id=f"{executors} executors {long_s}:{short_s} {share} {load}")


@pytest.mark.parametrize(("cluster", "jct_s"), documented())
def test_the_documented_values_are_those_of_an_event_loop(cluster, jct_s):
    sizes = (cluster.executors, cluster.long_s, cluster.short_s, cluster.share, cluster.rate)
    looped_s = [event_loop_jct_s(*sizes, 1_000_000, seed) for seed in range(4)]
    assert jct_s == pytest.approx(np.mean(looped_s), rel=0.01)


def test_two_steps_extrapolated_take_the_error_of_the_step_out():
    """Three executors, the case in which one step of 10 s is off by 6 %: 22.74 s by 48 million jobs of the loop."""
    cluster = TwoClassCluster(3, 50.0, 10.0, 0.1, 0.8)
    result = idle_value(cluster, step_s=5.0, tolerance=2e-3, turned_away=1e-4)
    assert result.coarse_step_s == 10.0
    assert result.coarse_without_s > 1.05 * 22.74
    extrapolated_s = result.without_s + (result.without_s - result.coarse_without_s) / 3.0
    assert extrapolated_s == pytest.approx(22.74, rel=0.005)


def test_queues_grow_until_they_do_not_matter(monkeypatch):
    cluster = TwoClassCluster(2, 50.0, 10.0, 0.1, 0.7)
    whole = idle_value(cluster, step_s=10.0)
    monkeypatch.setattr(optimum, "FIRST_QUEUES", (2, 2))
    grown = idle_value(cluster, step_s=10.0)
    assert min(grown.queues) > 2
    assert max(whole.turned_away, grown.turned_away) <= 1e-6
    assert grown.without_s == pytest.approx(whole.without_s, rel=5e-4)
    assert grown.with_s == pytest.approx(whole.with_s, rel=5e-4)
    cut = idle_value(cluster, step_s=10.0, turned_away=0.01)
    assert 1e-6 < cut.turned_away <= 0.01
    assert cut.without_s < whole.without_s


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"executors": 0}, "executors is 0; expected a whole number from 1 to 4"),
        ({"executors": 2.5}, r"executors is 2\.5; expected a whole number"),
        ({"long_s": 5.0}, r"long_s is 5\.0; expected seconds, no less than short_s \(10\)"),
        ({"long_s": float("nan")}, "long_s is nan; expected seconds"),
        ({"short_s": 0.0}, r"short_s is 0\.0; expected a number of seconds above 0"),
        ({"share": 1.5}, r"share is 1\.5; expected the part of jobs that are long, from 0 to 1"),
        ({"load": 1.0}, r"load is 1\.0; expected a number above 0 and up to 0\.95, of which 1 is all"),
        ({"load": 0.0}, r"load is 0\.0; expected a number above 0"),
    ],
)
def test_clusters_that_make_no_sense(values, message):
    with pytest.raises(ConfigError, match=message):
        TwoClassCluster(**values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"step_s": 0.0}, r"step_s is 0\.0; expected seconds above 0 and no longer than a short job"),
        ({"step_s": 20.0}, r"step_s is 20\.0; expected seconds above 0"),
        ({"step_s": 3.0}, r"step_s is 3; expected a whole part of short_s, 10 s"),
        ({"step_s": 0.01}, r"the model would have [\d,]+ states \(steps of 0\.01 s, .*; expected at most 30,000,000"),
        ({"tolerance": 0.0}, r"tolerance is 0\.0; expected a number above 0 and up to 0\.1"),
        ({"turned_away": 0.5}, r"turned_away is 0\.5; expected a number above 0 and up to 0\.01"),
    ],
)
def test_models_that_make_no_sense(values, message):
    with pytest.raises(ConfigError, match=message):
        idle_value(TwoClassCluster(2, 50.0, 10.0, 0.5, 0.5), **values)
