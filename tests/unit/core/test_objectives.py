import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError
from decima.core.objectives import (
    OBJECTIVES,
    Objective,
    Outcome,
    Progress,
    get_objective,
    list_objectives,
    register_objective,
)
from decima.systems.spark.gym.environment import SparkClusterEnv
from decima.workload import synthetic_batch, synthetic_poisson
from tests import toy_jobs

# Objectives of other tests in this process are among them: they have to conform too.
every = pytest.mark.parametrize("objective", [get_objective(name) for name in list_objectives()], ids=list_objectives())


def played(objective, workload, seed=0):
    """Rewards and result of an episode in which the first choice is always taken."""
    env = SparkClusterEnv(workload, 4, objective=objective)
    _, info = env.reset(seed=seed)
    rewards, over = [], False
    while not over:
        stages, limits = info["action_mask"]
        _, reward, terminated, truncated, info = env.step((np.flatnonzero(stages)[0], np.flatnonzero(limits)[0]))
        rewards.append(reward)
        over = terminated or truncated
    assert terminated
    return rewards, env.result()


def rollout(arrival_s, completion_s, decisions_s, end_s, ideal_s=1.0):
    """A recorded episode; the integral of active jobs follows from arrivals and completions."""
    arrival, completion = 1000.0 * np.array(arrival_s, float), 1000.0 * np.array(completion_s, float)
    when = 1000.0 * np.array([*decisions_s, end_s], float)
    leave = np.where(np.isnan(completion), when[-1], completion)
    area = np.clip(when[:, None] - arrival, 0.0, leave - arrival).sum(axis=1)
    return Progress(arrival, completion, np.full(len(arrival), 1000.0 * ideal_s), when, area)


# ---- what every objective keeps to --------------------------------------------------------------------------------


@every
def test_has_words_for_people_and_names_for_programs(objective):
    assert objective.label
    assert objective.label in objective.axis_label
    assert objective.unit in objective.axis_label
    assert objective.column == (f"{objective.name}_{objective.unit}" if objective.unit else objective.name)
    for name in objective.names:
        assert get_objective(name) is objective


@every
def test_a_run_that_was_cut_never_looks_worse_than_the_whole_run(objective):
    whole = decima.simulate(synthetic_batch(5), "fair", 4)
    assert objective.measure(whole.outcome) == objective.score(whole.outcome)
    before = 0.0
    bounded = {"≥": np.less_equal, "≤": np.greater_equal}
    for share in (0.1, 0.5, 0.9, 1.0):
        cut = decima.simulate(synthetic_batch(5), "fair", 4, time_limit_ms=share * whole.makespan_ms)
        measured = cut.score(objective)
        if (mark := cut.mark(objective)) in bounded:
            assert bounded[mark](measured, whole.score(objective) + 1e-9)
        if objective.total is None and cut.num_unfinished:
            assert np.isnan(measured)
        elif objective.direction == "min":
            assert before <= measured <= whole.score(objective) + 1e-9
            before = measured
    assert measured == whole.score(objective)


@every
@pytest.mark.parametrize("workload", [synthetic_batch(5), synthetic_poisson(5, 20.0)], ids=["batch", "stream"])
def test_rewards_add_up_to_the_score(objective, workload):
    rewards, result = played(objective, workload)
    score = result.score(objective)
    assert np.isfinite(score)
    assert result.score(objective.column) == score
    assert np.isfinite(rewards).all()
    if objective.total is not None:
        expected = objective.loss(score) * {"run": 1, "job": len(workload)}[objective.total]
        assert -sum(rewards) == pytest.approx(expected, rel=1e-9)


@every
def test_comparisons_put_the_best_first(objective):
    found = decima.compare(["fifo", "fair", "random"], synthetic_batch(5), 4, range(3), metric=objective.name)
    means = found.scores.groupby("scheduler")[objective.column].mean()
    best = means.idxmin() if objective.direction == "min" else means.idxmax()
    assert found.summary().scheduler[0] == best
    assert objective.label in str(found)


@every
def test_rewards_of_rollouts(objective):
    rollouts = [rollout([0, 0, 3], [5, 9, 10], [0, 0, 2, 3, 6], 10), rollout([0, 0, 3], [9, np.nan, 12], [0, 7], 12)]
    rewards = objective.rewards(rollouts)
    assert [values.shape for values in rewards] == [(5,), (2,)]
    for values, each in zip(rewards, rollouts, strict=True):
        assert np.isfinite(values).all()
        if objective.group_rewards is None:
            cost = objective.cost_so_far(each)
            assert values.sum() == pytest.approx(cost[0] - cost[-1])


@every
def test_nothing_finished_has_no_score(objective):
    outcome = Outcome(np.zeros(2), np.full(2, np.nan), np.ones(2))
    assert np.isnan(objective.score(outcome))


# ---- the single ones ----------------------------------------------------------------------------------------------


def test_scores_by_hand():
    arrival, completion = np.array([0.0, 0.0, 3000.0, 4000.0]), np.array([5000.0, 9000.0, 10000.0, np.nan])
    outcome = Outcome(arrival, completion, np.array([1000.0, 3000.0, 0.0, 1.0]))
    expected = {"avg_jct": 7.0, "p50_jct": 7.0, "slowdown": (5.0 + 3.0) / 2}
    assert {name: get_objective(name).score(outcome) for name in expected} == expected
    assert get_objective("p90_jct").score(outcome) == pytest.approx(7.0 + 0.8 * 2.0)
    assert np.isnan(get_objective("makespan").score(outcome))
    assert get_objective("makespan").score(dataclasses.replace(outcome, completion_ms=completion[:3])) == 10.0


