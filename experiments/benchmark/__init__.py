"""The benchmark: learned, tuned and planning schedulers compared on each of its tasks."""
