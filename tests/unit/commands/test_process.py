"""The installed command as its own process: exit codes, streams, quick help, interruption."""

import os
import signal
import subprocess
import sys
import time
import warnings

import numba
import pytest
from numba.core import event

import decima.app
import decima.cli
from decima.commands.shared import compilation
from decima.core import progress
from decima.core.progress import progress_bar
from tests.services import COMMAND, unannounced
from tests.unit.commands.calls import names, read_json, run


def decima_process(*arguments, command=(str(COMMAND),), **options):
    words = [*command, *(str(argument) for argument in arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, check=False, **options)


def test_help_and_version():
    shown = decima_process("--help")
    assert shown.returncode == 0
    for name in ("simulate", "schedulers", "workload", "data"):
        assert f" {name} " in shown.stdout
    assert decima_process().stdout == shown.stdout
    assert decima_process("--version").stdout == f"decima-sched {decima.__version__}\n"
    module = decima_process("--version", command=(sys.executable, "-m", "decima"))
    assert module.stdout == f"decima-sched {decima.__version__}\n"


def test_shells_complete_verbs_and_options():
    for words, expected in (("decima comp", "compare"), ("decima compare --sys", "--system")):
        told = {"_DECIMA_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        assert decima_process(env=os.environ | told).stdout.split() == [expected]


HEAVY = {"numpy", "numba", "pandas", "pyarrow", "matplotlib", "tensorflow", "networkx", "tqdm"}


def test_help_loads_no_heavy_library():
    code = (
        "import sys, decima.app\n"
        'for words in ("", "simulate", "workload describe", "data fetch", "schedulers"):\n'
        "    try:\n        decima.app.app([*words.split(), '--help'], prog_name='decima')\n"
        "    except SystemExit as end:\n        assert end.code == 0, end.code\n"
        f"    assert not {HEAVY} & set(sys.modules), words\n"
        "print('decima.commands.compare' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines()[-1] == "True"


def test_success_and_failure(jobs, folder):
    done = decima_process("simulate", "--jobs", jobs, "--out", folder / "r.json")
    assert done.returncode == 0
    assert unannounced(done.stderr) == ""
    assert done.stdout.startswith("fair on jobs (4 jobs, ")
    assert done.stdout.count("\n") == 1
    here = run("simulate", "--jobs", jobs, "--out", folder / "here.json")
    assert here.stdout.replace("here.json", "r.json") == done.stdout
    assert read_json(folder / "here.json") == read_json(folder / "r.json")
    # Other mistakes are tried in test_bad_input, without a process.
    failed = decima_process("simulate", "--jobs", jobs, "--out", folder / "no.json", "--executors", "0")
    assert (failed.returncode, failed.stdout, failed.stderr.count("\n")) == (2, "", 1)
    assert failed.stderr.startswith("error: ")
    assert names(folder) == ["here.json", "r.json"]


@pytest.mark.parametrize("words", [["--help"], ["schedulers"], ["simulate", "--executors", "0"]])
def test_nobody_reads_anything(words):
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run([COMMAND, *words], stdout=writer, stderr=writer, timeout=300, check=False)
    os.close(writer)
    assert ended.returncode == 1


def test_interrupted_run_leaves_no_file(tmp_path, folder):
    """SIGINT while it reads its jobs from a pipe that nobody writes to."""
    pipe = tmp_path / "jobs.json"
    os.mkfifo(pipe)
    words = [str(COMMAND), "simulate", "--jobs", str(pipe), "--out", str(folder / "r.json")]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with pipe.open("w"):  # returns when the command has opened the other end
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=600)
    assert process.returncode == 130
    assert (stdout, stderr) == ("", "error: interrupted\n")
    assert list(folder.iterdir()) == []


# Imports are what the first second is spent on; a real signal comes at the one that is named.
EARLY = """
import os, signal, sys
class Finder:
    def find_spec(name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder)
sys.argv[1:] = ["simulate", "--jobs", "synthetic:n=2"]
from decima.cli import main
main()
"""


@pytest.mark.parametrize("name", ["decima.app", "typer", "decima.commands.shared.verbs", "numpy"])
def test_interrupted_while_modules_are_loaded(name):
    ended = decima_process(command=(sys.executable, "-c", EARLY.format(name=name)))
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "error: interrupted\n")


def test_a_warning_is_one_line(monkeypatch):
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    monkeypatch.setattr(decima.app, "app", lambda **_: None)
    decima.cli.main()
    assert warnings.formatwarning("a worker died", RuntimeWarning, "file.py", 3) == "warning: a worker died\n"


# Compilation: announced once, and no part of what a progress bar calls gone.


def test_compilation_is_announced_once_and_no_part_of_the_time(monkeypatch, capsys):
    monkeypatch.setattr(progress, "FIRST_LINE_S", 60.0)
    monkeypatch.setattr(compilation, "ANNOUNCED_S", 0.0)
    # A command of another test may have begun to watch.
    monkeypatch.setitem(event._registered, "numba:compile", [])
    compilation.watch_compilation.cache_clear()
    compilation.watch_compilation()

    @numba.njit
    def double(value):
        return 2 * value

    with progress_bar("work", 4, "piece") as bar:
        began_s = bar.start_t
        assert double(2) == 4
        gone_s = bar.format_dict["elapsed"]
        compiled_s = bar.start_t - began_s
        assert compiled_s > 0.01
        assert gone_s < compiled_s
        double(2.0)
        assert bar.start_t - began_s > compiled_s
    assert capsys.readouterr().err.count(compilation.ANNOUNCEMENT) == 1
