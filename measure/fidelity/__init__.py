"""Fidelity of the simulator: its job durations against those measured on real Spark (appendix D)."""
