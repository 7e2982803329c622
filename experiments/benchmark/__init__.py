"""The benchmark: what learned, tuned and planned schedulers are worth on each of its tasks."""
