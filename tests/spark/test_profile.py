"""The profiler on a real Spark: stopped half-way, it leaves no process; called again, it goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import psutil
import pytest

from decima.connect.cluster import tpch_queries
from decima.workload import read_profiles
from measure.records import ALONE_RUNS, read_alone_runs

pytestmark = pytest.mark.spark_slow


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_stopped_and_called_again(tmp_path, number):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "decima", "spark", "profile", "--scale", "0.01", "--executors", "1"]
    command += ["--repetitions", "1", "--fresh-at", "", "--memory-mb", "1024", "--out", str(out)]
    command += ["--data", str(tmp_path / "tables")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 300
        while not (out / ALONE_RUNS).exists() or len(read_alone_runs(out)) < 3:
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.2)
        family = psutil.Process(process.pid).children(recursive=True)
        assert sum("java" in one.name() for one in family) == 4  # master, worker, driver, executor
        process.send_signal(number)
        said = process.stderr.read()
        code = process.wait()
    assert code == {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGKILL: -9}[number]
    assert "Traceback" not in said
    _, alive = psutil.wait_procs(family, timeout=600)
    assert alive == []

    before = read_alone_runs(out)
    assert 3 <= len(before) < 22
    if number != signal.SIGTERM:
        return
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    runs = read_alone_runs(out)
    assert runs[: len(before)] == before
    usable = [run.query for run in runs if not run.contended]
    assert set(usable) <= set(tpch_queries.NAMES)
    assert len(set(usable)) == len(usable)
    assert len({run.query for run in runs}) == 22
    assert len({run.log for run in runs}) >= 2
    profiles = read_profiles(out / "profile.parquet")
    assert {f"q{int(query[1:])}-0.01g" for query in usable} == {profile.name for profile in profiles}
    assert all(profile.work_ms > 0 for profile in profiles)
