"""The clairvoyant search: between the lower bound and the rule it starts from, and repeatable."""

import pytest

from decima.evaluation.bounds import lower_bound
from decima.evaluation.run import score_matrix
from decima.evaluation.schedule_search import search_schedule
from decima.exceptions import ConfigError
from decima.schedulers import make_scheduler
from decima.simulator.settings import Settings
from decima.workload import synthetic_batch

CLUSTER = Settings.paper(executors=10, durations="mean")


def test_search_is_not_worse_than_its_start_nor_better_than_the_bound():
    batch = synthetic_batch(5, 3)
    found = search_schedule(batch, CLUSTER, 300)
    start = score_matrix([batch], [make_scheduler("capped_srw")], CLUSTER)[0, 0]
    assert found.start_avg_jct_s == start
    assert lower_bound(batch, CLUSTER).avg_jct_s <= found.avg_jct_s < start
    assert found.evaluations >= 300
    assert [row["best"] for row in found.curve] == sorted((row["best"] for row in found.curve), reverse=True)


def test_search_depends_on_the_seed_not_on_the_threads():
    batch = synthetic_batch(4, 1)
    found = [search_schedule(batch, CLUSTER, 60, seed=seed, threads=n) for seed, n in ((0, 1), (0, 3), (1, 1))]
    assert found[0].curve == found[1].curve
    assert found[0].order_factor.tolist() == found[1].order_factor.tolist()
    assert found[0].curve != found[2].curve


def test_sampled_durations_are_those_of_the_seed():
    batch = synthetic_batch(3, 0)
    cluster = CLUSTER.replace(durations="sampled")
    found = search_schedule(batch, cluster, 1, seed=7)
    assert found.start_avg_jct_s == score_matrix([batch], [make_scheduler("capped_srw")], cluster, seeds=[7])[0, 0]


def test_wrong_arguments_are_refused():
    with pytest.raises(ConfigError, match="budget"):
        search_schedule(synthetic_batch(2), CLUSTER, 0)
    with pytest.raises(ConfigError, match="capped_srw has no parameter"):
        search_schedule(synthetic_batch(2), CLUSTER, 1, start={"alpha": 1})
