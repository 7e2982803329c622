"""Policies of the environment as schedulers: the same arrays and the same decisions, compared like any other."""

import copy
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import decima
from decima.core.environment import as_scheduler
from decima.core.errors import ConfigError
from decima.systems.spark.gym.environment import SparkClusterEnv
from decima.systems.spark.schedulers.interface import Observation


class Shortest:
    """The stage with the least work ahead, all executors; keeps what it saw."""

    def __init__(self):
        self.seen = []

    def __call__(self, observation):
        self.seen.append({name: values.copy() for name, values in observation.items()})
        slots = np.flatnonzero(observation["stage_mask"][:-1])
        if not len(slots):
            return np.array([len(observation["stage_mask"]) - 1, 0])
        work = observation["jobs"][observation["stage_job"][slots], 2]
        slot = slots[np.argmin(work)]
        more = 3 - observation["job_allocation"][observation["stage_job"][slot]]
        action = [slot, max(1, min(more, observation["free_executors"][0])) - 1]
        return np.array(action + [0] * (("delay_mask" in observation) + ("class_mask" in observation)))


JOBS = decima.workload.synthetic_poisson(6, 20.0, 1, ["xs", "s"])


def test_same_arrays_and_same_schedule_as_in_the_environment():
    env = SparkClusterEnv(JOBS, 5)
    acting, deciding = Shortest(), Shortest()
    observation, _ = env.reset(seed=3)
    over = False
    while not over:
        observation, _, terminated, truncated, _ = env.step(acting(observation))
        over = terminated or truncated
    result = decima.simulate(JOBS, as_scheduler(deciding, env), executors=5, seed=3)
    np.testing.assert_array_equal(result.completion_ms, env.result().completion_ms)
    assert len(acting.seen) == len(deciding.seen) > 20
    for acted, decided in zip(acting.seen, deciding.seen, strict=True):
        for name, values in acted.items():
            np.testing.assert_array_equal(values, decided[name], err_msg=name)


def test_a_policy_with_predict_behind_wrappers_is_compared_and_checked():
    class Flat(gymnasium.ObservationWrapper):
        def observation(self, observation):
            return observation | {"flat": observation["stage_mask"].astype(float)}

    class Predicts:
        def predict(self, observation):
            assert "flat" in observation
            return Shortest()(observation), None

    env = Flat(SparkClusterEnv("synthetic:n=3,sizes=xs", 5))
    scheduler = as_scheduler(Predicts(), env, name="learned")
    comparison = decima.compare(["fair", scheduler], "synthetic:n=3,sizes=xs", executors=5, seeds=3)
    assert set(comparison.scores.scheduler) == {"fair", "learned"}
    assert not comparison.scores.avg_jct_s.isna().any()


def test_an_episode_that_is_under_way_is_not_disturbed():
    env = SparkClusterEnv(JOBS, 5)
    env.reset(seed=0)
    before = copy.deepcopy(env.state.now_ms), env.state
    decima.simulate(JOBS, as_scheduler(Shortest(), env), executors=5)
    assert (env.state.now_ms, env.state) == before


def test_mistakes_are_one_sentence():
    with pytest.raises(ConfigError, match="a policy is a function of an observation or has predict, got 3"):
        as_scheduler(3, SparkClusterEnv(JOBS, 5))
    with pytest.raises(ConfigError, match=r"expected an environment such as decima/SparkCluster-v0"):
        as_scheduler(Shortest(), gymnasium.make("CartPole-v1"))


def test_a_cluster_with_more_executors_than_the_environment_is_refused():
    scheduler = as_scheduler(Shortest(), SparkClusterEnv(JOBS, 5))
    with pytest.raises(ConfigError, match="more executors are offered than the 5 of the environment"):
        decima.simulate(JOBS, scheduler, executors=6)


class Fields:
    """Attributes of a state, as the service and the benchmark show them: no events, no arrivals ahead."""

    def __init__(self, state):
        self._state = state

    def __getattr__(self, name):
        assert name not in ("address", "heap_size", "next_arrival", "num_timers", "num_selected", "num_marked"), name
        return getattr(self._state, name)


@pytest.mark.parametrize("options", [{"executors": 5}, {"classes": ((0.5, 2), (1.0, 3)), "delay_steps": 2}])
def test_a_state_of_another_cluster_shows_the_same_arrays(options):
    env = SparkClusterEnv(JOBS, **options)
    here, elsewhere = Shortest(), Shortest()
    schedulers = as_scheduler(here, env), as_scheduler(elsewhere, env)
    options = {name: value for name, value in options.items() if name != "delay_steps"}

    class Both:
        name = "both"

        def reset(self, rng):
            """Nothing to forget."""

        def decide(self, observation):
            decisions = [
                schedulers[0].decide(observation),
                schedulers[1].decide(Observation(Fields(observation.state))),
            ]
            assert decisions[0] == decisions[1]
            return decisions[0]

    decima.simulate(JOBS, Both(), **options)
    assert len(here.seen) > 20
    for compiled, plain in zip(here.seen, elsewhere.seen, strict=True):
        for name, values in compiled.items():
            shown = slice(None, -1) if name == "stage_mask" else slice(None)  # the last entry stands for idling
            np.testing.assert_array_equal(values[shown], plain[name][shown], err_msg=name)


@pytest.mark.parametrize("names", ["STAGE_FEATURES", "JOB_FEATURES"])
def test_every_column_is_in_the_documentation(names):
    page = (Path(__file__).parents[5] / "docs" / "gym.md").read_text(encoding="utf-8")
    for name in getattr(decima.gym, names):
        assert f"| `{name}` |" in page
