"""Single runs, matrices of scores, and pools of runs."""

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError, RecordError, SchedulerError
from decima.core.objectives import list_objectives
from decima.evaluation.pool import CandidatePool, RunPool
from decima.evaluation.run import score_matrix, simulate
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload import synthetic_batch
from tests.random_clusters import random_workload
from tests.toy_jobs import one_stage, workload

JOBS = [random_workload(np.random.default_rng(seed)) for seed in range(5)]


def test_scores_are_those_of_single_runs():
    schedulers = [make_scheduler("fair"), make_scheduler("random")]
    seeds = [7, 7, 3, 0, 1]
    for metric in list_objectives():
        scores = score_matrix(JOBS, schedulers, Settings(executors=3), seeds=seeds, metric=metric)
        expected = [
            [decima.simulate(jobs, scheduler, 3, seed).score(metric) for jobs, seed in zip(JOBS, seeds, strict=True)]
            for scheduler in schedulers
        ]
        assert scores.tolist() == expected


def test_unfinished_jobs_of_runs_cut_short_count_up_to_the_limit():
    jobs = workload(one_stage(1, 1.0), one_stage(1, 50.0))
    for limit_s, avg_jct_s in ((1.0, 1.0), (10.0, 6.5), (100.0, 27.5)):
        settings = Settings(executors=2, time_limit_ms=1000.0 * limit_s)
        scores = {
            metric: score_matrix([jobs], [make_scheduler("fifo")], settings, metric=metric)
            for metric in ("avg_jct_s", "makespan_s")
        }
        makespan_s = min(52.0, limit_s)
        np.testing.assert_array_equal(scores["avg_jct_s"], [[avg_jct_s]])
        np.testing.assert_array_equal(scores["makespan_s"], [[makespan_s]])


def test_bad_input_of_score_matrix():
    for seeds in ([0.5] * 5, 5):
        with pytest.raises(ConfigError, match=r"must be a (whole number|list of whole numbers)"):
            score_matrix(JOBS, [make_scheduler("fair")], Settings(), seeds=seeds)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((5,), {}, "expected a Workload, got int"),
        (([JOBS[0]],), {}, "expected a Workload, got list"),
        ((JOBS[0],), {"parameters": [1]}, r"parameters must be values by name, got \[1\]"),
        ((JOBS[0],), {"parameters": {1: 2}}, "parameters must be values by name, got {1: 2}"),
        ((JOBS[0],), {"parameters": "alpha"}, "parameters must be values by name, got 'alpha'"),
        ((JOBS[0],), {"mode": ["paper"]}, r"mode must be one of paper, .*, got \['paper'\]"),
        ((JOBS[0],), {"executors": 0}, "executors must be a whole number of at least 1, got 0"),
        ((JOBS[0],), {"delay": 3.0}, "unknown simulator setting: delay"),
        ((JOBS[0],), {"seed": 1.0}, r"seed must be a whole number of at least 0, got 1\.0"),
    ],
)
def test_bad_input_of_simulate(arguments, options, message):
    with pytest.raises(ConfigError, match=message):
        decima.simulate(*arguments, **options)


class Careless:
    """Fails in its third decision."""

    name = "careless"

    def reset(self, rng):
        self.decisions = 0

    def decide(self, observation):
        self.decisions += 1
        self.now_ms = observation.time_ms
        if self.decisions == 3:
            return {}["the stage"]
        return observation.grant(observation.frontier[0], 1)


def test_an_exception_in_a_scheduler_says_at_which_decision():
    scheduler = Careless()
    for run in (
        lambda: decima.simulate(JOBS[0], scheduler, 3, seed=7),
        lambda: decima.compare([scheduler], JOBS[0], 3, seeds=[7]),
    ):
        with pytest.raises(KeyError, match="the stage") as caught:
            run()
        when = f"{scheduler.now_ms / 1000:.3f} s"
        assert caught.value.__notes__ == [f"in decision 2 at {when} of scheduler careless, seed 7"]


SETTINGS = Settings(executors=8)
WORKLOADS = [synthetic_batch(4, seed=seed) for seed in range(5)]
SCHEDULERS = [make_scheduler(name) for name in ("fifo", "weighted_fair", "random")]


class Greedy:
    """Fails when it sees two runs at once."""

    name = "greedy"

    def __init__(self):
        self.running = None

    def reset(self, rng):
        self.running = None

    def decide(self, observation):
        assert self.running in (None, id(observation))
        self.running = id(observation)
        return observation.grant(observation.frontier[0], observation.num_free_executors)


def test_python_schedulers_see_one_run_at_a_time():
    scores = RunPool(WORKLOADS, SETTINGS, workers=4).measure([Greedy(), SCHEDULERS[0]], ("avg_jct_s", "makespan_s"))
    assert scores["avg_jct_s"].shape == scores["makespan_s"].shape == (2, 5)
    assert scores["avg_jct_s"][0, 1] == simulate(WORKLOADS[1], Greedy(), 8, 1).avg_jct_s
    assert (scores["makespan_s"] >= scores["avg_jct_s"]).all()


def test_candidates_have_priorities_of_their_own():
    settings = SETTINGS.replace(durations="mean")
    rng = np.random.default_rng(0)
    priority = rng.normal(size=(6, 4))
    schedulers = [make_scheduler("priority")] * 6
    together = CandidatePool(WORKLOADS[0], settings, workers=3).scores(schedulers, {"job_rank": priority})
    pool = CandidatePool(WORKLOADS[0], settings, workers=1)
    alone = [pool.scores(schedulers[:1], {"job_rank": row[None]})[0] for row in priority]
    assert np.array_equal(together, alone)
    assert len(set(together)) > 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros(4), r"array job_rank: got shape \(4,\); expected a row for each of 1 candidates"),
        (np.zeros((2, 4)), r"array job_rank: got shape \(2, 4\); expected a row"),
        ([[1.0, 2.0], [3.0]], "array job_rank: got rows of different lengths; expected a row"),
        ([[1.0, 2.0]], "array job_rank of the record of heuristics: got 2 numbers"),
    ],
)
def test_arrays_of_candidates_that_do_not_fit(rows, message):
    pool = CandidatePool(WORKLOADS[0], SETTINGS, workers=1)
    with pytest.raises(RecordError, match=message):
        pool.scores(["priority"], {"job_rank": rows})
    with pytest.raises(SchedulerError):
        pool.scores([None])


def test_bad_input():
    with pytest.raises(ConfigError, match="no workload"):
        RunPool([], SETTINGS)
    with pytest.raises(ConfigError, match="2 seeds for 5 workloads; expected one each"):
        RunPool(WORKLOADS, SETTINGS, seeds=[1, 2])
    with pytest.raises(ConfigError, match="expected a Workload, got str"):
        RunPool(["tpch"], SETTINGS)
    with pytest.raises(ConfigError, match="workers must be"):
        RunPool(WORKLOADS, SETTINGS, workers=0)
    pool = RunPool(WORKLOADS, SETTINGS)
    with pytest.raises(ConfigError, match="unknown objective 'p95'; did you mean 'p95_jct'"):
        pool.measure(SCHEDULERS, ("p95",))
    with pytest.raises(ConfigError, match="no scheduler"):
        pool.measure([])
