"""Luo et al.: Learning to Optimize DAG Scheduling in Heterogeneous Environment (Lachesis)."""
