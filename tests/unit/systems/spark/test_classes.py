"""Classes of executors by hand: settings, decisions, what is refused, results, replay and environment."""

import json

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError, InvalidDecisionError, SchedulerError, WorkloadError
from decima.systems.spark.schedulers import Decision
from decima.systems.spark.schedulers.check import check_scheduler
from decima.systems.spark.settings import ExecutorClass, Settings, read_classes
from decima.systems.spark.state import new_state, spawn_generators
from decima.workload.jobs import Job, Workload
from decima.workload.profile import JobProfile
from decima.workload.sources import get_source
from tests.drivers import ClassChooser
from tests.toy_jobs import stage

SMALL = ((0.5, 2), (1.0, 2))


def profile(shape, name="job"):
    """Stages of (tasks, parents), every task of one second."""
    return JobProfile(name, tuple(stage(f"s{i}", tasks, 1.0, *of) for i, (tasks, of) in enumerate(shape)), "test")


def two_jobs():
    """Job 0: a small stage before a large one; job 1: a large stage."""
    first = profile([(3, ()), (2, (0,))])
    second = profile([(4, ())])
    return Workload((Job(first, requests=[0.5, 0.8]), Job(second, requests=[1.0])), "two")


def simple(**changes):
    return Settings.simplified(classes=SMALL, **changes)


def begun(workload, settings):
    state = new_state(workload, settings, log_tasks=True, log_decisions=True)
    state.start(*spawn_generators(0))
    assert state.advance()
    return state


# ---- settings -------------------------------------------------------------------------------------------------------


def test_classes_are_sorted_and_bring_their_executors():
    settings = Settings(classes=((1, 2), (0.5, 3, 2.0), (0.5, 1)))
    assert settings.classes == ((0.5, 1, 1.0), (0.5, 3, 2.0), (1.0, 2, 1.0))
    assert (settings.executors, settings.label) == (6, "6 executors in 3 classes, mode paper")
    assert Settings(**json.loads(json.dumps(settings.as_dict(), default=str)) | {"time_limit_ms": np.inf}) == settings
    assert settings.replace(classes=()).executors == 50
    assert "classes" not in Settings().as_dict()


def test_classes_on_the_command_line():
    assert read_classes("0.25:50,0.5x2:1") == (ExecutorClass(0.25, 50), ExecutorClass(0.5, 1, 2.0))
    assert [each.label for each in read_classes("0.25:50,0.5x2:1")] == ["0.25", "0.5x2"]


@pytest.mark.parametrize("text", ["", "0.5", "0.5:", ":3", "0.5x:3", "0.5:3,", "a:3", "0.5:b", "0.5:1.5"])
def test_what_is_no_class(text):
    with pytest.raises(ConfigError, match=r"^classes: "):
        read_classes(text)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (((0.5, 1), (0.5, 2)), "class 0.5 is given twice"),
        (((0.5, 0),), "executors must be a whole number of at least 1, got 0"),
        (((0.0, 1),), "above 0"),
        (((float("nan"), 1),), "finite numbers above 0"),
        (((1.0, 1, float("inf")),), "finite numbers above 0"),
        (tuple((1.0 + k, 1) for k in range(9)), "there are 9 classes of executors; expected at most 8"),
        (((0.5,),), "expected .memory, executors"),
        (3, "expected .memory, executors"),
    ],
)
def test_bad_classes(classes, message):
    with pytest.raises(ConfigError, match=message):
        Settings(classes=classes)


def test_a_request_that_no_class_fits():
    workload = Workload((Job(profile([(1, ())]), name="big", requests=[1.5]),), "big")
    message = "job 'big', stage 's0' asks for memory 1.5, 1 CPUs: it fits no class of executors"
    with pytest.raises(WorkloadError, match=message):
        decima.simulate(workload, classes=SMALL)
    assert decima.simulate(workload, executors=4).num_unfinished == 0


# ---- decisions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        ((2, 1, 0.0, 0), "the stage asks for more than executors of that class have"),
        ((0, 1, 0.0, 2), "with limit 1 and executor class 2: there is no such class of executors"),
        ((-1, 1, 0.0, 1), "a class of executors is chosen only with a stage that gets some"),
        ((0, 1, 5.0, 1), "a class of executors is chosen only with a stage that gets some"),
        ((0, 0), "the limit gives it no executor; executors offered: 4, by class .2, 2."),
    ],
)
def test_what_is_refused(decision, message):
    state = begun(two_jobs(), simple())
    state.decide(*decision)
    with pytest.raises(InvalidDecisionError, match=message):
        state.advance()


