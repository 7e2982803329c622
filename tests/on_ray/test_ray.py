"""Everything that runs on Ray, on a cluster of three nodes in a process of its own."""

import contextlib
import inspect
import json
import os
import queue
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from decima.core import config
from tests.on_ray import scenarios
from tests.reliability.processes import PACKAGE, started

pytest.importorskip("ray", reason="Ray is not installed (extra 'ray')")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SCENARIOS = [
    name
    for name, each in inspect.getmembers(scenarios, inspect.isfunction)
    if each.__module__ == scenarios.__name__ and each.__doc__
]
ATTEMPTS = 3
PATIENCE_S = 900.0
SLOW_START = "timed out during startup"  # parts of Ray give each other fifteen seconds


@contextlib.contextmanager
def program(folder):
    """The program of the cluster; ``answer()`` waits for its next line, ``send(name)`` asks for a scenario."""
    # All processes of Ray import it, with jsonschema, and use it for nothing; it takes a second.
    (folder / "rfc3987_syntax.py").write_text('raise ImportError("not needed")\n')
    variables = {
        "PYTHONPATH": os.pathsep.join(map(str, (folder, PACKAGE.parent, ROOT))),
        "RAY_TMPDIR": str(folder / "ray"),  # Ray keeps there which cluster was started last
        "RAY_AUTH_MODE": "disabled",
        "RAY_gcs_server_port_wait_time_s": "120",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    }
    errors = folder / "errors"
    with (
        errors.open("w") as file,
        started(*(sys.executable, "-m", "tests.on_ray.program"), variables=variables, errors=file, cwd=ROOT) as process,
    ):
        lines = queue.Queue()
        threading.Thread(target=lambda: [*map(lines.put, process.stdout), lines.put("")], daemon=True).start()

        def answer():
            line = lines.get(timeout=PATIENCE_S)
            return json.loads(line) if line else f"the program ended: {errors.read_text()[-3000:]}"

        def send(name):
            process.stdin.write(f"{name}\n")
            process.stdin.flush()

        yield answer, send


@pytest.fixture(scope="module")
def ask(request):
    """``ask(name)`` runs a scenario; None, or the traceback of what went wrong."""
    if config.mirror_dir() is not None:
        request.getfixturevalue("tpch_data")  # which all processes of Ray inherit
    for _ in range(ATTEMPTS):
        # Not pytest's folder: paths of sockets must not be long.
        with (
            tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder,
            program(Path(folder)) as (answer, send),
        ):
            failure = answer()
            if failure is None:
                yield lambda name: (send(name), answer())[1]
                return
        if SLOW_START not in failure:
            pytest.fail(failure)
    pytest.skip("Ray did not start in the time that it gives itself: this machine is too busy")


@pytest.mark.parametrize("name", SCENARIOS)
def test_on_ray(name, ask):
    failure = ask(name)
    assert failure is None, failure
