"""Libraries of reinforcement learning run on the environment as it is, and their models are schedulers."""

import warnings

import gymnasium
import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError
from decima.systems.spark.gym import ENVIRONMENT_ID, FLAT_ID
from decima.systems.spark.gym.environment import SparkClusterEnv

gymnasium.register_envs(decima.gym)
OPTIONS = {"workload": "synthetic:n=3,sizes=xs", "executors": 5}
TEST = {"executors": 5, "seeds": 2}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries
        yield


def test_one_number_per_action_and_one_row_per_observation():
    """What CleanRL's single file asks for: a box, a discrete space, and vectors of Gymnasium."""
    env = gymnasium.make(FLAT_ID, invalid_action="error", **OPTIONS)
    observation, info = env.reset(seed=0)
    pair = np.outer(*np.split(env.unwrapped.action_masks(), [env.unwrapped.padding.slots]))
    assert env.get_wrapper_attr("action_masks")().tolist() == pair.ravel().tolist()
    env.action_space.seed(0)
    over = False
    while not over:
        assert env.observation_space.contains(observation)
        observation, _, terminated, truncated, info = env.step(env.action_space.sample(mask=info["action_mask"]))
        over = terminated or truncated
    assert info["num_unfinished"] == 0
    envs = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make(FLAT_ID, **OPTIONS)] * 2)
    assert isinstance(envs.single_action_space, gymnasium.spaces.Discrete)
    assert envs.reset(seed=0)[0].shape == (2, *envs.single_observation_space.shape)


def test_stable_baselines3():
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.env_util import make_vec_env

    envs = make_vec_env(ENVIRONMENT_ID, n_envs=2, env_kwargs=OPTIONS)
    model = stable_baselines3.PPO("MultiInputPolicy", envs, n_steps=32, batch_size=32, seed=0).learn(64)
    scores = decima.compare(["fair", decima.as_scheduler(model)], "synthetic:n=3,sizes=xs", **TEST).scores
    assert scores.avg_jct_s.notna().all()


@pytest.mark.parametrize("flat", [False, True])
def test_masks_of_sb3_contrib(flat, tmp_path):
    sb3_contrib = pytest.importorskip("sb3_contrib")
    env = gymnasium.make(FLAT_ID if flat else ENVIRONMENT_ID, invalid_action="error", **OPTIONS)
    kind = "MlpPolicy" if flat else "MultiInputPolicy"
    model = sb3_contrib.MaskablePPO(kind, env, n_steps=32, batch_size=32, seed=0).learn(64)
    observation, _ = env.reset(seed=1)
    over = False
    while not over:
        masks = env.get_wrapper_attr("action_masks")()
        action, _ = model.predict(observation, action_masks=masks, deterministic=True)
        observation, _, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
    jobs = env.unwrapped._workload
    alone = decima.simulate(jobs, decima.as_scheduler(model), executors=5, seed=1)
    np.testing.assert_array_equal(alone.completion_ms, env.unwrapped.result().completion_ms)
    model.save(tmp_path / "model")
    loaded = sb3_contrib.MaskablePPO.load(tmp_path / "model")
    with pytest.raises(ConfigError, match="the policy has no environment; expected the one that it was trained in"):
        decima.as_scheduler(loaded)
    again = decima.simulate(jobs, decima.as_scheduler(loaded, env), executors=5, seed=1)
    np.testing.assert_array_equal(alone.completion_ms, again.completion_ms)


def test_models_that_take_masks_get_those_of_the_state_at_hand():
    class Model:
        def predict(self, observation, action_masks=None, deterministic=False):
            assert deterministic
            slots, executors = np.split(action_masks, [len(observation["stage_mask"])])
            assert slots.tolist() == observation["stage_mask"].astype(bool).tolist()
            assert executors.sum() == observation["free_executors"][0] > 0
            return np.array([np.flatnonzero(slots)[0], np.flatnonzero(executors)[-1]]), None

    env = SparkClusterEnv(invalid_action="error", **OPTIONS)
    comparison = decima.compare(["fair", decima.as_scheduler(Model(), env)], "synthetic:n=3,sizes=xs", **TEST)
    assert comparison.scores.avg_jct_s.notna().all()