def test_the_check_of_schedulers_covers_classes():
    assert check_scheduler("fair", executors=(3,), modes=("paper",)).decisions > 0

    class TooSmall(ClassChooser):
        def decide(self, observation):
            kind = 0 if len(observation.classes) > 1 else None
            return observation.grant(observation.frontier[0], observation.num_free_executors, kind)

    with pytest.raises(SchedulerError, match=r"in classes.*(stage\.fits|observation\.offers)"):
        check_scheduler(TooSmall(), executors=(3,), modes=("paper",))


def test_decisions_of_the_wrong_kind():
    class Wrong(ClassChooser):
        def decide(self, observation):
            return Decision(observation.frontier[0], 9, executor_class=1.5)

    with pytest.raises(SchedulerError, match=r"executor_class of a Decision is 1\.5"):
        decima.simulate(two_jobs(), Wrong(), cluster=simple())


def test_fragmentation_and_use_of_classes_by_hand():
    result = decima.simulate(two_jobs(), "fifo", cluster=simple(), log=True)
    assert result.executor_class.tolist() == [0, 0, 1, 1]
    # Two small tasks of job 0 on the small class and one on the large one; two of 0.8 and four of 1 on the large one.
    assert result.fragmentation == pytest.approx(1.0 - (3 * 0.5 + 2 * 0.8 + 4.0) / (2 * 0.5 + 1.0 + 2.0 + 4.0))
    usage = result.class_usage()
    assert usage[["job", "executor_class", "tasks"]].to_numpy().tolist() == [[0, 0, 2], [0, 1, 3], [1, 0, 0], [1, 1, 4]]
    assert usage["executor_s"].tolist() == [2.0, 3.0, 0.0, 4.0]
    assert (usage["executors"] <= 2).all()


def test_fragmentation_needs_classes_and_a_log():
    for result in (decima.simulate(two_jobs(), executors=4, log=True), decima.simulate(two_jobs(), cluster=simple())):
        with pytest.raises(ConfigError, match="fragmentation is of a run with classes of executors and a log"):
            _ = result.fragmentation


# ---- requests -------------------------------------------------------------------------------------------------------


def test_drawn_requests_leave_jobs_and_arrivals_as_they_are():
    source = get_source("embedded")
    plain, asking = source.stream(20, 5.0, seed=4), source.stream(20, 5.0, seed=4, requests="uniform")
    assert [job.profile for job in asking.jobs] == [job.profile for job in plain.jobs]
    assert asking.arrival_ms.tolist() == plain.arrival_ms.tolist()
    memory = asking.requests[:, 0]
    assert ((memory > 0.0) & (memory <= 1.0)).all()
    assert len(set(memory.tolist())) == len(memory)
    assert (plain.requests == (0.0, 1.0)).all()
    longer = source.stream(30, 5.0, seed=4, requests="uniform")
    assert longer.requests[: len(memory), 0].tolist() == memory.tolist()
    assert asking.signature() != plain.signature()


def test_requests_in_files(tmp_path):
    workload = get_source("embedded").batch(3, seed=1, requests="uniform")
    workload = Workload((*workload.jobs, *two_jobs().jobs), "some")
    file = tmp_path / "jobs.json"
    decima.workload.save(workload, file)
    assert decima.workload.load(file).requests.tolist() == workload.requests.tolist()
    stage = {"tasks": 1, "duration_ms": 5, "memory": 0.5, "cpu": 2}
    file.write_text(json.dumps([{"stages": [stage]}, {"stages": [stage], "requests": [[0.25, 4]]}]))
    assert decima.workload.load(file).requests.tolist() == [[0.5, 2.0], [0.25, 4.0]]
    decima.workload.save(decima.workload.load(file), file)
    assert decima.workload.load(file).requests.tolist() == [[0.5, 2.0], [0.25, 4.0]]


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True, "1"])
def test_requests_that_are_none(value):
    with pytest.raises(WorkloadError, match=r"stage .* memory is .*; expected a finite number above 0|requests are"):
        Job(profile([(1, ())]), requests=[value] if not isinstance(value, (bool, str)) else value)


def test_requests_of_other_shape():
    with pytest.raises(WorkloadError, match="expected memory, or memory and CPUs, of each of 2 stages"):
        Job(profile([(1, ()), (1, (0,))]), requests=[0.5])
