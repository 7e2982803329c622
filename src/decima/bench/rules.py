"""Rules as one Python function of features per stage, for programs that write rules.

A file has a function ``rule`` whose arguments are names of :data:`FEATURES`. It returns a number: of the stages that
may be chosen the one with the smallest number goes first and gets all executors it can use. A rule that returns two
numbers says with the second one how many executors the job of the stage may hold. The function is compiled where
Numba can, else it is interpreted; both decide alike. It may use public names of ``math`` and the parts of Python in
``_ALLOWED``; as nothing else passes, it reaches no object that outlives it.
"""

from __future__ import annotations

import ast
import ctypes
import math
from collections.abc import Callable
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

from numba import cfunc, types

from decima.core.decision import CompiledDecision, Parameter, call_decide, places
from decima.core.errors import SchedulerError
from decima.core.grammar import hint
from decima.core.jit import njit
from decima.core.record import F64, LOCAL, FieldGroup, Record, RecordType, fields
from decima.systems.spark.fields import NONE, state_at
from decima.systems.spark.rules.choices import choose, choose_idle, job_allocation, remaining_work_ms
from decima.systems.spark.rules.frontier import stage_room
from decima.systems.spark.schedulers.fields import rule_of
from decima.systems.spark.schedulers.interface import CompiledScheduler

FEATURES = FieldGroup.of(
    "features",
    fields(
        F64,
        None,
        job_work_s="work of the job: tasks times nominal duration over all stages",
        job_remaining_s="work of the job that is left",
        job_age_s="time since the job arrived",
        job_order="number of jobs in the system that arrived before",
        job_executors="executors that the job keeps, without those on offer",
        job_stages="stages of the job that are unfinished",
        job_is_source="1: the executors on offer come from this job, so that they need not move",
        stage_tasks="tasks of the stage that are not launched",
        stage_unfinished="tasks of the stage that are not finished",
        stage_executors="executors at the stage",
        stage_duration_s="nominal duration of a task",
        stage_path_s="work on the heaviest path from the stage down",
        stage_runnable="1: all parents have finished; 0: they are about to",
        stage_memory="memory that a task asks for, 0 where none",
        jobs="jobs in the system",
        work_s="remaining work of all jobs in the system",
        executors="executors of the cluster",
        offered="executors on offer",
    ),
)
NAMES = tuple(field.name for field in FEATURES.fields)
_ROW = RecordType(
    "the features of a stage",
    FEATURES,
    FieldGroup.of(
        "answer",
        fields(F64, None, answer="the smallest goes first", most="executors that the job may hold"),
        fields(F64, None, refers=LOCAL, failed="1: an answer was not a finite number"),
    ),
)
_row_at = _ROW.at
_UNLIMITED = 1e9
PARAMETERS = tuple(
    Parameter(name, 0, 0, 2**53, f"address of the {what}") for name, what in (("row", "features"), ("rule", "rule"))
)
P = places(PARAMETERS)


@njit
def _fill_job(state, row, job):
    row.job_work_s = state.job_work_ms[job] / 1000.0
    row.job_remaining_s = remaining_work_ms(state, job) / 1000.0
    row.job_age_s = (state.now_ms - state.job_arrival_ms[job]) / 1000.0
    row.job_executors = job_allocation(state, job)
    row.job_stages = state.job_unfinished[job]
    row.job_is_source = 1.0 if job == state.source_job else 0.0


@njit
def _fill_stage(state, row, stage):
    nominal = state.stage_row[stage]
    row.stage_tasks = state.stage_tasks[stage] - state.stage_next[stage]
    row.stage_unfinished = state.stage_tasks[stage] - state.stage_finished_tasks[stage]
    row.stage_executors = state.stage_executors[stage]
    row.stage_duration_s = state.row_nominal_ms[nominal] / 1000.0
    row.stage_path_s = state.row_path_work_ms[nominal] / 1000.0
    row.stage_runnable = state.stage_runnable[stage]
    row.stage_memory = state.stage_memory[stage]


