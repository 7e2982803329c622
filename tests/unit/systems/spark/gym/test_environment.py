"""The Gymnasium environment: Gymnasium's own check, hand-stepped toys, and agreement with `simulate`."""

import contextlib
import copy
import itertools
import subprocess
import sys

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import data_equivalence

import decima
from decima.core.errors import ConfigError, InvalidDecisionError
from decima.systems.spark.decision import DECISION_COLUMNS
from decima.systems.spark.gym.environment import SparkClusterEnv
from decima.systems.spark.gym.kernel import F
from decima.systems.spark.schedulers import Observation, make_scheduler
from decima.systems.spark.schedulers.interface import decision_parts
from decima.workload import save, synthetic_batch, synthetic_poisson
from decima.workload.sources import get_source
from tests.toy_jobs import job, one_stage, stage, workload

CHAIN = workload(job(stage("a", 2, 1.0), stage("b", 1, 3.0, 0)))


def asking(count):
    """Jobs of which every other asks for half an executor's memory."""
    return get_source("synthetic").batch(count, seed=1, requests="uniform")


def stream(seed):
    return synthetic_poisson(6, 20.0, seed=seed, initial=0)


CONFIGURATIONS = {
    "default": {},
    "one executor": {"executors": 1, "workload": synthetic_batch(3)},
    "one job": {"workload": CHAIN},
    "stream": {"workload": stream, "executors": 10, "objective": "makespan"},
    "released": {"mode": "released", "workload": synthetic_batch(4, seed=2), "executors": 7},
    "simplified": {"mode": "simplified", "workload": synthetic_batch(2), "log": True},
    "time limit": {"workload": stream, "time_limit_ms": 60_000.0, "max_stages": 200},
    "delays": {"workload": stream, "executors": 10, "delay_steps": 4},
    "many executors": {"executors": 300, "workload": synthetic_batch(2)},
}


def random_episode(env, seed, masked=True, idle=True):
    """Every (observation, reward, terminated, truncated, info) of an episode of random actions."""
    env.action_space.seed(seed)
    observation, info = env.reset(seed=seed)
    yield observation, 0.0, False, False, info
    over = False
    while not over:
        if not idle:
            info["action_mask"][0][-1] = 0
        action = env.action_space.sample(mask=info["action_mask"] if masked else None)
        step = env.step(action)
        _, _, terminated, truncated, info = step
        over = terminated or truncated
        yield step


def begun(*arguments, **options):
    """An environment at its first decision."""
    env = SparkClusterEnv(*arguments, **options)
    env.reset(seed=0)
    return env


@pytest.mark.parametrize(
    "statements",
    [
        "import gymnasium; import decima.systems.spark.gym; name = 'decima/SparkCluster-v0'",
        "import gymnasium; name = 'decima.systems.spark.gym:decima/SparkCluster-v0'",
        "import decima, gymnasium, importlib; gymnasium.register_envs(decima.gym); importlib.reload(decima.gym); "
        "name = 'decima/SparkCluster-v0'",
    ],
)
def test_environment_is_known_once_its_package_is_imported(statements):
    code = f"{statements}\nprint(type(gymnasium.make(name).unwrapped).__name__)"
    command = [sys.executable, "-W", "error::UserWarning", "-c", code]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (finished.stdout, finished.stderr) == ("SparkClusterEnv\n", "")


