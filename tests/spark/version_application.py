"""An application for the Python of another pyspark, without this project: two queries at once; prints their results.

The tables are made of numbers, with the columns of TPC-H's that the queries need.
"""

from __future__ import annotations

import json
import sys
import threading

from pyspark import InheritableThread
from pyspark.sql import SparkSession

LINES, ORDERS = 4000, 1000
TABLES = {
    "orders": f"SELECT id AS o_orderkey, id % 5 AS o_shippriority FROM range(0, {ORDERS}, 1, 4)",
    "lineitem": f"""SELECT id % {ORDERS} AS l_orderkey, id % 3 AS l_returnflag, id % 50 + 1 AS l_quantity,
        reflect('java.lang.Thread', 'sleep', IF(id % 500 = 0, 100L, 0L)) AS slept
        FROM range(0, {LINES}, 1, 4)""",
}
QUERIES = {
    # As TPC-H's queries 1 and 3: an aggregate, and one over a join.
    "q01": "SELECT l_returnflag, sum(l_quantity) AS total, count(*) AS number FROM lineitem "
    "WHERE slept IS NOT NULL GROUP BY l_returnflag ORDER BY l_returnflag",
    "q03": "SELECT o_shippriority, sum(l_quantity) AS total, count(*) AS number FROM lineitem JOIN orders "
    "ON l_orderkey = o_orderkey WHERE slept IS NOT NULL GROUP BY o_shippriority ORDER BY o_shippriority",
}


def main(settings: dict[str, str]) -> None:
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    for name, text in TABLES.items():
        spark.sql(text).createOrReplaceTempView(name)
    barrier = threading.Barrier(len(QUERIES))
    results = {}

    def run(name: str, text: str) -> None:
        spark.sparkContext.setLocalProperty("decima.query", name)
        barrier.wait()
        results[name] = [list(row) for row in spark.sql(text).collect()]

    threads = [InheritableThread(target=run, args=query) for query in QUERIES.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spark.stop()
    print(json.dumps(results))  # noqa: T201


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
