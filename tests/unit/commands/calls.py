"""Calls of the command line inside this process, and small job files."""

import json

from typer.testing import CliRunner

import experiments.__main__
import measure.__main__
from decima.app import app
from decima.commands.checkout import MEASURING, PIPELINE

DIAMOND = [
    {
        "name": "diamond",
        "stages": [
            {"name": "scan", "tasks": 6, "duration_ms": {"fresh": 900, "first": 700, "rest": [300, 350.5]}},
            {"name": "left", "tasks": 3, "parents": ["scan"], "duration_ms": 400},
            {"name": "right", "tasks": 2, "parents": ["scan"], "durations": {"2": 500, "20": {"rest": 600}}},
            {"name": "join", "tasks": 1, "parents": ["left", "right"], "duration_ms": 100},
        ],
    },
    {"name": "late", "arrival_ms": 2500, "stages": [{"tasks": 3, "duration_ms": 800}]},
    {"name": "early", "arrival_ms": 1000, "stages": [{"tasks": 4, "duration_ms": [200, 260]}]},
    {"name": "at once", "arrival_ms": 0, "initial": False, "stages": [{"tasks": 1, "duration_ms": 150}]},
]


def run(*arguments):
    """Run `decima` with these arguments; returns exit code, stdout and stderr.

    A command of the checkout would replace this process by its tool, so that the tool is run here instead.
    """
    words, called = [str(argument) for argument in arguments], app
    if words and words[0] in PIPELINE:
        called = experiments.__main__.app
    elif words[:1] == ["spark"] and words[1] in MEASURING:
        words, called = words[1:], measure.__main__.app
    result = CliRunner().invoke(called, words, prog_name="decima")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def show(*arguments):
    """Run `decima`, which must succeed; returns what it shows on stdout."""
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def succeed(*arguments):
    """Run `decima`, which must succeed in silence on stderr; returns the last line of stdout."""
    result = run(*arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout.splitlines()[-1]


def simulated(folder, *arguments):
    """Run `decima simulate`, which must succeed; returns its result file, `r.json` of a folder."""
    succeed("simulate", *arguments, "--out", folder / "r.json")
    return read_json(folder / "r.json")


def refuse(*arguments):
    """Run `decima`, which must exit with 2, one line on stderr and nothing on stdout; returns the sentence."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert result.stderr.endswith("\n")
    return result.stderr.removeprefix("error: ").rstrip("\n")


def names(folder):
    """Names of what a folder holds, sorted."""
    return sorted(path.name for path in folder.iterdir())


def write_json(path, content):
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def read_json(path):
    """Strict JSON: no NaN, no infinity."""

    def fail(text):
        raise AssertionError(f"{text} in {path}")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=fail)
