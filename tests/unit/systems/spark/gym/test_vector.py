"""The vector environment against single ones, bit by bit, and what it refuses."""

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode

import decima
from decima.core.errors import ConfigError, InvalidDecisionError
from decima.systems.spark.gym import ENVIRONMENT_ID
from decima.systems.spark.gym.environment import SparkClusterEnv
from decima.workload import synthetic_batch, synthetic_poisson

gymnasium.register_envs(decima.gym)


def draw(seed):
    """Jobs of an episode."""
    return synthetic_poisson(3, 10.0, seed=seed, sizes=["xs", "s"])


CONFIGURATIONS = {
    "one workload": {"workload": synthetic_batch(3, 1, ["xs"]), "executors": 5},
    "drawn": {"workload": draw, "executors": 5, "objective": "makespan"},
    "in Python": {"workload": draw, "executors": 5, "objective": "p90_jct", "mode": "released"},
    "delays and classes": {"workload": draw, "delay_steps": 2, "classes": ((0.5, 2), (1.0, 3)), "log": True},
    "time limit": {"workload": draw, "executors": 5, "time_limit_ms": 40_000.0},
}


def make(num_envs=4, **options):
    return gymnasium.make_vec(ENVIRONMENT_ID, num_envs=num_envs, vectorization_mode="vector_entry_point", **options)


def drawn_actions(masks, rng):
    """An action per row, drawn among those allowed; 0 where the episode is over."""
    return np.stack([np.argmax(rng.random(mask.shape) * mask, axis=1) for mask in masks], axis=1)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_same_as_single_environments_to_the_bit(name, threads):
    """Over several episodes of each, which begin again on the step after an end."""
    options = CONFIGURATIONS[name]
    envs, alone = make(threads=threads, **options), [SparkClusterEnv(**options) for _ in range(4)]
    _, info = envs.reset(seed=7)
    singles = [(*env.reset(seed=7 + row)[:1], 0.0, False, False, {}) for row, env in enumerate(alone)]
    rng, ends = np.random.default_rng(0), 0
    for _ in range(250):
        actions = drawn_actions(info["action_mask"], rng)
        seen, rewards, terminated, truncated, info = envs.step(actions)
        for row, env in enumerate(alone):
            if singles[row][2] or singles[row][3]:
                single, told = env.reset()
                singles[row] = (single, 0.0, False, False, told)
            else:
                singles[row] = env.step(actions[row])
            single, reward, done, cut, told = singles[row]
            assert data_equivalence({key: values[row] for key, values in seen.items()}, single, exact=True)
            assert (rewards[row], terminated[row], truncated[row]) == (reward, done, cut)
            for part, mask in zip(info["action_mask"], told["action_mask"], strict=True):
                assert part[row].tolist() == mask.tolist()
            for key in set(told) - {"action_mask"}:
                np.testing.assert_array_equal(info[key][row], told[key], err_msg=key)
                assert info[f"_{key}"][row]
            ends += done or cut
    assert ends > 0
    assert envs.action_masks().tolist() == np.concatenate(info["action_mask"], axis=1).astype(bool).tolist()
    envs.close()


def test_it_has_the_spaces_of_gymnasium_s_own_vector():
    options = CONFIGURATIONS["drawn"]
    mine, theirs = make(**options), gymnasium.make_vec(ENVIRONMENT_ID, num_envs=4, vectorization_mode="sync", **options)
    assert mine.metadata["autoreset_mode"] is theirs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert mine.observation_space == theirs.observation_space
    assert mine.action_space == theirs.action_space
    assert mine.observation_space.contains(mine.reset(seed=3)[0])


@pytest.mark.parametrize("keep", [True, False])
def test_arrays_are_copies_unless_asked_otherwise(keep):
    options = CONFIGURATIONS["one workload"]
    envs, env = make(copy=keep, **options), SparkClusterEnv(copy=keep, **options)
    for each, action in ((envs, np.zeros((4, 2), dtype=int)), (env, (0, 0))):
        before, info = each.reset(seed=0)
        kept, jobs = before["stages"].copy(), info["jobs"].copy()
        each.step(action)
        assert np.array_equal(before["stages"], kept) == keep
        assert np.array_equal(info["jobs"], jobs)


def test_mistakes_are_one_sentence():
    options = CONFIGURATIONS["one workload"]
    with pytest.raises(ConfigError, match="num_envs must be a whole number of at least 1, got 0"):
        make(0, **options)
    with pytest.raises(ConfigError, match=r"executors must be a whole number of at least 1, got \[5, 6\]"):
        make(2, **(options | {"executors": [5, 6]}))
    with pytest.raises(ConfigError, match="threads must be a whole number of at least 1, got 0"):
        make(threads=0, **options)
    envs = make(**options)
    with pytest.raises(ResetNeeded):
        envs.step(np.zeros((4, 2), dtype=int))
    with pytest.raises(ConfigError, match="seed has 3 numbers; expected one, or one for each of 4 clusters"):
        envs.reset(seed=[1, 2, 3])
    envs.reset(seed=[4, 3, 2, 1])
    for actions in (np.zeros((3, 2), dtype=int), np.zeros((4, 2)), None):
        with pytest.raises(InvalidDecisionError, match="expected 4 rows of 2 whole numbers, one row per cluster"):
            envs.step(actions)


def test_an_invalid_action_stops_the_step_before_anything_happens():
    envs = make(invalid_action="error", **CONFIGURATIONS["one workload"])
    before, info = envs.reset(seed=0)
    valid = drawn_actions(info["action_mask"], np.random.default_rng(0))
    wrong = valid.copy()
    wrong[2, 1] = 5
    with pytest.raises(InvalidDecisionError, match=r"^cluster 2: action .* with 6 executors; .* 0 to 4 for 1 to 5"):
        envs.step(wrong)
    twin = make(**CONFIGURATIONS["one workload"])
    assert data_equivalence(twin.reset(seed=0)[0], before, exact=True)
    assert data_equivalence(envs.step(valid)[:4], twin.step(valid)[:4], exact=True)


def test_render_has_a_text_per_cluster():
    envs = make(2, render_mode="ansi", **CONFIGURATIONS["one workload"])
    envs.reset(seed=0)
    assert [text.splitlines()[0] for text in envs.render()] == ["0.0 s: 3 jobs in the system, 0 of 3 finished"] * 2
