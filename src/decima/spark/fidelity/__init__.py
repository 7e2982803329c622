"""What the simulator says of runs that were measured on real Spark (appendix D)."""
