"""Real Spark: workloads from event logs, measurements on a local cluster, scheduling through the service."""
