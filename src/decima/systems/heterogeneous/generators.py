"""Instances: structured and random DAGs, the textbook example, and profiled jobs such as TPC-H."""

import csv
import functools
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from decima.core.checks import check_whole, is_number
from decima.core.errors import ConfigError, WorkloadError
from decima.core.grammar import read_value
from decima.systems.heterogeneous.cluster import GIGABIT, PAPER_SPEEDS, Cluster
from decima.systems.heterogeneous.workload import Instance, Job
from decima.workload.jobs import Workload
from decima.workload.measured import measured_profiles
from decima.workload.profile import JobProfile
from decima.workload.sources import get_source

MOST_NODES = 1_000_000  # a minute to draw


def random_dag(
    nodes: int = 40,
    executors: int = 8,
    seed: int = 0,
    *,
    shape: float = 1.0,
    out_degree: int = 3,
    ccr: float = 1.0,
    beta: float = 1.0,
) -> Instance:
    """Random DAG with a matrix of costs.

    There are about sqrt(nodes) / shape levels of about shape x sqrt(nodes) nodes, drawn uniformly around these means. A
    node of every level but the last has 1 to ``out_degree`` children, half of the edges going to the next level, the
    others anywhere below; every node below the first level has a parent in the level above.

    Args:
        nodes: Number of nodes.
        executors: Number of executors.
        seed: 0 or more.
        shape: Wide above 1, long below (alpha).
        out_degree: Largest number of children drawn.
        ccr: Mean transfer time over mean execution time.
        beta: How unlike executors are, 0 to 2: a node's times are uniform between 1 - beta / 2 and 1 + beta / 2 times
            its mean, which is uniform between 0 and 2 x 10 s.

    Raises:
        ConfigError: A number is out of range.

    Source: Topcuoglu, Hariri and Wu (2002), Section 5.2. Differs: how edges are spread over the levels is not
    said there.
    """
    for name, value, least in (("nodes", nodes, 1), ("executors", executors, 1), ("out_degree", out_degree, 1)):
        check_whole(name, value, least=least)
    _check_nodes("nodes", nodes, nodes)
    if not is_number(shape) or not 0.0 < shape < math.inf:
        raise ConfigError(f"shape is {shape!r}; expected a finite number above 0")
    rng = _generator(seed)
    levels: list[list[int]] = []
    placed = 0
    height = max(1, round(math.sqrt(nodes) / shape))
    while placed < nodes:
        mean_width = nodes / height
        width = min(nodes - placed, int(rng.integers(1, max(2, round(2.0 * mean_width)))))
        levels.append(list(range(placed, placed + width)))
        placed += width
    edges: set[tuple[int, int]] = set()
    for depth, level in enumerate(levels[:-1]):
        below = levels[depth + 1]
        for node in level:
            for _ in range(int(rng.integers(1, out_degree + 1))):
                low, high = (below[0], below[-1] + 1) if rng.random() < 0.5 else (below[0], nodes)
                edges.add((node, int(rng.integers(low, high))))
        children = {child for _, child in edges}
        edges |= {(int(rng.choice(level)), child) for child in below if child not in children}
    return _with_costs(f"random-{nodes}", nodes, sorted(edges), executors, rng, ccr, beta)


