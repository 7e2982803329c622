"""A Ray cluster of three nodes on this machine and what is tried on it; a program, so that other tests have no Ray.

Every line of its input is the name of a function of :mod:`tests.on_ray.scenarios`; the answer is a line of JSON, null
or a traceback. The first line, without a question, is the same for the start of the cluster.
"""

import inspect
import json
import os
import socket
import sys
import tempfile
import traceback
from pathlib import Path

import psutil

MEMORY = 80 * 2**20  # smallest object store that Ray accepts
# Ray waits fifteen seconds for these, unless it knows them; a busy machine needs more.
PORTS = ("metrics_agent_port", "metrics_export_port", "runtime_env_agent_port", "dashboard_agent_listen_port")


class Nodes:
    """The cluster: three nodes of one core, more where a scenario adds them."""

    def __init__(self):
        from ray.cluster_utils import Cluster

        about = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
        self._cluster = Cluster(initialize_head=True, head_node_args=self._size() | about)
        self.add(2)
        self.address = self._cluster.address

    @staticmethod
    def _size():
        sockets = [socket.socket() for _ in PORTS]
        for each in sockets:
            each.bind(("", 0))
        numbers = [each.getsockname()[1] for each in sockets]
        for each in sockets:
            each.close()
        return {"num_cpus": 1, "object_store_memory": MEMORY} | dict(zip(PORTS, numbers, strict=True))

    def add(self, count=1):
        """More nodes."""
        for _ in range(count):
            self._cluster.add_node(**self._size(), wait=False)
        self._cluster.wait_for_nodes(120)

    def kill(self):
        """Kill one node with all that runs on it, as when its machine fails."""
        node = sorted(self._cluster.worker_nodes, key=lambda each: each.node_id)[0]
        self._cluster.worker_nodes.remove(node)
        raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
        for process in [raylet, *raylet.children(recursive=True)]:
            process.kill()

    def close(self):
        """End all nodes."""
        self._cluster.shutdown()


def main():
    """Start the cluster and do what the input says."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(work):
        said = None
        try:
            result = work()
        except BaseException:
            result, said = None, traceback.format_exc()
        answers.write(json.dumps(said) + "\n")
        answers.flush()
        return result

    nodes = answer(Nodes)
    if nodes is None:
        return
    os.environ["RAY_ADDRESS"] = nodes.address
    from tests.on_ray import scenarios

    for line in sys.stdin:
        scenario = getattr(scenarios, line.strip())
        with tempfile.TemporaryDirectory() as folder:
            given = {"nodes": nodes, "folder": Path(folder)}
            wanted = inspect.signature(scenario).parameters
            answer(lambda scenario=scenario, values={name: given[name] for name in wanted}: scenario(**values))
    nodes.close()


if __name__ == "__main__":
    main()
