"""Runs, experiments, comparisons and tuning."""
