"""Schedulers of heterogeneous executors; modules in this folder register themselves."""
