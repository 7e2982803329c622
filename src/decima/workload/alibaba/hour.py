"""Hour of the trace in the package ``spar``: 16,749 jobs with all durations.

It is read from the installed files of the package (extra ``alibaba``), or from a verified copy of the same rows that
``decima data fetch alibaba`` takes from ``$DECIMA_DATA_MIRROR``. No trace data is part of this project.

Source: Tian, Zheng and Wang, "Characterizing and Synthesizing Task Dependencies of Data-Parallel Jobs in Alibaba
Cloud", SoCC 2019, package ``spar`` (MIT licence); the trace: GitHub ``alibaba/clusterdata``, for research and study.
"""

from __future__ import annotations

import functools
import hashlib
import shutil
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from decima.core import config
from decima.core.errors import ChecksumError, DataUnavailableError, WorkloadError
from decima.core.files import atomic_path
from decima.workload.alibaba.assemble import StageRows, assemble
from decima.workload.alibaba.trace import Trace, TraceReport

if TYPE_CHECKING:
    import pyarrow as pa

LABEL = "Alibaba trace"
ORIGIN = "alibaba"
LENGTH_S = 3600.0
VERSION = "0.0.7"
TASKS_CSV, INSTANCES_CSV = "spar/data/samples/sample_tasks.csv", "spar/data/samples/sample_instances.csv"
_COPY = TASKS_PARQUET, INSTANCES_PARQUET = "tasks.parquet", "instances.parquet"
CHECKSUMS = {
    TASKS_CSV: "3635e21b9b7e7755cf24112ce8ff802ac086fe1a89eccdd20f39ee0f4f37fe1b",
    INSTANCES_CSV: "667cb980b2b04f53951a0d38dbf81b11b4bef18c377eeb7375004b140634b9d9",
    TASKS_PARQUET: "5354827c1c41e5e333a8375daf28fb17ce813da2fcb41082bf995f21b6c41039",
    INSTANCES_PARQUET: "ee7013f48b60e8429c675f23f7ed07424c776671f9a088135ad10d6098a81bd2",
}
_TASK_COLUMNS = ("submit_s", "job_name", "task_name", "duration_s", "plan_cpu", "plan_mem", "instance_num")
_INSTANCE_COLUMNS = ("submit_s", "job_name", "task_name", "instance_name", "duration_s", "cpu_avg", "mem_avg")
_HOW_TO_GET = (
    f"Install the extra 'alibaba' (pip install spar=={VERSION}), or set {config.MIRROR_VARIABLE} to a folder with "
    "alibaba/hour_sample and run 'decima data fetch alibaba'. The source 'alibaba_like' needs no data."
)


def fetched_folder() -> Path:
    """Folder of the copy taken from the mirror."""
    return config.data_root() / "raw" / "alibaba"


def hour_available() -> bool:
    """Whether the hour is on this machine, in the package or as a copy."""
    return _package_file(TASKS_CSV) is not None or _num_fetched() == len(_COPY)


def _num_fetched() -> int:
    return sum((fetched_folder() / name).is_file() for name in _COPY)


def fetch_line(force: bool) -> str:
    """Fetch, for ``decima data fetch alibaba``, and describe what is there."""
    if _package_file(TASKS_CSV) is not None:
        return f"alibaba: the hour is in the installed package spar {VERSION}, nothing to fetch"
    mirror = config.mirror_dir()
    folder = fetched_folder()
    if not force and _num_fetched() == len(_COPY):
        for name in _COPY:
            _verified(folder / name, name)
        return f"alibaba: 2 files in {folder}, verified"
    if mirror is None:
        raise DataUnavailableError(f"the Alibaba hour is not on this machine. {_HOW_TO_GET}")
    sources = {name: mirror / "alibaba" / "hour_sample" / name for name in _COPY}
    for name, path in sources.items():
        if not path.is_file():
            raise DataUnavailableError(f"the mirror {mirror} has no file {path}. {_HOW_TO_GET}")
        _verified(path, name)
    for name, path in sources.items():
        with atomic_path(folder / name) as temporary:
            shutil.copyfile(path, temporary)
    return f"alibaba: 2 files in {folder}, verified (source: {mirror})"


