"""Structured and random DAGs to compare list schedulers on, and their textbook example."""

from __future__ import annotations

import math

import numpy as np

from decima.core.checks import check_whole, is_number
from decima.core.errors import ConfigError
from decima.systems.heterogeneous.cluster import Cluster
from decima.systems.heterogeneous.workload import Instance, Job


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
    the next pivot, the others go on in the next step.

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
