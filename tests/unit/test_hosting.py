"""Files for code hosts and containers: they can be read, and what they name is there."""

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml

from decima.app import app

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def jobs_of(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]


def check_command(words):
    """A command line of the project: its verb exists and its options are known."""
    with pytest.raises(SystemExit) as end:
        app([*words, "--help"], prog_name="decima")
    assert end.value.code == 0, words


def instructions(path):
    """Instruction and rest of each line of a Dockerfile."""
    text = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE))
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_what_its_host_asks_for(path):
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {"name", True, "permissions", "jobs"} <= set(content)  # YAML reads the key `on` as true
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for job in content["jobs"].values():
        assert job["runs-on"]
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step.get("uses", "actions/checkout@v4"))
            if step.get("run", "").startswith("make "):
                assert step["run"].split()[1] in targets


def test_every_python_of_the_classifiers_is_tried():
    tried = jobs_of(ROOT / ".github" / "workflows" / "tests.yml")["light"]["strategy"]["matrix"]["python-version"]
    assert tried == [text.rpartition(" ")[2] for text in PROJECT["classifiers"] if "Python :: 3." in text]


def test_commands_of_the_test_workflow_exist(capsys):
    steps = jobs_of(ROOT / ".github" / "workflows" / "tests.yml")["light"]["steps"]
    commands = [shlex.split(step["run"])[1:] for step in steps if step.get("run", "").startswith("decima ")]
    assert len(commands) >= 4
    for words in commands:
        check_command(words)


def test_the_image_is_slim_runs_without_root_and_copies_what_is_there(capsys):
    lines = instructions(ROOT / "Dockerfile")
    kinds = [kind for kind, _ in lines]
    assert set(kinds) <= {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "EXPOSE", "ENTRYPOINT", "CMD"}
    values = dict(lines)
    assert values["FROM"] == "python:3.11-slim"
    assert values["USER"] not in ("root", "0")
    assert kinds.index("USER") > max(index for index, kind in enumerate(kinds) if kind == "COPY")
    assert json.loads(values["ENTRYPOINT"]) == ["decima"]
    ignored, commands = (ROOT / ".dockerignore").read_text().splitlines(), []
    for kind, rest in lines:
        if kind == "COPY" and not rest.startswith("--from"):
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists()
                assert f"!{source}" in ignored
        for step in rest.split(" && ") if kind == "RUN" else ():
            if step.startswith("decima "):
                check_command(shlex.split(step)[1:])
                commands.append(step)
    assert len(commands) == 2
    (extra,) = re.findall(r'"\.\[(\w+)\]"', (ROOT / "Dockerfile").read_text())
    assert extra in PROJECT["optional-dependencies"]


def test_the_development_container_builds_the_environment():
    content = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    assert content["postCreateCommand"] == "make env"
    assert content["image"].endswith(f":{PROJECT['requires-python'].removeprefix('>=')}")
