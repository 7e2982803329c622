"""Every registered scheduler passes `check_scheduler`; broken ones are told what is wrong with them."""

import random
import re

import numpy as np
import pytest

from decima.core.decision import CompiledDecision
from decima.core.errors import ConfigError, SchedulerError, UnknownSchedulerError
from decima.core.jit import njit
from decima.systems.spark.fields import state_at
from decima.systems.spark.rules.choices import choose, choose_idle
from decima.systems.spark.schedulers import CompiledScheduler, Decision, check_scheduler, make_scheduler
from decima.systems.spark.schedulers.check import small_workloads
from decima.workload import synthetic_batch
from tests.drivers import IN_CORE
from tests.toy_jobs import one_stage, workload

QUICK = {"executors": (3,), "modes": ("paper",)}


class Greedy:
    """A correct scheduler, the base of the broken ones."""

    name = "greedy"

    def reset(self, rng):
        self.rng = rng

    def decide(self, observation):
        return observation.grant(observation.frontier[0], observation.num_free_executors)


@pytest.mark.parametrize("name", IN_CORE)
def test_registered_schedulers_keep_to_the_interface(name):
    report = check_scheduler(name)
    assert (report.name, report.kind) == (make_scheduler(name).name, "compiled")
    # One of them is for executors of several sizes, and has its own.
    assert report.cases == (len(small_workloads()) - 1) * 2 * 3 + 2
    assert report.runs == 3 * report.cases
    assert report.decisions > 5 * report.runs
    assert str(report).startswith(f"{report.name} (compiled) keeps to the interface: 44 cases, 132 runs, ")


