"""The validator finds every kind of broken schedule; metrics and charts of a schedule made by hand."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PolyCollection

import decima
from decima.core.errors import DecimaError, SchedulerError
from decima.plotting.gantt import gantt
from decima.systems.heterogeneous import (
    Cluster,
    Instance,
    InvalidScheduleError,
    Job,
    Schedule,
    canonical,
    check_scheduler,
    list_schedulers,
    metrics,
    plan,
    validate,
)
from decima.systems.heterogeneous.result import violations

FORK = Job("fork", [4.0, 2.0, 2.0], [(0, 1), (0, 2)], [6.0, 6.0], arrival_s=1.0)
INSTANCE = Instance([FORK], Cluster([1.0, 2.0], 2.0))
# On executor 1 a further copy of the first node saves the transfer of 3 s.
GOOD = Schedule(INSTANCE, [0, 1, 0, 2], [0, 0, 1, 1], [1.0, 5.0, 1.0, 3.0], [5.0, 7.0, 3.0, 4.0])


def changed(**columns):
    arrays = {name: getattr(GOOD, name).copy() for name in ("node", "executor", "start_s", "finish_s")}
    for name, (place, value) in columns.items():
        arrays[name][place] = value
    return Schedule(INSTANCE, **arrays)


def test_a_valid_schedule():
    validate(INSTANCE, GOOD)
    assert GOOD.duplicate.tolist() == [False, False, True, False]
    assert GOOD.first_finish_s.tolist() == [3.0, 7.0, 4.0]
    assert GOOD.makespan_s == 7.0
    assert GOOD.sources().tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("schedule", "sentence"),
    [
        (changed(node=(0, 3)), "node 3 is unknown"),
        (changed(executor=(0, -1)), "executor -1 is unknown"),
        (changed(start_s=(0, np.nan)), "start_s of copy 0 is not a finite number"),
        (changed(node=(1, 2)), "node fork/1 has no copy"),
        (changed(finish_s=(1, 6.5)), "takes 1.5 s; expected 2 s, without interruption"),
        (changed(start_s=(0, 0.0), finish_s=(0, 4.0)), "begins at 0 s; its job arrives at 1 s"),
        (changed(start_s=(1, 4.0), finish_s=(1, 6.0)), "while the executor is busy with fork/0 until 5 s"),
        (changed(node=(2, 2), finish_s=(2, 2.0)), "the data of fork/0 is there at 8 s"),
        (changed(start_s=(3, 2.0), finish_s=(3, 3.0)), "the data of fork/0 is there at 3 s"),
    ],
)
def test_every_kind_of_broken_schedule(schedule, sentence):
    found = list(violations(INSTANCE, schedule))
    assert any(sentence in each for each in found), found
    with pytest.raises(InvalidScheduleError):
        validate(INSTANCE, schedule)


@pytest.mark.parametrize("scheduler", ["heft", "high_rank_up_deft", "discounted_rank"])
def test_random_damage_is_found(scheduler):
    good = plan(canonical(), scheduler=scheduler)
    rng = np.random.default_rng(0)
    for copy in range(len(good)):
        shifted = {name: getattr(good, name).copy() for name in ("start_s", "finish_s")}
        early = rng.uniform(0.01, 1.0)
        for column in shifted.values():
            column[copy] -= early
        gap_before = min(
            (good.start_s[copy] - good.finish_s[other] for other in range(len(good))
             if good.executor[other] == good.executor[copy] and good.finish_s[other] <= good.start_s[copy]),
            default=good.start_s[copy],
        )  # fmt: skip
        broken = list(violations(canonical(), replace(good, **shifted)))
        if gap_before == 0.0:  # something is directly in front
            assert broken
        without = {name: np.delete(getattr(good, name), copy) for name in ("node", "executor", "start_s", "finish_s")}
        alone = (good.node == good.node[copy]).sum() == 1
        assert not alone or list(violations(canonical(), Schedule(good.instance, **without)))
        elsewhere = good.executor.copy()
        elsewhere[copy] = (elsewhere[copy] + 1) % 3
        assert list(violations(canonical(), replace(good, executor=elsewhere)))


@dataclass
class Own:
    """A scheduler whose schedule is what a function of the instance returns."""

    make: object
    name: str = "own"

    def schedule(self, instance, seed=0):
        return self.make(instance)


def at_once(instance):
    """All nodes at time 0 on the first executor."""
    nodes = np.arange(len(instance))
    return Schedule(instance, nodes, 0 * nodes, 0.0 * nodes, 0.0 * nodes)


def of_another_instance(instance):
    return plan(Instance([Job("tiny", [1.0])], Cluster([1.0])))


BROKEN = {
    "impossible": (at_once, InvalidScheduleError, "'own': the copy of .* takes 0 s; expected"),
    "None": (lambda instance: None, SchedulerError, "'own' returns None; expected a Schedule"),
    "a number": (lambda instance: 3.0, SchedulerError, "returns 3.0; expected a Schedule"),
    "another instance": (of_another_instance, InvalidScheduleError, "'own': node .* has no copy"),
    "no copies": (lambda instance: Schedule(instance, [], [], [], []), InvalidScheduleError, "has no copy"),
    "half a node": (lambda i: Schedule(i, [0.5], [0], [0.0], [1.0]), InvalidScheduleError, "node .* is \\[0.5\\]"),
    "a text": (lambda i: Schedule(i, [0], ["a"], [0.0], [1.0]), InvalidScheduleError, "executor .* whole numbers"),
    "no list": (lambda i: Schedule(i, 0, 0, 0.0, 1.0), InvalidScheduleError, "node .* expected a list"),
    "an exception": (lambda i: i.nothing, SchedulerError, "'own' fails with AttributeError: .* line "),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_scheduler_of_ones_own_is_never_scored(case):
    make, error, sentence = BROKEN[case]
    for attempt in (
        lambda: decima.compare(["heft", Own(make)], canonical()),
        lambda: decima.simulate(canonical(), Own(make)),
        lambda: plan(canonical(), scheduler=Own(make)),
        lambda: check_scheduler(Own(make)),
    ):
        with pytest.raises(error, match=sentence):
            attempt()


def test_a_registered_rule_from_outside_is_validated(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cheating.py").write_text(
        "import numpy as np\n"
        "from decima.systems.heterogeneous import Rules, Schedule\n"
        "from decima.systems.heterogeneous.schedulers.registry import SCHEDULERS, register\n"
        "@register('cheating', 'cheating', 'here', Rules())\n"
        "def cheating(instance, rules, rng):\n"
        "    zeros = np.zeros(len(instance), int)\n"
        "    return Schedule(instance, np.arange(len(instance)), zeros, zeros, zeros)\n"
    )
    with pytest.raises(InvalidScheduleError, match="takes 0 s"):
        decima.compare(["heft", "cheating.py:cheating"], canonical())
    from decima.systems.heterogeneous.schedulers.registry import SCHEDULERS

    SCHEDULERS.remove("cheating")


@pytest.mark.parametrize("name", [name for name in list_schedulers() if name != "remote"])
def test_every_scheduler_of_the_package_keeps_to_the_rules(name):
    report = check_scheduler(name)
    assert report.instances == 6
    assert report.copies >= 39


class Drawing:
    """Takes chance from where it should not."""

    name = "drawing"

    def __init__(self, generator):
        self.generator = generator

    def schedule(self, instance, seed=0):
        return plan(instance, scheduler="random_deft", seed=int(self.generator.integers(100)))


def test_chance_of_its_own_is_found():
    with pytest.raises(SchedulerError, match="two schedules of seed 0 differ"):
        check_scheduler(Drawing(np.random.default_rng(0)))

    class Global:
        integers = staticmethod(lambda most: np.random.randint(most))  # noqa: NPY002

    np.random.random()  # noqa: NPY002  a later draw moves the place alone, not the key
    with pytest.raises(SchedulerError, match="the global generator of numpy"):
        check_scheduler(Drawing(Global))
    assert issubclass(SchedulerError, DecimaError)


def test_metrics_by_hand():
    found = metrics(GOOD)
    assert found.makespan_s == 7.0
    assert found.speedup == pytest.approx(4.0 / 7.0)
    assert np.isnan(found.slr)
    assert found.avg_jct_s == 6.0
    assert found.utilisation == pytest.approx(9.0 / 14.0)
    assert (found.duplicates, found.duplicated) == (1, pytest.approx(2.0 / 9.0))
    assert found.transferred == 0.0
    batch = Instance([replace(FORK, arrival_s=0.0)], Cluster([1.0, 2.0], 2.0))
    apart = Schedule(batch, [0, 1, 2], [1, 1, 0], [0.0, 2.0, 5.0], [2.0, 3.0, 7.0])
    validate(batch, apart)
    assert metrics(apart).slr == pytest.approx(7.0 / 3.0)
    assert metrics(apart).transferred == 6.0


def test_chart_has_copies_and_transfers():
    axes = gantt(plan(canonical(), scheduler="high_rank_up_deft"), title="DEFT")
    assert axes.get_title(loc="left") == "DEFT: makespan 73 s"
    boxes = {each.get_gid(): len(each.get_paths()) for each in axes.collections if isinstance(each, PolyCollection)}
    assert boxes == {"copies": 10, "duplicates": 4}
    (lines,) = (each for each in axes.collections if isinstance(each, LineCollection))
    for (left, sender), (right, receiver) in lines.get_segments():
        assert sender != receiver
        assert left <= right
