"""The first 200 answers of a service to a simulated cluster stay the same to the last bit.

``python -m tests.guard.test_service_transcript`` writes ``service.json`` anew. Do that only in a commit of its own that
says which answers changed and why.
"""

import hashlib
import json
from pathlib import Path

import pytest

import decima
from decima.connect.service.simulator_client import RemoteScheduler
from decima.workload import embedded_poisson
from tests.guard.cases import this_processor
from tests.services import running, sessions_of

GOLDEN = Path(__file__).with_name("service.json")
#: Scheduler -> settings of the cluster; 40 answers of each.
CASES = {
    "fair": {"mode": "paper"},
    "released_fifo": {"mode": "released"},
    "entry_srw:level=0,entry_s=5": {"mode": "paper"},
    "idle_rule": {"mode": "paper"},
    "decima:embedded-stream,greedy=0": {"mode": "paper"},
}
ANSWERS = 40
LEARNED = "decima"


class Written(RemoteScheduler):
    """Client that keeps the replies, without the time that they took."""

    def reset(self, rng):
        super().reset(rng)
        self.replies = []

    def _decision(self, state, reply):
        if len(self.replies) < ANSWERS:
            reply.decide_us = 0.0
            self.replies.append(hashlib.sha256(reply.SerializeToString(deterministic=True)).hexdigest()[:12])
        return super()._decision(state, reply)


def transcript(name):
    """Digests of the first answers of a scheduler behind a service."""
    jobs = embedded_poisson(14, 8.0, 5)
    with running(sessions_of(name)) as service, Written(service.target) as remote:
        decima.simulate(jobs, remote, executors=20, seed=3, **CASES[name])
    assert len(remote.replies) == ANSWERS
    return remote.replies


@pytest.mark.parametrize("name", CASES)
def test_answers_of_the_service(name):
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    if name.startswith(LEARNED) and golden["processor"] != this_processor():
        pytest.skip("scores of a network are rounded otherwise on another processor")
    assert transcript(name) == golden["answers"][name]


if __name__ == "__main__":
    answers = {name: transcript(name) for name in CASES}
    GOLDEN.write_text(
        json.dumps({"processor": this_processor(), "answers": answers}, indent=1) + "\n", encoding="utf-8"
    )
