"""What every Gymnasium environment of the package keeps to; one that is registered without cases fails."""

import copy
import itertools
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker

import decima.gym
from decima.core.errors import ConfigError
from decima.systems.spark.gym import FLAT_ID
from tests.unit.systems.cloud.cases import TWO_KINDS, drawn_jobs
from tests.unit.systems.spark.gym.test_environment import CONFIGURATIONS

gymnasium.register_envs(decima.gym)
#: Options of every environment.
CASES = {
    "decima/SparkCluster-v0": CONFIGURATIONS,
    "decima/VmPlacement-v0": {
        "default": {},
        "paper": {"observation": "paper", "prices": True, "job_id": "type", "reward": "per_job", "beta": 0.5},
        "released": {"mode": "released"},
        "text": {"workload": "generated:pattern=burst,n=5", "render_mode": "ansi"},
        "jobs": {"workload": drawn_jobs(4), "cluster": TWO_KINDS},
    },
    "decima/HeterogeneousExecutors-v0": {
        "default": {},
        "stream": {
            "workload": "embedded:n=3,interarrival_s=20",
            "executors": 4,
            "edges": "ccr=1",
            "decision": "idle",
            "objective": "avg_jct",
            "render_mode": "ansi",
        },
        "canonical": {"workload": "canonical", "decision": "event"},
    },
    FLAT_ID: {"default": {"workload": "synthetic:n=3,sizes=xs", "executors": 5}},
}
WAYS = {"deepcopy": copy.deepcopy, "pickle": lambda env: pickle.loads(pickle.dumps(env))}


@pytest.fixture(
    params=[pytest.param((name, key), id=f"{name}, {key}") for name, known in CASES.items() for key in known]
)
def case(request):
    """Function that makes an environment, and its options."""
    name, key = request.param
    options = CASES[name][key]
    return lambda: gymnasium.make(name, **options), options


def bare(env):
    """The environment without what ``gymnasium.make`` puts around it."""
    while isinstance(env, (OrderEnforcing, PassiveEnvChecker)):
        env = env.env
    return env


def steps(env, info, seed, masked=True, most=400):
    """Steps of random actions, valid ones where ``masked``, to the end of the episode."""
    env.action_space.seed(seed)
    for _ in range(most):
        step = env.step(env.action_space.sample(mask=info["action_mask"] if masked else None))
        yield step
        *_, terminated, truncated, info = step
        if terminated or truncated:
            return


def assert_alike(one, other):
    """Both go on alike, step by step."""
    for number, (first, second) in enumerate(itertools.zip_longest(one, other)):
        assert data_equivalence(first, second, exact=True), f"they differ at step {number}"


def test_every_environment_has_cases():
    assert {name for name in gymnasium.registry if name.startswith("decima/")} == set(CASES)


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version")
def test_gymnasium_finds_nothing_wrong(case):
    make, options = case
    check_env(bare(make()), skip_render_check="render_mode" not in options)


@pytest.mark.parametrize("masked", [True, False])
def test_the_same_seed_is_the_same_episode(case, masked):
    make, _ = case
    envs = bare(make()), bare(make())
    begun = [env.reset(seed=3) for env in envs]
    assert data_equivalence(*begun, exact=True)
    assert_alike(*(steps(env, info, 5, masked) for env, (_, info) in zip(envs, begun, strict=True)))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("wrapped", [False, True])
def test_copies_go_on_alike(case, way, wrapped):
    make, _ = case
    env = make() if wrapped else bare(make())
    if way is WAYS["pickle"] and env.spec.id == FLAT_ID:
        pytest.skip("Gymnasium's FlattenObservation has a local function")
    _, info = env.reset(seed=3)
    *_, (*_, info) = steps(env, info, 4, most=3)
    twin = way(env)
    assert_alike(steps(env, info, 5), steps(twin, info, 5))
    for seed in (None, 4):
        begun = [each.reset(seed=seed) for each in (env, twin)]
        assert data_equivalence(*begun, exact=True)
        assert_alike(*(steps(each, info, 6) for each, (_, info) in zip((env, twin), begun, strict=True)))


def test_what_is_refused(case):
    make, _ = case
    env = bare(make())
    with pytest.raises(ResetNeeded):
        env.step(env.action_space.sample())
    with pytest.raises(ConfigError, match="unknown options of reset: colour; expected workload"):
        env.reset(options={"colour": 3})
    for seed in (-1, 0.5, "1"):
        with pytest.raises(gymnasium.error.Error, match="Seed must be"):
            env.reset(seed=seed)


def joined(info):
    """The masks of ``info`` in one row."""
    masks = info["action_mask"]
    return np.concatenate(masks) if isinstance(masks, tuple) else masks


def test_masks_in_one_row_are_those_of_info(case):
    make, options = case
    env = make()
    assert (env.unwrapped.render_mode is None) == ("render_mode" not in options)
    with pytest.raises(ResetNeeded, match=r"call reset\(\) before action_masks\(\)"):
        env.unwrapped.action_masks()
    _, info = env.reset(seed=1)
    for *_, told in itertools.chain([(info,)], steps(env, info, 2, most=50)):
        masks = env.get_wrapper_attr("action_masks")()
        assert masks.dtype == bool
        assert masks.tolist() == joined(told).astype(bool).tolist()


