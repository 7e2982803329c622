"""Settings shared by all tests."""

import os
import shutil

import pytest
from hypothesis import settings

from decima.core import config, progress
from decima.workload import fetch_tpch, tpch_available

# Compiled code is slow on its first call, so no example has a deadline; continuous integration draws the same
# examples every time.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

NO_TPCH = f"no TPC-H profiles: set {config.MIRROR_VARIABLE}, or run 'decima data fetch tpch'"


@pytest.fixture(autouse=True)
def no_lines_of_progress(monkeypatch):
    """However slow the machine is, work in this process writes no lines of progress."""
    monkeypatch.setattr(progress, "FIRST_LINE_S", 1e9)


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
def browser():
    """Headless Chromium, driven by Selenium; without the programs, the test is skipped."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("no Chromium with its driver: install the packages chromium and chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    # Containers run as root and give little shared memory; no test opens a page from elsewhere.
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1300,900"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options=options, service=Service(driver)) as started:
        yield started
