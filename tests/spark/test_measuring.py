"""The experiment and the profiler on a real Spark: stopped, they leave no process; called again, they go on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import psutil
import pytest

from measure import results
from measure.collect import STEERED
from measure.records import CONTROL

pytestmark = pytest.mark.spark_slow

SPARK = (sys.executable, "-m", "decima", "spark")
CODES = {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGKILL: -9}


def stop(command: list[str], number: signal.Signals, is_time: Callable[[], bool], javas: int | None = None) -> None:
    """Run a command until it is time and end it by a signal; all its processes end, of which so many are Java."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 600
        while not is_time():
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.2)
        family = psutil.Process(process.pid).children(recursive=True)
        assert javas in (None, sum("java" in one.name() for one in family))
        process.send_signal(number)
        said = process.stderr.read()
        code = process.wait()
    assert code == CODES[number]
    assert "Traceback" not in said
    _, alive = psutil.wait_procs(family, timeout=600)
    assert alive == []


def test_an_experiment_is_stopped_and_called_again(tmp_path):
    out = tmp_path / "out"
    command = [*SPARK, "experiment", "fifo", "fair", "--out", str(out), "--data", str(tmp_path / "tables")]
    command += ["--scale", "0.01", "--executors", "2", "--queries", "3", "--batches", "1", "--repetitions", "1"]
    command += ["--warmups", "1", "--attempts", "1", "--memory-mb", "1024"]
    command += ["--wait-limit", "1", "--foreign-limit", "1"]  # the machine may be busy with anything
    stop(command, signal.SIGTERM, lambda: list((out / "runs").glob("*.json")))

    kept = {path.name: path.read_bytes() for path in (out / "runs").glob("*.json")}
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("3 of 3 runs usable, 0 attempts rejected; ")
    assert {name: (out / "runs" / name).read_bytes() for name in kept} == kept

    measured = results.read(out)
    runs = measured.runs.set_index("scheduler")
    assert set(runs.index) == {"fifo", "fair", CONTROL}
    # Whatever was measured before the interruption lost its decisions only if the driver could not end.
    assert runs.loc[["fifo", "fair"], "steered_share"].min() >= STEERED
    assert len(measured.jobs) == 9
    assert measured.jobs.groupby("query")["rows"].nunique().max() == 1
    assert measured.jobs.groupby("query")["tasks"].nunique().max() == 1
    assert measured.tasks.groupby("run").size().nunique() == 1
    assert set(measured.tasks["executor"]) == {0, 1}
    assert {profile.name for profile in measured.profiles} == {measured.plan.profile(q) for q in measured.plan.batch(0)}
    assert json.loads((out / "card.json").read_text())["schedulers"]["fifo"]["scheduler"] == "fifo"
