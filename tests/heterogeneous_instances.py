"""Random small instances of heterogeneous executors, for hypothesis."""

import numpy as np
from hypothesis import strategies as st

from decima.systems.heterogeneous import Cluster, Instance, Job


def draw_instance(seed, *, jobs=3, nodes=8, executors=4, ccr=1.0, stream=False, kind="speeds", whole=False):
    """Instance drawn from a seed.

    Args:
        kind: "speeds", "rates" (a rate per pair) or "costs"; half of the uniform rates have a latency.
        whole: Whole numbers everywhere, so that many times are equal.
    """
    rng = np.random.default_rng(seed)
    made, arrival = [], 0.0
    for number in range(jobs):
        count = int(rng.integers(1, nodes + 1))
        work = rng.integers(0, 6, count).astype(float) if whole else rng.exponential(3.0, count)
        edges = [(a, b) for b in range(count) for a in range(b) if rng.random() < 0.35]
        names = rng.permutation(count)  # parents do not always have the lower number
        edges = [(int(names[a]), int(names[b])) for a, b in edges]
        data = rng.integers(0, 5, len(edges)) * ccr if whole else rng.uniform(0.0, 6.0 * ccr, len(edges))
        made.append(Job(f"job-{number}", work, edges, data, arrival))
        if stream:
            arrival += float(rng.integers(0, 4)) if whole else float(rng.exponential(4.0))
    total = sum(len(job) for job in made)
    speeds = rng.integers(1, 4, executors).astype(float) if whole else rng.uniform(0.5, 2.0, executors)
    costs = rng.integers(0, 7, (total, executors)).astype(float) if kind == "costs" else None
    rate, latency_s = 1.0, float(rng.choice([0.0, 0.0, 1.0, 0.3]))
    if kind == "rates":
        rate, latency_s = rng.uniform(0.5, 2.0, (executors, executors)), 0.3
    return Instance(made, Cluster(speeds if costs is None else None, rate, latency_s, costs))


instances = st.builds(
    draw_instance,
    st.integers(0, 10**9),
    jobs=st.integers(1, 4),
    nodes=st.integers(1, 9),
    executors=st.integers(1, 5),
    ccr=st.sampled_from([0.0, 0.1, 1.0, 5.0, 20.0]),
    stream=st.booleans(),
    kind=st.sampled_from(["speeds", "rates", "costs"]),
    whole=st.booleans(),
)