def test_importing_decima_leaves_gymnasium_to_others():
    code = (
        "import sys\nbefore = list(sys.meta_path)\nimport decima\nassert 'gymnasium' not in sys.modules\n"
        "import gymnasium\nassert sys.meta_path == before\nassert 'decima/SparkCluster-v0' not in gymnasium.registry"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("scheduler", ["fair", "capped_srw", "released_fifo", "random"])
@pytest.mark.parametrize("mode", ["paper", "released"])
def test_a_heuristic_in_the_environment_gives_the_run_of_simulate(mode, scheduler):
    jobs = synthetic_poisson(8, 15.0, seed=4)
    expected = decima.simulate(jobs, scheduler, executors=12, seed=5, mode=mode, log=True)

    heuristic = make_scheduler(scheduler)
    env = SparkClusterEnv(jobs, 12, mode, invalid_action="error", log=True)
    _, info = env.reset(seed=5)
    terminated = False
    while not terminated:
        chosen, limit, *_ = decision_parts(heuristic.decide(Observation(env.state)))
        _, _, terminated, truncated, info = env.step(env.action_of(chosen, limit))
        assert not truncated
    result = env.result()
    np.testing.assert_array_equal(result.completion_ms, expected.completion_ms)
    # The environment asks for no more executors than are offered.
    rest = [place for place, name in enumerate(DECISION_COLUMNS) if name != "limit_requested"]
    np.testing.assert_array_equal(result.log.decisions[:, rest], expected.log.decisions[:, rest])
    assert (info["avg_jct_s"], info["makespan_s"]) == (expected.avg_jct_s, expected.makespan_s)
    assert info["num_unfinished"] == 0


# ---- rewards --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["default", "stream", "simplified"])
def test_rewards_add_up_to_minus_the_objective(name):
    values = CONFIGURATIONS[name] | {"log": True}
    for objective in ("avg_jct", "makespan"):
        env = SparkClusterEnv(**(values | {"objective": objective}))
        steps = list(random_episode(env, seed=1, idle=False))
        assert steps[-1][2:4] == (True, False)
        result = env.result()
        cost = result.jct_ms.sum() / 1000.0 if objective == "avg_jct" else result.makespan_s
        assert sum(step[1] for step in steps) == pytest.approx(-cost, rel=1e-12)
        assert all(step[1] <= 0 for step in steps)


def test_own_objective():
    def squared_jct_of_finished(state):
        return float(np.nansum((state.job_finish_ms - state.job_arrival_ms) ** 2))

    env = SparkClusterEnv(synthetic_batch(4), 10, objective=squared_jct_of_finished)
    rewards = [step[1] for step in random_episode(env, seed=0, idle=False)]
    assert sum(rewards) == pytest.approx(-np.sum(env.result().jct_ms ** 2), rel=1e-9)


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        ("jcts", "unknown objective 'jcts'; known: avg_jct"),
        (lambda state: float("nan"), r"objective <lambda> returned nan at 0\.0 s; expected a finite number"),
        (lambda state: None, "returned None"),
    ],
)
def test_bad_objective(objective, message):
    with pytest.raises(ConfigError, match=message):
        SparkClusterEnv(CHAIN, objective=objective).reset(seed=0)


# ---- actions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["stream", "released"])
def test_observation_shows_what_schedulers_see(name):
    env = SparkClusterEnv(**CONFIGURATIONS[name])
    compared = 0
    for observation, *_, info in random_episode(env, seed=11):
        seen = Observation(env.state)
        if not observation["free_executors"][0]:
            continue
        compared += 1
        slots = np.flatnonzero(observation["stage_mask"][:-1])
        assert [env.slot_of(view.id) for view in seen.frontier] == slots.tolist()
        jobs = [view.id for view in seen.jobs]
        assert info["jobs"].tolist() == jobs + [-1] * (env.padding.jobs - len(jobs))
        assert observation["free_executors"][0] == seen.num_free_executors
        row = observation["source_job"][0]
        assert (None if row < 0 else info["jobs"][row]) == (seen.source_job and seen.source_job.id)
        for row, view in enumerate(seen.jobs):
            assert observation["job_allocation"][row] == view.allocation
            assert observation["jobs"][row].tolist() == pytest.approx(
                [(seen.time_ms - view.arrival_ms) / 1000, view.work_ms / 1000, view.remaining_work_ms / 1000], rel=1e-6
            )
            for own in view.stages:
                slot = env.slot_of(own.id)
                assert observation["stage_job"][slot] == row
                numbers = [own.num_tasks, own.tasks_to_launch, own.tasks_unfinished, own.mean_duration_ms / 1000]
                numbers += [own.path_work_ms / 1000, own.executors, own.tasks_to_launch - own.room, int(own.runnable)]
                assert observation["stages"][slot].tolist() == pytest.approx(numbers, rel=1e-6)
        edges = observation["edges"][observation["edges"][:, 0] >= 0]
        expected = {
            (env.slot_of(view.stages[parent].id), env.slot_of(view.stages[index].id))
            for view in seen.jobs
            for index, own in enumerate(env._workload.jobs[view.id].profile.stages)
            for parent in own.parents
        }
        assert len(edges) == len(expected)
        assert set(map(tuple, edges.tolist())) == expected
    assert compared > 10


