"""Executed notebooks, their report, and the pipeline as one call."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from decima.core import config
from decima.core.errors import ConfigError, DataUnavailableError, DecimaError
from decima.core.files import atomic_write_bytes, atomic_write_text, sole_use
from decima.evaluation.workers import ProcessWorkers
from experiments.experiment import experiment_names
from experiments.kernels import warm_kernels
from experiments.notebooks import PUBLISHED, notebook_path, notebook_slugs
from experiments.params import checkout, resolve_run, run_folder, run_names
from experiments.stamps import key, notebook_stamp

STAMP = "stamp"  # entry of the metadata of an executed notebook
_STAGE = "Running stage "  # what DVC says before each
_UNCERTAIN = 8  # parts after which the time left is told


def notebook_parameters(slug: str, run: str) -> dict[str, str]:
    """What a notebook is executed with: those on papers with the name of the run."""
    return {"run": resolve_run(run)} if slug in notebook_slugs() else {}


def execute_notebook(slug: str, run: str) -> Path:
    """Execute a notebook with papermill into ``reports/<run>/notebooks``.

    Times, host details and generated ids are left out, so that equal results give equal files.

    Raises:
        ConfigError: There is no such notebook or run.
        DecimaError: A cell failed; the message holds its error.
    """
    import nbformat
    import papermill

    source = nbformat.read(notebook_path(slug), as_version=4)
    source.cells = [cell for cell in source.cells if PUBLISHED not in cell.metadata.get("tags", ())]
    source.metadata.pop(PUBLISHED, None)
    target = run_folder(run) / "notebooks" / f"{slug}.ipynb"
    try:
        executed = papermill.execute_notebook(
            source,
            None,
            parameters=notebook_parameters(slug, run),
            cwd=notebook_path(slug).parent,
            progress_bar=sys.stderr.isatty(),
            kernel_name="python3",
            log_output=False,
        )
    except papermill.PapermillExecutionError as error:
        where = f"notebook {slug}, cell {error.cell_index}"
        raise DecimaError(f"{where} failed: {error.ename}: {error.evalue}") from error
    executed.metadata.pop("papermill", None)
    executed.metadata.pop("widgets", None)
    executed.metadata[STAMP] = _stamp_of(slug, run)
    executed.metadata.get("language_info", {}).pop("version", None)
    for index, cell in enumerate(executed.cells):
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
        cell.id = hashlib.sha256(f"{slug} {index}".encode()).hexdigest()[:8]
        if cell.cell_type == "code":  # what a progress bar wrote says nothing about the result
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    atomic_write_text(target, nbformat.writes(executed) + "\n")
    return target


def execute_notebooks(run: str) -> list[Path]:
    """Execute the notebooks on papers whose copy in ``reports/<run>/notebooks`` is not of the present stamp.

    Two run at a time, in two processes. Each is named on stdout when it is done.

    Returns:
        Files written.

    Raises:
        DecimaError: A notebook failed; the others were executed.
    """
    folder = run_folder(run) / "notebooks"
    old = [slug for slug in notebook_slugs() if _executed_stamp(folder / f"{slug}.ipynb") != _stamp_of(slug, run)]
    pool = ProcessWorkers(partial(_execute_and_say, run=run), 2)
    try:
        failed = [slug for slug, executed in zip(old, pool.map(old), strict=True) if not executed]
    finally:
        pool.close()
    if failed:
        raise DecimaError(f"notebooks failed, their messages are above: {', '.join(failed)}")
    return [folder / f"{slug}.ipynb" for slug in old]


def _execute_and_say(slug: str, run: str) -> bool:
    """Execute a notebook in a warm kernel, say so, and return whether it went well."""
    warm_kernels()
    try:
        sys.stdout.write(f"{slug}: {execute_notebook(slug, run)}\n")
    except DecimaError as error:
        sys.stderr.write(f"error: {error}\n")
        return False
    sys.stdout.flush()
    return True


def _stamp_of(slug: str, run: str) -> str | None:
    """Key of a notebook's present stamp; None for one that depends on no run."""
    return key(notebook_stamp(slug, run)) if slug in notebook_slugs() else None


def _executed_stamp(path: Path) -> str | None:
    return json.loads(path.read_text(encoding="utf-8"))["metadata"].get(STAMP) if path.is_file() else None


