"""Lower bounds for all schedulers, and searches for the best schedule."""
