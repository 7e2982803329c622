"""Real Spark: event logs read into workloads, a local cluster measured, and jobs scheduled through the service."""
