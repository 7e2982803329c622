"""Entries: the scheduler that a text means, and how it came to be.

The file of an entry may not name what holds the future. That keeps out mistakes and plain reading. Nothing here stops
code that attacks the benchmark or the machine: run what you have read.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from decima.bench.references import tuned_rule
from decima.bench.tasks import Task
from decima.core.errors import ConfigError, SchedulerError
from decima.core.system import SYSTEM_MODULES, SystemScheduler, get_system, list_systems
from decima.learning.cards import how_learned
from decima.learning.store import read_card, stored_files
from decima.systems.spark.schedulers.interface import CompiledScheduler

TUNED = "tuned"  # the tuned rule of every task
FORMS = HEURISTIC, POLICY, PLANNER, PYTHON, SERVICE = "heuristic", "policy", "planner", "Python", "service"
LEARNED = ("alone", "warm", "residual")  # how policies came to their weights; two stored ones: joined by "and"
# What the file of an entry may not name: events, which hold the ends of running tasks, chance, jobs to come.
FUTURE = {
    *("heap", "heap_code", "heap_subject", "job_arrival_ms", "duration_rng", "duration_next"),
    *("heap_ms", "heap_time", "heap_node", "heap_size", "arrival_order"),
    *("next_arrival", "num_arrivals", "busy_ms", "num_jobs", "num_stages", "values_ms"),
    *("loss_ms", "unit_loss_ms", "next_loss", "num_losses", "fault_rng", "fault_next"),
}
# That of a compiled rule may not read fields without their names, either.
REFLECTION = {"getattr", "attrgetter", "vars", "globals", "eval", "exec", "import_module", "__import__", "__dict__"}
# Schedulers that read measured durations, where a task hides durations; outside code may not name the last ones.
MEASURED = ("entry_srw", "driver_time")
DURATIONS = {"list_mean_ms", "list_add_ms", "list_offset", "mean_duration_ms", "entry_cost_ms", "work_at_level_ms"}
_LEARNED = {
    "spark": ("decima",),
    "heterogeneous": ("lachesis", "decima_deft", "best_plan", "best_sample"),
    "cloud": ("learned",),
}


@dataclass(frozen=True)
class Entry:
    """What is scored."""

    text: str  # as it was written
    system: str  # its system; empty for the tuned rules, which there are for all
    form: str  # heuristic, policy, planner, Python or service
    learned: str = ""  # of a policy, how it came to its weights: alone, warm or residual
    sha256: str = ""  # of the file that it comes from
    names: frozenset[str] = frozenset()  # that its file reads

    def not_for(self, task: Task) -> str:
        """Why it does not run on a task; empty if it does."""
        if self.system and self.system != task.system:
            return f"the entry is for system {self.system}"
        # Views of stages in Python show the duration that a task states as the mean one.
        shown = {"mean_duration_ms"} if self.form == PYTHON else set()
        if task.durations_hidden and (self.text.partition(":")[0] in MEASURED or self.names & DURATIONS - shown):
            return "the entry reads measured durations, which the task hides"
        return task.missing()

    def scheduler(self, task: Task) -> SystemScheduler:
        """The scheduler on a task."""
        return task.runs_on.make_scheduler(tuned_rule(task) if self.text == TUNED else self.text)


def entry_of(text: str, system: str | None = None) -> Entry:
    """Entry of a text.

    Args:
        text: ``tuned``, or a scheduler as commands take it: a name with options, a policy or tuned card, a service, or
            ``file.py:NAME``.
        system: Its system; the first that knows the name when omitted.

    Raises:
        DecimaError: Nobody knows it, or it cannot be used here.
    """
    if text == TUNED:
        return Entry(text, "", HEURISTIC)
    if system is not None and system not in list_systems():
        raise ConfigError(f"unknown system {system!r}; known: {', '.join(list_systems())}")
    system, name = _system_of(text, system)
    if not _is_outside(system, name):
        return Entry(text, system, *_origin(get_system(system).make_scheduler(text), system, name))
    if system != "spark":
        raise ConfigError(f"{text!r:.60} is for system {system}; code from outside is scored on tasks of spark only")
    file = _file_of(name)
    names = _names_in(file)
    form = HEURISTIC if isinstance(get_system(system).make_scheduler(text), CompiledScheduler) else PYTHON
    if forbidden := sorted(names & (FUTURE if form == PYTHON else FUTURE | REFLECTION)):
        raise SchedulerError(f"{file}: an entry may not name {forbidden[0]}, by which the future can be read")
    return Entry(text, system, form, "", hashlib.sha256(file.read_bytes()).hexdigest(), names)


def _system_of(text: str, system: str | None) -> tuple[str, str]:
    """System that knows an entry, and the entry's name without options."""
    head, asked = text.partition(":")[0], [system] if system else list(SYSTEM_MODULES)
    for each in asked:
        if head in _registry(each).names():
            return each, head
    name = _registry(asked[0]).split(text)[0]
    if name.endswith(".weights.h5") and system is None:
        asked = [read_card(Path(name.removesuffix(".weights.h5") + ".json")).get("system", asked[0])]
    elif not name.endswith(".json") and not _is_outside(asked[0], name):
        _registry(asked[0]).find(name)  # which says what is known
    return asked[0], name


def _registry(system: str) -> Any:
    from importlib import import_module

    return import_module(f"decima.systems.{system}.schedulers.registry").SCHEDULERS


def _is_outside(system: str, name: str) -> bool:
    return name not in _registry(system).loaded() and bool(_registry(system).outside(name))


def _file_of(name: str) -> Path:
    """File that holds code from outside."""
    module = name.partition(":")[0]
    if module.endswith(".py"):
        path = Path(module)
    else:
        sys.path.insert(0, str(Path.cwd()))
        spec = find_spec(module)
        path = Path((spec and spec.origin) or module)
    if not path.is_file():
        raise ConfigError(f"cannot read the entry {name!r:.80}: there is no file {path}")
    return path


def _names_in(file: Path) -> frozenset[str]:
    """Attributes, names, imports and texts in a file of Python."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConfigError(f"{file} is not Python: {error}") from error
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {part for node in ast.walk(tree) if isinstance(node, ast.alias) for part in node.name.split(".")}
    names |= {(node.module or "").split(".")[-1] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return frozenset(names)


def _origin(scheduler: SystemScheduler, system: str, name: str) -> tuple[str, str]:
    """Form of a registered entry, and how it was learned."""
    if name == "remote":
        return SERVICE, ""
    if name not in _LEARNED[system] and not name.endswith(".weights.h5"):
        return HEURISTIC, ""
    forms = getattr(scheduler, "forms", None)
    stored = {_policy(each, name) for each in (forms.values() if forms else [scheduler])}
    return POLICY, " and ".join(sorted({how_learned(read_card(stored_files(each)[1])) for each in stored if each}))


def _policy(scheduler: SystemScheduler, name: str) -> str:
    """Name or path of the stored policy of a scheduler; empty where it has none."""
    values = getattr(scheduler, "values", {})
    if policy := values.get("policy"):
        return str(policy)
    return {"lachesis": "lachesis-batch", "decima_deft": "decima-deft-batch", "learned": "cloud-fast"}.get(name, "")
