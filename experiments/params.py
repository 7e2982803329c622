"""Runs, their parameters in ``params.yaml`` and ``params``, and the paths of their results.

A *run* is a workload and a profile, such as ``tpch-quick``; runs differ only in parameters.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path

from decima.core import config
from decima.core.errors import ConfigError
from decima.core.files import read_yaml


def checkout() -> Path:
    """Root of the checkout around the current folder, else of this package.

    Raises:
        ConfigError: There is neither.
    """
    root = _root(Path.cwd())
    if root is None:
        raise ConfigError(
            f"{Path.cwd()} is not inside a checkout of the project; "
            "experiments need its params.yaml, models, data and reports folders"
        )
    return root


@cache
def _root(folder: Path) -> Path | None:
    return config.checkout_root(folder) or config.checkout_root(Path(__file__).parent)


def read_params(section: str = "runs") -> dict[str, dict]:
    """Blocks of parameters by name.

    Args:
        section: ``runs``: what ``params.yaml`` says of each run, with parameters of experiments from ``params``:
            those of ``common.yaml``, over them those of the run's profile, over them those of its workload. Else a
            section of ``params.yaml`` itself.
    """
    blocks = _read(checkout() / "params.yaml").get(section, {})
    if section != "runs":
        return deepcopy(blocks)
    return {run: _with_experiments(block) for run, block in blocks.items()}


def run_params(run: str) -> dict:
    """What :func:`read_params` says of one run."""
    return _with_experiments(_read(checkout() / "params.yaml")["runs"][run])


def _with_experiments(block: dict) -> dict:
    """Run with its experiments' parameters, of which later files replace single ones."""
    files = ("common", block.get("profile", ""), block.get("workload", ""))
    merged: dict = {}
    for layer in [*(_read(checkout() / "params" / f"{name}.yaml") for name in files if name), block]:
        for key, value in layer.items():
            both = isinstance(value, dict) and isinstance(merged.get(key), dict)
            merged[key] = merged[key] | value if both else value
    return deepcopy(merged)


def _read(path: Path) -> dict:
    if not path.is_file():
        return {}
    status = path.stat()
    return _parsed(path, status.st_mtime_ns, status.st_size)


@cache
def _parsed(path: Path, changed_ns: int, size: int) -> dict:
    """Content of a YAML file, not to be changed, read once while that stays."""
    return read_yaml(path)


def run_names() -> list[str]:
    """Names of all runs."""
    return list(read_params())


def resolve_run(run: str) -> str:
    """A run by name; ``"auto"`` is ``tpch-quick`` where the TPC-H profiles are there, else ``embedded-quick``.

    Raises:
        ConfigError: There is no such run.
    """
    if run == "auto":
        from decima.workload import tpch_available

        return "tpch-quick" if tpch_available() else "embedded-quick"
    if run not in run_names():
        raise ConfigError(f"unknown run {run!r}; params.yaml has: {', '.join(run_names())}")
    return run


def run_folder(run: str) -> Path:
    """``reports/<run>`` of the checkout."""
    return checkout() / "reports" / resolve_run(run)
