"""Benchmark: fixed tasks with rules, policies and bounds beside every entry."""