@CompiledDecision.reading(PARAMETERS)
def _scored(address):
    state = state_at(address)
    if state.num_frontier == 0:
        choose_idle(state)
        return
    params = rule_of(state).params
    row, function = _row_at(int(params[P.row])), int(params[P.rule])
    row.jobs, row.executors, row.offered = state.num_active, state.num_executors, state.num_source
    row.work_s = 0.0
    for index in range(state.num_active):
        row.work_s += remaining_work_ms(state, state.active[index]) / 1000.0
    # The first stage below its limit, and the first of all.
    best, best_answer, most, first, first_answer = NONE, 0.0, 0.0, NONE, 0.0
    for index in range(state.num_active):
        job = state.active[index]
        if state.job_frontier[job] == 0:
            continue
        _fill_job(state, row, job)
        row.job_order = index
        for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
            if not state.stage_in_frontier[stage]:
                continue
            _fill_stage(state, row, stage)
            row.answer, row.most = math.nan, _UNLIMITED  # which stay where the rule raises
            call_decide(function, row)
            if not (abs(row.answer) < 1e300 and abs(row.most) < 1e300):
                row.failed = 1.0
                continue
            if first == NONE or row.answer < first_answer:
                first, first_answer = stage, row.answer
            if row.job_executors < row.most and (best == NONE or row.answer < best_answer):
                best, best_answer, most = stage, row.answer, row.most - row.job_executors
    if first == NONE:
        choose_idle(state)
        return
    if best == NONE:  # every job has its limit: what is left is divided evenly
        best, most = first, (state.num_source - 1) // state.num_frontier + 1
    choose(state, best, int(max(1.0, min(min(most, float(state.num_source)), float(stage_room(state, best))))))


class Rule(CompiledScheduler):
    """Scheduler of a function of features.

    Args:
        function: The function.
        pair: Whether it returns two numbers.

    Attributes:
        compiled: Whether it is compiled.
        error: What it raised where it is interpreted; None if nothing.
    """

    def __init__(self, function: FunctionType, pair: bool) -> None:
        self.arguments = function.__code__.co_varnames[: function.__code__.co_argcount]
        self.row, self.error = Record(_ROW, {}), None
        try:
            self._keep, self.compiled = _compile(function, self.arguments, pair), True
            address = self._keep.address
        except Exception:  # whatever Numba does not know
            self._keep, self.compiled = ctypes.CFUNCTYPE(None, ctypes.c_int64)(self._interpret(function)), False
            address = ctypes.cast(self._keep, ctypes.c_void_p).value
        super().__init__("rule", _scored, {"row": float(self.row.address), "rule": float(address)})

    concurrent = False

    def bind(self, state: Any) -> None:
        """Begin a run."""
        self.row.put(failed=0.0)
        self.error = None
        super().bind(state)

    def _interpret(self, function: Callable) -> Callable[[int], None]:
        row = self.row

        def call(_: int) -> None:
            try:
                answer = function(*(getattr(row, name) for name in self.arguments))
                numbers = answer if isinstance(answer, tuple) else (answer, _UNLIMITED)
                if len(numbers) != 2 or not all(isinstance(each, (int, float)) for each in numbers):
                    raise SchedulerError(f"the rule returned {answer!r:.60}; expected one number or two")
                row.put(answer=float(numbers[0]), most=float(numbers[1]))
            except Exception as error:
                self.error = self.error or error
                row.put(answer=math.nan)

        return call


def _compile(function: FunctionType, arguments: tuple[str, ...], pair: bool) -> Any:
    """Compiled function of the address of a row, with the rule inside."""
    values = ", ".join(f"row.{name}" for name in arguments)
    source = f"def call(address):\n    row = row_at(address)\n    answer = rule({values})\n"
    source += "    row.answer, row.most = answer\n" if pair else "    row.answer = answer\n"
    names = {"row_at": _row_at, "rule": njit(function, inline="always")}  # one compilation instead of two
    exec(source, names)
    return cfunc(types.void(types.int64))(names["call"])


# ---- files -----------------------------------------------------------------------------------------------------------

