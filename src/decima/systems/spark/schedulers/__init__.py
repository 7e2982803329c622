"""Schedulers: the interface, the registry and the heuristics."""

from decima.core.decision import Parameter
from decima.core.system import form_for
from decima.systems.spark.schedulers.check import CheckReport, check_scheduler
from decima.systems.spark.schedulers.interface import (
    CompiledScheduler,
    Decision,
    JobView,
    Observation,
    Scheduler,
    StageView,
)
from decima.systems.spark.schedulers.registry import (
    Preset,
    describe_scheduler,
    list_schedulers,
    make_scheduler,
    read_scheduler,
    register,
    scheduler_options,
    scheduler_presets,
    scheduler_text,
)

__all__ = [
    "CheckReport",
    "CompiledScheduler",
    "Decision",
    "JobView",
    "Observation",
    "Parameter",
    "Preset",
    "Scheduler",
    "StageView",
    "check_scheduler",
    "describe_scheduler",
    "form_for",
    "list_schedulers",
    "make_scheduler",
    "read_scheduler",
    "register",
    "scheduler_options",
    "scheduler_presets",
    "scheduler_text",
]
