"""Fields that some versions of Spark do not write, and what is concluded without them."""

from __future__ import annotations

from typing import NamedTuple


class Field(NamedTuple):
    """Field of an event log."""

    event: str
    name: str
    since: str  # first version of Spark that writes it
    conclusion: str  # what is concluded where it is missing
    noted: bool = True  # whether the report says so; not where nothing is guessed


# `docs/event-logs.md` has this table; tests read both, and try every row.
FIELDS = (
    Field("ApplicationStart", "App ID", "1.2", "the name of the log stands for it"),
    Field("ApplicationStart", "App Attempt ID", "1.4", "the start tells attempts apart", False),
    Field("JobStart", "Submission Time", "1.3", "the first launch of its tasks stands for it"),
    Field("JobEnd", "Completion Time", "1.3", "the last end of its tasks stands for it"),
    Field("JobStart", "Parent IDs", "1.4", "a stage waits for those of its job that had ended before its first launch"),
    Field("JobStart", "Scope", "1.4", "operators have the names of RDDs", False),
    Field("JobStart", "Resource Profile Id", "3.1", "the default profile", False),
    Field("TaskEnd", "Executor CPU Time", "2.1", "CPU times are unknown", False),
    Field("TaskEnd", "Killed", "2.2", "the reason of the end tells", False),
    Field("TaskEnd", "Partition ID", "3.3", "the index of the task, which differs in repeated stages", False),
    Field("ExecutorAdded", "Total Cores", "1.3", "the maximum number of its tasks at once"),
    Field("SQLExecutionEnd", "errorMessage", "3.4", "its jobs tell whether the query succeeded"),
    Field("SQLExecutionStart", "rootExecutionId", "3.4", "every SQL execution is a query", False),
)
