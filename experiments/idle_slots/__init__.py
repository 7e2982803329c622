"""Duan and Wu: Improving Learning-Based DAG Scheduling by Inserting Deliberate Idle Slots."""
