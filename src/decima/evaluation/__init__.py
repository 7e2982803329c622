"""Runs, experiments, comparisons, tuning and bounds."""
