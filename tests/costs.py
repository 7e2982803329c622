"""What tests cost: memory and the slowest at the end of a run, files on workers by kept costs, quick tests alone.

`tests/costs.json` has the CPU seconds of files, with those of child processes that ended, and of their tests of at
least 0.1 s. `pytest --keep-costs` writes it anew for the files that ran. Costs that are out of date or missing
move files between workers, and tests into or out of `--below`, and nothing else. Files marked `tensorflow` go to as few
workers as it takes, so that the others do without its memory.
"""

import json
import os
import resource
import sys
import threading
from multiprocessing import forkserver
from pathlib import Path

import psutil
import pytest
from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).parents[1]
KEPT = Path(__file__).with_name("costs.json")
LISTED_S = 0.1  # tests and files below are not listed
COST = "cost"  # property of a test's last report: (CPU seconds, worker, its peak memory in bytes, TensorFlow is loaded)
NUM_SHOWN = 10
SAMPLE_S = 2.0  # between looks at the memory of all processes
BEFORE = pytest.StashKey[float]()


def pytest_addoption(parser):
    group = parser.getgroup("costs of tests")
    group.addoption(
        "--keep-costs", action="store_true", help="write what the tests of this run cost to tests/costs.json"
    )
    group.addoption(
        "--below", type=float, metavar="S", help="leave out tests of S kept CPU seconds, and files with TensorFlow"
    )


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Report(config.getoption("keep_costs")), "costs of tests")


def cpu_s():
    """Return CPU seconds of this process, its ended children, and the server of warm processes with its own."""
    total = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    server = forkserver._forkserver._forkserver_pid
    return total + (sum(psutil.Process(server).cpu_times()[:4]) if server and psutil.pid_exists(server) else 0.0)


def memory_of_all():
    """Return bytes of memory of this process and all below it; what several share counts once if the system says so."""
    total = 0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            memory = process.memory_full_info()
        except psutil.Error:  # it has ended
            continue
        total += getattr(memory, "pss", memory.uss)
    return total


def loads_tensorflow(path):
    """Whether a file of tests says that it loads TensorFlow."""
    return path.suffix == ".py" and "pytest.mark.tensorflow" in path.read_text(encoding="utf-8")


def read_kept():
    """Return {file: {"cpu_s": CPU seconds of all its tests, "tests": {name: CPU seconds}}}."""
    return json.loads(KEPT.read_text(encoding="utf-8"))


def pytest_ignore_collect(collection_path, config):
    if config.getoption("below") is not None and collection_path.is_file() and loads_tensorflow(collection_path):
        return True
    return None


def pytest_collection_modifyitems(config, items):
    limit = config.getoption("below")
    if limit is not None:
        kept = read_kept()
        costs = [
            kept.get(path, {}).get("tests", {}).get(name, 0.0)
            for path, _, name in (i.nodeid.partition("::") for i in items)
        ]
        config.hook.pytest_deselected(items=[item for item, cost in zip(items, costs, strict=True) if cost >= limit])
        items[:] = [item for item, cost in zip(items, costs, strict=True) if cost < limit]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    item.stash[BEFORE] = cpu_s()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "teardown":
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        worker = os.environ.get("PYTEST_XDIST_WORKER", "the process")
        report.user_properties.append((COST, (cpu_s() - item.stash[BEFORE], worker, peak, "tensorflow" in sys.modules)))
    return report


def pytest_xdist_make_scheduler(config, log):
    return ByCost(config, log) if config.getoption("dist") == "loadfile" else None


class ByCost(LoadFileScheduling):
    """The dearest files first, and those with TensorFlow on the first workers only, until nothing else is left."""

    def __init__(self, config, log=None):
        super().__init__(config, log)
        self.costs = {path: file["cpu_s"] for path, file in read_kept().items()}
        self.loading = None

    def _assign_work_unit(self, node):
        if self.loading is None:
            self.loading = {path for path in self.workqueue if loads_tensorflow(ROOT / path)}
            share = sum(self.costs.get(path, 0.0) for path in self.loading) / (
                sum(map(self._cost, self.workqueue)) or 1.0
            )
            self.loaders = self.nodes[: max(1, round(share * len(self.nodes)))]
        loader = node in self.loaders
        path = max(self.workqueue, key=lambda path: ((path in self.loading) == loader, self._cost(path)))
        self.workqueue.move_to_end(path, last=False)
        super()._assign_work_unit(node)

    def _cost(self, path):
        return self.costs.get(path, 0.0)


class Report:
    """What the tests of this run have cost so far, in the process that reports."""

    def __init__(self, keep):
        self.keep = keep
        self.files = {}  # file: {test: CPU seconds}
        self.workers = {}  # worker: (peak memory in bytes, whether TensorFlow is loaded)
        self.peak = 0
        self.over = threading.Event()

    def pytest_sessionstart(self):
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        while not self.over.wait(SAMPLE_S):
            self.peak = max(self.peak, memory_of_all())

    def pytest_runtest_logreport(self, report):
        path, _, name = report.nodeid.partition("::")
        for cost, worker, peak, tensorflow in (value for key, value in report.user_properties if key == COST):
            self.files.setdefault(path, {})[name] = cost
            self.workers[worker] = (peak, tensorflow)

    def pytest_sessionfinish(self):
        self.over.set()
        if self.keep:
            kept = read_kept() if KEPT.is_file() else {}
            for path, tests in self.files.items():
                dear = {name: round(cost, 1) for name, cost in sorted(tests.items()) if cost >= LISTED_S}
                kept[path] = {"cpu_s": round(sum(tests.values()), 1), "tests": dear}
            kept = {
                path: file
                for path, file in sorted(kept.items())
                if file["cpu_s"] >= LISTED_S and (ROOT / path).is_file()
            }
            KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter):
        costs = [(cost, f"{path}::{name}") for path, tests in self.files.items() for name, cost in tests.items()]
        if not costs:
            return
        terminalreporter.section("costs")
        for cost, test in sorted(costs, reverse=True)[:NUM_SHOWN]:
            terminalreporter.write_line(f"{cost:6.1f} s of CPU  {test}")
        terminalreporter.write_line(f"{sum(cost for cost, _ in costs):6.0f} s of CPU in {len(costs):,} tests")
        workers = (
            f"{worker} {peak / 1e9:.1f} GB{' with TensorFlow' if tensorflow else ''}"
            for worker, (peak, tensorflow) in sorted(self.workers.items())
        )
        terminalreporter.write_line(f"peak memory: all processes {self.peak / 1e9:.1f} GB, {', '.join(workers)}")
