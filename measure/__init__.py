"""Measuring TPC-H queries on real Spark, alone and together, and the workloads made of what was measured."""
