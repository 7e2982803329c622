"""Command `decima doctor`: what is installed and found on this machine, and what is missing for what."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from typing import TYPE_CHECKING

import typer

from decima.core.errors import ConfigError, DecimaError

if TYPE_CHECKING:
    from packaging.requirements import Requirement

EXTRAS = {
    "": "everything",
    "alibaba": "jobs of the Alibaba sample",
    "ray": "training and comparisons on several machines",
    "spark": "starting Spark: the commands 'decima spark'",
    "dev": "the pipeline, the notebooks and the tests",
}


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    name: str  # what was looked for
    value: str  # what was found
    lack: str = ""  # what cannot be done without it and how to get it; empty where all is well
    required: bool = False  # nothing works without it


def register(root: typer.Typer) -> None:
    """Add the command."""
    root.command()(doctor)


def doctor() -> None:
    """Show versions, data, caches, cores and Java, and what is missing for what.

    Exits with 2 if what every command needs is missing or broken, with 0 if only a part cannot be used.
    """
    findings = [*_packages(), *_machine(), *_data(), *_caches(), *_spark(), *_checkout()]
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        typer.echo(f"{finding.name:<{width}}  {finding.value}")
    lacks = [finding for finding in findings if finding.lack]
    for finding in lacks:
        typer.echo(f"missing: {finding.name}: {finding.lack}")
    if broken := [finding.name for finding in lacks if finding.required]:
        raise ConfigError(f"decima cannot work here: {', '.join(broken)}; the lines above say what to do")
    rest = f"all else works; {len(lacks)} of {len(findings)} things are missing"
    typer.echo(rest if lacks else "nothing is missing")


def _packages() -> list[Finding]:
    """Version of the package, and what of its requirements is missing, by extra."""
    import platform

    from decima import __version__
    from decima.core.config import DISTRIBUTION

    findings = [Finding("Python", platform.python_version()), Finding(DISTRIBUTION, __version__)]
    try:
        from packaging.requirements import Requirement

        stated = [Requirement(text) for text in requires(DISTRIBUTION) or ()]
    except (ImportError, PackageNotFoundError) as error:
        lack = f"the package is not installed properly ({error}): pip install {DISTRIBUTION}"
        return [*findings, Finding("packages", "unknown", lack, required=True)]
    for extra, purpose in EXTRAS.items():
        wanted = [each for each in stated if _is_for(each, extra)]
        faults = [fault for each in wanted if (fault := _fault(each))]
        name = f"packages [{extra}]" if extra else "packages"
        target = f"'{DISTRIBUTION}[{extra}]'" if extra else DISTRIBUTION
        lack = f"needed for {purpose}: {', '.join(faults)}; pip install {target}" if faults else ""
        value = f"{len(wanted) - len(faults)} of {len(wanted)}"
        findings.append(Finding(name, value, lack, required=not extra))
    for name in ("numpy", "numba", "tensorflow", "bokeh"):
        findings.append(Finding(name, _version(name) or "none"))
    return findings


def _is_for(requirement: Requirement, extra: str) -> bool:
    """Whether a requirement belongs to an extra, and without an extra to all installations."""
    marker = requirement.marker
    if marker is None:
        return not extra
    return marker.evaluate({"extra": extra}) and not (extra and marker.evaluate({"extra": ""}))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _fault(requirement: Requirement) -> str:
    """What is wrong with an installed package; empty where nothing is."""
    found = _version(requirement.name)
    if found is None:
        return requirement.name
    if requirement.specifier.contains(found, prereleases=True):
        return ""
    return f"{requirement.name} {found} ({requirement.specifier} expected)"


def _machine() -> list[Finding]:
    import os
    import platform

    import psutil

    memory = psutil.virtual_memory()
    return [
        Finding("system", f"{platform.system()} {platform.release()}, {platform.machine()}"),
        Finding("cores", str(os.cpu_count())),
        Finding("memory", f"{memory.available / 2**30:.1f} GiB free of {memory.total / 2**30:.1f} GiB"),
    ]


def _data() -> list[Finding]:
    """Profiles and stored policies."""
    from decima.core import config
    from decima.learning.store import list_policies
    from decima.workload import tpch_available
    from decima.workload.embedded import PATH

    lack = "needed for the workload of the paper, jobs 'tpch'; decima data fetch tpch (jobs 'embedded' need no data)"
    policies = list_policies()
    return [
        Finding("data folder", str(config.data_root())),
        Finding("data mirror", str(config.mirror_dir() or f"none ({config.MIRROR_VARIABLE} is not set)")),
        Finding("TPC-H profiles", *(("ready",) if tpch_available() else ("none", lack))),
        Finding("embedded workload", str(PATH), "" if PATH.is_file() else "install the package again", required=True),
        Finding(
            "stored policies", ", ".join(policies) or "none", "" if policies else "needed for scheduler 'decima'; "
            "install the package again, or train one: decima train",
        ),
    ]  # fmt: skip


def _caches() -> list[Finding]:
    """Where compiled code is kept."""
    from pathlib import Path

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from decima.core.cache import kernels_folder

        folder = kernels_folder()
    told = [str(warning.message) for warning in caught if issubclass(warning.category, RuntimeWarning)]
    files = [path for path in Path(folder).glob("kernels-*/**/*") if path.is_file()]
    size = f"{folder}, {len(files)} files, {sum(path.stat().st_size for path in files) / 2**20:.0f} MiB"
    return [Finding("compiled code", size, told[0] if told else "")]


def _spark() -> list[Finding]:
    """Java and Spark, and whether the plugin can be compiled."""
    import shutil

    from decima.connect.cluster import machine

    findings = []
    for name, find in (("Java", _java), ("Spark", machine.spark_home)):
        try:
            findings.append(Finding(name, str(find())))
        except DecimaError as error:
            findings.append(Finding(name, "none", f"needed for the commands 'decima spark'; {error}"))
    compiler = shutil.which("javac")
    lack = "" if compiler else "needed for 'decima spark plugin'; install openjdk-17-jdk-headless"
    return [*findings, Finding("Java compiler", compiler or "none", lack)]


def _java() -> str:
    """Path and version of Java.

    Raises:
        SparkError: There is none.
    """
    import subprocess

    from decima.connect.cluster.machine import java_command

    path = java_command()
    shown = subprocess.run([path, "-version"], capture_output=True, text=True, check=False)
    return f"{path}, {(shown.stderr or shown.stdout).partition(chr(10))[0]}"


def _checkout() -> list[Finding]:
    """Checkout of the project around the current folder."""
    from decima.core import config

    root = config.checkout_root()
    lack = "" if root else "needed for experiments, notebooks and the pipeline; clone the project and work inside"
    return [Finding("checkout", str(root or "none"), lack)]
