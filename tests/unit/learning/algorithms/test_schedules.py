"""Numbers of algorithms and budgets that change while training goes on, and algorithms one after the other."""

import math

import numpy as np
import pytest

from decima.core.errors import ConfigError, TrainingError
from decima.learning.algorithms import AlgorithmState
from decima.learning.algorithms.imitation import ImitationConfig
from decima.learning.algorithms.interface import Phase, Phases
from decima.learning.algorithms.policy_gradient import PolicyGradientConfig
from decima.learning.configuration import Budget, Progress


def at(share, since=0):
    return Progress(since + 100, since, share)


def test_learning_rate_and_entropy_follow_their_shapes():
    values = {"lr_start": 1.0, "lr_end": 0.1, "entropy_start": 2.0, "entropy_end": 1.0, "entropy_iterations": 10}
    linear = PolicyGradientConfig(**values)
    assert linear.learning_rate(at(0.5)) == pytest.approx(0.55)
    geometric = PolicyGradientConfig(**values, lr_shape="geometric")
    assert geometric.learning_rate(at(0.5)) == pytest.approx(math.sqrt(0.1))
    for config in (linear, geometric):
        assert config.learning_rate(at(0.0)) == pytest.approx(1.0)
        assert config.learning_rate(at(1.0, 9)) == pytest.approx(0.1)
    assert linear.entropy_weight(at(0.9, 5)) == pytest.approx(1.5)


def test_trace_grows_geometrically():
    growing = PolicyGradientConfig(trace_s=10.0, trace_end_s=1000.0)
    assert [growing.trace_at(share) for share in (0.0, 0.5, 1.0)] == pytest.approx([10.0, 100.0, 1000.0])
    assert PolicyGradientConfig(trace_s=10.0).trace_at(0.7) == 10.0
    assert PolicyGradientConfig().trace_at(0.7) is None
    with pytest.raises(ConfigError, match="trace_end_s needs trace_s"):
        PolicyGradientConfig(trace_end_s=100.0)


def test_episodes_grow():
    algorithm_1 = PolicyGradientConfig(episode_start_s=100.0, episode_growth_s=10.0, episode_end_s=130.0)
    assert [algorithm_1.mean_episode_s(k, 0.0) for k in (0, 2, 9)] == [100.0, 120.0, 130.0]
    appendix_c = PolicyGradientConfig()
    lengths = [appendix_c.mean_episode_s(0, share) for share in (0.0, 0.5, 1.0)]
    assert lengths == pytest.approx([2000.0, 1.0 / 2.75e-4, 20_000.0])  # the probability of termination is linear
    assert PolicyGradientConfig(episode_start_s=None).mean_episode_s(3, 0.5) is None


def test_budget():
    budget = Budget(iterations=10, wall_seconds=100.0)
    assert budget.used(5, 99.0, 0.0) == 0.5  # iterations, if limited, alone set the pace
    assert budget.is_over(5, 100.0, 0.0)
    assert budget.is_over(10, 0.0, 0.0)
    assert not budget.is_over(9, 99.0, 1e9)
    timed = Budget(wall_seconds=100.0, cpu_seconds=200.0)
    assert timed.used(5, 20.0, 80.0) == 0.4
    assert not Budget().has_stop
    assert timed.has_stop


def test_progress_of_a_phase_counts_from_its_beginning():
    assert Progress(7, 7, 0.75).after(5, 0.5) == Progress(7, 2, 0.5)
    assert Progress(7, 7, 1.0).after(5, 1.0) == Progress(7, 2, 0.0)


def test_teacher_hands_over():
    config = ImitationConfig(teacher="fair", teacher_iterations=5)
    assert [config.teacher_share(k) for k in range(5)] == pytest.approx([1.0, 0.75, 0.5, 0.25, 0.0])
    assert ImitationConfig(teacher_iterations=1).teacher_share(0) == 1.0
    falling = ImitationConfig(teacher="fair", teacher_iterations=5, teacher_lr=1.0, teacher_lr_end=0.01)
    assert [falling.learning_rate(k) for k in (0, 2, 4)] == pytest.approx([1.0, 0.1, 0.01])
    teacher = ImitationConfig(teacher="capped_srw", teacher_parameters={"c1": 2.0, "c0": 1.0}, teacher_iterations=1)
    assert teacher.teacher_at(0).parameters == (("c0", 1.0), ("c1", 2.0))


def test_imitation_needs_a_teacher():
    from decima.learning.algorithms import make_algorithm

    with pytest.raises(ConfigError, match="imitation needs a teacher"):
        make_algorithm("imitation", ImitationConfig(), None, 0)


class Noted:
    """Notes what it is told."""

    headline = "note"
    at_milestone = False

    def __init__(self, name, log):
        self.columns = ("note", name)
        self.name, self.log, self.number = name, log, 0

    @property
    def weights(self):
        return np.array([self.number], np.float32)

    def begin(self):
        self.log.append(f"{self.name} begins")

    def iterate(self, now):
        self.number += 1
        self.log.append((self.name, now))
        return {"note": self.number, self.name: 1}

    def state(self):
        return AlgorithmState({"number": np.array(self.number)}, {"who": self.name})

    def restore(self, state):
        assert state.counters == {"who": self.name}
        self.number = int(state.arrays["number"])

    def close(self):
        self.log.append(f"{self.name} ends")


def make():
    log = []
    return Phases([Phase("warm", Noted("a", log), 2), Phase("main", Noted("b", log))]), log


def test_phases_follow_each_other_and_count_from_their_own_beginning():
    phases, log = make()
    assert phases.columns == ("phase", "note", "a", "b")
    phases.begin()
    rows, milestones = [], []
    for k in range(4):
        rows.append(phases.iterate(Progress(k, k, k / 8)))
        milestones.append(phases.at_milestone)
    assert [row["phase"] for row in rows] == ["warm", "warm", "main", "main"]
    assert milestones == [False, True, False, False]
    assert log == [
        "a begins",
        ("a", Progress(0, 0, 0.0)),
        ("a", Progress(1, 1, 0.125)),
        "b begins",
        ("b", Progress(2, 0, 0.0)),
        ("b", Progress(3, 1, 0.125 / 0.75)),
    ]
    assert phases.weights[0] == 2
    phases.close()
    assert log[-2:] == ["a ends", "b ends"]


@pytest.mark.parametrize("stop", [0, 1, 2, 3])
def test_a_restored_sequence_goes_on_in_its_phase(stop):
    whole, log = make()
    for k in range(4):
        whole.iterate(Progress(k, k, k / 8))
    first, _ = make()
    for k in range(stop):
        first.iterate(Progress(k, k, k / 8))
    second, resumed = make()
    second.restore(first.state())
    rows = [second.iterate(Progress(k, k, k / 8)) for k in range(stop, 4)]
    calls = [entry for entry in log if not isinstance(entry, str)][stop:]
    assert [entry for entry in resumed if not isinstance(entry, str)] == calls
    assert second.state() == whole.state()
    assert rows[-1] == {"phase": "main", "note": 2, "b": 1}


def test_a_phase_that_does_not_exist_is_refused():
    phases, _ = make()
    with pytest.raises(TrainingError, match="there are 2 phases, the checkpoint is in phase 5"):
        phases.restore(AlgorithmState({}, {"phase": 5, "began": None, "done": 0, "inner": {}}))
