import numpy as np
import pytest

from decima.core.errors import ConfigError, RecordError, SchedulerError
from decima.evaluation.pool import CandidatePool, RunPool
from decima.evaluation.run import simulate
from decima.systems.spark.schedulers import Decision, make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload import synthetic_batch

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


def test_an_exception_in_a_thread_is_raised():
    class Stubborn(Greedy):
        def decide(self, observation):
            return Decision.idle()

    with pytest.raises(Exception, match="parked every executor"):
        RunPool(WORKLOADS, SETTINGS).measure([Stubborn()])


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