@pytest.mark.parametrize("end", ["low", pytest.param("high", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", IN_CORE)
def test_so_do_their_extremes(name, end):
    values = {parameter.name: getattr(parameter, end) for parameter in make_scheduler(name).parameters}
    # With the released rules idling on purpose (leftover 0) may leave every executor parked.
    workloads = dict(small_workloads())
    several_sizes = {"memory": workloads.pop("memory")}
    check_scheduler(name, parameters=values, modes=("paper",), workloads=workloads)
    # So it may where executors have several sizes: what comes free later need not fit what is left.
    values |= {"leftover": max(values["leftover"], 1)} if "leftover" in values else {}
    check_scheduler(name, parameters=values, modes=("paper",), workloads=several_sizes)


def test_workloads_of_ones_own():
    assert check_scheduler(Greedy(), workloads=synthetic_batch(1), executors=(5,)).cases == 2
    assert check_scheduler(Greedy(), workloads={"a": synthetic_batch(1)}, **QUICK).cases == 1
    with pytest.raises(ConfigError, match="nothing to check with"):
        check_scheduler(Greedy(), modes=())
    with pytest.raises(UnknownSchedulerError, match="did you mean 'fair'"):
        check_scheduler("fiar")


def broken(**parts):
    """A scheduler whose parts are these."""
    return type("Broken", (Greedy,), parts)()


def yields(self, observation):
    yield Decision.idle()


@pytest.mark.parametrize(
    ("scheduler", "message"),
    [
        (broken(decide=None), r"Broken has no method decide; expected decide\(observation\)"),
        (broken(reset=None), r"Broken has no method reset; expected reset\(rng\)"),
        (broken(name=""), "Broken.name is ''; expected a non-empty string"),
        (broken(decide=lambda _: None), r"Broken.decide\(\) cannot be called with one argument; expected decide\(self"),
        (broken(reset=lambda _: None), r"Broken.reset\(\) cannot be called with one argument"),
        (broken(decide=yields), "Broken.decide is a generator or a coroutine; expected a plain function"),
        (Greedy, r"got the class Greedy; expected an object of it: Greedy\(\) with parentheses"),
        (Greedy().decide, "method has no method reset"),
        (lambda observation: Decision.idle(), "a plain function is not enough, give it a class"),
        (None, "NoneType has no method reset"),
    ],
)
def test_missing_parts_of_the_interface(scheduler, message):
    with pytest.raises(SchedulerError, match=message):
        check_scheduler(scheduler)


# ---- broken decisions -----------------------------------------------------------------------------------------------


def deciding(function):
    """A scheduler that decides by this function of itself and the observation."""
    return broken(name="broken", decide=function)


def raises_after_a_while(self, observation):
    if observation.time_ms > 0:
        raise KeyError("no such job")
    return Greedy.decide(self, observation)


def keeps_old_stages(self, observation):
    if observation.time_ms == 0:
        self.kept = observation.frontier[0]
    return observation.grant(self.kept, 1)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda self, observation: None, r"decide returned None; expected a Decision; is a return missing\?"),
        (lambda self, observation: observation.frontier[0], r"decide returned StageView.*a Decision; wrap it"),
        (
            lambda self, observation: (observation.frontier[0], 3),
            r"decide returned \(StageView.*wrap it: Decision\(stage, parallelism_limit\)",
        ),
        (
            lambda self, observation: Decision(observation.jobs[0], 3),
            r"the stage of a Decision is JobView\(0\) .*choose one of the job's stages in observation.frontier",
        ),
        (lambda self, observation: Decision("a", 3), r"the stage of a Decision is 'a' \(str\); expected a StageView"),
        (lambda self, observation: Decision(-1, 3), "the stage of a Decision is -1; expected an id of at least 0"),
        (
            lambda self, observation: Decision(observation.frontier[0], 2.5),
            r"the parallelism_limit of a Decision is 2\.5 \(float\); expected a whole number; round it",
        ),
        (lambda self, observation: Decision(observation.frontier[0], True), r"is True \(bool\); expected a whole num"),
        (lambda self, observation: Decision(0, 3), "not in the frontier.*choose from observation.frontier"),
        (keeps_old_stages, "not in the frontier.*choose from observation.frontier, anew at every decision"),
        (lambda self, observation: Decision(10**30, 3), "stage id 2147483647.*not in the frontier"),
        (
            lambda self, observation: Decision(observation.frontier[0], 1),
            "the limit gives it no executor.*must exceed job.allocation; observation.grant",
        ),
        (raises_after_a_while, "decide raised KeyError: 'no such job'; expected no exception"),
        (lambda self, observation: Decision.idle(), "parked every executor; expected all jobs to finish"),
    ],
)
def test_invalid_decisions(function, message):
    with pytest.raises(SchedulerError, match=message) as caught:
        check_scheduler(deciding(function), **QUICK)
    where = r"scheduler 'broken', workload '\w+', mode paper, executors \d( in classes)?, seed 0: "
    assert re.match(where, str(caught.value))


def test_limits_of_one_mode_do_not_suit_the_other():
    whole_cluster = deciding(lambda self, observation: Decision(observation.frontier[0], 50))
    check_scheduler(whole_cluster, modes=("paper",))
    with pytest.raises(SchedulerError, match="in mode released a limit counts offered executors"):
        check_scheduler(whole_cluster)


def test_failing_reset():
    def fails(self, rng):
        raise RuntimeError("no model loaded")

    with pytest.raises(SchedulerError, match="reset raised RuntimeError: no model loaded"):
        check_scheduler(broken(reset=fails))


# ---- broken promises ------------------------------------------------------------------------------------------------


def random_grant(rng, observation):
    """A random number of executors for a random stage."""
    stages = observation.frontier
    return observation.grant(stages[rng.integers(len(stages))], 1 + rng.integers(observation.num_free_executors))


def test_other_chance():
    unseeded = np.random.default_rng()
    with pytest.raises(SchedulerError, match=r"differ from decision \d+ on .*draw chance from the gene"):
        check_scheduler(deciding(lambda self, observation: random_grant(unseeded, observation)), **QUICK)


