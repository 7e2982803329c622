"""Nothing in `make test-all` waits for ever: a notebook whose kernel died fails at once, every test has a limit."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import nbval.kernel
import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
LIMITS = re.search(r"^LIMITS := (.*)$", MAKEFILE, flags=re.MULTILINE)[1].split()
XDIST = ("-p", "xdist", "-n", "1", "--dist", "loadfile")  # as all targets of the Makefile have it


def pytest_in(folder, *words):
    """Run pytest on a folder in a process of its own; its output, and how long it took."""
    begin = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-o", "addopts=", *words]
    variables = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ended = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr, time.monotonic() - begin


def test_a_cell_ends_with_its_kernel(tmp_path):
    shutil.copy(ROOT / "notebooks" / "conftest.py", tmp_path)
    sources = ["1", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "2"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbformat.write(notebook, tmp_path / "dies.ipynb")
    shown, took_s = pytest_in(
        tmp_path, *XDIST, "-p", "nbval.plugin", "--nbval-lax", "--nbval-current-env", "dies.ipynb"
    )
    assert "the kernel was killed, perhaps for want of memory" in shown
    assert re.search(r"\b2 failed, 1 passed\b", shown)
    assert took_s < 200.0  # nbval alone: 2,000


@pytest.mark.parametrize("deaths", [0, 2, 3])
def test_a_kernel_that_dies_at_its_start_is_started_again(deaths, monkeypatch):
    starts = []

    def start(**options):
        starts.append(options)
        if len(starts) <= deaths:
            raise RuntimeError("Kernel died before replying to kernel_info")
        return "kernel"

    monkeypatch.setattr(nbval.kernel, "start_new_kernel", start)
    runpy.run_path(str(ROOT / "notebooks" / "conftest.py"))
    if deaths < 3:
        assert nbval.kernel.start_new_kernel(cwd="here") == "kernel"
    else:
        with pytest.raises(RuntimeError, match="Kernel died"):
            nbval.kernel.start_new_kernel(cwd="here")
    assert starts == [{"cwd": "here"}] * min(deaths + 1, 3)


def test_a_test_that_waits_for_ever_is_ended_and_named(tmp_path):
    waits = "import threading\ndef test_waits():\n    threading.Event().wait()\ndef test_is_quick():\n    pass\n"
    (tmp_path / "test_waiting.py").write_text(waits, encoding="utf-8")
    limits = [re.sub(r"(faulthandler_timeout)=\d+", r"\1=3", word) for word in LIMITS]
    assert limits != LIMITS
    shown, _ = pytest_in(tmp_path, *XDIST, *limits, "test_waiting.py")
    assert "crashed while running 'test_waiting.py::test_waits'" in shown
    assert "in test_waits" in shown  # where it waited
    assert re.search(r"\b1 failed\b", shown)
    assert shown.count("Timeout (") == 1  # it is not run again


@pytest.mark.parametrize("target", ["test", "test-all", "test-bounds"])
def test_the_limits_hold_and_the_files_exist_for(target):
    recipe = re.search(rf"^{target}: .*\n((?:[^\n]+\n)+)", MAKEFILE, flags=re.MULTILINE)[1]
    calls = [line for line in recipe.splitlines() if "pytest" in line.lower()]
    assert calls
    assert all("$(PYTEST) " in line for line in calls)
    assert re.search(r"^PYTEST := .*\$\(LIMITS\)$", MAKEFILE, flags=re.MULTILINE)
    shown = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    named = re.findall(r"[ =](tests\b[\w/.]*)", shown)
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []
