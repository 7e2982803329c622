"""Schedulers of unequal executors; modules in this folder register themselves."""