def test_jobs_of_length_0_have_no_slowdown_and_a_cost_of_one_number_is_refused():
    empty = rollout([0], [9], [0, 2], 9, 0.0)
    assert get_objective("slowdown").rewards([empty])[0].tolist() == [0.0, 0.0]
    constant = Objective("constant", "constant", "", score=lambda _: 0.0, cost=lambda _: 0.0)
    with pytest.raises(ConfigError, match=r"objective constant gave rewards of shapes .*, expected \[\(2,\)\]"):
        constant.rewards([empty])


@pytest.mark.parametrize(
    ("objective", "run", "rewards"),
    [
        ("avg_jct", ([0, 0, 3], [5, 9, 10], [0, 0, 2, 3, 6], 10), [0.0, -4.0, -2.0, -8.0, -7.0]),
        ("makespan", ([0, 0], [5, 9], [0, 2, 6], 9), [-2.0, -4.0, -3.0]),
        ("slowdown", ([0, 0], [5, 9], [0, 2, 6], 9, 0.5), [-4.0, -7.0, -3.0]),  # in units of the ideal duration
        ("avg_jct", ([0, 1], [np.nan, 2], [0, 1.5], 4.0), [-2.0, -3.0]),  # an unfinished job counts up to the end
    ],
)
def test_rewards_by_hand(objective, run, rewards):
    assert get_objective(objective).rewards([rollout(*run)])[0].tolist() == pytest.approx(rewards)


@pytest.mark.parametrize(("percent", "tail"), [(50, 0.5), (90, 0.1), (95, 0.05)])
def test_tail_adds_what_lies_beyond_the_percentile_of_all_rollouts(percent, tail):
    ages = np.arange(1.0, 12.0)
    rollouts = [rollout(np.zeros(11), ages, [0, 4], 11.0), rollout(np.zeros(11), ages, [0], 11.0)]
    limit = np.quantile(np.concatenate([ages, ages]), percent / 100)
    for rewards in get_objective(f"p{percent}_jct").rewards(rollouts):
        beyond = np.maximum(ages - limit, 0.0).sum() / tail
        assert rewards.sum() == pytest.approx(-ages.sum() - beyond)


# ---- the registry -------------------------------------------------------------------------------------------------


@pytest.fixture
def own():
    """Register objectives, and forget them again."""
    before = set(OBJECTIVES)
    yield register_objective
    for name in set(OBJECTIVES) - before:
        OBJECTIVES.remove(name)


def late(outcome):
    return float(np.mean(outcome.jct_ms > 30_000.0))


def test_own_objectives_are_used_everywhere(own):
    objective = own(
        Objective("late", "late jobs", "", late, lambda run: (run.ages_ms() > 30_000.0).sum(axis=-1), total="job")
    )
    test_rewards_add_up_to_the_score(objective, synthetic_batch(5))
    test_rewards_of_rollouts(objective)
    punctual = own(
        Objective("punctual", "punctual jobs", "%", lambda run: 100.0 - 100.0 * late(run), lambda run: 0.0, "max")
    )
    scores = decima.compare(["fair", "fifo"], synthetic_batch(20), 4, range(3), metric="punctual").summary()
    assert scores["mean_%"].is_monotonic_decreasing
    test_comparisons_put_the_best_first(punctual)
    assert list_objectives() == sorted({*list_objectives(), "late", "punctual"})


@pytest.fixture
def tardiness(own):
    """The objective with deadlines that docs/training.md shows."""
    page = (Path(__file__).parents[3] / "docs" / "training.md").read_text(encoding="utf-8")
    (shown,) = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if '"tardiness"' in block]
    exec(compile(shown, "docs/training.md", "exec"), {})
    return get_objective("tardiness")


def test_the_deadlines_of_the_documentation_by_hand(tardiness):
    """Deadlines after 5 and 10 s; the first job is 3 s late, the second in time, the third has no deadline."""
    done = [np.array(times) for times in ([0.0, 1000.0, 0.0], [8000.0, 11000.0, 90000.0], [1000.0, 2000.0, 0.0])]
    assert tardiness.score(Outcome(*done)) == pytest.approx(3.0)
    test_rewards_add_up_to_the_score(tardiness, synthetic_batch(5))
    scores = decima.compare(["fair", "fifo"], synthetic_batch(20), 4, range(3), metric="tardiness").summary()
    assert scores["mean_s"].is_monotonic_increasing
    assert scores["mean_s"].min() > 0.0


def test_a_workload_without_deadlines_is_refused(tardiness):
    jobs = toy_jobs.workload(toy_jobs.one_stage(2, 0.0), toy_jobs.one_stage(1, 0.0))
    with pytest.raises(ConfigError, match="objective tardiness needs deadlines, and no job of this workload has one"):
        decima.compare(["fair"], jobs, 2, range(2), metric="tardiness")


def test_bad_input(own):
    with pytest.raises(ConfigError, match="unknown objective 'avgjct'; did you mean 'avg_jct'"):
        get_objective("avgjct")
    with pytest.raises(ConfigError, match="objective avg_jct is already known as jct"):
        own(Objective("jct", "JCT", "s", late, late))
    with pytest.raises(ConfigError, match="direction of objective x must be one of"):
        Objective("x", "x", "", late, late, "less")
    with pytest.raises(ConfigError, match="cut_bound of objective x must be one of"):
        Objective("x", "x", "", late, late, cut_bound="never")
    with pytest.raises(ConfigError, match="needs a name and a label"):
        Objective("x", "", "", late, late)
    short = Objective("short", "short", "", late, late, group_rewards=lambda runs: [np.zeros(1) for _ in runs])
    with pytest.raises(ConfigError, match="objective short gave rewards of shapes"):
        short.rewards([rollout([0], [1], [0, 0], 1)])