def gaussian_elimination(
    size: int = 5, executors: int = 4, seed: int = 0, *, ccr: float = 1.0, beta: float = 1.0
) -> Instance:
    """DAG of Gaussian elimination of a matrix: (size² + size - 2) / 2 nodes.

    Step k has a pivot node, and behind it one node for each column to the right; the first of them is the parent of
    the next pivot, the others continue in the next step.

    Args:
        size: Rows of the matrix, 2 or more.
        executors: Number of executors.
        seed: 0 or more; chooses costs and data.
        ccr: As for :func:`random_dag`.
        beta: As for :func:`random_dag`.

    Raises:
        ConfigError: A number is out of range.

    Source: Topcuoglu, Hariri and Wu (2002), Section 5.3.1.
    """
    check_whole("size", size, least=2)
    check_whole("executors", executors, least=1)
    _check_nodes("size", size, (size**2 + size - 2) // 2)
    number: dict[tuple[int, int], int] = {}
    for step in range(size - 1):
        for column in range(step, size):
            number[step, column] = len(number)
    edges = []
    for step in range(size - 1):
        for column in range(step + 1, size):
            edges.append((number[step, step], number[step, column]))
            if step < size - 2:
                edges.append((number[step, column], number[step + 1, column]))
    return _with_costs(f"gauss-{size}", len(number), edges, executors, _generator(seed), ccr, beta)


def fft(points: int = 8, executors: int = 4, seed: int = 0, *, ccr: float = 1.0, beta: float = 1.0) -> Instance:
    """DAG of the FFT: 2 x points - 1 recursive calls, points x log2(points) butterflies.

    Nodes of one level take the same times, edges between two levels carry the same data.

    Args:
        points: Points, a power of 2 from 2 on.
        executors: Number of executors.
        seed: 0 or more; chooses costs and data.
        ccr: As for :func:`random_dag`.
        beta: As for :func:`random_dag`.

    Raises:
        ConfigError: A number is out of range.

    Source: Topcuoglu, Hariri and Wu (2002), Section 5.3.2.
    """
    check_whole("points", points, least=2)
    check_whole("executors", executors, least=1)
    if points & (points - 1):
        raise ConfigError(f"points is {points}; expected a power of 2")
    calls = 2 * points - 1
    _check_nodes("points", points, calls + points * (points.bit_length() - 1))
    edges = [((child - 1) // 2, child) for child in range(1, calls)]
    level = [int(math.log2(node + 1)) for node in range(calls)]
    above = list(range(points - 1, calls))
    stages = points.bit_length() - 1
    for stage in range(stages):
        row = [calls + stage * points + entry for entry in range(points)]
        level += [stages + 1 + stage] * points
        for entry in range(points):
            edges += [(above[entry], row[entry]), (above[entry ^ (1 << stage)], row[entry])]
        above = row
    return _with_costs(f"fft-{points}", len(level), edges, executors, _generator(seed), ccr, beta, level)


def _check_nodes(name: str, value: int, nodes: int) -> None:
    if nodes > MOST_NODES:
        raise ConfigError(f"{name} is {value}; expected a job of at most {MOST_NODES:,} nodes")


def _generator(seed: int) -> np.random.Generator:
    check_whole("seed", seed, least=0)
    return np.random.default_rng(seed)


def _with_costs(
    name: str,
    nodes: int,
    edges: list[tuple[int, int]],
    executors: int,
    rng: np.random.Generator,
    ccr: float,
    beta: float,
    level: list[int] | None = None,
) -> Instance:
    """Instance of one job with drawn execution times and data, equal inside a level."""
    if not is_number(ccr) or not 0.0 <= ccr < math.inf:
        raise ConfigError(f"ccr is {ccr!r}; expected a finite number of at least 0")
    if not is_number(beta) or not 0.0 <= beta <= 2.0:
        raise ConfigError(f"beta is {beta!r}; expected a number from 0 to 2")
    groups = np.arange(nodes) if level is None else np.array(level)
    mean_s = rng.uniform(0.0, 20.0, int(groups.max()) + 1)
    spread = rng.uniform(1.0 - beta / 2.0, 1.0 + beta / 2.0, (len(mean_s), executors))
    costs = (mean_s[:, None] * spread)[groups]
    data = rng.uniform(0.0, 2.0, int(groups.max()) + 1 if level else len(edges))
    data = data[[groups[parent] for parent, _ in edges]] if level else data
    if len(edges):
        total = data.mean()
        data = data * (ccr * costs.mean() / total) if total > 0.0 else data
    return Instance([Job(name, costs.mean(axis=1), edges, data)], Cluster(costs=costs, rate=1.0), name)


_COSTS = (
    (14, 16, 9), (13, 19, 18), (11, 13, 19), (13, 8, 17), (12, 13, 10),
    (13, 16, 9), (7, 15, 11), (5, 11, 14), (18, 12, 20), (21, 7, 16),
)  # fmt: skip
_EDGES = (
    (1, 2, 18), (1, 3, 12), (1, 4, 9), (1, 5, 11), (1, 6, 14), (2, 8, 19), (2, 9, 16), (3, 7, 23),
    (4, 8, 27), (4, 9, 23), (5, 9, 13), (6, 8, 15), (7, 10, 17), (8, 10, 11), (9, 10, 13),
)  # fmt: skip


def canonical() -> Instance:
    """Canonical example: HEFT needs 80, CPOP 86, DLS 91; optimum 73, with duplication 69.

    Source: Topcuoglu, Hariri and Wu, "Performance-effective and low-complexity task scheduling for heterogeneous
    computing" (2002), Figure 2.
    """
    edges = [(parent - 1, child - 1) for parent, child, _ in _EDGES]
    data = [size for _, _, size in _EDGES]
    names = [f"n{number}" for number in range(1, 11)]
    job = Job("canonical", [sum(row) / 3 for row in _COSTS], edges, data, nodes=names)
    return Instance([job], Cluster(costs=_COSTS, rate=1.0), "canonical example")


# ---- profiled jobs ---------------------------------------------------------------------------------------------------

#: The paper's input sizes, which are not those of Decima.
PAPER_SIZES = "2g+5g+10g+50g+80g+100g"
#: Mean gap in seconds of the paper's streams.
PAPER_GAP_S = 45.0
MEAN_SPEED = sum(PAPER_SPEEDS) / len(PAPER_SPEEDS)


MEASURED = "measured"
#: Sizes that the jobs themselves say (``data_mb`` of the workload formats).
NATIVE = "own"


def read_edges(text: str) -> float | str:
    """Parse the text that selects data of edges; return x of ``ccr=x``.

    The text is ``measured``, ``own`` (both returned as they are) or ``ccr=x``.

    Raises:
        ConfigError: The text is none of them, or the number is negative or infinite.
    """
    if text in (MEASURED, NATIVE):
        return text
    key, sign, value = text.partition("=")
    if key != "ccr" or not sign:
        raise ConfigError(f"edges are {text!r}; expected {MEASURED}, {NATIVE} or ccr=NUMBER")
    return _checked_ccr(read_value(value, float, "edges: ccr"))


def _checked_ccr(ccr: float) -> float:
    if not is_number(ccr) or not 0.0 <= ccr < math.inf:
        raise ConfigError(f"ccr is {ccr!r}; expected a finite number of at least 0")
    return float(ccr)


def from_workload(
    workload: Workload,
    edges: float | str | Mapping[str, np.ndarray],
    cluster: Cluster,
    seed: int = 0,
    works: Mapping[JobProfile, np.ndarray] | None = None,
) -> Instance:
    """Make an instance of a workload of the Spark simulator; a stage becomes one node.

    The work of a node is tasks x mean duration, in seconds on one executor of the paper's mean speed of 2.85. The
    cluster has to give speeds.

    Args:
        workload: Jobs with arrivals.
        edges: Sizes of edges. A number is the ratio of communication to computation (CCR), mean transfer time over mean
            execution time: sizes are drawn uniformly between 0 and twice the mean that gives it over all nodes of the
            workload, independently of the work. ``"measured"`` takes the bytes of this project's Spark, in MB
            (:func:`measured_data`), ``"own"`` what the stages of the profiles say, in MB. Else sizes
            by the name of a profile, float64 [edges], child by child as the stages list their parents.
        cluster: The cluster.
        seed: Source of the sizes, 0 or more.
        works: Work of the nodes of each profile instead of the above, float64 [stages].

    Raises:
        ConfigError: The seed or the ratio is out of range, or the cluster has a matrix of costs or an infinite rate.
        WorkloadError: The sizes of a profile are missing or of another number, or were not measured.
    """
    check_whole("seed", seed, least=0)
    if cluster.speeds is None:
        raise ConfigError("jobs with work need a cluster with speeds, not with a matrix of costs")
    rng = np.random.default_rng([seed, 2])
    works = works or {
        profile: np.array([stage.work_ms for stage in profile.stages]) * (MEAN_SPEED / 1000.0)
        for profile in workload.profiles
    }
    all_work = np.concatenate([works[job.profile] for job in workload.jobs])
    mean_data = 0.0
    drawn = not isinstance(edges, (str, Mapping))
    if isinstance(edges, str) and edges not in (MEASURED, NATIVE):
        raise ConfigError(f"edges are {edges!r}; expected a number, sizes, {MEASURED!r} or {NATIVE!r}")
    if drawn and _checked_ccr(edges) > 0.0:
        if not np.isfinite(cluster.mean_rate):
            raise ConfigError(f"ccr={edges:g} needs a finite transfer rate, the cluster's is infinite")
        wanted_s = edges * float(all_work.mean()) / cluster.mean_speed
        if wanted_s < cluster.latency_s:
            raise ConfigError(
                f"ccr={edges:g} means transfers of {wanted_s:g} s, less than the latency of {cluster.latency_s:g} s"
            )
        mean_data = (wanted_s - cluster.latency_s) * cluster.mean_rate
    jobs = []
    for job in workload.jobs:
        stages = job.profile.stages
        pairs = [(parent, child) for child, stage in enumerate(stages) for parent in stage.parents]
        if drawn:
            data = rng.uniform(0.0, 2.0 * mean_data, len(pairs))
        else:
            data = _known_data(job.profile, edges)
        names = [stage.name for stage in stages]
        jobs.append(Job(job.name, works[job.profile], pairs, data, job.arrival_ms / 1000.0, names))
    return Instance(jobs, cluster, workload.label)


def _known_data(profile: JobProfile, edges: str | Mapping[str, np.ndarray]) -> Sequence[float] | None:
    """Sizes of the edges of a profile, child by child; None where they are missing."""
    if edges == MEASURED:
        return measured_data(profile)
    if edges != NATIVE:
        return edges.get(profile.name)
    if missing := silent_stages(profile):
        raise WorkloadError(
            f"job {profile.name!r}, stage {missing[0]!r} lacks the data that its parents send; expected data_mb"
        )
    return [size for stage in profile.stages if stage.parents for size in stage.data_mb]


def silent_stages(profile: JobProfile) -> list[str]:
    """Names of the stages that have parents but no data sizes of them."""
    return [stage.name for stage in profile.stages if stage.parents and stage.data_mb is None]


def tpch_instance(
    n: int = 20,
    seed: int = 0,
    *,
    edges: float | str = 1.0,
    executors: int = 50,
    interarrival_s: float | None = None,
    source: str = "embedded",
    rate: float = GIGABIT,
) -> Instance:
    """TPC-H jobs on a drawn cluster, in the setting of the paper.

    Args:
        n: Number of jobs.
        seed: 0 or more; chooses jobs, gaps, sizes of edges and speeds, each independently of the others.
        edges: Communication to computation, or ``"measured"``, as for :func:`from_workload`.
        executors: Number of executors.
        interarrival_s: Mean gap of a stream whose first job arrives at 0; all jobs at 0 when omitted.
        source: ``embedded`` (in the package) or ``tpch`` (fetched).
        rate: Rate between executors in MB/s.

    Raises:
        ConfigError: A number is out of range.
        DataUnavailableError: The source's data is not on this machine.

    Source: Section V-B.
    """
    origin = get_source(source)
    if interarrival_s is None:
        workload = origin.batch(n, seed, PAPER_SIZES)
    else:
        workload = origin.poisson(n - 1, interarrival_s, seed, PAPER_SIZES, initial=1)
    return from_workload(workload, edges, Cluster.drawn(executors, seed, rate=rate), seed)


PATH = Path(__file__).parent / "data" / "tpch_shuffle.csv"
SCALE = 0.5
_NAME = re.compile(r"q(?P<query>\d+)-(?P<scale>\d+(?:\.\d+)?)g")


def measured_data(profile: JobProfile) -> np.ndarray:
    """Size in MB of each edge of a TPC-H profile, in order, float64 [edges].

    Edges go child by child, as the stages list their parents. Every child of a stage is sent all that the stage wrote.
    Profiles of this project's Spark have the very stages that were measured. Those of others have other DAGs: there the
    stages with children, ranked by work, get the measured bytes per second of work of the stage of the same rank in the
    same query, of the last one where they are more.

    Args:
        profile: A profile of a TPC-H query, called as in ``q9-10g``.

    Raises:
        WorkloadError: The name is not that of a TPC-H query.
    """
    match = _NAME.fullmatch(profile.name)
    if match is None or int(match["query"]) not in shuffle_bytes():
        raise WorkloadError(
            f"job {profile.name!r} is not a TPC-H query, whose edges were measured; expected edges as ccr=NUMBER"
        )
    query, scale = int(match["query"]), float(match["scale"])
    (reference,) = measured_profiles(f"{SCALE:g}g", [query])
    written = shuffle_bytes()[query] / 1e6
    if [stage.parents for stage in profile.stages] == [stage.parents for stage in reference.stages]:
        sizes = written * (scale / SCALE)
    else:
        ranked = _by_work(reference)
        per_ms = [written[index] / reference.stages[index].work_ms for index in ranked]
        sizes = np.zeros(len(profile.stages))
        for rank, index in enumerate(_by_work(profile)):
            sizes[index] = per_ms[min(rank, len(per_ms) - 1)] * profile.stages[index].work_ms if per_ms else 0.0
    return np.array([sizes[parent] for stage in profile.stages for parent in stage.parents], dtype=np.float64)


def _by_work(profile: JobProfile) -> list[int]:
    """Stages that have children, the heaviest first."""
    inner = [index for index, children in enumerate(profile.children) if children]
    return sorted(inner, key=lambda index: -profile.stages[index].work_ms)


@functools.cache
def shuffle_bytes() -> dict[int, np.ndarray]:
    """Bytes that stages wrote for their children at scale factor 0.5, by query, float64 [stages].

    They are out of the event log ``data/spark/events/sf0.5-e4-r0-a0`` of the repository. At twice the scale they are
    about twice as large; sizes are taken to grow in proportion. What Spark broadcasts through its driver is not among
    them.
    """
    rows: dict[int, list[float]] = {}
    with PATH.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows.setdefault(int(row["query"]), []).append(float(row["shuffle_bytes"]))
    return {query: np.array(values) for query, values in rows.items()}
