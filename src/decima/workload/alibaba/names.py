"""DAG from names of tasks: ``J4_2_3`` is task 4 with parents 2 and 3.

Source: GitHub ``alibaba/clusterdata``, ``cluster-trace-v2018/schema.md``. A task of the trace is a stage here, an
instance a task.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 50  # characters after which the trace cuts names
_DAG = re.compile(r"[A-Za-z]+(\d+)((?:_\d+)*)_?")


@dataclass(frozen=True)
class TaskName:
    """What a name says."""

    number: int  # of the task in its job, from 1
    parents: tuple[int, ...]  # numbers of the parents that are surely complete, in the order of the name, each once
    cut: bool  # whether the name was cut, so that parents are missing
    repeated: bool  # whether the name gives a parent twice


def parse_name(name: str) -> TaskName | None:
    """Read the name of a task.

    Of a name that was cut the last number may have lost digits; it is left out.

    Args:
        name: As in the trace.

    Returns:
        What it says; None for an independent task, whose name has no number of this form.
    """
    cut = len(name) >= LONGEST
    found = _DAG.fullmatch(name)
    if found is None:
        return None
    numbers = [int(each) for each in found[2].split("_")[1:]]
    if cut:
        numbers = numbers[:-1]
    parents = tuple(dict.fromkeys(numbers))
    return TaskName(int(found[1]), parents, cut, len(parents) < len(numbers))
