"""Decima (SIGCOMM 2019): Learning Scheduling Algorithms for Data Processing Clusters."""
