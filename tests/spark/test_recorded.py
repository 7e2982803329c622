"""Small applications on every release of Spark that is there, read and simulated.

The reader counts as the recount does, and the simulated time at the recorded size is the recorded one within 5 %, or a
warning says why not."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from decima.core.config import checkout_root
from measure import recount
from tests.spark import order_runs, recorded_application

pytestmark = pytest.mark.spark_slow

PYTHONS = [sys.executable, *map(str, sorted(checkout_root().glob(".venv-spark-*/bin/python")))]
AGREEMENT = re.compile(r"^recorded .*simulated there .*\(([+-][\d.]+) %\)", re.MULTILINE)


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("case", recorded_application.CASES)
def test_recorded_application(case, python, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": python}
    command = [python, recorded_application.__file__, case, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    lines, differences = recount.compare(tmp_path)
    assert not differences, "\n".join(lines)
    command = [sys.executable, "-m", "decima", "capacity", str(tmp_path), "--draws", "3"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    agreement = AGREEMENT.search(said.stdout)
    if said.returncode or agreement is None:  # a stream that its interval is too short for is refused with a reason
        assert case == "stream", said.stderr
        assert "Traceback" not in said.stderr
    elif abs(float(agreement[1])) > 5.0:
        assert "warning: The recorded time" in said.stdout, said.stdout


# `spark_fifo` and `spark_fair` against a real Spark under its own FIFO and FAIR, launch by launch.


@pytest.mark.parametrize("run", order_runs.RUNS)
def test_the_simulator_launches_in_the_order_of_spark(run, tmp_path):
    rows = order_runs.record(run, tmp_path)
    assert len(rows) == sum(query.tasks + 3 * (query.stages - 1) for query in order_runs.RUNS[run])
    real, simulated, in_gap = order_runs.both_orders(run, rows)
    assert simulated == real
    # One core that is free before the child is submitted, on a busy machine all of them.
    assert in_gap <= (order_runs.EXECUTORS if run == "fifo" else 0)
