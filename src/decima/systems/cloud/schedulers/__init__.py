"""Rules that place the executors of a job or let it wait, one file per kind; `registry.py` has them by name."""
