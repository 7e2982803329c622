"""Executor placement through the shared parts of the project: comparison, workers, Gantt charts, results, Gymnasium."""

import gymnasium
import numpy as np
import pytest

import decima
import decima.systems.cloud.gym
from decima.core.errors import ConfigError, InvalidDecisionError
from decima.systems.cloud import PlacementSettings, make_placement, simulate
from decima.systems.cloud.gym.environment import JOB_COLUMNS, VM_COLUMNS
from decima.systems.cloud.result import COST, OBJECTIVES
from decima.systems.cloud.sources import Generator
from decima.systems.cloud.workload import jobs_of_rows
from tests.unit.systems.cloud.cases import FIGURE_2, FIGURE_2_JOBS, TWO_KINDS, Filling, drawn_jobs

ID = "decima/VmPlacement-v0"


def test_comparison_is_paired():
    first = decima.compare(["aep", "ilp_exact", "random"], "generated:n=10", system="cloud", seeds=4, workers=1)
    table = first.summary().set_index("scheduler")
    assert table.loc["aep", "change_percent"] == 0.0
    low, high = table.loc["ilp_exact", ["change_low", "change_high"]]
    assert low <= table.loc["ilp_exact", "change_percent"] <= high < 0.0
    for name in OBJECTIVES:
        assert np.isfinite(
            first.summary(name)["mean" if name in ("cost", "good", "waits", "reward") else "mean_s"]
        ).all()
    assert first.title.startswith("cost, generated, normal, Table 4, 12 VMs, billed per second, beta 1, 4 runs")