@pytest.mark.parametrize("name", ["default", "stream", "released", "delays", "classes"])
def test_the_mask_excludes_no_valid_action_and_no_other(name):
    """Every action of the space is taken from copies of a few states: it is carried out if and only if it is masked."""
    more = {"executors": None, "classes": ((0.5, 2), (1.0, 3)), "workload": asking(3)}
    options = more if name == "classes" else CONFIGURATIONS[name] | {"executors": 4}
    env = SparkClusterEnv(**(options | {"invalid_action": "error", "max_stages": None}))
    tried = 0
    for step, (observation, *_, info) in enumerate(random_episode(env, seed=1)):
        if step % 9 or not observation["free_executors"][0]:
            continue
        allowed = [set(np.flatnonzero(mask).tolist()) for mask in info["action_mask"]]
        rows = int((observation["stage_job"] >= 0).sum())
        slots = [*range(min(rows + 1, 12)), *sorted(allowed[0])[:4], env.padding.stages]
        for action in itertools.product(slots, *map(range, env.action_space.nvec[1:])):
            twin = copy.deepcopy(env)
            valid = all(number in mask for number, mask in zip(action, allowed, strict=True))
            with contextlib.nullcontext() if valid else pytest.raises(InvalidDecisionError):
                twin.step(action)
            tried += 1
        if tried > 300:
            break
    assert tried > 50


# two jobs and a running task, so that idling leads somewhere
BUSY = workload(one_stage(1, 5.0), job(stage("a", 3, 1.0), stage("b", 1, 1.0, 0)))


@pytest.mark.parametrize(
    ("action", "nearest", "reason"),
    [
        ((2, 0), (1, 0), r"slot 2 \(stage 1 of job 1\) with 1 executors; expected slot 1, 3 \(3 idles\)"),
        ((0, 0), (1, 0), r"slot 0 \(stage 0 of job 0\) with 1 executors; expected slot 1, 3"),
        ((1, 2), (1, 1), "with 3 executors; .* and 0 to 1 for 1 to 2 executors, at most those offered"),
        ((1, -7), (1, 0), "with -6 executors"),
        ((3, 2), (3, 0), r"slot 3 \(idling\) with 3 executors"),
        ((7, 1), (3, 1), r"slot 7 \(no stage\)"),
        ((-1, 1), (1, 1), r"slot -1 \(no stage\)"),
    ],
)
def test_an_invalid_action_becomes_the_nearest_or_an_error(action, nearest, reason):
    outcomes = []
    for chosen in (action, nearest):
        env = begun(BUSY, 3)
        env.step((0, 0))
        outcomes.append(env.step(chosen))
    (*invalid, invalid_info), (*valid, info) = outcomes
    assert data_equivalence(invalid, valid, exact=True)
    assert (invalid_info.pop("invalid_action"), info.pop("invalid_action")) == (True, False)
    assert data_equivalence(invalid_info, info, exact=True)

    strict = begun(BUSY, 3, invalid_action="error")
    before = strict.step((0, 0))[0]
    with pytest.raises(InvalidDecisionError, match=reason):
        strict.step(action)
    assert data_equivalence(strict.observe(), before, exact=True)  # nothing has happened
    strict.step((1, 1))


@pytest.mark.parametrize("action", [3, (1,), (1, 2, 3), (0.5, 1), ("a", 1), None])
def test_an_action_is_two_whole_numbers(action):
    env = begun(CHAIN, 1)
    with pytest.raises(InvalidDecisionError, match="expected 2 whole numbers"):
        env.step(action)


