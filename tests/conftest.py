"""Settings shared by all tests."""

import os
import shutil
import signal
import threading
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

from decima.commands.shared import compilation
from decima.core import config, progress
from decima.workload import fetch_tpch, tpch_available
from decima.workload.alibaba import hour

# Compiled code is slow on its first call, and a machine may be busy, so neither an example nor its drawing has a
# deadline; continuous integration draws the same examples every time.
settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

pytest_plugins = ["tests.costs", "tests.warm"]

NO_TPCH = f"no TPC-H profiles: set {config.MIRROR_VARIABLE}, or run 'decima data fetch tpch'"


# A shell may start this process with Ctrl-C ignored, which child processes would inherit; tests send it to them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

TALLY = "tally"  # property of a test: (what was tried, {unit: count})


@pytest.fixture
def tally(record_property):
    """Function of a row of docs/log/reliability.md and of counts by unit; the closing table of the run adds them up."""
    return lambda row, **counts: record_property(TALLY, (row, counts))


def pytest_terminal_summary(terminalreporter):
    """Print what random tests tried and found, as the table of docs/log/reliability.md has it."""
    rows, failed = {}, {}
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, value in getattr(report, "user_properties", ()):
                if name == TALLY and report.when == "call":
                    row, counts = value
                    rows.setdefault(row, Counter()).update(counts)
                    failed[row] = failed.get(row, 0) + (outcome == "failed")
    if rows:
        terminalreporter.section("random runs")
        for row, counts in sorted(rows.items()):
            tried = ", ".join(f"{count:,} {unit}" for unit, count in counts.items())
            terminalreporter.write_line(f"| {row} | {tried} | {failed[row]} failures |")


@pytest.fixture(autouse=True, scope="session")
def no_lines_of_progress():
    """However slow the machine is, work in this process writes no lines of progress, nor that it compiles."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "FIRST_LINE_S", 1e9)
        patch.setattr(compilation, "ANNOUNCED_S", 1e9)
        yield


@pytest.fixture(scope="session")
def tpch_data(tmp_path_factory):
    """Data root with the TPC-H profiles, set for the whole session.

    Taken from the mirror into a temporary folder when `$DECIMA_DATA_MIRROR` is set, else from where they were
    fetched to; only where neither has them, the test is skipped.
    """
    with pytest.MonkeyPatch.context() as patch:
        if config.mirror_dir() is not None:
            patch.setenv(config.DATA_DIR_VARIABLE, str(tmp_path_factory.mktemp("data")))
            fetch_tpch(progress=False)
        elif not tpch_available():
            pytest.skip(NO_TPCH)
        yield config.data_root()


@pytest.fixture(scope="session")
def fetched_hour(tmp_path_factory):
    """Data root with the hour of the Alibaba trace, from the mirror; None without a mirror."""
    if config.mirror_dir() is None:
        return None
    root = tmp_path_factory.mktemp("trace")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(config.DATA_DIR_VARIABLE, str(root))
        hour.fetch_line(force=False)
    return root


@pytest.fixture
def trace_data(fetched_hour, monkeypatch):
    """Data root with the hour of the Alibaba trace during one test, which is skipped where it cannot be had."""
    if fetched_hour is not None:
        monkeypatch.setenv(config.DATA_DIR_VARIABLE, str(fetched_hour))
    if not hour.hour_available():
        pytest.skip(f"no hour of the Alibaba trace: set {config.MIRROR_VARIABLE}, or run 'decima data fetch alibaba'")


@pytest.fixture(scope="session")
def chromium():
    """Headless Chromium, driven by Selenium; without the programs, the test is skipped."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (program and driver):
        pytest.skip("no Chromium with its driver: install the packages chromium and chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.wait import WebDriverWait

    options = webdriver.ChromeOptions()
    options.binary_location = program
    # Containers run as root and give little shared memory; no test opens a page from elsewhere.
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1300,900"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options=options, service=Service(driver)) as started:
        started.wait = WebDriverWait(started, 300).until  # a machine may be busy
        started.set_script_timeout(300)
        yield started


@pytest.fixture
def browser(chromium):
    """The browser on an empty page, without the messages of pages that other tests opened."""
    chromium.get("about:blank")
    chromium.get_log("browser")
    return chromium
