"""Workflows of WfCommons as jobs for heterogeneous executors."""

from __future__ import annotations

import os

import numpy as np

from decima.systems.heterogeneous.json_format import read_document
from decima.systems.heterogeneous.workload import Job
from decima.workload.wfcommons import read_workflow


def import_wfcommons(path: str | os.PathLike, *, arrival_s: float = 0.0) -> Job:
    """Read a workflow as a job of nodes (tasks), work (runtimes) and data (files).

    The data of an edge is the files that the child reads of the parent. The work is the runtime in seconds, as on an
    executor of speed 1; the data is in MB. What a task reads of files that no parent writes is not counted.

    Args:
        path: The file.
        arrival_s: When the job arrives, seconds.

    Raises:
        DataUnavailableError: The file cannot be read.
        WorkloadError: The file is no JSON, of another version, or lacks tasks, runtimes or sizes of files.
    """
    flow = read_workflow(read_document(path), str(path))
    edges = [(parent, child) for child, parents in enumerate(flow.parents) for parent in parents]
    data = [size for sizes in flow.data_mb for size in sizes]
    return Job(flow.name, np.array(flow.runtime_s), edges, data, arrival_s, flow.tasks)
