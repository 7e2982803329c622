"""Runs and their parameters in ``params.yaml``, and where their results lie in the checkout.

A *run* is a workload and a profile, such as ``tpch-quick``; runs differ only in parameters.
"""

from __future__ import annotations

from pathlib import Path

from decima.core import config
from decima.core.errors import ConfigError


def checkout() -> Path:
    """Root of the checkout that holds the current folder.

    Raises:
        ConfigError: The current folder is in no checkout.
    """
    root = config.checkout_root()
    if root is None:
        raise ConfigError(
            f"{Path.cwd()} is not inside a checkout of the project; "
            "experiments need its params.yaml, models, data and reports folders"
        )
    return root


def read_params(section: str = "runs") -> dict[str, dict]:
    """Blocks of parameters by name: ``runs``, or ``training`` for how the stored policies were trained."""
    import yaml

    return yaml.safe_load((checkout() / "params.yaml").read_text(encoding="utf-8"))[section]


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
