"""Standalone Spark cluster on this machine, with the TPC-H tables and queries it runs."""