@pytest.mark.parametrize(
    ("draw", "named"),
    [
        (np.random.rand, "numpy.random was"),
        (random.random, "random was"),
        (lambda: (random.seed(0), np.random.seed(0)), "numpy.random and of random was"),  # noqa: NPY002
    ],
)
def test_global_chance(draw, named):
    def draws(self, observation):
        draw()
        return Greedy.decide(self, observation)

    def chance():
        return [str(np.random.get_state(legacy=False)), random.getstate()]  # noqa: NPY002

    before = chance()
    with pytest.raises(SchedulerError, match=f"the global generator of {named} used or seeded"):
        check_scheduler(deciding(draws), **QUICK)
    assert chance() == before


class Remembers(Greedy):
    """Takes fewer executors the more often it was asked, ever."""

    asked = 0

    def decide(self, observation):
        self.asked += 1
        executors = 1 + self.asked % observation.num_free_executors
        return observation.grant(observation.frontier[0], executors)


class CannotBeCopied(Remembers):
    def __deepcopy__(self, memo):
        raise TypeError("holds a connection")


def test_memory_of_the_last_run():
    with pytest.raises(SchedulerError, match=r"two runs .* differ .*; reset must forget the last run$"):
        check_scheduler(Remembers(), **QUICK)
    with pytest.raises(SchedulerError, match=r"draw chance from .*, and reset must forget the last run$"):
        check_scheduler(CannotBeCopied(), **QUICK)


def launches_itself(self, observation):
    decision = Greedy.decide(self, observation)
    observation.state.decide(decision.stage.id, decision.parallelism_limit)
    return decision


def counts_down(self, observation):
    observation.state.stage_next[observation.frontier[0].id] += 1
    return Greedy.decide(self, observation)


def shortens_tasks(self, observation):
    observation.state.values_ms[:] = 1.0
    return Greedy.decide(self, observation)


def takes_notes(self, observation):
    observation.last = observation.time_ms
    return Greedy.decide(self, observation)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (launches_itself, "decide changed has_action of the cluster; .*return the decision instead of carrying it out"),
        (counts_down, "decide changed stage_next of the cluster"),
        (shortens_tasks, "decide raised ValueError: assignment destination is read-only"),
        (takes_notes, "decide changed the attribute last of the observation; .*notes in attributes of the scheduler"),
    ],
)
def test_changes_of_what_is_only_to_be_looked_at(function, message):
    jobs = workload(one_stage(4, 1.0), one_stage(3, 2.0))
    with pytest.raises(SchedulerError, match=message):
        check_scheduler(deciding(function), workloads=jobs, **QUICK)


@njit
def choose_first(state):
    """Choose the first stage of the frontier, stage 0 without any."""
    choose(state, 0, 1)
    for stage in range(state.num_stages):
        if state.stage_in_frontier[stage]:
            choose(state, stage, 1)
            return


@CompiledDecision
def _never_idles(address):
    choose_first(state_at(address))


@CompiledDecision
def _first_stage(address):
    state = state_at(address)
    choose_first(state)
    if state.num_frontier == 0:
        choose_idle(state)


@CompiledDecision
def _counts_keys(address):
    """Changes the cluster: tells the next decision something in a field that is not its own."""
    state = state_at(address)
    state.job_arrival_ms[0] += 1.0
    choose_first(state)
    if state.num_frontier == 0:
        choose_idle(state)


class DecidesOtherwise(CompiledScheduler):
    def decide(self, observation):
        return observation.grant(observation.frontier[-1], 1)


def test_compiled_schedulers():
    assert check_scheduler(CompiledScheduler("first", _first_stage)).kind == "compiled"
    with pytest.raises(SchedulerError, match="empty frontier: call choose_idle there"):
        check_scheduler(CompiledScheduler("never_idles", _never_idles))
    with pytest.raises(SchedulerError, match="inside the core and the one through decide differ from decision 0 on"):
        check_scheduler(DecidesOtherwise("otherwise", _first_stage))
    with pytest.raises(SchedulerError, match="the run changed job_arrival_ms of the workload"):
        check_scheduler(CompiledScheduler("counts", _counts_keys))