def build_report(run: str) -> Path:
    """Build ``reports/<run>/index.html`` from the executed notebooks: one page that needs no server and no network.

    Raises:
        ConfigError: A notebook of the run was not executed yet.
    """
    folder = run_folder(run) / "notebooks"
    import nbformat
    from nbconvert import HTMLExporter

    pages = []
    for slug in notebook_slugs():
        path = folder / f"{slug}.ipynb"
        if not path.is_file():
            raise ConfigError(f"{path} is missing; run: decima notebook {slug} --run {run}")
        pages.append(nbformat.read(path, as_version=4))
    title = nbformat.v4.new_markdown_cell(
        f"# Decima: results of run `{run}`\n\nEvery number and figure below comes from the pipeline; "
        "`params.yaml` holds the parameters of the run.",
        id="title",
    )
    merged = nbformat.v4.new_notebook(cells=[title], metadata=pages[0].metadata)
    for page in pages:
        merged.cells += page.cells
    for index, cell in enumerate(merged.cells):
        cell.id = f"cell-{index}"
    exporter = HTMLExporter(template_name="lab", embed_images=True)
    exporter.mathjax_url = exporter.require_js_url = exporter.mermaid_js_url = ""  # nothing from other servers
    body, _ = exporter.from_notebook_node(merged, resources={"metadata": {"name": f"Decima, {run}"}})
    target = run_folder(run) / "index.html"
    atomic_write_text(target, body)
    return target


def reproduce(profile: str = "quick") -> str:
    """Fetch the data and run the pipeline of one profile with DVC.

    Without the TPC-H profiles (no network, no mirror) the same pipeline runs on the embedded workload.

    Raises:
        ConfigError: There is no such profile, or the pipeline already runs in this checkout.
        DecimaError: A stage of the pipeline failed.
    """
    profiles = sorted({name.split("-", 1)[1] for name in run_names()})
    if profile not in profiles:
        raise ConfigError(f"profile must be one of {', '.join(profiles)}, got {profile!r}")
    with sole_use(checkout() / "build") as alone:
        if not alone:
            raise ConfigError(f"the pipeline already runs in {checkout()}; wait for its end, or stop it")
        return _reproduce(profile)


def _reproduce(profile: str) -> str:
    from decima.workload import fetch_tpch

    try:
        fetch_tpch(progress=True)
        run = f"tpch-{profile}"
    except DataUnavailableError as error:
        run = "embedded-quick"
        sys.stdout.write(
            f"The TPC-H profiles cannot be had: {error}\n"
            f"Running the same pipeline on the embedded workload instead (run {run}).\n"
        )
        sys.stdout.flush()
    target = f"report@{run}"
    # The pipeline's data lie in the checkout, wherever the user keeps other data.
    environment = os.environ | {config.DATA_DIR_VARIABLE: str(checkout() / "data")}
    # Stages call this Python, also where its environment is not the active one.
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    lock = checkout() / "dvc.lock"  # keeps the trained policies alone; results are compared by their own stamps
    before = lock.read_bytes()
    try:
        failed = _run_stages(target, environment) != 0
    finally:
        atomic_write_bytes(lock, before)
    if failed:
        raise DecimaError(f"the pipeline failed; its messages are above; to continue: dvc repro report@{run}")
    return run


def num_stages(target: str) -> int:
    """Number of stages that DVC checks for a target, without the frozen ones."""
    from dvc.repo import Repo

    with Repo(str(checkout())) as repo:
        return sum(not stage.frozen for stage in repo.stage.collect(target, with_deps=True))


def _run_stages(target: str, environment: dict[str, str]) -> int:
    """Run DVC and echo its output, with progress before each stage, experiment and notebook."""
    options = {"cwd": checkout(), "env": environment | {"PYTHONUNBUFFERED": "1"}, "text": True}
    command = [sys.executable, "-m", "dvc", "repro", target]
    experiments, notebooks = experiment_names(), notebook_slugs()
    total, number, began = num_stages(target) + len(experiments) + len(notebooks), 0, time.monotonic()
    parts = tuple(f"{name}: " for name in [*experiments, *notebooks])
    with subprocess.Popen(command, stdout=subprocess.PIPE, **options) as process:
        for line in process.stdout:
            if line.startswith((_STAGE, *parts)):
                number += 1
                sys.stdout.write(progress_words(number, total, time.monotonic() - began))
            sys.stdout.write(line)
            sys.stdout.flush()
    return process.returncode


def progress_words(number: int, total: int, gone_s: float) -> str:
    """Progress of a run: parts begun, time gone, and time left if parts take alike.

    A part whose inputs turn out the same as before is left out, so that ``total`` is the most. Parts differ, so that
    the time left is rough.
    """
    left = f", about {gone_s / number * (total - number) / 60.0:.0f} min left" if number > _UNCERTAIN else ""
    return f"[{number} of at most {total}, {gone_s / 60.0:.1f} min gone{left}] "
