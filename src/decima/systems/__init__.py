"""The systems: the simulated Spark cluster, executors of unequal speed, placement on cloud VMs."""
