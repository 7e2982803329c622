"""A standalone Spark cluster on this machine, and the TPC-H tables and queries that run on it."""