@pytest.mark.parametrize("name", CASES)
def test_vectors_of_gymnasium_in_processes(name):
    envs = gymnasium.make_vec(name, num_envs=2, vectorization_mode="async", **CASES[name]["default"])
    _, info = envs.reset(seed=1)
    for _ in range(30):
        masks = [mask if isinstance(mask, tuple) else (mask,) for mask in info["action_mask"]]
        actions = np.array([[int(np.argmax(part)) for part in mask] for mask in masks])
        *_, info = envs.step(actions.reshape(envs.action_space.shape))
    envs.close()


#: Options of short episodes.
SHORT = {
    "decima/SparkCluster-v0": {"workload": "synthetic:n=3,sizes=xs", "executors": 5},
    FLAT_ID: {"workload": "synthetic:n=3,sizes=xs", "executors": 5},
    "decima/VmPlacement-v0": {"workload": "generated:n=8"},
    "decima/HeterogeneousExecutors-v0": {"workload": "random:nodes=9", "decision": "idle"},
}


@pytest.mark.parametrize("name", CASES)
def test_a_vector_begins_episodes_as_single_environments_do(name):
    """The step after the end of an episode ignores the action and begins the next one, with its masks."""
    envs = gymnasium.make_vec(name, num_envs=2, vectorization_mode="sync", **SHORT[name])
    alone = [gymnasium.make(name, **SHORT[name]) for _ in range(2)]
    envs.reset(seed=3)
    for seed, env in enumerate(alone, 3):
        env.reset(seed=seed)
    over, ends = np.zeros(2, dtype=bool), 0
    while ends < 5:
        masks = envs.call("action_masks")
        for env, mask, ended in zip(alone, masks, over, strict=True):
            assert mask.any() == (not ended)
            assert mask.tolist() == env.get_wrapper_attr("action_masks")().tolist()
        actions = np.array([First(env).predict(None, mask)[0] for env, mask in zip(alone, masks, strict=True)])
        seen, rewards, *endings, _ = envs.step(actions)
        for row, env in enumerate(alone):
            outcome = (env.reset()[0], 0.0, False, False) if over[row] else env.step(actions[row])[:4]
            observation = {key: values[row] for key, values in seen.items()} if isinstance(seen, dict) else seen[row]
            assert data_equivalence(observation, outcome[0], exact=True)
            assert (rewards[row], *(ending[row] for ending in endings)) == outcome[1:]
        over = endings[0] | endings[1]
        ends += over.sum()
    envs.close()


class First:
    """Model that takes the first action that may be taken."""

    def predict(self, observation, action_masks):
        if self.parts is None:
            return int(np.argmax(action_masks)), None
        return np.array([np.argmax(part) for part in np.split(action_masks, np.cumsum(self.parts)[:-1])]), None

    def __init__(self, env):
        self.parts = getattr(env.action_space, "nvec", None)


@pytest.mark.parametrize("name", CASES)
def test_a_model_is_a_scheduler_of_its_system(name):
    """It makes the decisions that it makes in the environment, about the same observations."""
    env = gymnasium.make(name, **SHORT[name])
    model = First(env)
    observation, _ = env.reset(seed=3)
    over = False
    while not over:
        action, _ = model.predict(observation, env.get_wrapper_attr("action_masks")())
        observation, _, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
    scheduler = decima.as_scheduler(model, env, name="first")
    run = {"executors": 5} if "executors" in SHORT[name] else {}
    result = decima.simulate(env.unwrapped._workload, scheduler, seed=3, **run)
    assert result.scheduler == "first"
    np.testing.assert_array_equal(result.outcome.completion_ms, env.unwrapped.result().outcome.completion_ms)


def test_a_model_of_another_space_is_refused():
    env = gymnasium.make("decima/VmPlacement-v0")
    model = First(env)
    model.action_space = gymnasium.spaces.Discrete(3)
    with pytest.raises(ConfigError, match=r"^the action_space of the policy is Discrete\(3\), that of"):
        decima.as_scheduler(model, env)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_stable_baselines3_finds_nothing_wrong(name):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(bare(gymnasium.make(name, **CASES[name]["default"])))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_rllib_samples(name):
    """RLlib has no check of its own for environments of one agent: its runner makes, checks and steps them."""
    pytest.importorskip("ray.rllib", exc_type=ImportError)
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.connectors.env_to_module import FlattenObservations
    from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

    config = PPOConfig().environment(name, env_config=CASES[name]["default"])
    seen = {} if name == FLAT_ID else {"env_to_module_connector": lambda *_: FlattenObservations()}
    config = config.env_runners(num_env_runners=0, num_envs_per_env_runner=2, **seen)
    runner = SingleAgentEnvRunner(config=config)
    assert sum(map(len, runner.sample(num_timesteps=40, random_actions=True))) >= 40
