"""Changes of a good run of the Spark cluster that each break one rule of its checker, which must notice."""

from dataclasses import replace
from itertools import pairwise

MUTATIONS = {}


def breaks(rule):
    """Decorator: the change breaks a rule, perhaps others besides."""

    def wrap(change):
        MUTATIONS.setdefault(rule, []).append(change)
        return change

    return wrap


def _moved(run):
    """Tasks on executors that had just changed jobs, each with the task before."""
    both = zip(run.tasks, run.before, strict=True)
    return [(task, before) for task, before in both if before is not None and before.job != task.job]


def _stayed(run, same_stage):
    both = zip(run.tasks, run.before, strict=True)
    return [
        (task, before)
        for task, before in both
        if before is not None and before.job == task.job and (before.stage == task.stage) == same_stage
    ]


def _grants(run):
    return [decision for decision in run.decisions if decision.job is not None]


@breaks("task_counts")
def a_task_less(run):
    del run.tasks[len(run.tasks) // 2]


@breaks("task_counts")
def a_task_twice(run):
    run.tasks.append(replace(run.tasks[-1], start_s=run.tasks[-1].finish_s, finish_s=run.tasks[-1].finish_s + 1.0))


@breaks("time")
def launches_out_of_order(run):
    first, second = (
        next(place for place, (one, other) in enumerate(pairwise(run.tasks)) if one.start_s < other.start_s),
        None,
    )
    second = first + 1
    run.tasks[first], run.tasks[second] = run.tasks[second], run.tasks[first]


@breaks("time")
def decisions_out_of_order(run):
    run.decisions.reverse()


@breaks("time")
def an_end_before_the_start(run):
    run.tasks[3].finish_s = run.tasks[3].start_s - 0.001


@breaks("time")
def a_task_after_the_time_limit(run):
    run.settings["time_limit_ms"] = run.tasks[-1].start_ms - 1.0


@breaks("one_task_at_a_time")
def two_tasks_on_one_executor(run):
    one = run.tasks[0]
    other = next(task for task in run.tasks if task.executor != one.executor and task.start_s < one.finish_s)
    other.executor = one.executor


@breaks("one_task_at_a_time")
def an_executor_too_many(run):
    run.tasks[-1].executor = run.settings["executors"]


@breaks("parents_first")
def a_child_that_does_not_wait(run):
    number, index, _, stage = next(found for found in run.stages() if found[3].parents)
    for task in run.of_stage[number, index]:
        task.start_s = run.finish_s(number, stage.parents[0]) - 0.001


@breaks("arrivals")
def a_job_that_is_early(run):
    number = next(number for number, job in enumerate(run.jobs) if job.arrival_ms > 0.0)
    first = next(task for task in run.tasks if task.job == number)
    first.start_s = run.jobs[number].arrival_ms / 1000.0 - 0.001


@breaks("arrivals")
def no_move_to_the_first_task(run):
    run.tasks[0].start_s -= 0.001


@breaks("arrivals")
def a_decision_before_the_arrival(run):
    decision = next(one for one in _grants(run) if run.jobs[one.job].arrival_ms > 0.0)
    decision.time_ms = run.jobs[decision.job].arrival_ms - 1.0


@breaks("moving_delay")
def a_move_that_is_too_quick(run):
    task, before = _moved(run)[0]
    task.start_s = before.finish_s + run.delay_ms / 1000.0 - 0.001


@breaks("moving_delay")
def a_pause_inside_a_stage(run):
    task, _ = _stayed(run, same_stage=True)[0]
    task.start_s += 0.001


@breaks("waves")
def a_warm_executor_from_elsewhere(run):
    _moved(run)[0][0].wave = "rest"


@breaks("waves")
def a_cold_executor_that_stayed(run):
    _stayed(run, same_stage=True)[0][0].wave = "fresh"


@breaks("waves")
def a_second_first_wave(run):
    _stayed(run, same_stage=True)[0][0].wave = "first"


@breaks("waves")
def no_first_wave(run):
    _stayed(run, same_stage=False)[0][0].wave = "rest"


@breaks("durations")
def a_duration_that_was_not_recorded(run):
    run.tasks[5].finish_s += 0.001


@breaks("durations")
def no_warm_up(run):
    run.settings["warmup_delay_ms"] += 1.0


@breaks("durations")
def the_lowest_level_only(run):
    run.settings["inflation"] = False


@breaks("decisions")
def more_executors_than_offered(run):
    run.decisions[2].offered = run.decisions[2].used - 1


@breaks("decisions")
def more_executors_than_the_limit(run):
    decision = _grants(run)[0]
    decision.limit = decision.used - 1


@breaks("decisions")
def a_stage_that_is_not_there(run):
    decision = _grants(run)[0]
    decision.stage = len(run.jobs[decision.job].stages)


@breaks("decisions")
def a_stage_without_tasks(run):
    decision = _grants(run)[0]
    decision.time_ms = max(task.finish_ms for task in run.tasks) + 1.0


@breaks("decisions")
def more_executors_than_tasks(run):
    decision = _grants(run)[0]
    decision.used = decision.offered = run.jobs[decision.job].stages[decision.stage].tasks + 1
    run.settings["executors"] = decision.limit = 100


@breaks("decisions")
def a_stage_that_is_not_runnable(run):
    run.settings["runnable_only"] = True


@breaks("limits")
def a_limit_that_is_not_kept(run):
    for decision in _grants(run):
        decision.limit = decision.used


@breaks("limits")
def one_executor_less(run):
    """Every limit as tight as it was kept: the least one that breaks the rule is one below."""
    largest = max(_grants(run), key=lambda decision: decision.limit)
    for decision in _grants(run):
        if decision.job == largest.job:
            decision.limit = 1


@breaks("granted")
def a_decision_less(run):
    run.decisions.remove(_grants(run)[0])


@breaks("granted")
def a_decision_that_comes_too_late(run):
    decision = _grants(run)[0]
    decision.time_ms += 1.0


@breaks("completions")
def another_completion(run):
    run.result["completion_ms"][0] += 1.0


@breaks("completions")
def another_end_of_a_stage(run):
    run.result["node_finish_ms"][0][0] -= 1.0


@breaks("completions")
def another_order(run):
    run.result["completion_order"].reverse()


@breaks("critical_paths")
def a_job_quicker_than_its_tasks(run):
    run.result["completion_ms"][0] = run.jobs[0].arrival_ms + 1.0


@breaks("totals")
def another_mean(run):
    run.result["avg_jct_ms"] *= 1.0 + 1e-6


@breaks("totals")
def another_makespan(run):
    run.result["makespan_ms"] += 0.1


@breaks("totals")
def another_utilization(run):
    run.result["utilization"] *= 1.0 + 1e-6


@breaks("totals")
def a_decision_that_is_not_counted(run):
    run.result["num_decisions"] -= 1


@breaks("totals")
def an_event_less(run):
    run.result["num_events"]["task"] -= 1


@breaks("totals")
def an_arrival_more(run):
    run.result["num_events"]["job"] += 1


@breaks("totals")
def no_moves(run):
    run.result["num_events"]["executor"] = 0


@breaks("totals")
def a_run_that_was_not_cut(run):
    run.result["truncated"] = True


@breaks("totals")
def another_arrival(run):
    run.result["jobs"][0]["arrival_ms"] += 1.0


@breaks("sizes")
def a_task_on_a_smaller_executor(run):
    task = next(task for task in run.tasks if run.jobs[task.job].stages[task.stage].request[0] > 0.5)
    task.executor = 0


@breaks("sizes")
def a_class_that_is_too_small(run):
    decision = next(one for one in _grants(run) if run.jobs[one.job].stages[one.stage].request[0] > 0.5)
    decision.kind = 0


@breaks("slots")
def a_slot_with_executors(run):
    _grants(run)[0].delay_ms = 1000.0


@breaks("slots")
def a_slot_in_which_tasks_start(run):
    decision = _grants(run)[0]
    decision.used, decision.delay_ms = 0, 1e9
