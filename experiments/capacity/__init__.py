"""Capacity: how many executors, from event logs, and clusters that grow, shrink and fail."""
