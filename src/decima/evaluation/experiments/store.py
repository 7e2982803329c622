"""Run an experiment, write its tables, read them back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from decima import config
from decima.exceptions import ConfigError
from decima.files import atomic_path, atomic_write_text
from decima.simulator.settings import Settings
from decima.workload.sources import find_source

if TYPE_CHECKING:
    import pandas

# In the order in which they may need one another's tables.
EXPERIMENTS = (
    "tuning",
    "motivation",
    "policy",
    "variance",
    "measured",
    "effects",
    "batch",
    "stream",
    "real_spark",
    "released",
    "latency",
    "learning",
    "bounds",
    "fidelity",
    "appendix_a",
    "appendix_e",
    "appendix_h",
)
# Stored policies an experiment uses, by what they are for (``policies`` of the run).
POLICIES = {
    "motivation": ("batch",),
    "policy": ("batch",),
    "variance": ("stream",),
    "batch": ("batch",),
    "stream": ("stream",),
    "released": ("released",),
    "latency": ("stream",),
    "learning": ("batch", "stream", "released"),
    "bounds": ("batch",),
    "appendix_h": ("batch",),
}


@dataclass(frozen=True)
class Context:
    """What every experiment gets besides its own parameters.

    Attributes:
        run: Name of the run.
        executors: Executors of the cluster.
        threads: Worker threads, None for all cores.
        progress: Show progress bars.
        policies: Names of stored policies by what they are for: batch, stream, released.
    """

    run: str
    executors: int = 50
    threads: int | None = None
    progress: bool = True
    policies: Mapping[str, str] = field(default_factory=dict)

    def settings(self, mode: str = "paper", **changes) -> Settings:
        """The cluster of this run."""
        return Settings.of_mode(mode, executors=self.executors, **changes)

    def bar(self, label: str) -> str | None:
        """Label for a progress bar, None when bars are off."""
        return label if self.progress else None

    def tables(self, experiment: str) -> dict[str, pandas.DataFrame]:
        """Tables of an earlier experiment of the same run."""
        return load(experiment, self.run, threads=self.threads, progress=self.progress)


def _root() -> Path:
    root = config.checkout_root()
    if root is None:
        raise ConfigError(
            f"{Path.cwd()} is not inside a checkout of the project; experiments need its params.yaml and reports folder"
        )
    return root


def read_params() -> dict:
    """Runs and their parameters from ``params.yaml``."""
    import yaml

    return yaml.safe_load((_root() / "params.yaml").read_text(encoding="utf-8"))["runs"]


def run_names() -> list[str]:
    """Names of all runs."""
    return list(read_params())


def default_run() -> str:
    """``tpch-quick`` when the TPC-H profiles are there, else ``embedded-quick``."""
    from decima.workload import tpch_available

    return "tpch-quick" if tpch_available() else "embedded-quick"


def resolve_run(run: str) -> str:
    """A run by name; ``"auto"`` is the default run.

    Raises:
        ConfigError: There is no such run.
    """
    if run == "auto":
        return default_run()
    if run not in run_names():
        raise ConfigError(f"unknown run {run!r}; params.yaml has: {', '.join(run_names())}")
    return run


def run_folder(run: str) -> Path:
    """``reports/<run>`` of the checkout."""
    return _root() / "reports" / resolve_run(run)


def _check_experiment(name: str) -> None:
    if name not in EXPERIMENTS:
        raise ConfigError(f"unknown experiment {name!r}; known: {', '.join(EXPERIMENTS)}")


def training_folder() -> Path:
    """``models/training`` of the checkout: curves of training runs."""
    return _root() / "models" / "training"


def experiment_folder() -> Path:
    """``data/spark/experiment`` of the checkout: batches measured on real Spark."""
    return _root() / "data" / "spark" / "experiment"


def _policy_digest(name: str) -> str:
    """Of a stored policy's weights; of nothing where they are missing, which running it will tell."""
    path = _root() / "models" / f"{name}.weights.h5"
    content = path.read_bytes() if path.is_file() else b""
    return f"{name} {hashlib.sha256(content).hexdigest()}"


def _fingerprint(name: str, run: str) -> str:
    """Changes with the parameters of an experiment and with the stored policies, curves and event logs it reads."""
    params = read_params()[run]
    relevant = {"workload": params["workload"], "executors": params["executors"], name: params[name]}
    digest = hashlib.sha256(json.dumps(relevant, sort_keys=True).encode())
    for use in POLICIES.get(name, ()):
        digest.update(_policy_digest(params["policies"][use]).encode())
    if name == "learning":
        for path in sorted(training_folder().glob("*.csv")):
            digest.update(path.name.encode() + path.read_bytes())
    if name == "fidelity":
        for folder in params[name]["alone"] + params[name]["mixes"]:
            for part in ("runs.csv", "card.json", "events/*", "runs/*"):
                for path in sorted((_root() / folder).glob(part)):
                    digest.update(path.name.encode() + path.read_bytes())
    if name == "real_spark":
        for path in sorted(path for path in experiment_folder().glob("*") if path.is_file()):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def run_experiment(name: str, run: str, *, threads: int | None = None, progress: bool = True) -> dict[str, Path]:
    """Compute an experiment and write its tables.

    Returns:
        Paths of the csv files by table name; ``card.json`` beside them lists them with their parameters.

    Raises:
        ConfigError: Unknown experiment or run.
        DataUnavailableError: The run needs the TPC-H profiles and they were not fetched.
    """
    _check_experiment(name)
    run = resolve_run(run)
    params = read_params()[run]
    context = Context(run, params["executors"], threads, progress, params["policies"])
    module = import_module(f"decima.evaluation.experiments.{name}")
    source = find_source(params["workload"])
    tables = module.compute(source, params[name], context)
    folder = run_folder(run) / "tables" / name
    paths = {}
    for table, frame in tables.items():
        paths[table] = folder / f"{table}.csv"
        with atomic_path(paths[table]) as temporary:
            frame.to_csv(temporary, index=False, lineterminator="\n")
    card = {
        "experiment": name,
        "run": run,
        "workload": source.label,
        "fingerprint": _fingerprint(name, run),
        "parameters": params[name],
        "tables": sorted(tables),
    }
    atomic_write_text(folder / "card.json", json.dumps(card, indent=2) + "\n")
    return paths


def load(name: str, run: str = "auto", *, threads: int | None = None, progress: bool = True) -> dict:
    """Tables of an experiment; computed first if they are missing or were made with other parameters.

    Returns:
        Data frames by table name.
    """
    import pandas

    _check_experiment(name)
    run = resolve_run(run)
    folder = run_folder(run) / "tables" / name
    card_path = folder / "card.json"
    card = json.loads(card_path.read_text(encoding="utf-8")) if card_path.is_file() else {}
    paths = {table: folder / f"{table}.csv" for table in card.get("tables", ())}
    if card.get("fingerprint") != _fingerprint(name, run) or not all(path.is_file() for path in paths.values()):
        paths = run_experiment(name, run, threads=threads, progress=progress)
    return {table: pandas.read_csv(path) for table, path in paths.items()}
