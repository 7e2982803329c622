"""The systems: the simulated Spark cluster, executors of different speed, placement on cloud VMs."""
