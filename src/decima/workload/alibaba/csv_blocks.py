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
