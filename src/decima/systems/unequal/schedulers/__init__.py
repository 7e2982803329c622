"""Schedulers of unequal executors; found by being here."""
