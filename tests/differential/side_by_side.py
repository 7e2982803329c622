"""Runs the compiled core and the oracle on the same decisions and the same random numbers, and compares everything."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from decima.core.errors import DeadlockError, InvalidDecisionError
from decima.systems.spark.decision import parts_of
from decima.systems.spark.log import EpisodeLog
from decima.systems.spark.loop import spawn_generators
from decima.systems.spark.state import ClusterState
from decima.systems.spark.system import run_state
from decima.systems.spark.tables import WorkloadTables
from tests.differential.oracle import OracleDeadlockError, OracleDecisionError, OracleSimulator
from tests.differential.oracle_policies import Replay
from tests.differential.oracle_units import OracleUnits

LOSSES = ("executors", "tasks", "outputs", "copies")


@dataclass
class Outcome:
    """What is compared. Lists of plain numbers, None for NaN; `tasks` and `decisions` as the oracle writes them."""

    decisions: list
    tasks: list
    completion_ms: list
    completion_order: list
    stage_finish_ms: list
    num_events: dict
    slot_ends: int
    now_ms: float
    truncated: bool
    busy_ms: float
    error: str
    lives: list  # registrations of Spark executors that have ended
    losses: dict


def oracle_for(workload, settings, seed=0):
    """The oracle under the same settings, drawing the same random numbers as the core does from `seed`."""
    make = partial(OracleUnits, cluster=settings, seed=seed) if settings.elastic else OracleSimulator
    return make(
        workload,
        settings.executors,
        moving_delay_ms=settings.moving_delay_ms,
        warmup_delay_ms=settings.warmup_delay_ms,
        key_rule=settings.level_rule,
        durations=settings.durations,
        rng=spawn_generators(seed)[0],
        job_limit=settings.job_limit,
        reoffer=settings.reoffer,
        commit_ahead=settings.commit_ahead,
        keep_warm=settings.keep_warm,
        runnable_only=settings.runnable_only,
        first_wave=settings.first_wave,
        startup=settings.startup,
        inflation=settings.inflation,
        time_limit_ms=settings.time_limit_ms if settings.time_limit_applies else math.inf,
        job_bound=settings.job_bound,
        classes=settings.classes,
    )


def new_state(workload, settings):
    """A state with both logs on."""
    return ClusterState(WorkloadTables(workload, settings), settings, log_tasks=True, log_decisions=True)


def core_run(workload, settings, scheduler, seed=0):
    """Outcome of the compiled core under a scheduler."""
    state = new_state(workload, settings)
    return core_outcome(state, lambda: run_state(state, scheduler, seed))


def core_run_driven(workload, settings, choose, seed=0):
    """Outcome of the compiled core; `choose(state)` returns (stage id or -1, limit, ...) at every decision."""
    state = new_state(workload, settings)

    def run():
        state.start(*spawn_generators(seed))
        while state.advance():
            state.decide(*choose(state))

    return core_outcome(state, run)


def core_outcome(state, run):
    """Outcome of `run()` on the state, whether it ends well or not; a refused decision is the last one listed."""
    error, refused = "", []
    try:
        run()
    except DeadlockError:
        error = "deadlock"
    except InvalidDecisionError:
        error = "invalid"
        stage, limit, delay_ms, kind = parts_of(state.action)
        job = None if stage == -1 else int(state.stage_job[stage])
        index = None if stage == -1 else stage - int(state.job_first_stage[job])
        kind = None if kind == -1 else kind
        refused = [shortened([None, None, None, None, job, index, limit, None, delay_ms, kind])]
    log = EpisodeLog.of_state(state)
    columns = (log.job, log.stage, log.executor, log.start_ms, log.finish_ms, log.wave)
    ends = state.job_first_stage[1:-1]
    return Outcome(
        decisions=[shortened(row) for row in log.decision_lists()] + refused,
        tasks=list(zip(*(column.tolist() for column in columns), strict=True)),
        completion_ms=_numbers(state.job_finish_ms),
        completion_order=state.completion_order[: state.num_done].tolist(),
        stage_finish_ms=[_numbers(part) for part in np.split(state.stage_finish_ms, ends)],
        num_events={"task": state.task_events, "job": state.job_events, "executor": state.executor_events},
        slot_ends=state.slot_events,
        now_ms=state.now_ms,
        truncated=bool(state.truncated),
        busy_ms=state.busy_ms,
        error=error,
        lives=[] if log.lives is None else [tuple(row) for row in log.lives.tolist() if row[2] == row[2]],
        losses=dict(
            zip(LOSSES, (state.lost_units, state.lost_tasks, state.lost_outputs, state.num_copies), strict=True)
        ),
    )


def shortened(row):
    """A row of the decision log without the parts at its end that were not chosen."""
    while len(row) > 8 and (row[-1] is None or (len(row) == 9 and row[-1] == 0.0)):
        row = row[:-1]
    return row


def oracle_run(oracle, decisions, policy=None):
    """Outcome of the oracle fed with the decisions of another run, or under a policy of its own."""
    error = ""
    try:
        oracle.run(policy or Replay(decisions))
    except OracleDeadlockError:
        error = "deadlock"
    except OracleDecisionError:
        error = "invalid"
    except StopIteration:
        error = "asks again"
    result = oracle.result()
    refused = [[None, None, None, None, *decisions[-1][4:7], None, *decisions[-1][8:]]] if error == "invalid" else []
    return Outcome(
        decisions=result.decisions + refused,
        tasks=result.tasks,
        completion_ms=_numbers(result.completion_ms),
        completion_order=result.completion_order,
        stage_finish_ms=[_numbers(part) for part in result.node_finish_ms],
        num_events=result.num_events,
        slot_ends=oracle.slot_ends,
        now_ms=result.now_ms,
        truncated=result.truncated,
        busy_ms=oracle.busy_ms() if isinstance(oracle, OracleUnits) else result.busy_ms,
        error=error,
        lives=getattr(oracle, "lives", []),
        losses=getattr(oracle, "losses", dict.fromkeys(LOSSES, 0)),
    )


def _numbers(values):
    return [None if math.isnan(value) else float(value) for value in values]


def assert_same(core, oracle):
    """Bit for bit, with the first decision and task that differ in the message; busy time up to order of summation."""
    for name in ("decisions", "tasks"):
        rows = zip(getattr(core, name), getattr(oracle, name), strict=False)
        for step, (got, expected) in enumerate(rows):
            assert got == expected, f"{name[:-1]} {step}"
        assert len(getattr(core, name)) == len(getattr(oracle, name)), name
    for name in Outcome.__dataclass_fields__:
        if name != "busy_ms":
            assert getattr(core, name) == getattr(oracle, name), name
    assert math.isclose(core.busy_ms, oracle.busy_ms, rel_tol=1e-12)


def check_same(workload, settings, scheduler, seed=0):
    """Run a scheduler in the core, replay its decisions in the oracle, compare; returns the outcome of the core."""
    core = core_run(workload, settings, scheduler, seed)
    assert_same(core, oracle_run(oracle_for(workload, settings, seed), core.decisions))
    return core
