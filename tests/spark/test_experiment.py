"""A small experiment on a real Spark: two schedulers behind the plugin and the control, interrupted and resumed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import psutil
import pytest

from measure import results
from measure.collect import STEERED
from measure.records import CONTROL

pytestmark = pytest.mark.spark_slow

SMALL = [
    *("--scale", "0.01", "--executors", "2", "--queries", "3", "--batches", "1", "--repetitions", "1"),
    *("--warmups", "1", "--attempts", "1", "--memory-mb", "1024"),
    # The machine may be busy with anything.
    *("--wait-limit", "1", "--foreign-limit", "1"),
]


def test_stopped_and_called_again(tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "decima", "spark", "experiment", "fifo", "fair", "--out", str(out), *SMALL]
    command += ["--data", str(tmp_path / "tables")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 600
        while not list((out / "runs").glob("*.json")):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.2)
        family = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read()
        code = process.wait()
    assert code == 143
    assert "Traceback" not in said
    _, alive = psutil.wait_procs(family, timeout=600)
    assert alive == []

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
