"""Schedulers: the interface, the registry and the heuristics."""

from decima.schedulers.interface import (
    CompiledScheduler,
    Decision,
    JobView,
    Observation,
    Scheduler,
    StageView,
)
from decima.schedulers.registry import describe_scheduler, list_schedulers, make_scheduler, register

__all__ = [
    "CompiledScheduler",
    "Decision",
    "JobView",
    "Observation",
    "Scheduler",
    "StageView",
    "describe_scheduler",
    "list_schedulers",
    "make_scheduler",
    "register",
]
