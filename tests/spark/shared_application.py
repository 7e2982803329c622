"""One application of a shared cluster, as a process: folder, port of the service, master, its folder, tasks, size."""

from __future__ import annotations

import sys
from pathlib import Path

from decima.spark.cluster import StandaloneCluster
from tests.spark.real_spark import plugin_driver, slow_sum, start_queries


def main(folder: str, port: str, master: str, scratch: str, tasks: str, executors: str) -> None:
    cluster = StandaloneCluster(executors=int(executors), memory_mb=700, shuffle_service=True)
    cluster.url, cluster.folder = master, Path(scratch)
    conf = {
        "spark.decima.shared": "test",
        "spark.decima.cluster.executors": executors,
        "spark.dynamicAllocation.enabled": "false",  # do not wait for executors: there are none before there is work
        "spark.scheduler.minRegisteredResourcesRatio": "0",
    }
    with plugin_driver(Path(folder), f"127.0.0.1:{port}", conf=conf, cluster=cluster) as driver:
        name = Path(folder).name
        results = start_queries(driver, {name: slow_sum(driver, int(tasks), 1.0)}).wait(400)
    print(results[name])  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
