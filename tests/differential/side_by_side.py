"""Runs the compiled core and the oracle on the same decisions and the same random numbers, and compares everything."""

import math
from dataclasses import fields

import numpy as np

from decima.core.errors import DeadlockError, InvalidDecisionError
from decima.systems.spark import state as loop
from decima.systems.spark.decision import parts_of
from decima.systems.spark.result import EpisodeLog
from decima.systems.spark.system import run_state
from tests.differential.oracle import OracleDeadlockError, OracleDecisionError, OracleSimulator
from tests.differential.oracle_policies import Replay
from tests.differential.oracle_state import LOSSES, Outcome
from tests.differential.oracle_units import OracleUnits


def oracle_for(workload, settings, seed=0):
    """The oracle under the same settings, drawing the same random numbers as the core does from `seed`."""
    return (OracleUnits if settings.elastic else OracleSimulator)(workload, settings, seed)


def new_state(workload, settings):
    """A state with both logs on."""
    return loop.new_state(workload, settings, log_tasks=True, log_decisions=True)


def core_run(workload, settings, scheduler, seed=0):
    """Outcome of the compiled core under a scheduler."""
    state = new_state(workload, settings)
    return core_outcome(state, lambda: run_state(state, scheduler, seed))


def drive(state, choose, seed=0):
    """Run a state to the end; `choose(state)` returns (stage id or -1, limit, ...) at every decision."""
    state.start(*loop.spawn_generators(seed))
    while state.advance():
        state.decide(*choose(state))


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
    losses = (state.lost_units, state.lost_tasks, state.lost_outputs, state.num_copies)
    return Outcome(
        decisions=[shortened(row) for row in log.decision_lists()] + refused,
        tasks=list(zip(*(column.tolist() for column in columns), strict=True)),
        completion_ms=_numbers(state.job_finish_ms),
        completion_order=state.completion_order[: state.num_done].tolist(),
        stage_finish_ms=[_numbers(part) for part in np.split(state.stage_finish_ms, state.job_first_stage[1:-1])],
        num_events={"task": state.task_events, "job": state.job_events, "executor": state.executor_events},
        slot_ends=state.slot_events,
        now_ms=state.now_ms,
        truncated=bool(state.truncated),
        busy_ms=state.busy_ms,
        lives=[] if log.lives is None else [tuple(row) for row in log.lives.tolist() if row[2] == row[2]],
        losses=dict(zip(LOSSES, losses, strict=True)),
        error=error,
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
    outcome = oracle.outcome()
    outcome.error = error
    if error == "invalid":
        outcome.decisions.append([None, None, None, None, *decisions[-1][4:7], None, *decisions[-1][8:]])
    return outcome


def _numbers(values):
    return [None if math.isnan(value) else float(value) for value in values]


def assert_same(core, oracle):
    """Bit for bit, with the first decision and task that differ in the message; busy time up to order of summation."""
    for name in ("decisions", "tasks"):
        rows = zip(getattr(core, name), getattr(oracle, name), strict=False)
        for step, (got, expected) in enumerate(rows):
            assert got == expected, f"{name[:-1]} {step}"
        assert len(getattr(core, name)) == len(getattr(oracle, name)), name
    for field in fields(Outcome):
        if field.name != "busy_ms":
            assert getattr(core, field.name) == getattr(oracle, field.name), field.name
    assert math.isclose(core.busy_ms, oracle.busy_ms, rel_tol=1e-12)


def check_replayed(core, workload, settings, seed=0):
    """Replay the decisions of a run of the core in the oracle and compare; returns the outcome of the core."""
    try:
        assert_same(core, oracle_run(oracle_for(workload, settings, seed), core.decisions))
    except AssertionError as error:
        error.add_note(f"seed {seed}, {settings}")
        raise
    return core


def check_same(workload, settings, scheduler, seed=0):
    """Run a scheduler in the core, replay its decisions in the oracle, compare; returns the outcome of the core."""
    return check_replayed(core_run(workload, settings, scheduler, seed), workload, settings, seed)


def check_same_driven(workload, settings, choose, seed=0):
    """As `check_same`, with decisions of `choose(state)`."""
    state = new_state(workload, settings)
    return check_replayed(core_outcome(state, lambda: drive(state, choose, seed)), workload, settings, seed)
