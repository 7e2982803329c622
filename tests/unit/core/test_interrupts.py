"""Ctrl-C while compiled code runs, in processes of their own."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from decima.core.errors import WorkerError
from decima.core.interrupts import check_stop, obey
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import ClusterState
from decima.systems.spark.system import run_state
from decima.systems.spark.tables import WorkloadTables
from tests.toy_jobs import one_stage, workload

# Of every thread, in its own time: other processes of a busy machine do not count.
LATEST_S = 0.5
THREADS = 2
# A workload of two jobs with 2 10^9 tasks; everything that is compiled has been loaded when the script says so.
# It ends with its parent, and after five minutes of work: an interrupted test leaves nothing behind.
SCRIPT = """
import ctypes
import json
import resource
import signal
import sys
import time
from pathlib import Path

import decima
from decima.cli import main
from decima.systems.spark.optimum.exhaustive import exhaustive_search
from decima.systems.spark.settings import Settings
from decima.workload import embedded_batch
from tests.toy_jobs import one_stage, workload

def command_line(tasks):
    jobs = Path(__file__).with_name("jobs.json")
    jobs.write_text(json.dumps([{{"name": "j", "stages": [{{"name": "a", "tasks": tasks, "duration_ms": 5}}]}}]))
    sys.argv[1:] = ["simulate", "--jobs", str(jobs), "--executors", "5"]
    try:
        main()
    except SystemExit as left:
        if left.code == 130:
            raise KeyboardInterrupt from left

resource.setrlimit(resource.RLIMIT_CPU, (300, 300))

if __name__ == "__main__":
    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    huge, small = workload(*[one_stage(10**9, 5.0)] * 2), workload(*[one_stage(9, 5.0)] * 3)
    cluster = Settings.simplified(executors=5)
    for jobs in (small, {jobs}):
        try:
            print("begins", flush=True)
            {call}
        except KeyboardInterrupt:
            print(time.process_time(), flush=True)
"""
CALLS = {
    "the command line": "command_line(jobs.jobs[0].profile.num_tasks)",
    "runs in threads": "decima.compare(['fair', 'fifo'], [jobs, jobs], cluster=cluster, workers=2, backend='threads')",
    "runs in processes": "decima.compare(['fair'], [jobs], cluster=cluster, workers=1, backend='processes')",
    "many orders": "exhaustive_search(jobs, 20, threads=2)",
    "long orders": "exhaustive_search(jobs, 5, threads=2)",
}


DAILY = ("the command line", "runs in processes")


def cpu_seconds(pid):
    """Time that all threads of a process have run."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in DAILY else pytest.mark.slow) for name in CALLS]
)
def test_ctrl_c_is_answered_at_once(name, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        SCRIPT.format(jobs="embedded_batch(10, 0)" if name == "many orders" else "huge", call=CALLS[name])
    )
    command = [sys.executable, "-c", f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(2):
            while process.stdout.readline() != "begins\n":
                assert process.poll() is None
        time.sleep(1.0)
        sent = cpu_seconds(process.pid)
        process.send_signal(signal.SIGINT)
        answer, _ = process.communicate(timeout=120)
        assert float(answer) - sent < (THREADS if "threads" in CALLS[name] else 1) * LATEST_S
    assert process.returncode == 0


# One call that runs for minutes, as those of LLVM do for seconds.
COMPILING = """
import hashlib
from numba.core import event
from decima import app, cli
from decima.commands.shared.compilation import watch_compilation

def command(**_):
    watch_compilation()
    with event.trigger_event("numba:compile"):
        print("begins", flush=True)
        hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)

app.app = command
cli.main()
"""


def test_ctrl_c_ends_a_command_that_compiles():
    command = [sys.executable, "-c", COMPILING]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begins\n"
        sent = cpu_seconds(process.pid)
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == "error: interrupted\n"
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 130
    assert used.ru_utime + used.ru_stime - sent < LATEST_S


def test_a_run_that_was_interrupted_can_be_continued(monkeypatch):
    cluster = Settings(executors=7)
    state = ClusterState(WorkloadTables(workload(*[one_stage(8_000_000, 3.0)] * 3), cluster), cluster)
    run_state(state, make_scheduler("fair"), 3)
    expected = (state.job_finish_ms.tolist(), state.task_events, state.num_decisions)

    def interrupt():
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("decima.systems.spark.state.check_stop", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run_state(state, make_scheduler("fair"), 3)
    assert 0 < state.task_events < expected[1]
    assert not state.advance()
    assert (state.job_finish_ms.tolist(), state.task_events, state.num_decisions) == expected


def test_a_worker_that_was_told_to_stop_stops():
    stop, seen = threading.Event(), []

    def work():
        obey(stop)
        check_stop()
        stop.set()
        with pytest.raises(WorkerError, match="stopped in the middle of a run"):
            check_stop()
        seen.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [True]
    check_stop()  # this thread obeys nobody
