"""Schedulers that put executors on VMs or wait; `registry.py` has them by name."""
