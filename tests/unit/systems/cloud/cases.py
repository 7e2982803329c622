"""Small clusters and jobs."""

import numpy as np

from decima.systems.cloud import Cluster, PlacementJob, PlacementWorkload, VmType
from decima.systems.cloud.workload import jobs_of_rows

# Figure 2: VMs (4 cores, 8 GB) and (8, 16); job 1 has two executors of (4, 8), job 2 one of (6, 10).
FIGURE_2 = Cluster((VmType("small", 4, 8.0, 1, 3600.0), VmType("large", 8, 16.0, 1, 7200.0)), label="Figure 2")
FIGURE_2_JOBS = jobs_of_rows([(0, 1, 1, 4, 8, 2, 10), (1, 2, 2, 6, 10, 1, 20)], "Figure 2")
# Prices of 1 and 2 per second.
TWO_KINDS = Cluster((VmType("small", 4, 8.0, 2, 3600.0), VmType("large", 8, 16.0, 1, 7200.0)), label="two kinds")


def drawn_jobs(seed, n=6, gap=8.0, most=3, cores=4):
    """Small jobs that fit TWO_KINDS, many of them at the same time."""
    rng = np.random.default_rng(seed)
    jobs, now = [], 0.0
    for number in range(n):
        now += float(rng.integers(0, int(2 * gap) + 1))
        jobs.append(
            PlacementJob(
                now,
                number + 1,
                int(rng.integers(1, 4)),
                int(rng.integers(1, cores + 1)),
                float(rng.integers(2, 9)),
                int(rng.integers(1, most + 1)),
                float(rng.integers(5, 21)),
            )
        )
    return PlacementWorkload(tuple(jobs), f"drawn {seed}")
