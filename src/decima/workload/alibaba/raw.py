"""Raw files of the trace, ``batch_task.csv`` and ``batch_instance.csv``: a window of them, whatever their size.

The files (0.8 and 100 GB unpacked) are read block by block: twice the stages, once the instances. Memory grows with the
jobs of the window and with a block, not with the files.

Source: GitHub ``alibaba/clusterdata``, ``cluster-trace-v2018``; neither file has a header.
"""

import functools
import math
from pathlib import Path

import numpy as np

from decima.core.checks import is_number
from decima.core.errors import ConfigError, DataUnavailableError, WorkloadError
from decima.workload.alibaba.assemble import StageRows, assemble
from decima.workload.alibaba.hour import BLOCK_BYTES, LENGTH_S, ORIGIN, TaskKeys, read_blocks
from decima.workload.alibaba.trace import Trace, TraceReport

LABEL = "Alibaba trace (raw files)"
TASKS, INSTANCES = "batch_task.csv", "batch_instance.csv"
START_S = 203_040.0  # where the hour of the package begins
DONE = "Terminated"
_TASK_COLUMNS = (
    "task_name",
    "instance_num",
    "job_name",
    "task_type",
    "status",
    "start_time",
    "end_time",
    "plan_cpu",
    "plan_mem",
)
_INSTANCE_COLUMNS = (
    "instance_name",
    "task_name",
    "job_name",
    "task_type",
    "status",
    "start_time",
    "end_time",
    "machine_id",
    "seq_no",
    "total_seq_no",
    "cpu_avg",
    "cpu_max",
    "mem_avg",
    "mem_max",
)
_TASK_NUMBERS = ("instance_num", "start_time", "end_time", "plan_cpu", "plan_mem")
_TASK_TEXTS = ("task_name", "job_name", "status")


@functools.lru_cache(maxsize=2)
def read_raw(
    folder: str | Path, start_s: float = START_S, length_s: float = LENGTH_S, block_bytes: int = BLOCK_BYTES
) -> Trace:
    """Read the jobs whose first stage starts in a window.

    Args:
        folder: Folder with ``batch_task.csv`` and, if durations of instances are to be known, ``batch_instance.csv``.
            Without the latter the length of a stage stands for its tasks; it is not a service time.
        start_s: Beginning of the window in seconds of the trace.
        length_s: Length of the window in seconds.
        block_bytes: Bytes to hold at a time.

    Raises:
        ConfigError: The window is none.
        DataUnavailableError: There is no ``batch_task.csv``.
        WorkloadError: A file has other columns, or the window holds no whole job.

    Warns:
        UserWarning: Jobs or rows are left out, with reasons and first names.
    """
    if not is_number(start_s) or not 0.0 <= start_s < math.inf:
        raise ConfigError(f"start_s is {start_s!r}; expected seconds of at least 0")
    if not is_number(length_s) or not 0.0 < length_s < math.inf:
        raise ConfigError(f"length_s is {length_s!r}; expected seconds above 0")
    tasks, instances = Path(folder) / TASKS, Path(folder) / INSTANCES
    if not tasks.is_file():
        raise DataUnavailableError(f"there is no file {tasks}; expected a folder with {TASKS} of the trace of 2018")
    report = TraceReport()
    rows = _rows(tasks, start_s, length_s, report, block_bytes)
    row, seconds = np.zeros(0, dtype=np.int64), np.zeros(0)
    if instances.is_file():
        row, seconds = _instances(instances, TaskKeys(rows.job, rows.task), report, block_bytes)
    return assemble(rows, row, seconds, label=LABEL, source=ORIGIN, length_s=float(length_s), report=report)


def _rows(path: Path, start_s: float, length_s: float, report: TraceReport, block_bytes: int) -> StageRows:
    """Rows of the jobs whose earliest stage starts in the window."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names: set[str] = set()
    for block in read_blocks(path, _TASK_COLUMNS, ("job_name", "start_time"), ("start_time",), block_bytes):
        start = block["start_time"].to_numpy(zero_copy_only=False)
        inside = (start >= start_s) & (start < start_s + length_s) & (start > 0.0)
        names.update(block["job_name"].filter(pa.array(inside)).to_pylist())
    if not names:
        raise WorkloadError(f"{path}: no job starts from {start_s:g} to {start_s + length_s:g} s; expected some")
    known = pa.array(sorted(names), pa.string())
    wanted = (*_TASK_TEXTS, *_TASK_NUMBERS)
    blocks, malformed = [], []
    for block in read_blocks(path, _TASK_COLUMNS, wanted, _TASK_NUMBERS, block_bytes, malformed):
        kept = block.filter(pc.is_in(block["job_name"], value_set=known))
        if len(kept):
            blocks.append(kept)
    report.malformed_rows += sum(malformed)
    table = pa.Table.from_batches(blocks)
    job = table["job_name"].to_pylist()
    number = {name: table[name].to_numpy() for name in _TASK_NUMBERS}
    # Stages that have not started have start 0; the job began with the earliest that has.
    begun = np.where(number["start_time"] > 0.0, number["start_time"], math.inf)
    first: dict[str, float] = {}
    for name, start in zip(job, begun.tolist(), strict=True):
        first[name] = min(start, first.get(name, math.inf))
    inside = [start_s <= first[name] < start_s + length_s for name in job]
    if not any(inside):
        raise WorkloadError(f"{path}: no job starts from {start_s:g} to {start_s + length_s:g} s; expected some")
    chosen = np.flatnonzero(inside)
    task, status = table["task_name"].to_pylist(), table["status"].to_pylist()
    return StageRows(
        [job[row] for row in chosen],
        [task[row] for row in chosen],
        np.array([first[job[row]] - start_s for row in chosen]),
        (number["end_time"] - number["start_time"])[chosen],
        number["instance_num"][chosen],
        number["plan_cpu"][chosen],
        number["plan_mem"][chosen],
        np.array([status[row] == DONE for row in chosen]) & (number["start_time"][chosen] > 0.0),
    )


def _instances(path: Path, keys: TaskKeys, report: TraceReport, block_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and duration in seconds of every finished instance of the rows."""
    wanted = ("task_name", "job_name", "status", "start_time", "end_time")
    row, seconds = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    malformed: list[int] = []
    for block in read_blocks(path, _INSTANCE_COLUMNS, wanted, ("start_time", "end_time"), block_bytes, malformed):
        row_of = keys.rows(block["job_name"], block["task_name"])
        ours = row_of >= 0
        if not ours.any():
            continue
        start = block["start_time"].to_numpy(zero_copy_only=False)
        duration = block["end_time"].to_numpy(zero_copy_only=False) - start
        done = np.array([status == DONE for status in block["status"].to_pylist()])
        whole = ours & done & (start > 0.0) & (duration >= 0.0)
        report.unfinished_instances += int(np.count_nonzero(ours & ~whole))
        row.append(row_of[whole])
        seconds.append(duration[whole])
    report.malformed_rows += sum(malformed)
    return np.concatenate(row), np.concatenate(seconds)
