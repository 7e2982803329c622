"""One application of a shared cluster, as a process; its last line of output is the result of its query."""

from __future__ import annotations

import sys
from pathlib import Path

from decima.connect.cluster.standalone import StandaloneCluster
from tests.services import until
from tests.spark.real_spark import chain, plugin_driver, start_queries


def main(folder: str, service: str, master: str, scratch: str, stages: str, executors: str) -> None:
    cluster = StandaloneCluster(executors=int(executors), memory_mb=700, shuffle_service=True)
    cluster.url, cluster.folder = master, Path(scratch)
    conf = {
        "spark.decima.shared": "test",
        "spark.decima.cluster.executors": executors,
        # On a busy machine Spark may take seconds from the last task of a stage to its child.
        "spark.decima.child.wait": "20s",
        "spark.dynamicAllocation.enabled": "false",  # do not wait for executors: there are none before there is work
        "spark.scheduler.minRegisteredResourcesRatio": "0",
    }
    with plugin_driver(Path(folder), service, conf=conf, cluster=cluster) as driver:
        name = Path(folder).name
        query = chain(driver, int(stages), 4, 0.5)
        Path(folder, "up").touch()
        # Drivers take long to start; the queries are to begin together.
        until(lambda: len(list(Path(folder).parent.glob("*/up"))) == 2, 300)
        results = start_queries(driver, {name: query}).wait(400)
    print(results[name])  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
