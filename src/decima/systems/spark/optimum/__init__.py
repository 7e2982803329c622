"""Bounds on what any scheduler can reach, and searches for the best schedule of one known instance."""
