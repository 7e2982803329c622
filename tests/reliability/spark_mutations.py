"""Changes of a good run of the Spark cluster that each break one rule of its checker, perhaps others besides."""

from dataclasses import replace
from itertools import pairwise

from tests.reliability.mutations import add, at, put, scale


def _moved(run):
    """The first task on an executor that had just changed jobs, with the task before."""
    both = zip(run.tasks, run.before, strict=True)
    return next((task, before) for task, before in both if before is not None and before.job != task.job)


def _stayed(same_stage):
    """The first task on an executor that stayed in the job."""

    def find(run):
        for task, before in zip(run.tasks, run.before, strict=True):
            if before is not None and before.job == task.job and (before.stage == task.stage) == same_stage:
                return task
        raise AssertionError("the good run has no such task")

    return find


def _grants(run):
    return [decision for decision in run.decisions if decision.job is not None]


def _grant(run):
    return _grants(run)[0]


def _late(items):
    """The first task or decision of a job that arrives after the beginning."""
    return lambda run: next(one for one in items(run) if run.jobs[one.job].arrival_ms > 0.0)


def _wide(items):
    """The first task or decision of a stage whose tasks need more than half of an executor."""
    return lambda run: next(one for one in items(run) if run.jobs[one.job].stages[one.stage].request[0] > 0.5)


def _arrival_ms(run, number):
    return run.jobs[number].arrival_ms


def _entry(items, new):
    """The change of the first entry of a list."""

    def change(run):
        items(run)[0] = new(run, items(run)[0])

    return change


def _launches_out_of_order(run):
    first = next(place for place, (one, other) in enumerate(pairwise(run.tasks)) if one.start_s < other.start_s)
    run.tasks[first : first + 2] = run.tasks[first + 1], run.tasks[first]


def _two_tasks_on_one_executor(run):
    one = run.tasks[0]
    other = next(task for task in run.tasks if task.executor != one.executor and task.start_s < one.finish_s)
    other.executor = one.executor


def _a_loss_at_once(run):
    """The run of a fixed cluster taken for one whose only Spark executor was lost after a millisecond."""
    run.settings.update(executor_cores=5, dynamic=False, executor_startup_ms=0.0, loss_rate=1.0, shuffle_service=True)
    losses = {"executors": 1, "tasks": 0, "outputs": 0}
    run.result.update(registrations=[[0, 0.0, 1.0, 1]], executor_hours=0.0, losses=losses)


def _a_child_that_does_not_wait(run):
    number, index, _, stage = next(found for found in run.stages() if found[3].parents)
    for task in run.of_stage[number, index]:
        task.start_s = run.finish_s(number, stage.parents[0]) - 0.001


def _a_job_that_is_early(run):
    first = _late(at("tasks"))(run)
    first.start_s = _arrival_ms(run, first.job) / 1000.0 - 0.001


def _a_decision_before_the_arrival(run):
    decision = _late(_grants)(run)
    decision.time_ms = _arrival_ms(run, decision.job) - 1.0


def _a_move_that_is_too_quick(run):
    task, before = _moved(run)
    task.start_s = before.finish_s + run.delay_ms / 1000.0 - 0.001


def _a_stage_that_is_not_there(run):
    _grant(run).stage = len(run.jobs[_grant(run).job].stages)


def _more_executors_than_tasks(run):
    decision = _grant(run)
    decision.used = decision.offered = run.jobs[decision.job].stages[decision.stage].tasks + 1
    run.settings["executors"] = decision.limit = 100


def _a_limit_that_is_not_kept(run):
    for decision in _grants(run):
        decision.limit = decision.used


def _one_executor_less(run):
    """Every limit as tight as it was kept: the least one that breaks the rule is one below."""
    largest = max(_grants(run), key=lambda decision: decision.limit)
    for decision in _grants(run):
        if decision.job == largest.job:
            decision.limit = 1