_BUILTINS = (abs, bool, enumerate, float, int, len, max, min, pow, range, round, sum, tuple, zip)
_PUBLIC = frozenset(name for name in dir(math) if not name.startswith("_"))
# What the language of rules has; everything else of Python is refused.
_ALLOWED = (
    *(ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Expr, ast.Pass),
    *(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.expr_context),
    *(ast.If, ast.For, ast.While, ast.Break, ast.Continue, ast.IfExp),
    *(ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.boolop, ast.operator, ast.unaryop, ast.cmpop),
    *(ast.Constant, ast.Name, ast.Call, ast.keyword, ast.Starred, ast.Subscript, ast.Slice),
    *(ast.Tuple, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    *(ast.comprehension, ast.JoinedStr, ast.FormattedValue),
)


def read_rule(path: Path) -> Rule:
    """Rule of a file.

    Raises:
        SchedulerError: The file is not Python, has no function ``rule`` of features, or uses what a rule may not use.
    """
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        tree.body = [node for node in tree.body if not _imports_math(node)]
        of_attributes = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(tree):
            if what := _refused(node, node in tree.body, id(node) in of_attributes):
                raise SchedulerError(f"{path}: a rule may not {what} (line {getattr(node, 'lineno', 1)})")
        code = compile(tree, str(path), "exec")
    except OSError as error:
        raise SchedulerError(f"cannot read {path}: {error.strerror}") from error
    except (RecursionError, MemoryError) as error:
        raise SchedulerError(f"{path}: expressions are nested too deeply") from error
    except (SyntaxError, ValueError) as error:
        raise SchedulerError(f"{path} is not Python: {error}") from error
    definitions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if "rule" not in definitions:
        raise SchedulerError(f"{path} has no function rule; expected def rule(job_remaining_s, ...)")
    names: dict[str, Any] = {"__builtins__": {each.__name__: each for each in _BUILTINS}, "math": math}
    try:
        exec(code, names)
    except Exception as error:
        raise SchedulerError(f"{path} raised {type(error).__name__}: {error}") from error
    for name, value in names.items():
        if not name.startswith("__") and name != "math" and not _is_constant(value):
            raise SchedulerError(
                f"{path}: {name} is a {type(value).__name__}; outside of functions a rule has numbers, texts and tuples"
            )
    function = names["rule"]
    if not isinstance(function, FunctionType):
        raise SchedulerError(f"{path}: rule is not a function; expected def rule(job_remaining_s, ...)")
    arguments = function.__code__.co_varnames[: function.__code__.co_argcount]
    if unknown := [name for name in arguments if name not in NAMES]:
        raise SchedulerError(f"{path}: there is no feature {unknown[0]!r}{hint(unknown[0], NAMES)}")
    returned = [node.value for node in ast.walk(definitions["rule"]) if isinstance(node, ast.Return)]
    return Rule(function, bool(returned) and isinstance(returned[0], ast.Tuple))


def _imports_math(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import) and all(each.name == "math" and not each.asname for each in node.names)


def _is_constant(value: Any) -> bool:
    """Whether a value is immutable: a file keeps nothing from run to run."""
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return value is None or isinstance(value, (bool, int, float, str, range, type, FunctionType, BuiltinFunctionType))


def _refused(node: ast.AST, outermost: bool, of_attribute: bool) -> str:
    """What a rule may not do with a node; empty if it may."""
    match node:
        case ast.Import() | ast.ImportFrom():
            return "import modules other than math, which 'import math' at the top of the file imports"
        case ast.Attribute(value=ast.Name(id="math"), attr=attribute, ctx=ast.Load()) if attribute in _PUBLIC:
            return ""
        case ast.Attribute(attr=attribute):
            return f"have attributes ({attribute})"
        case ast.FunctionDef(decorator_list=[_, *_]) | ast.arguments(defaults=[_, *_]) | ast.arguments(kwarg=ast.arg()):
            return "have decorators, defaults of arguments or arguments with stars"
        case ast.arguments(vararg=ast.arg()) | ast.arguments(kwonlyargs=[_, *_]):
            return "have decorators, defaults of arguments or arguments with stars"
        case ast.FunctionDef() if not outermost:
            return "have functions inside of functions"
        case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) if name.startswith("__"):
            return f"use {name}"
        case ast.Name(id="math") if not of_attribute:
            return "use math but for its functions and constants, nor bind that name"
        case ast.arg(arg="math") | ast.FunctionDef(name="math"):
            return "use math but for its functions and constants, nor bind that name"
    return "" if isinstance(node, _ALLOWED) else f"use {type(node).__name__}"
