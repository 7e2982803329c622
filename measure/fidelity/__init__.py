"""Fidelity of the simulator: its job durations beside those measured on real Spark (appendix D)."""
