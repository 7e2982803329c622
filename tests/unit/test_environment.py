"""The lock, the conda environment, the Makefile and pyproject.toml describe one and the same environment."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
LOCK_TEXT = (ROOT / "requirements.lock").read_text()
CONDA_TEXT = (ROOT / "requirements-conda.txt").read_text()
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())
MAKEFILE = (ROOT / "Makefile").read_text()
EXTRAS = PROJECT["optional-dependencies"]


def of_extra(name: str) -> list[str]:
    """Requirements of an extra, those of the extras that it consists of among them."""
    found = []
    for text in EXTRAS[name]:
        requirement = Requirement(text)
        if requirement.name == PROJECT["name"]:
            found += [each for part in sorted(requirement.extras) for each in of_extra(part)]
        else:
            found.append(text)
    return list(dict.fromkeys(found))


DEPENDENCIES = PROJECT["dependencies"] + of_extra("dev")


def logical_lines(text: str) -> list[str]:
    """Lines of a requirements file without comments, continued lines joined."""
    uncommented = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    return [line.strip() for line in re.sub(r"\\\n", " ", uncommented).splitlines() if line.strip()]


def lock_entries() -> dict[str, tuple[Requirement, list[str]]]:
    """Package name -> its pinned requirement and its hashes."""
    entries = {}
    for line in logical_lines(LOCK_TEXT):
        requirement, *hashes = re.split(r"\s+--hash=", line)
        parsed = Requirement(requirement)
        name = canonicalize_name(parsed.name)
        assert name not in entries, f"{name} is in requirements.lock twice"
        entries[name] = (parsed, hashes)
    return entries


ENTRIES = lock_entries()


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_lock_entry_is_pinned_exactly_and_hashed(name):
    requirement, hashes = ENTRIES[name]
    specifiers = list(requirement.specifier)
    assert [specifier.operator for specifier in specifiers] == ["=="], f"{requirement} is not pinned"
    assert not specifiers[0].version.endswith("*"), f"{requirement} is not pinned"
    assert requirement.url is None, f"{requirement} names an address"
    assert hashes, f"{requirement} has no hash"
    assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", value) for value in hashes)


@pytest.mark.parametrize("text", DEPENDENCIES)
def test_lock_satisfies_every_dependency(text):
    dependency = Requirement(text)
    assert list(dependency.specifier), f"{text} has no bound"
    pinned, _ = ENTRIES[canonicalize_name(dependency.name)]
    version = next(iter(pinned.specifier)).version
    assert dependency.specifier.contains(version), f"{pinned} is outside {text}"


@pytest.mark.parametrize("file", ["requirements.lock", "requirements-conda.txt", "environment.yml"])
def test_no_index_address_or_local_path(file):
    lines = logical_lines((ROOT / file).read_text())
    for line in lines:
        assert not re.search(r"://|--(extra-)?index-url|--find-links|--trusted-host", line), line
        assert not re.search(r"(^|[\s@])(/|~|\.\.)", line), line


def test_conda_environment_installs_the_locked_versions_and_this_package():
    (pip_part,) = [item["pip"] for item in CONDA["dependencies"] if isinstance(item, dict)]
    assert pip_part == ["-r requirements-conda.txt", "-e ."]
    conda_lines = logical_lines(CONDA_TEXT)
    assert [str(Requirement(line)) for line in conda_lines] == [str(entry) for entry, _ in ENTRIES.values()]


def test_conda_environment_brings_python_java_and_pip_only():
    names = {re.split("[=<>]", item)[0] for item in CONDA["dependencies"] if isinstance(item, str)}
    assert names == {"python", "openjdk", "pip"}


def test_python_version_agrees_everywhere():
    bound = re.fullmatch(r">=(\d+\.\d+)", PROJECT["requires-python"])
    assert bound, f"requires-python is {PROJECT['requires-python']}, expected a plain lower bound"
    lowest = bound[1]
    (conda_python,) = [item for item in CONDA["dependencies"] if str(item).startswith("python=")]
    assert conda_python == f"python={lowest}"
    candidates = re.search(r"^PYTHON_CANDIDATES := (\S+)", MAKEFILE, flags=re.MULTILINE)[1]
    assert candidates == f"python{lowest}"
    checked = re.search(r"sys\.version_info < \((\d+), (\d+)\)", MAKEFILE)
    assert f"{checked[1]}.{checked[2]}" == lowest
    assert f"--python-version {lowest}" in MAKEFILE
    assert PYPROJECT["tool"]["ruff"]["target-version"] == f"py{lowest.replace('.', '')}"


def test_lock_is_usable_with_the_lowest_python():
    lowest = Version(PROJECT["requires-python"].removeprefix(">="))
    environment = {"python_version": str(lowest), "python_full_version": f"{lowest}.0"}
    direct = {canonicalize_name(Requirement(text).name) for text in DEPENDENCIES}
    markers = {name: ENTRIES[name][0].marker for name in direct}
    assert [name for name, marker in markers.items() if marker and not marker.evaluate(environment)] == []


def test_installer_comes_from_the_lock():
    assert "uv" in ENTRIES
    assert re.search(r"^UV_ENTRY := .*\^uv==.*requirements\.lock$", MAKEFILE, flags=re.MULTILINE)