@pytest.mark.parametrize("number", [2**31, 2**63 - 1, np.uint64(2**64 - 1)])
def test_numbers_beyond_those_of_the_core_are_the_nearest(number):
    env = begun(BUSY, 3)
    env.step((0, 0))
    assert env.step(np.array([1, int(number)], dtype=np.asarray(number).dtype))[4]["invalid_action"]
    assert env.state.stage_executors.tolist() == [1, 2, 0]


def test_time_limit_truncates_and_the_time_up_to_it_counts():
    env = begun(CHAIN, 1, "simplified", time_limit_ms=4000.0)
    env.step((0, 0))
    _, reward, terminated, truncated, info = env.step((1, 0))
    assert (reward, terminated, truncated) == (-2.0, False, True)
    assert (info["time_ms"], info["num_unfinished"], info["deadlock"]) == (4000.0, 1, False)
    assert "avg_jct_s" not in info
    assert "makespan_s" not in info


IDLERS = {
    "paper": {"mode": "paper"},
    "released": {"mode": "released"},
    "simplified": {"mode": "simplified"},
    "delays": {"delay_steps": 3},
    "classes": {"executors": None, "classes": ((0.5, 5), (1.0, 5))},
    "elastic": {"dynamic": True, "idle_timeout_ms": 2000.0, "executor_cores": 2, "loss_rate": 5.0},
    "stall": {"masked": False},
}


@pytest.mark.parametrize("name", IDLERS)
def test_idling_never_pays(name):
    """Every episode ends with all jobs finished, so that its return is minus the sum of all JCTs."""
    options = {"workload": synthetic_batch(8, 1, ["xs", "s"]), "executors": 10} | IDLERS[name]
    masked, rescued = options.pop("masked", True), False
    env = SparkClusterEnv(**options)
    for seed, idle in enumerate((0.02, 0.1, 0.3, 0.6, 0.9) * 3):
        rng = np.random.default_rng(seed)
        _, info = env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            mask = info["action_mask"]
            action = env.action_space.sample(mask=mask if masked else None)
            if rng.random() < idle and (mask[0][-1] or not masked):
                action[0] = env.padding.stages
            elif masked and mask[0][:-1].any():
                action[0] = rng.choice(np.flatnonzero(mask[0][:-1]))
            _, reward, terminated, truncated, info = env.step(action)
            total, over = total + reward, terminated or truncated
            rescued = rescued or bool(env._facts[F.rescued])
        assert (terminated, info["num_unfinished"], info["deadlock"]) == (True, 0, False)
        assert -total == pytest.approx(env.result().avg_jct_s * 8)
    assert rescued or name in ("classes", "elastic")


# ---- construction ---------------------------------------------------------------------------------------------------


def test_padding_is_exact_for_one_workload_and_enough_for_all_of_a_function():
    env = SparkClusterEnv(BUSY)
    assert (env.padding.jobs, env.padding.stages, env.padding.edges) == (2, 3, 1)
    env = SparkClusterEnv(BUSY, max_jobs=1)
    assert (env.padding.jobs, env.padding.stages, env.padding.edges) == (1, 2, 1)
    env = SparkClusterEnv(lambda seed: synthetic_batch(3, seed))
    largest = max(len(profile.stages) for profile in synthetic_batch(1).universe)
    assert (env.padding.jobs, env.padding.stages) == (3, 3 * largest)