def status_line() -> str:
    """What ``decima data status`` says of the hour."""
    if _package_file(TASKS_CSV) is not None:
        return f"the hour of package spar {VERSION}"
    return f"package spar {VERSION} is not installed; {_num_fetched()} of 2 files in {fetched_folder()}"


@functools.lru_cache(maxsize=1)
def read_hour() -> Trace:
    """Read the hour and verify its checksums; the same object every time.

    Raises:
        DataUnavailableError: It is neither installed nor fetched, or another version of the package is installed.
        ChecksumError: A file was changed.
    """
    tasks, instances = _package_file(TASKS_CSV), _package_file(INSTANCES_CSV)
    if tasks is not None and instances is not None:
        return read_csv(_verified(tasks, TASKS_CSV), _verified(instances, INSTANCES_CSV))
    folder = fetched_folder()
    if not hour_available():
        raise DataUnavailableError(f"the Alibaba hour is not on this machine. {_HOW_TO_GET}")
    return _read_parquet(*(_verified(folder / name, name) for name in _COPY))


def read_csv(tasks: Path, instances: Path, length_s: float = LENGTH_S) -> Trace:
    """Read two files in the format of the package's samples.

    Args:
        tasks: A row per stage: arrival, job, stage, length, plan_cpu, plan_mem, number of tasks; no header.
        instances: A row per task: arrival, job, stage, name, duration, average cpu and memory; no header.
        length_s: Time from the first possible arrival to the last.

    Raises:
        DataUnavailableError: A file is missing.
        WorkloadError: A file has other columns, or no whole job is left.
    """
    import pyarrow as pa

    table = pa.Table.from_batches(
        read_blocks(tasks, _TASK_COLUMNS, _TASK_COLUMNS, set(_TASK_COLUMNS) - {"job_name", "task_name"})
    )
    keys = TaskKeys(table["job_name"].to_pylist(), table["task_name"].to_pylist())
    row, seconds = [], []
    report = TraceReport()
    for block in read_blocks(instances, _INSTANCE_COLUMNS, ("job_name", "task_name", "duration_s"), ("duration_s",)):
        row_of = keys.rows(block["job_name"], block["task_name"])
        duration = block["duration_s"].to_numpy(zero_copy_only=False)
        whole = (row_of >= 0) & (duration >= 0.0)
        report.unfinished_instances += int(np.count_nonzero(~whole))
        row.append(row_of[whole])
        seconds.append(duration[whole])
    return _trace(table, np.concatenate(row), np.concatenate(seconds), length_s, report)


def _read_parquet(tasks: Path, instances: Path) -> Trace:
    import pyarrow.parquet as pq

    table = pq.read_table(tasks, columns=list(_TASK_COLUMNS))
    durations = pq.read_table(instances, columns=["task_row", "duration_s"])
    row = durations["task_row"].to_numpy().astype(np.int64)
    seconds = durations["duration_s"].to_numpy().astype(np.float64)
    return _trace(table, row, seconds, LENGTH_S, TraceReport())


def _trace(table, row, seconds, length_s, report) -> Trace:
    """Assemble the stages of an Arrow table, all of which have finished."""
    names = (table[name].to_pylist() for name in ("job_name", "task_name"))
    columns = ("submit_s", "duration_s", "instance_num", "plan_cpu", "plan_mem")
    numbers = (table[name].to_numpy().astype(np.float64) for name in columns)
    rows = StageRows(*names, *numbers, np.ones(len(table), dtype=bool))
    return assemble(rows, row, seconds, label=LABEL, source=ORIGIN, length_s=length_s, report=report)


def _package_file(name: str) -> Path | None:
    """Path of an installed file of the package, None if the package is absent."""
    try:
        distribution = metadata.distribution("spar")
    except metadata.PackageNotFoundError:
        return None
    if distribution.version != VERSION:
        raise DataUnavailableError(f"package spar {distribution.version} is installed, without the hour. {_HOW_TO_GET}")
    path = Path(str(distribution.locate_file(name)))
    if not path.is_file():
        raise DataUnavailableError(f"package spar {VERSION} lacks {path}; install it anew")
    return path


