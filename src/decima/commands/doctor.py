"""Command `decima doctor`: check of the installation."""

from __future__ import annotations

import os
import platform
import shutil
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import typer

import decima
from decima.core.errors import ConfigError, DecimaError
from decima.core.extras import EXTRAS, how_to_install
from decima.plotting.words import count

REQUIRED = ("packages", "embedded workload")  # nothing works without


def doctor() -> None:
    """Check the installation: versions, data, caches, cores, Java, missing parts.

    Exits with 2 if what every command needs is missing or broken, with 0 if only a part cannot be used.
    """
    rows = [*_packages(), *_machine(), *_spark()]
    width = max(len(name) for name, _, _ in rows)
    typer.echo("\n".join(f"{name:<{width}}  {value}" for name, value, _ in rows))
    lacks = {name: lack for name, _, lack in rows if lack}
    for name, lack in lacks.items():
        typer.echo(f"{'missing' if name in REQUIRED else 'optional'}: {name}: {lack}")
    if broken := [name for name in lacks if name in REQUIRED]:
        raise ConfigError(f"decima cannot work here: {', '.join(broken)}; follow the lines above")
    some = f"decima works; {count(len(lacks), 'optional part')} {'is' if len(lacks) == 1 else 'are'} missing"
    typer.echo(some if lacks else "nothing is missing")


def _packages() -> Iterator[tuple[str, str, str]]:
    """Name, value and lack of Python, the package and its requirements by extra."""
    from packaging.requirements import Requirement

    from decima.core.config import DISTRIBUTION

    yield "Python", platform.python_version(), ""
    yield DISTRIBUTION, decima.__version__, ""
    try:
        stated = [Requirement(text) for text in requires(DISTRIBUTION) or ()]
    except PackageNotFoundError as error:
        yield "packages", "unknown", f"the package is not installed properly ({error}): {how_to_install('')}"
        return
    purposes = {name: extra.purpose for name, extra in EXTRAS.items()}
    for extra, purpose in {"": "everything", **purposes, "dev": "the pipeline, the notebooks and the tests"}.items():
        of_all = [each for each in stated if each.marker is None or each.marker.evaluate({"extra": ""})]
        wanted = [
            each for each in stated if each not in of_all and each.marker.evaluate({"extra": extra})
        ] if extra else of_all  # fmt: skip
        faults = [fault for each in wanted if (fault := _fault(each.name, each.specifier))]
        lack = f"needed for {purpose}: {', '.join(faults)}; {how_to_install(extra)}" if faults else ""
        yield f"packages [{extra}]" if extra else "packages", f"{len(wanted) - len(faults)} of {len(wanted)}", lack
    for name in ("numpy", "numba", "tensorflow", "bokeh"):
        yield name, _version(name) or "none", ""


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _fault(name: str, specifier) -> str:
    """Name of a package that is missing or of a wrong version, else empty."""
    installed = _version(name)
    if installed is None or specifier.contains(installed, prereleases=True):
        return name if installed is None else ""
    return f"{name} {installed} ({specifier} expected)"


def _machine() -> Iterator[tuple[str, str, str]]:
    """Name, value and lack of the machine, of data, policies, compiled code and checkout."""
    import psutil

    from decima.core import config
    from decima.learning.store import list_policies

    memory = psutil.virtual_memory()
    yield "system", f"{platform.system()} {platform.release()}, {platform.machine()}", ""
    yield "cores", str(os.cpu_count()), ""
    yield "memory", f"{memory.available / 2**30:.1f} GiB free of {memory.total / 2**30:.1f} GiB", ""
    yield "data folder", str(config.data_root()), ""
    yield "data mirror", str(config.mirror_dir() or f"none ({config.MIRROR_VARIABLE} is not set)"), ""
    lack = "needed for the workload of the paper, jobs 'tpch'; decima data fetch tpch (jobs 'embedded' need no data)"
    ready = (config.workloads_dir() / "tpch.parquet").is_file()  # raw files are looked for by what also reads them
    ready = ready or (config.raw_tpch_dir().is_dir() and decima.workload.tpch_available())
    yield "TPC-H profiles", *(("ready", "") if ready else ("none", lack))
    embedded = Path(decima.__file__).parent / "workload" / "data" / "tpch_spark_embedded.npz"
    yield "embedded workload", str(embedded), "" if embedded.is_file() else "install the package again"
    policies = len(list_policies())
    lack = "needed for scheduler 'decima'; install the package again, or train one: decima train"
    yield "stored policies", f"{policies}, see 'decima models'", "" if policies else lack
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        folder = Path(config.kernels_folder())
    sizes = [path.stat().st_size for path in folder.glob("kernels-*/**/*") if path.is_file()]
    kept = f"{folder}, {len(sizes)} files, {sum(sizes) / 2**20:.0f} MiB"
    yield "compiled code", kept, str(caught[0].message) if caught else ""
    root = config.checkout_root()
    lack = "needed for experiments, notebooks and the pipeline; clone the project and work inside"
    yield "checkout", str(root or "none"), "" if root else lack


def _spark() -> Iterator[tuple[str, str, str]]:
    """Name, value and lack of Java, Spark and the Java compiler."""
    from decima.connect.cluster import machine
    from decima.connect.plugin.sparks import find_spark

    programs: list[tuple[str, Callable, str]] = [
        ("Java", machine.java_command, "the commands 'decima spark'"),
        ("Spark", machine.spark_home, "the commands 'decima spark'"),
        ("Spark of the plugin", lambda: "{0.version}, {0.jars}".format(find_spark()), "'decima spark plugin'"),
    ]
    for name, find, purpose in programs:
        try:
            yield name, str(find()), ""
        except DecimaError as error:
            yield name, "none", f"needed for {purpose}; {error}"
    compiler = shutil.which("javac")
    lack = "" if compiler else "needed for 'decima spark plugin'; install openjdk-17-jdk-headless"
    yield "Java compiler", compiler or "none", lack