@pytest.mark.parametrize(("name", "present"), [("jobs", 2), ("stages", 4), ("edges", 2)])
def test_too_little_padding_is_an_error_that_says_what_is_needed(name, present):
    late = job(stage("a", 1, 1.0), stage("b", 1, 1.0, 0), stage("c", 1, 1.0, 0), at_s=2.0)
    env = begun(workload(one_stage(1, 9.0), late), 2, **{f"max_{name}": 1})
    with pytest.raises(ConfigError, match=rf"^{present} {name} are in the system at 2\.0 s, more than the 1 "):
        env.step((0, 0))
    with pytest.raises(ResetNeeded):
        env.step((0, 0))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_stages": 0}, "max_stages must be a whole number of at least 1, got 0"),
        ({"max_jobs": 1.5}, "max_jobs must be a whole number"),
        ({"max_jobs": float("nan")}, "max_jobs must be a whole number of at least 1, got nan"),
        ({"max_edges": "9"}, "max_edges must be a whole number of at least 1, got '9'"),
        ({"invalid_action": "ignore"}, "invalid_action must be nearest or error, got 'ignore'"),
        ({"render_mode": "human"}, "render_mode must be ansi or None, got 'human'"),
        ({"workload": 3}, r"the workload is 3 \(int\); expected a Workload"),
        ({"workload": lambda seed: None}, r"the workload is None \(NoneType\); expected a Workload"),
    ],
)
def test_bad_parameters(values, message):
    with pytest.raises(ConfigError, match=message):
        SparkClusterEnv(**values)


def test_workload_from_a_file_and_for_one_episode(tmp_path):
    save(CHAIN, tmp_path / "chain.json")
    env = begun(tmp_path / "chain.json", 1, "simplified")
    assert env.step((0, 0))[1] == -2.0
    env.reset(seed=0, options={"workload": workload(one_stage(3, 1.0))})
    assert env.step((0, 0))[1] == -3.0


def test_step_result_and_render_need_an_episode():
    env = SparkClusterEnv(CHAIN, render_mode="ansi")
    for call in (env.result, env.render):
        with pytest.raises(ResetNeeded):
            call()


def test_render_shows_time_executors_and_jobs():
    env = begun(BUSY, 3, "simplified", render_mode="ansi")
    env.step((0, 0))
    env.step((1, 1))
    lines = env.render().splitlines()
    assert lines[0] == "1.0 s: 2 jobs in the system, 0 of 2 finished"
    assert lines[1].startswith("executors: 3, ")
    assert [line.split()[:3] for line in lines[3:]] == [["0", "job", "1.0"], ["1", "job", "1.0"]]
    many = begun(workload(*[one_stage(1, 1.0)] * 25), 3, render_mode="ansi")
    assert many.render().endswith("and 5 more")
    silent = begun(BUSY)
    with pytest.warns(UserWarning, match="without a render mode"):
        assert silent.render() is None


def test_the_third_number_delays_a_stage_by_parts_of_its_task_duration():
    env = SparkClusterEnv(CHAIN, 2, delay_steps=4, durations="mean", startup=False, log=True)
    observation, info = env.reset(seed=0)
    assert env.action_space.nvec.tolist() == [3, 2, 5]
    assert observation["delay_mask"].tolist() == [1, 0]
    assert info["action_mask"][2].tolist() == [1] * 5
    observation, reward, *_, info = env.step((0, 0, 3))
    # Nothing else can be chosen, so the executors idle until the slot ends after 3/4 of a second.
    assert (info["time_ms"], reward, info["invalid_action"]) == (750.0, -0.75, False)
    assert [observation[name].tolist() for name in ("delay_mask", "stage_delayed")] == [[0, 0], [1, 0]]
    assert info["action_mask"][2].tolist() == [1, 0, 0, 0, 0]
    observation, *_, info = env.step((0, 1, 1))
    assert info["invalid_action"]
    assert env.result().log.delays()["end_s"].tolist() == [0.75]


def test_delays_that_an_environment_refuses():
    env = begun(CHAIN, 2, delay_steps=2, invalid_action="error")
    with pytest.raises(InvalidDecisionError, match="delay 3 must be 0 to 2"):
        env.step((0, 0, 3))
    with pytest.raises(InvalidDecisionError, match=r"expected 3 whole numbers \(slot, executors, delay\)"):
        env.step((0, 0))
    for steps in (-1, 1.5, True):
        with pytest.raises(ConfigError, match="delay_steps must be a whole number of at least 0"):
            SparkClusterEnv(CHAIN, 2, delay_steps=steps)
    plain = begun(CHAIN, 2, invalid_action="error")
    with pytest.raises(InvalidDecisionError, match=r"expected 2 whole numbers \(slot, executors\)"):
        plain.step((0, 0, 1))
