"""Small clusters and jobs, schedulers in Python, a mirror of the published traces."""

import hashlib
import itertools

import numpy as np

from decima.core import config
from decima.systems.cloud import Cluster, PlacementJob, PlacementWorkload, VmType, sources
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


def placements(job, cluster):
    """All placements of a job on the empty cluster: VMs of its executors, ascending."""
    rooms = [min(vm.cores // job.cores, int(vm.memory_gb // job.memory_gb)) for vm in cluster.vms]
    for counts in itertools.product(*(range(min(room, job.executors) + 1) for room in rooms)):
        if sum(counts) == job.executors:
            yield [vm for vm, count in enumerate(counts) for _ in range(count)]


class Fixed:
    """The same VMs for every job, or those of a plan by job."""

    name = "fixed"
    draws = False

    def __init__(self, vms=None, plan=None):
        self.vms, self.plan = vms, plan

    def decide(self, view):
        return self.vms if self.plan is None else self.plan[view.workload.jobs.index(view.job)]


class Filling:
    """The first VMs with room; attributes as given."""

    name = "filling"

    def __init__(self, **attributes):
        self.__dict__ |= attributes

    def decide(self, view):
        vms = [vm for vm, room in enumerate(view.room) for _ in range(room)]
        return vms[: view.job.executors] if view.fits else None


def mirrored(tmp_path, monkeypatch):
    """Folder of a mirror with two traces of one job, beside an empty data folder."""
    folder, content = tmp_path / "mirror" / "cloud_vm", b"0,1,1,2,4,3,50\n"
    folder.mkdir(parents=True)
    for name in sources.CHECKSUMS:
        (folder / name).write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    monkeypatch.setattr(sources, "CHECKSUMS", dict.fromkeys(sources.CHECKSUMS, digest))
    monkeypatch.setenv(config.MIRROR_VARIABLE, str(tmp_path / "mirror"))
    monkeypatch.setenv(config.DATA_DIR_VARIABLE, str(tmp_path / "data"))
    return folder
