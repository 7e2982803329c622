"""Spark event logs: from the files to tables, queries, DAGs and job profiles."""
