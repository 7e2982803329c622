import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError
from decima.core.objectives import list_objectives
from decima.evaluation.run import score_matrix
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
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
