"""What every Gymnasium environment of the package keeps to; one that is registered without cases fails."""

import copy
import itertools
import pickle

import gymnasium
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
