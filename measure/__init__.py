"""Measuring TPC-H queries on real Spark, alone and together, for workloads."""
