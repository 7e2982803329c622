"""Running several queries at once in one SparkContext, one thread each, all submitted at the same moment."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from threading import Barrier, BrokenBarrierError
from typing import TYPE_CHECKING

from decima.exceptions import SparkError
from decima.spark.cluster import tpch_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Between two queries of a batch, so that they arrive in the order of the batch.
GAP_S = 0.02
PLAN_S = 300.0  # longest time to plan all queries
_POLL_S = 0.1


@dataclass(frozen=True)
class QueryTimes:
    """One query of a batch; times in ms since 1970.

    Attributes:
        query: its name, `q01` to `q22`.
        submit_ms: handed to Spark, planned before.
        finish_ms: its last row was at the client.
        rows: rows of its result.
    """

    query: str
    submit_ms: float
    finish_ms: float
    rows: int

    def as_dict(self) -> dict:
        """Fields by name."""
        return asdict(self)


def query_id(run: str, position: int) -> str:
    """Local property `decima.query` of a query of a run."""
    return f"{run}#{position:02d}"


def run_together(
    spark: SparkSession, names: Sequence[str], profiles: Sequence[str], run: str, scale: float
) -> list[QueryTimes]:
    """Plan all queries, then submit them in order, :data:`GAP_S` apart, and wait until all are done.

    Planning comes before the clock starts: on a cluster of this size it would take its cores from the first jobs.

    Args:
        spark: the session, tables registered.
        names: queries, `q01` to `q22`, in order of arrival.
        profiles: local property `decima.profile` of each.
        run: names the run in the ids of its tpch_queries.
        scale: TPC-H scale factor.

    Raises:
        SparkError: a query failed; says which one.
    """
    from pyspark import InheritableThread

    results: dict[int, QueryTimes] = {}
    failures: dict[int, BaseException] = {}
    planned = Barrier(len(names) + 1)

    def work(position: int, name: str, profile: str) -> None:
        context = spark.sparkContext
        try:
            context.setLocalProperty("decima.query", query_id(run, position))
            context.setLocalProperty("decima.profile", profile)
            frame = spark.sql(tpch_queries.sql(name, scale))
            frame._jdf.queryExecution().executedPlan()
            planned.wait(PLAN_S)
            time.sleep(GAP_S * position)
            submit_ms = 1000.0 * time.time()
            rows = len(frame.collect())
            results[position] = QueryTimes(name, submit_ms, 1000.0 * time.time(), rows)
        except BrokenBarrierError:
            pass  # another query could not be planned, and says why
        except Exception as error:
            failures[position] = error
            planned.abort()

    threads = [
        InheritableThread(target=work, args=(position, name, profile), daemon=True)
        for position, (name, profile) in enumerate(zip(names, profiles, strict=True))
    ]
    for thread in threads:
        thread.start()
    with contextlib.suppress(BrokenBarrierError):
        planned.wait(PLAN_S)
    while any(thread.is_alive() for thread in threads):
        # Joining with a limit leaves the main thread open to Ctrl-C.
        for thread in threads:
            thread.join(_POLL_S)
    if failures:
        position, error = min(failures.items())
        raise SparkError(f"query {names[position]} of run {run} failed: {_first_line(error)}") from error
    if len(results) < len(names):
        raise SparkError(f"run {run}: the queries were not planned within {PLAN_S:.0f} s")
    return [results[position] for position in range(len(names))]


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