@pytest.mark.parametrize("jobs", ["jobs.csv", FIGURE_2_JOBS, [FIGURE_2_JOBS] * 3], ids=["file", "jobs", "list"])
def test_what_draws_nothing_is_run_once(jobs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FIGURE_2_JOBS.frame().to_csv("jobs.csv", index=False)
    settings = PlacementSettings(cluster=FIGURE_2)
    for rules, runs in (
        (["aep", "rr", Filling(draws=False)], 1),
        (["aep", Filling()], 3),
        (["aep", "random"], 3),
        (["aep", "random_placing"], 3),
    ):
        result = decima.compare(rules, jobs, cluster=settings, seeds=3)
        assert result.scores.seed.tolist() == [*range(runs)] * len(rules)
        assert ("Nothing is drawn" in str(result)) == (runs == 1)
        assert f"{runs} run" in result.title
        assert result.summary()[["low", "high"]].isna().all(axis=None) == (runs == 1)
    assert decima.compare(["aep"], "generated:n=4", system="cloud", seeds=3).num_runs == 3


def test_the_system_follows_from_jobs_settings_or_its_name():
    workloads = [Generator(n=6).draw(seed) for seed in range(3)]
    given = ({"jobs": workloads}, {"jobs": workloads, "cluster": PlacementSettings(), "metric": COST, "seeds": 3})
    given = (*given, {"jobs": "generated:n=6", "system": "cloud", "seeds": 3})
    costs = [decima.compare(["aep", "ilp"], **each).summary()["mean"].tolist() for each in given]
    assert costs[0] == costs[1] == costs[2]


def test_what_placements_refuse():
    with pytest.raises(ConfigError, match="known at the end of a run only"):
        COST.cost(None)
    with pytest.raises(ConfigError, match="parameters are for rules given by name"):
        make_placement(make_placement("rr"), beta=1.0)


def test_results_of_an_episode():
    result = simulate(FIGURE_2_JOBS, "rr", PlacementSettings(cluster=FIGURE_2))
    assert (result.cost, result.mean_duration_s, result.response_s) == (pytest.approx(70.0), 15.0, pytest.approx(19.5))
    assert (result.good_placements, result.waits, result.steps) == (2, 1, 4)
    assert result.table_3_return == pytest.approx(1.0 + 1.0 - 1.0 + result.reward)
    jobs = result.jobs()
    assert jobs["vms"].tolist() == ["small-1+large-1", "large-1"]
    assert jobs["placed_s"].tolist() == [0.0, 10.0]
    vms = result.vms()
    assert vms["billed_s"].tolist() == [10.0, 30.0]
    assert vms["executors"].tolist() == [1, 2]
    use = result.use()
    assert use["time_s"].tolist() == [0.0, 10.0, 30.0]
    assert use["vms"].tolist() == [2, 1, 0]
    assert use["cores"].tolist() == [8, 6, 0]
    assert use["price_per_hour"].tolist() == [10800.0, 7200.0, 0.0]
    assert result.as_dict()["currency"] == "USD"


def test_executors_on_one_vm_have_rows_of_their_own():
    rows = [(0, 1, 1, 1, 1, 3, 10), (4, 2, 3, 1, 1, 1, 10), (14, 3, 1, 1, 1, 1, 5)]
    result = simulate(jobs_of_rows(rows, "lanes"), "fill", PlacementSettings(cluster=TWO_KINDS))
    tasks = result.task_frame()
    assert tasks["executor"].tolist() == [0, 1, 2, 3, 0]  # the first job is badly placed and ends at 13 s
    assert result.vm_rows().tolist() == [0, 4, 5, 6]
    for _, lane in tasks.groupby("executor"):
        ordered = lane.sort_values("start_s")
        assert (ordered["start_s"].to_numpy()[1:] >= ordered["finish_s"].to_numpy()[:-1]).all()


def masked_episode(env, seed):
    observation, info = env.reset(seed=seed)
    env.action_space.seed(seed)
    rewards, over = [], False
    while not over:
        action = env.action_space.sample(mask=info["action_mask"])
        observation, reward, over, _, info = env.step(action)
        np.testing.assert_array_equal(observation["action_mask"], info["action_mask"])
        rewards.append(reward)
    return rewards, info


def test_rewards_of_table_3_and_per_job():
    for beta in (0.0, 0.3, 1.0):
        options = {"workload": drawn_jobs(2, n=8, gap=3.0), "cluster": TWO_KINDS, "beta": beta}
        by_table, info = masked_episode(gymnasium.make(ID, **options).unwrapped, 5)
        assert info["status"] == "all jobs are placed"
        assert set(by_table[:-1]) <= {1.0, -1.0}
        assert by_table[-1] == info["reward"]
        by_job, again = masked_episode(gymnasium.make(ID, reward="per_job", **options).unwrapped, 5)
        assert again["reward"] == info["reward"]
        constant = 10_000.0 * (beta + (1.0 - beta) * (1.0 + 1.0 / 0.3))
        assert sum(by_job) == pytest.approx(info["reward"] - constant)


def test_observations():
    env = gymnasium.make(ID, workload=FIGURE_2_JOBS, cluster=FIGURE_2, observation="paper", prices=True).unwrapped
    observation, info = env.reset(seed=0)
    assert observation["state"].tolist() == [4, 8, 8, 16, 1, 4, 8, 2, 3600, 7200]
    assert info["action_mask"].tolist() == [0, 1, 1]
    observation, _, _, _, info = env.step(1)
    assert observation["state"].tolist() == [0, 0, 8, 16, 1, 4, 8, 1, 3600, 7200]
    assert info["action_mask"].tolist() == [0, 0, 1]
    observation, _, _, _, info = env.step(2)
    assert (info["job"], info["clock_s"]) == (2, 1.0)
    assert info["action_mask"].tolist() == [1, 0, 0]
    full = gymnasium.make(ID, workload=FIGURE_2_JOBS, cluster=FIGURE_2).unwrapped
    full.reset(seed=0)
    observation = full.step(2)[0]
    vms = dict(zip(VM_COLUMNS, observation["vms"].T.tolist(), strict=True))
    assert vms["executors_here"] == [0, 1]
    assert vms["room"] == [1, 1]
    assert vms["added_cost"] == pytest.approx([10.0, 20.0])
    job = dict(zip(JOB_COLUMNS, observation["job"].tolist(), strict=True))
    assert (job["cpu_bound"], job["network_bound"], job["executors_left"], job["jobs_left"]) == (1, 0, 1, 2)


def test_what_the_environment_refuses():
    env = gymnasium.make(ID, workload=FIGURE_2_JOBS, cluster=FIGURE_2, invalid_action="error").unwrapped
    env.reset(seed=0)
    before = env._episode.state.steps
    with pytest.raises(InvalidDecisionError, match="action 0 is masked: waiting is not valid for job 1 at 0 s"):
        env.step(0)
    assert env._episode.state.steps == before
    env.step(1)
    with pytest.raises(InvalidDecisionError, match="an executor on small-1 is not valid for job 1"):
        env.step(1)
    for action in (3, -1, 1.5, "one", None):
        with pytest.raises(ConfigError, match="expected 0 to wait, or the number of a VM up to 2"):
            env.step(action)
    for options, message in (
        ({"observation": "pixels"}, "observation must be paper or full"),
        ({"reward": "none"}, "reward must be paper or per_job"),
        ({"invalid_action": "ignore"}, "invalid_action must be end or error"),
        ({"beta": 7.0}, "beta is 7.0"),
        ({"gamma": 7.0}, "unknown setting"),
        ({"workload": 3}, "expected a PlacementWorkload"),
        ({"settings": PlacementSettings(), "beta": 0.5}, "expected one of them"),
    ):
        with pytest.raises(ConfigError, match=message):
            gymnasium.make(ID, **options)
