"""Contention: what threads waited and what others used."""

import os
import subprocess
import sys
import time

import pytest

from decima.connect.cluster import contention
from decima.connect.cluster.contention import Load, Sample


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


def test_nothing_ran():
    empty = Sample(0.0, {}, 1.0)
    found = contention.between(empty, empty, cores=4)
    assert found.wait_share == 0.0
    assert found.foreign_share == 0.0


def test_more_of_its_own_than_the_system_counted_is_no_foreign_use():
    # The system counts in ticks.
    found = contention.between(Sample(0.0, {}, 1.0), Sample(1.0, {(1, 1): (10**9, 0)}, 1.99), cores=2)
    assert found.foreign_share == 0.0


def test_row_is_rounded_and_keeps_what_is_unknown():
    row = Load(1.23456789, 0.0, 0.0, 0.5, None).row()
    assert row["run_s"] == 1.2346
    assert row["pressure"] is None


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="no /proc with scheduler statistics")
def test_a_busy_process_is_seen():
    burn = "import time\nend = time.process_time() + 0.4\nwhile time.process_time() < end: pass\ninput()"
    with subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert contention.family(os.getpid()).count(process.pid) == 1
        before = contention.sample([], time.monotonic())
        time.sleep(0.05)
        end = time.monotonic() + 30
        while (found := contention.between(before, contention.sample([process.pid], time.monotonic()))).run_s < 0.4:
            assert time.monotonic() < end
            time.sleep(0.05)
        assert 0.0 <= found.wait_share < 1.0
        assert 0.0 <= found.foreign_share <= 1.0
        process.communicate(b"\n")
    assert contention.family(process.pid) == []
    assert contention.sample([process.pid], 0.0).threads == {}
