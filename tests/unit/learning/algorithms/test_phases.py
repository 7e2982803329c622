"""Algorithms one after the other, without any network."""

import numpy as np
import pytest

from decima.core.errors import TrainingError
from decima.learning.algorithms import AlgorithmState
from decima.learning.algorithms.phases import Phase, Phases
from decima.learning.configuration import Progress


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
