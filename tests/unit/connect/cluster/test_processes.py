"""Nothing outlives the process that started it, however that ends."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from decima.connect.cluster import contention, machine, processes, standalone
from decima.connect.cluster.contention import Sample
from decima.core.extras import MissingExtraError
from tests.services import until

# A daemon with a child of its own, as a worker has executors; the second kind does not listen to SIGTERM.
TREE = "sleep 300 & echo $$ $!; wait"
STUBBORN = "trap '' TERM; sleep 300 & echo $$ $!; while true; do wait; done"


def start(script):
    process = subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True)
    return process, [int(word) for word in process.stdout.readline().split()]


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_ending_a_group_ends_children_too():
    process, pids = start(TREE)
    assert all(alive(pid) for pid in pids)
    processes.end_group(process)
    assert not any(alive(pid) for pid in pids)
    processes.end_group(process)
    process.stdout.close()


def test_who_ignores_the_polite_signal_is_killed(monkeypatch):
    monkeypatch.setattr(processes, "STOP_S", 0.3)
    process, pids = start(STUBBORN)
    processes.end_group(process)
    until(lambda: not any(alive(pid) for pid in pids))
    process.stdout.close()


# Starts a tree and its guard, tells the ids, then waits to be ended.
PARENT = """
import subprocess, sys, time
from decima.connect.cluster import processes
tree = subprocess.Popen(["/bin/sh", "-c", {script!r}], stdout=subprocess.PIPE, text=True, start_new_session=True)
guard = processes.guard([tree.pid])
print(tree.stdout.readline().strip(), guard.pid, flush=True)
with processes.ended_by_signals():
    try:
        time.sleep(300)
    finally:
        print("closed", flush=True)
        {ending}
"""
CLEAN = "processes.end_group(tree); processes.release(guard)"


@pytest.mark.parametrize(
    ("number", "said", "code"),
    [
        (signal.SIGINT, ["closed"], 1),
        (signal.SIGTERM, ["closed"], 128 + signal.SIGTERM),
        (signal.SIGHUP, ["closed"], 128 + signal.SIGHUP),
        (signal.SIGKILL, [], -signal.SIGKILL),
    ],
)
def test_no_process_is_left_after_a_signal(number, said, code):
    program = [sys.executable, "-c", PARENT.format(script=TREE, ending=CLEAN)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as parent:
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 3
        assert all(alive(pid) for pid in pids)
        time.sleep(0.2)  # until it sleeps
        os.kill(parent.pid, number)
        assert parent.stdout.read().splitlines() == said
        assert parent.wait() in (code, -number)
    until(lambda: not any(alive(pid) for pid in pids))


def test_a_released_guard_kills_nothing():
    process, pids = start(TREE)
    watching = processes.guard([process.pid])
    processes.release(watching)
    assert watching.returncode == 0
    assert all(alive(pid) for pid in pids)
    processes.end_group(process)
    process.stdout.close()
    processes.release(None)


def test_signals_are_as_before_after_the_block():
    before = signal.getsignal(signal.SIGTERM)
    with processes.ended_by_signals(), contextlib.suppress(SystemExit):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)
        pytest.fail("the signal did not end the block")
    assert signal.getsignal(signal.SIGTERM) is before


def test_command_lines_bind_to_the_loopback_address(monkeypatch, tmp_path):
    monkeypatch.setattr(standalone, "spark_home", lambda: tmp_path)
    master = standalone.master_command(7077)
    assert master[0] == str(tmp_path / "bin" / "spark-class")
    assert master[1].endswith(".Master")
    assert " ".join(master[2:]) == "--host 127.0.0.1 --port 7077 --webui-port 0"
    worker = standalone.worker_command("spark://127.0.0.1:7077", 3, 2048, tmp_path / "work")
    assert worker[1].endswith(".Worker")
    assert "--cores 3 --memory 6144M" in " ".join(worker)
    assert worker[-1] == "spark://127.0.0.1:7077"


def test_a_daemon_that_does_not_start_is_reported_and_nothing_stays(monkeypatch):
    monkeypatch.setattr(standalone, "require_spark", lambda: None)
    command = ["/bin/sh", "-c", "echo address already in use; exit 1"]
    monkeypatch.setattr(standalone, "master_command", lambda port: command)
    spark = standalone.StandaloneCluster(executors=1)
    with pytest.raises(machine.SparkError, match=r"master did not start .* address already in use"), spark:
        pytest.fail("the block must not be entered")
    assert spark.processes == []
    assert spark.guard is None
    assert not spark.folder.exists()


class Builder:
    """Fails with these errors, then gives a session."""

    def __init__(self, *conditions):
        self.conditions = list(conditions)

    def getOrCreate(self):  # noqa: N802 (pyspark's name)
        from pyspark.errors import PySparkRuntimeError

        if self.conditions:
            raise PySparkRuntimeError(errorClass=self.conditions.pop(0), messageParameters={})
        return "session"


def test_a_driver_whose_jvm_ends_at_once_is_started_once_more(tmp_path):
    pytest.importorskip("pyspark")
    early = "JAVA_GATEWAY_EXITED"
    assert standalone._start_driver(Builder(early), tmp_path) == "session"
    with pytest.raises(machine.SparkError, match=r"did not start: .*Java gateway process exited"):
        standalone._start_driver(Builder(early, early), tmp_path)
    other = Builder("SESSION_OR_CONTEXT_EXISTS", early)
    with pytest.raises(machine.SparkError, match="did not start"):
        standalone._start_driver(other, tmp_path)
    assert other.conditions == [early]


def test_java_that_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(machine.SparkError, match=f"none was found in JAVA_HOME={tmp_path}"):
        machine.java_command()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(machine.SparkError, match="none was found on the PATH: install openjdk"):
        machine.java_command()


def test_pyspark_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingExtraError, match=r"pyspark is not installed, .*: pip install '.\[spark\]'"):
        machine.require_spark()


# Contention: what threads waited and what others used.


def test_arithmetic_of_two_samples():
    before = Sample(10.0, {(1, 1): (5_000_000_000, 1_000_000_000), (2, 2): (0, 0)}, 100.0)
    after = Sample(
        12.0,
        # A thread that came in between counts from its start; one that went (2, 2) cannot be counted.
        {(1, 1): (6_000_000_000, 1_500_000_000), (1, 3): (2_000_000_000, 500_000_000)},
        104.0,
    )
    found = contention.between(before, after, cores=4)
    assert found.run_s == 3.0
    assert found.wait_s == 1.0
    assert found.wait_share == 0.25
    assert found.foreign_share == (4.0 - 3.0) / 8.0
    row = found.row()
    assert row["wait_share"] == 0.25
    assert set(row) == {"run_s", "wait_s", "foreign_share", "load_average", "pressure", "wait_share"}
