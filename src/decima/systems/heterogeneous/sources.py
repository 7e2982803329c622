"""Instances from texts: jobs of a file or a source, on a cluster."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from decima.core.errors import ConfigError
from decima.core.grammar import Option, read_options, read_value, split_options
from decima.systems.heterogeneous import generators
from decima.systems.heterogeneous.cluster import GIGABIT, Cluster
from decima.systems.heterogeneous.generators import (
    MEAN_SPEED,
    NATIVE,
    PAPER_SIZES,
    canonical,
    from_workload,
    read_edges,
    silent_stages,
)
from decima.systems.heterogeneous.json_format import load_instance, read_document
from decima.systems.heterogeneous.workload import Instance
from decima.workload.jobs import Job, Workload
from decima.workload.left_out import LeftOut
from decima.workload.sources import parse_jobs
from decima.workload.task_graphs import folder_files, read_task_graph

#: Jobs of the paper: TPC-H at its sizes, of this project's Spark.
PAPER_JOBS = f"embedded:n=20,sizes={PAPER_SIZES}"
_GENERATORS = {"random": generators.random_dag, "gauss": generators.gaussian_elimination, "fft": generators.fft}
_OPTIONS = {
    "random": (
        Option("nodes", "number of nodes", int),
        Option("shape", "wide above 1, long below", float),
        Option("out_degree", "largest number of children", int),
    ),
    "gauss": (Option("size", "rows of the matrix", int),),
    "fft": (Option("points", "points, a power of 2", int),),
}
_COMMON = (
    Option("ccr", "mean transfer time over mean execution time", float),
    Option("beta", "heterogeneity factor, 0 to 2", float),
)
CANONICAL = "canonical"


@dataclass(frozen=True)
class ClusterOptions:
    """What is said about a cluster; None where nothing is."""

    executors: int | None = None  # 50 where one is made
    speeds: str | None = None  # such as "1+1.5+2", one for each executor; drawn from the paper's table when omitted
    rate: float | None = None  # between any two executors; 125 (MB/s) when omitted
    latency_s: float | None = None  # of a transfer; 0 when omitted

    @property
    def stated(self) -> list[str]:
        """Names of what is said."""
        return [name for name, value in vars(self).items() if value is not None]

    def make(self, seed: int) -> Cluster:
        """Cluster of the request; the seed draws unspecified speeds.

        Raises:
            ConfigError: Numbers of executors and speeds differ, or one is out of range.
            WorkloadError: A speed, the rate or the latency is out of range.
        """
        rate = GIGABIT if self.rate is None else self.rate
        latency_s = 0.0 if self.latency_s is None else self.latency_s
        if self.speeds is None:
            return Cluster.drawn(50 if self.executors is None else self.executors, seed, rate=rate, latency_s=latency_s)
        speeds = read_value(self.speeds, tuple[float, ...], "speeds")
        if self.executors not in (None, len(speeds)):
            raise ConfigError(f"{len(speeds)} speeds are given for {self.executors} executors; expected equal numbers")
        return Cluster(speeds, rate, latency_s)


def read_instance(
    text: str, cluster: ClusterOptions | None = None, edges: str | None = None, seed: int = 0
) -> Instance:
    """Make the instance that a text means.

    Args:
        text: ``canonical``; ``random:nodes=100,ccr=5``, ``gauss:size=8``, ``fft:points=16`` with matrices of costs; an
            instance file; a task graph (:mod:`decima.workload.task_graphs`), whose nodes take their time on an executor
            of speed 1, or of the mean of the paper's speeds where these are drawn; or jobs of the simulator, from a
            source or a file, such as ``embedded:n=20``.
        cluster: What is said about the cluster; it replaces that of a file.
        edges: Sizes of edges for jobs of the simulator, ``ccr=x``, ``measured`` or ``own``; omitted: what the jobs say.
        seed: Random seed, 0 or more.

    Raises:
        DecimaError: The text, a file or an option is not as expected, or sizes of edges are missing.
    """
    cluster = cluster or ClusterOptions()
    name = text.partition(":")[0]
    if name == CANONICAL or name in _GENERATORS:
        if edges is not None:
            raise ConfigError(f"edges of {name} are its own; expected none given (ccr is an option of it)")
        allowed = [] if name == CANONICAL else ["executors"]
        if stray := [each for each in cluster.stated if each not in allowed]:
            raise ConfigError(f"{stray[0]} cannot be set for {name}, which has times of its own on every executor")
        if text == CANONICAL:
            return canonical()
        options = (*_OPTIONS.get(name, ()), *(_COMMON if name in _GENERATORS else ()))
        options_read = read_options(split_options(text)[1], options, f"jobs {text!r}")
        if cluster.executors is not None:
            options_read["executors"] = cluster.executors
        return _GENERATORS[name](seed=seed, **options_read)
    spec = parse_jobs(text)
    if spec.path is not None and spec.path.is_dir():
        raise ConfigError(f"{text} is a folder; expected a file here (a comparison takes each file of a folder)")
    if spec.path is not None and spec.path.suffix == ".json" and _is_instance(spec.path):
        if edges is not None:
            raise ConfigError(f"{spec.path} has sizes of edges; expected no others")
        return load_instance(spec.path, cluster.make(seed) if cluster.stated else None)
    graph = None if spec.path is None or spec.path.suffix == ".parquet" else read_task_graph(spec.path)
    works = None
    if graph is None:
        workload = spec.workload(seed)
    else:
        profile = graph.profile
        works = {profile: np.array(graph.runtime_s) * (MEAN_SPEED if cluster.speeds is None else 1.0)}
        workload = Workload((Job(profile),), spec.path.stem)
    if edges is None:
        if any(silent_stages(profile) for profile in workload.profiles):
            raise ConfigError(f"jobs {text!r} have no sizes of edges; expected --edges ccr=NUMBER or --edges measured")
        edges = NATIVE
    return from_workload(workload, read_edges(edges), cluster.make(seed), seed, works)


@dataclass(frozen=True)
class InstanceText:
    """Instances that a text means, one per seed; nothing is drawn for ``canonical``."""

    text: str | None = None  # see :func:`read_instance`; the jobs of the paper at a ratio of 1 when omitted
    cluster: ClusterOptions = ClusterOptions()
    edges: str | None = None  # sizes of edges, see :func:`read_instance`

    @property
    def path(self) -> Path | None:
        """The file, if it is one."""
        return Path(self.text) if self.text is not None and Path(self.text).is_file() else None

    def workload(self, seed: int) -> Instance:
        """The instance of a seed."""
        if self.text is None:
            return read_instance(PAPER_JOBS, self.cluster, self.edges or "ccr=1", seed)
        return read_instance(self.text, self.cluster, self.edges, seed)

    def members(self, seed: int) -> list[Instance] | None:
        """One instance for each file of a folder; None where the text means no folder.

        Raises:
            WorkloadError: No file can be read.

        Warns:
            UserWarning: Files are left out, with reasons and first names.
        """
        if self.text is None or not Path(self.text).is_dir():
            return None
        instances, left_out = [], LeftOut(self.text, "file")
        for file in folder_files(Path(self.text)):
            with left_out.member():
                instances.append(read_instance(str(file), self.cluster, self.edges, seed))
        left_out.finish(len(instances))
        return instances

    def workloads(self, seeds: Sequence[int]) -> list[Instance]:
        """The instances of several seeds."""
        if self.text == CANONICAL:
            return [self.workload(0)] * len(seeds)
        return [self.workload(seed) for seed in seeds]


def _is_instance(path: Path) -> bool:
    content = read_document(path)
    if not isinstance(content, dict) or not isinstance(content.get("jobs"), list):
        return False
    return "cluster" in content or any(isinstance(job, dict) and "nodes" in job for job in content["jobs"])