MUTATIONS = {
    "task_counts": {
        "a task less": lambda run: run.tasks.pop(len(run.tasks) // 2),
        "a task twice": lambda run: run.tasks.append(
            replace(run.tasks[-1], start_s=run.tasks[-1].finish_s, finish_s=run.tasks[-1].finish_s + 1.0)
        ),
    },
    "time": {
        "launches out of order": _launches_out_of_order,
        "decisions out of order": lambda run: run.decisions.reverse(),
        "an end before the start": put(at("tasks", 3), finish_s=lambda task: task.start_s - 0.001),
        "a task after the time limit": lambda run: run.settings.update(time_limit_ms=run.tasks[-1].start_ms - 1.0),
    },
    "one_task_at_a_time": {
        "two tasks on one executor": _two_tasks_on_one_executor,
        "an executor too many": lambda run: put(at("tasks", -1), executor=run.settings["executors"])(run),
    },
    "parents_first": {"a child that does not wait": _a_child_that_does_not_wait},
    "arrivals": {
        "a job that is early": _a_job_that_is_early,
        "no move to the first task": add(at("tasks", 0), start_s=-0.001),
        "a decision before the arrival": _a_decision_before_the_arrival,
    },
    "moving_delay": {
        "a move that is too quick": _a_move_that_is_too_quick,
        "a pause inside a stage": add(_stayed(same_stage=True), start_s=0.001),
    },
    "waves": {
        "a warm executor from elsewhere": put(lambda run: _moved(run)[0], wave="rest"),
        "a cold executor that stayed": put(_stayed(same_stage=True), wave="fresh"),
        "a second first wave": put(_stayed(same_stage=True), wave="first"),
        "no first wave": put(_stayed(same_stage=False), wave="rest"),
    },
    "durations": {
        "a duration that was not recorded": add(at("tasks", 5), finish_s=0.001),
        "no warm-up": add(at("settings"), warmup_delay_ms=1.0),
        "the lowest level only": put(at("settings"), inflation=False),
    },
    "decisions": {
        "more executors than offered": put(at("decisions", 2), offered=lambda decision: decision.used - 1),
        "more executors than the limit": put(_grant, limit=lambda decision: decision.used - 1),
        "a stage that is not there": _a_stage_that_is_not_there,
        "a stage without tasks": lambda run: put(_grant, time_ms=max(task.finish_ms for task in run.tasks) + 1.0)(run),
        "more executors than tasks": _more_executors_than_tasks,
        "a stage that is not runnable": put(at("settings"), runnable_only=True),
    },
    "limits": {"a limit that is not kept": _a_limit_that_is_not_kept, "one executor less": _one_executor_less},
    "granted": {
        "a decision less": lambda run: run.decisions.remove(_grant(run)),
        "a decision that comes too late": add(_grant, time_ms=1.0),
    },
    "completions": {
        "another completion": _entry(lambda run: run.result["completion_ms"], lambda run, old: old + 1.0),
        "another end of a stage": _entry(lambda run: run.result["node_finish_ms"][0], lambda run, old: old - 1.0),
        "another order": lambda run: run.result["completion_order"].reverse(),
    },
    "critical_paths": {
        "a job quicker than its tasks": _entry(
            lambda run: run.result["completion_ms"], lambda run, _: _arrival_ms(run, 0) + 1.0
        )
    },
    "totals": {
        "another mean": scale(at("result"), avg_jct_ms=1.0 + 1e-6),
        "another makespan": add(at("result"), makespan_ms=0.1),
        "another utilization": scale(at("result"), utilization=1.0 + 1e-6),
        "a decision that is not counted": add(at("result"), num_decisions=-1),
        "an event less": add(at("result", "num_events"), task=-1),
        "an arrival more": add(at("result", "num_events"), job=1),
        "no moves": put(at("result", "num_events"), executor=0),
        "a run that was not cut": put(at("result"), truncated=True),
        "another arrival": add(at("result", "jobs", 0), arrival_ms=1.0),
    },
    "sizes": {
        "a task on a smaller executor": put(_wide(at("tasks")), executor=0),
        "a class that is too small": put(_wide(_grants), kind=0),
    },
    "registrations": {"a task after the loss": _a_loss_at_once},
    "copies": {"a task that is killed without a copy": put(at("tasks", 0), killed=True)},
    "slots": {
        "a slot with executors": put(_grant, delay_ms=1000.0),
        "a slot in which tasks start": put(_grant, used=0, delay_ms=1e9),
    },
}


# ---- of a run whose executors come, go and fail ---------------------------------------------------------------------


def _registration(lost):
    """The first registration that ended so."""
    return lambda run: next(row for row in run.result["registrations"] if row[2] is not None and bool(row[3]) == lost)


def _killed(run):
    return next(task for task in run.tasks if task.killed)


def _an_output_that_comes_later(run):
    number, _, _, stage = next(found for found in run.stages() if found[3].parents and run.of_stage[found[:2]])
    next(task for task in run.of_stage[number, stage.parents[0]] if not task.lost).finish_s += 1000.0


def _a_loss_that_comes_earlier(run):
    _registration(True)(run)[2] -= 1.0


def _a_loss_that_is_none(run):
    _registration(True)(run)[3] = 0


ELASTIC = {
    "task_counts": {
        "a lost task that is not": put(lambda run: next(task for task in run.tasks if task.lost), lost=False),
        "no lost outputs": put(at("result", "losses"), outputs=0),
        "a killed task that is not": put(_killed, killed=False),
    },
    "parents_first": {"an output that comes later": _an_output_that_comes_later},
    "registrations": {
        "a loss that comes earlier": _a_loss_that_comes_earlier,
        "a loss that is none": _a_loss_that_is_none,
        "more that have to stay": put(at("settings"), min_executors=4),
        "a longer timeout": put(at("settings"), idle_timeout_ms=1e6),
        "one registered twice": lambda run: run.result["registrations"].append([0, 0.0, None, 0]),
    },
    "totals": {"more executor hours": add(at("result"), executor_hours=0.001)},
    "copies": {
        "a task that is not long": put(at("settings"), speculation_multiplier=10.0),
        "no copy": put(at("result", "losses"), copies=0),
        "a copy that is killed earlier": add(_killed, finish_s=-0.1),
    },
}
