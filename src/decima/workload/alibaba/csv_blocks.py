"""Block-wise reading of csv files without a header, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from decima.core.errors import DataUnavailableError, WorkloadError

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_BYTES = 16 << 20


def read_blocks(
    path: Path, names: Sequence[str], wanted: Sequence[str], numbers: Sequence[str], block_bytes: int = BLOCK_BYTES
) -> Iterator[pa.RecordBatch]:
    """Read some columns of a csv file, a block at a time.

    Args:
        path: The file.
        names: All its columns, in order.
        wanted: Columns to read.
        numbers: Those of them that are numbers (float64, null where empty); the others are texts.
        block_bytes: Size of a block.

    Raises:
        DataUnavailableError: There is no such file.
        WorkloadError: The file has other columns, or a text where a number is expected.
    """
    import pyarrow as pa
    from pyarrow import csv

    types = {name: pa.float64() if name in numbers else pa.string() for name in wanted}
    try:
        reader = csv.open_csv(
            path,
            read_options=csv.ReadOptions(column_names=list(names), block_size=block_bytes),
            convert_options=csv.ConvertOptions(
                include_columns=list(wanted), column_types=types, null_values=[""], strings_can_be_null=False
            ),
        )
        yield from reader
    except OSError as error:
        raise DataUnavailableError(f"cannot read {path}: {error.strerror or error}") from error
    except pa.ArrowInvalid as error:
        reason = str(error).splitlines()[0]
        raise WorkloadError(f"{path}: {reason:.200}; expected csv with the columns {', '.join(names)}") from error


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