def _verified(path: Path, name: str) -> Path:
    with open(path, "rb") as content:
        got = hashlib.file_digest(content, "sha256").hexdigest()
    if got != CHECKSUMS[name]:
        raise ChecksumError(f"{path}: got SHA-256 {got}, expected {CHECKSUMS[name]} for {name} of the Alibaba hour")
    return path


# ---- csv files without a header, block by block, in bounded memory ---------------------------------------------------


BLOCK_BYTES = 16 << 20
_NUMBER_OR_NOTHING = r"^([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)?$"


def read_blocks(
    path: Path,
    names: Sequence[str],
    wanted: Sequence[str],
    numbers: Sequence[str],
    block_bytes: int = BLOCK_BYTES,
    malformed: list[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read some columns of a csv file, a block at a time.

    Malformed rows are counted: those with another number of columns are left out, and those with a text where a number
    is expected have no numbers.

    Args:
        path: The file.
        names: All its columns, in order.
        wanted: Columns to read.
        numbers: Those of them that are numbers (float64, null where empty); the others are texts.
        block_bytes: Size of a block.
        malformed: Gets the number of malformed rows.

    Raises:
        DataUnavailableError: There is no such file.
        WorkloadError: All rows are malformed, or it is not a csv file in UTF-8.
    """
    import pyarrow as pa
    from pyarrow import csv

    types = {name: pa.float64() if name in numbers else pa.string() for name in wanted}
    rows, skipped, textual, reason = 0, 0, 0, ""

    def skip(row: csv.InvalidRow) -> str:
        nonlocal skipped, reason
        skipped, reason = skipped + 1, reason or f"a row has {row.actual_columns} columns"
        return "skip"

    try:
        blocks = csv.open_csv(
            path,
            read_options=csv.ReadOptions(column_names=list(names), block_size=block_bytes),
            parse_options=csv.ParseOptions(invalid_row_handler=skip),
            convert_options=csv.ConvertOptions(
                include_columns=list(wanted), column_types=dict.fromkeys(wanted, pa.string()), strings_can_be_null=False
            ),
        )
        for block in blocks:
            good, converted = _converted(block, types)
            rows += len(block)
            if wrong := len(block) - int(np.count_nonzero(good)):
                textual, reason = textual + wrong, reason or "a row has a text where a number is expected"
            yield converted
    except OSError as error:
        raise DataUnavailableError(f"cannot read {path}: {error.strerror or error}") from error
    except pa.ArrowInvalid as error:
        rows, skipped, reason = 0, 1, str(error).splitlines()[0]
    if skipped + textual and textual >= rows:
        raise WorkloadError(f"{path}: {reason:.200}; expected csv with the columns {', '.join(names)}")
    if malformed is not None:
        malformed.append(skipped + textual)


def _converted(block: pa.RecordBatch, types: dict) -> tuple[np.ndarray, pa.RecordBatch]:
    """Rows whose numbers are all numbers, and the block of texts with numbers in these."""
    import pyarrow as pa
    import pyarrow.compute as pc

    good = pa.array(np.ones(len(block), dtype=bool))
    for name, wanted in types.items():
        if wanted == pa.float64():
            good = pc.and_(good, pc.match_substring_regex(block[name], _NUMBER_OR_NOTHING))
    columns = []
    for name, wanted in types.items():
        texts = block[name]
        if wanted == pa.float64():
            texts = pc.if_else(pc.and_(good, pc.not_equal(texts, "")), texts, None)
        columns.append(pc.cast(texts, wanted))
    return good.to_numpy(zero_copy_only=False), pa.RecordBatch.from_arrays(columns, names=list(types))


class TaskKeys:
    """Rows of stages by the names of job and task, for many names."""

    def __init__(self, job: Sequence[str], task: Sequence[str]) -> None:
        import pyarrow as pa

        self._keys = _joined(pa.array(job, pa.string()), pa.array(task, pa.string()))

    def rows(self, job: pa.Array, task: pa.Array) -> np.ndarray:
        """Row of each pair of names, int64, -1 where there is none."""
        import pyarrow.compute as pc

        index = pc.index_in(_joined(job, task), value_set=self._keys)
        return pc.fill_null(index, -1).to_numpy(zero_copy_only=False).astype(np.int64)


def _joined(job, task):
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(job, task, "/")
