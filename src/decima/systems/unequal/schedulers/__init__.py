"""Schedulers of heterogeneous clusters, one file each; found by being here."""
