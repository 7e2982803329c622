"""Benchmarks print ratios taken in one run: machines are shared and noisy, times alone say little."""

import os

import pytest

from decima.workload import synthetic_poisson, tpch_available, tpch_poisson

RATES = {}  # name -> events per second, best round


@pytest.fixture(scope="session")
def stream():
    """One job and a 200-job Poisson stream at 25 s, seven sizes; TPC-H if it is there, else the embedded workload."""
    return (tpch_poisson if tpch_available() else synthetic_poisson)(200, 25, 0, "released")


def record_rate(benchmark, name, events):
    """Note events per second of the best round."""
    rate = events / benchmark.stats.stats.min
    benchmark.extra_info["events_per_s"] = rate
    RATES[name] = rate


def pytest_terminal_summary(terminalreporter):
    base = RATES.get("plain-Python loop")
    if not base:
        return
    terminalreporter.section(f"events per second, {os.cpu_count()} cores")
    for name, rate in RATES.items():
        terminalreporter.write_line(f"{name:32s} {rate / 1e6:8.3f} M/s   {rate / base:7.0f} x the plain-Python loop")
