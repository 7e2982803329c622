"""Checks a run of the Spark cluster from its files alone: job file, result file, task log.

Nothing of the package is imported: the rules are written down a second time, from the documentation, so that the
simulator and this file cannot be wrong in the same line. Times are ms, except in the task log, which has seconds.
"""

import csv
import json
import math
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

WAVES = ("fresh", "first", "rest")
# Executor counts between which the published simulator interpolates.
PUBLISHED_POINTS = (5, 10, 20, 40, 50, 60, 80, 100)
# Sums in another order, and seconds that became ms again, differ in the last digits.
TOLERANCE_MS = 1e-6
RELATIVE = 1e-9


@dataclass(frozen=True)
class Stage:
    tasks: int
    parents: tuple
    levels: dict  # executor count -> wave -> list of durations
    request: tuple = (0.0, 1.0)  # memory and CPUs that a task asks for


@dataclass(frozen=True)
class Job:
    stages: tuple
    arrival_ms: float
    initial: bool


@dataclass
class Task:
    job: int
    stage: int
    executor: int
    wave: str
    start_s: float
    finish_s: float
    lost: bool = False  # its executor was lost before its end
    killed: bool = False  # the other copy of the task had ended

    @property
    def done(self):
        return not (self.lost or self.killed)

    @property
    def place(self):
        return self.job, self.stage

    @property
    def start_ms(self):
        return 1000.0 * self.start_s

    @property
    def finish_ms(self):
        return 1000.0 * self.finish_s


@dataclass
class Decision:
    time_ms: float
    source_job: int | None
    offered: int
    frontier: int
    job: int | None
    stage: int | None
    limit: int
    used: int
    delay_ms: float = 0.0  # above 0: the stage is withheld for so long and gets no executor
    kind: int | None = None  # class of the executors, if it was named

    @property
    def place(self):
        return self.job, self.stage


@dataclass
class Run:
    """What the three files say."""

    jobs: list
    result: dict
    tasks: list
    decisions: list

    @cached_property
    def settings(self):
        return self.result["settings"]

    @property
    def delay_ms(self):
        return self.settings["moving_delay_ms"] if self.settings["startup"] else 0.0

    @property
    def limit_ms(self):
        """Time at which the run is cut: what would happen later does not."""
        limit = self.settings["time_limit_ms"]
        return math.inf if limit is None or not self.settings["time_limit_applies"] else limit

    @property
    def limit_s(self):
        return self.limit_ms / 1000.0

    @cached_property
    def sizes(self):
        """Memory and CPUs of every executor; none where they are alike."""
        classes = self.settings.get("classes", [])
        return [(memory, cpu) for memory, executors, cpu in classes for _ in range(executors)]

    @cached_property
    def of_stage(self):
        """Tasks by (job, stage), in order of launch."""
        groups = defaultdict(list)
        for task in self.tasks:
            groups[task.place].append(task)
        return groups

    @cached_property
    def before(self):
        """The task that the same executor ran before, for every task; None for its first since its registration."""
        last, found = {}, []
        for task in self.tasks:
            before = last.get(task.executor)
            if before is not None and self.life(before) != self.life(task):
                before = None
            found.append(before)
            last[task.executor] = task
        return found

    @property
    def changes(self):
        """Whether executors come, go or fail."""
        return "registrations" in self.result

    @cached_property
    def lives(self):
        """Registrations of every Spark executor in order: (begin ms, end ms, lost); the end is infinite if it lasts."""
        lives = defaultdict(list)
        for unit, begin_ms, end_ms, lost in self.result.get("registrations", ()):
            lives[int(unit)].append((begin_ms, math.inf if end_ms is None else end_ms, bool(lost)))
        return {unit: sorted(found) for unit, found in lives.items()}

    def life(self, task):
        """Registration that a task runs in; None without one, or where executors do not change.

        One that begins when another ends is of no length, or the later one: a lost task ends with the earlier one.
        """
        if not self.changes:
            return None
        lives = self.lives.get(task.executor // self.settings["executor_cores"], ())
        fitting = [life for life in lives if _within(task, life)]
        ended = [life for life in fitting if task.lost and life[2] and _near(life[1], task.finish_ms)]
        return next(iter(ended or fitting[-1:]), None)

    def reruns(self, job, stage):
        """Whether tasks of a stage ran more than once."""
        return len(self.of_stage[job, stage]) > self.jobs[job].stages[stage].tasks

    def anew(self):
        """The same with nothing remembered, for a run that was changed."""
        return Run(self.jobs, self.result, self.tasks, self.decisions)

    def finish_s(self, job, stage):
        """End of a stage; infinite while it has not ended."""
        tasks = [task for task in self.of_stage[job, stage] if task.done]
        whole = len(tasks) >= self.jobs[job].stages[stage].tasks
        ends = max((task.finish_s for task in tasks), default=math.inf) if whole else math.inf
        return ends if ends <= self.limit_s else math.inf

    def stages(self):
        """(job number, stage number, job, stage) of all stages."""
        for number, job in enumerate(self.jobs):
            for index, stage in enumerate(job.stages):
                yield number, index, job, stage


def _near(one_ms, other_ms):
    return abs(one_ms - other_ms) <= TOLERANCE_MS


def _within(task, life):
    """Whether a task runs while an executor is registered."""
    begin_ms, end_ms, _ = life
    return begin_ms <= task.start_ms + TOLERANCE_MS and task.finish_ms <= end_ms + TOLERANCE_MS


# ---- reading --------------------------------------------------------------------------------------------------------


def read_run(jobs_path, result_path, tasks_path):
    """Read a job file, a result file and a task log (csv)."""
    result = json.loads(Path(result_path).read_text(encoding="utf-8"))
    with open(tasks_path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    tasks = [
        Task(
            int(row["job"]),
            int(row["stage"]),
            int(row["executor"]),
            row["wave"],
            float(row["start_s"]),
            float(row["finish_s"]),
            row.get("lost") == "1",
            row.get("killed") == "1",
        )
        for row in rows
    ]
    place = {name: index for index, name in enumerate(result["decision_fields"])}
    names = (
        *("time_ms", "source_job", "num_source_exec", "frontier_size"),
        *("job", "stage", "limit_requested", "executors_used"),
    )
    # Files have the columns behind where something was delayed, or a class was named.
    names += tuple(name for name in ("delay_ms", "executor_class") if name in place)
    decisions = [Decision(*(row[place[name]] for name in names)) for row in result["decisions"]]
    return Run(read_jobs(jobs_path), result, tasks, decisions)


def read_jobs(path):
    """Jobs of a file in the format of ``docs/workload-format.md``, references to TPC-H queries excepted."""
    content = json.loads(Path(path).read_text(encoding="utf-8"))
    content = {"jobs": content} if isinstance(content, list) else content
    profiles = content.get("profiles", {})
    jobs = []
    for entry in content["jobs"]:
        body = entry if "stages" in entry else profiles[entry["profile"]]
        names = [stage.get("name", str(index)) for index, stage in enumerate(body["stages"])]
        requests = entry.get("requests") or [None] * len(names)
        stages = tuple(
            _read_stage(stage, names, request) for stage, request in zip(body["stages"], requests, strict=True)
        )
        arrival_ms = float(entry.get("arrival_ms", 0))
        initial = entry.get("initial")
        jobs.append(Job(stages, arrival_ms, arrival_ms == 0.0 if initial is None else initial))
    return jobs


def _read_stage(body, names, request):
    if request is None:
        request = (body.get("memory", 0.0), body.get("cpu", 1.0))
    request = tuple(request) if isinstance(request, (list, tuple)) else (request, 1.0)
    parents = tuple(names.index(parent) if isinstance(parent, str) else parent for parent in body.get("parents", ()))
    tables = body.get("durations", {"1": body.get("duration_ms")})
    levels = {int(level): _read_waves(value) for level, value in tables.items()}
    return Stage(body["tasks"], parents, levels, request)


def _read_waves(value):
    def as_list(given):
        return [float(item) for item in (given if isinstance(given, list) else [given])]

    if isinstance(value, dict):
        return {wave: as_list(value.get(wave, [])) for wave in WAVES}
    return dict.fromkeys(WAVES, as_list(value))


# ---- durations ------------------------------------------------------------------------------------------------------


def situations(waves, settings):
    """Durations by wave: lists that were not recorded taken from others, effects of §6.2 as the settings say."""
    fresh, first, rest = (waves[wave] for wave in WAVES)
    warm_up = settings["warmup_delay_ms"]
    cold = fresh or [value + warm_up for value in first or rest]
    begin = first or fresh or rest
    later = rest or begin
    if not settings["first_wave"]:
        begin = later
    if not settings["startup"]:
        cold = begin
    return {"fresh": cold, "first": begin, "rest": later}


def levels_of(stage, executors, settings):
    """Profiled levels whose durations a job with so many executors may meet."""
    levels = sorted(stage.levels)
    if not settings["inflation"]:
        return levels[:1]
    interpolated = settings["level_rule"] == "interpolate"
    points = levels if interpolated else PUBLISHED_POINTS
    place = bisect_left(points, executors)
    if place == len(points) or place == 0 or points[place] == executors:
        near = [points[min(place, len(points) - 1)]]
    else:
        near = {"left": points[place - 1 : place], "right": points[place : place + 1]}.get(
            settings["level_rule"], points[place - 1 : place + 1]
        )
    return [point if point in stage.levels else levels[-1] for point in near]


def is_possible(duration_ms, stage, wave, counts, settings):
    """Whether a task of a stage can take so long when its job has one of these numbers of executors."""
    for choice in {tuple(levels_of(stage, executors, settings)) for executors in counts}:
        known = possible_ms([situations(stage.levels[level], settings)[wave] for level in choice], settings)
        if settings["durations"] == "mean":
            if min(known) - TOLERANCE_MS <= duration_ms <= max(known) + TOLERANCE_MS:
                return True
        elif any(_near(duration_ms, value) for value in known):
            return True
    return False


def possible_ms(lists, settings):
    """Durations that a task can have by one of several lists: their means, or all of them."""
    if settings["durations"] == "mean":
        return [math.fsum(values) / len(values) for values in lists]
    return [value for values in lists for value in values]


def least_ms(stage, settings):
    """Shortest duration that any task of a stage can have."""
    lists = [values for waves in stage.levels.values() for values in situations(waves, settings).values()]
    return min(possible_ms(lists, settings))


# ---- rules: each gives a sentence per violation ----------------------------------------------------------------------


def task_counts(run):
    """Every task runs once; in a run that was cut, at most once; one whose executor or output is lost, again.

    A copy and its task may both run when a run is cut: with speculation only what has ended counts.
    """
    cut = run.result["truncated"]
    last_s = run.limit_s if run.settings.get("speculation") else math.inf
    again = 0
    for number, index, _, stage in run.stages():
        count = sum(task.done and task.finish_s <= last_s for task in run.of_stage[number, index])
        if run.changes and count > stage.tasks:
            again += count - stage.tasks
            count = stage.tasks
        if count > stage.tasks or (count < stage.tasks and not cut):
            yield f"job {number}, stage {index}: {count} of {stage.tasks} tasks"
    losses = run.result.get("losses", {"outputs": 0, "tasks": 0})
    if again > losses["outputs"] or (again < losses["outputs"] and not cut):
        yield f"{again} tasks ran again after they had ended, {losses['outputs']} outputs lost"
    if sum(task.lost for task in run.tasks) != losses["tasks"]:
        yield f"{losses['tasks']} tasks lost in the result file"
    known = {(number, index) for number, index, _, _ in run.stages()}
    for place in run.of_stage.keys() - known:
        yield f"tasks of a stage that is not in the job file: {place}"


def time(run):
    """Tasks and decisions are logged in the order in which they happen, before the end of the run."""
    for first, second in pairwise(run.tasks):
        if second.start_s < first.start_s:
            yield f"launch at {second.start_s} s after one at {first.start_s} s"
    for first, second in pairwise(run.decisions):
        if second.time_ms < first.time_ms:
            yield f"decision at {second.time_ms} ms after one at {first.time_ms} ms"
    for task in run.tasks:
        if task.finish_s < task.start_s:
            yield f"{task} ends before it starts"
        if task.start_s > run.limit_s:
            yield f"{task} starts after the time limit"


def one_task_at_a_time(run):
    """An executor runs one task at a time."""
    for task, before in zip(run.tasks, run.before, strict=True):
        if not 0 <= task.executor < run.settings["executors"]:
            yield f"executor {task.executor} of {run.settings['executors']}"
        if before is not None and task.start_s < before.finish_s:
            yield f"executor {task.executor} starts {task} before the end of {before}"


def sizes(run):
    """A task runs on an executor that has what it asks for; a decision names a class that has, and not more of it."""
    if not run.sizes:
        return

    def fits(stage, size):
        return all(asked <= given for asked, given in zip(stage.request, size, strict=True))

    for task in run.tasks:
        if task.executor >= len(run.sizes):
            continue  # see `one_task_at_a_time`
        stage, size = run.jobs[task.job].stages[task.stage], run.sizes[task.executor]
        if not fits(stage, size):
            yield f"{task} asks for {stage.request} on an executor of {size}"
    for decision in run.decisions:
        if decision.kind is not None:
            memory, executors, cpu = run.settings["classes"][decision.kind]
            if decision.used > executors or not fits(run.jobs[decision.job].stages[decision.stage], (memory, cpu)):
                yield f"{decision}: class of {executors} executors of {memory, cpu}"


def parents_first(run):
    """A stage starts when all its parents have finished; every task of it, while all their outputs are there."""
    for number, index, _, stage in run.stages():
        if run.changes:
            yield from _outputs_there(run, number, index, stage)
            continue
        starts = [task.start_s for task in run.of_stage[number, index]]
        for parent in stage.parents:
            if starts and min(starts) < run.finish_s(number, parent):
                yield f"job {number}: stage {index} starts before stage {parent} ends"


def arrivals(run):
    """Nothing of a job happens before its arrival; its executors come from elsewhere and take the moving delay."""
    for number, index, job, _ in run.stages():
        for task in run.of_stage[number, index][:1]:
            if task.start_ms < job.arrival_ms + run.delay_ms - TOLERANCE_MS:
                yield f"job {number}, stage {index} starts at {task.start_s} s, arrival {job.arrival_ms} ms"
    for decision in run.decisions:
        for job in (decision.job, decision.source_job):
            if job is not None and decision.time_ms < run.jobs[job].arrival_ms:
                yield f"{decision} about job {job} before its arrival"


def moving_delay(run):
    """An executor that changes jobs idles for the moving delay; inside a stage it does not pause."""
    for task, before in zip(run.tasks, run.before, strict=True):
        if before is not None and task.job != before.job:
            if task.start_ms < before.finish_ms + run.delay_ms - TOLERANCE_MS:
                yield f"{task} too early after {before}"
        elif before is not None and task.stage == before.stage and task.start_s != before.finish_s and not run.changes:
            yield f"{task} not at once after {before}"


def waves(run):
    """A wave is fresh on an executor that comes from elsewhere, first in a new stage, else rest."""
    for task, before in zip(run.tasks, run.before, strict=True):
        moved = before is None or task.job != before.job
        within = "rest" if not moved and task.stage == before.stage else "first"
        if task.wave not in WAVES:
            yield f"{task}: unknown wave"
        elif moved and task.wave != "fresh":
            yield f"{task}: {task.wave} on an executor that is new to the job"
        elif not moved and task.wave == "fresh":
            # it may have left and come back; in the published rules an executor that idles has left
            away_ms = run.delay_ms if run.settings["keep_warm"] else 0.0
            if (within == "rest" and not run.changes) or task.start_ms < before.finish_ms + away_ms - TOLERANCE_MS:
                yield f"{task}: fresh without having left after {before}"
        elif not moved and task.wave != within:
            yield f"{task}: expected wave {within} after {before}"
        elif not moved and not run.settings["keep_warm"] and task.start_s != before.finish_s:
            yield f"{task}: warm after a pause"


def durations(run):
    """Every duration is one that the profile has for the stage, the wave and a possible number of executors."""
    running = {}
    known = {}
    for task in run.tasks:
        running[task.executor] = task
        others = [one for one in running.values() if one.finish_s > task.start_s and one is not task]
        attached = 1 + sum(one.job == task.job for one in others)
        most = run.settings["executors"] - sum(one.job != task.job for one in others)
        took_ms, stage = task.finish_ms - task.start_ms, run.jobs[task.job].stages[task.stage]
        if not task.done or run.settings.get("straggler_share"):
            lists = [situations(waves, run.settings)[task.wave] for waves in stage.levels.values()]
            times_ms = possible_ms(lists, run.settings)
            longest_ms = math.inf if run.settings.get("straggler_share") else max(times_ms)
            if took_ms > longest_ms + TOLERANCE_MS or (task.done and took_ms < min(times_ms) - TOLERANCE_MS):
                yield f"{task} takes {took_ms} ms"
            continue
        key = (task.place, task.wave, round(took_ms, 9), attached, most)
        if key not in known:
            counts = range(attached, most + 1)
            known[key] = is_possible(took_ms, stage, task.wave, counts, run.settings)
        if not known[key]:
            yield f"{task} takes {took_ms} ms with {attached} to {most} executors"


def decisions(run):
    """A decision uses what is offered for a stage that is there and has tasks to launch."""
    for decision in run.decisions:
        if decision.delay_ms != 0.0:
            continue  # see `slots`
        if not 1 <= decision.used <= decision.offered <= run.settings["executors"]:
            yield f"{decision}: executors used, offered"
        if decision.used > decision.limit:
            yield f"{decision}: more executors than the limit"
        if decision.job is None:
            if decision.stage is not None or decision.limit != decision.used:
                yield f"{decision}: idling with a stage or a limit"
            continue
        if not (0 <= decision.job < len(run.jobs) and 0 <= decision.stage < len(run.jobs[decision.job].stages)):
            yield f"{decision}: no such stage"
            continue
        stage = run.jobs[decision.job].stages[decision.stage]
        again = run.reruns(*decision.place) or any(run.reruns(decision.job, parent) for parent in stage.parents)
        lost = run.result["truncated"] and run.result.get("losses", {}).get("executors")
        if again or lost or run.settings.get("speculation"):
            continue  # what was left then, and which copies waited, the log does not tell
        started = sum(task.start_ms < decision.time_ms - TOLERANCE_MS for task in run.of_stage[decision.place])
        if started >= stage.tasks or decision.frontier < 1:
            yield f"{decision}: all its tasks were launched before"
        if decision.used > stage.tasks - started:
            yield f"{decision}: only {stage.tasks - started} tasks were left"
        for parent in stage.parents if run.settings["runnable_only"] else ():
            if 1000.0 * run.finish_s(decision.job, parent) > decision.time_ms + TOLERANCE_MS:
                yield f"{decision}: the frontier has runnable stages only, its parent {parent} had not finished"


def slots(run):
    """A delayed stage could start, was not begun, is delayed once, gets no executor, and starts nothing in its slot."""
    seen = set()
    for decision in run.decisions:
        if decision.delay_ms == 0.0:
            continue
        if not 0.0 < decision.delay_ms < math.inf or decision.used != 0 or decision.job is None:
            yield f"{decision}: a delay takes a stage, a time and no executor"
            continue
        if decision.place in seen:
            yield f"{decision}: delayed before"
        seen.add(decision.place)
        for parent in run.jobs[decision.job].stages[decision.stage].parents:
            if run.reruns(decision.job, parent):
                continue
            if 1000.0 * run.finish_s(decision.job, parent) > decision.time_ms + TOLERANCE_MS:
                yield f"{decision}: its parent {parent} had not finished"
        end_ms = decision.time_ms + decision.delay_ms
        for task in run.of_stage[decision.place]:
            if task.start_ms < end_ms - TOLERANCE_MS:
                yield f"{decision}: {task} starts before the slot ends"


def limits(run):
    """Where the limit is a job's parallelism, the tasks of a job that run at once keep to the last one given.

    Executors that end a stage without tasks left may be promised to another job already. They count there, not here.
    """
    if not (run.settings["job_limit"] and run.settings["reoffer"]):
        return  # published rules: a number of executors, see `decisions`; executors may move without a decision
    losses = run.result.get("losses", {})
    if losses.get("executors") or losses.get("copies"):
        return  # executors that were promised to another job may go on with tasks that run again, or with copies
    given = defaultdict(list)
    for decision in run.decisions:
        if decision.job is not None and decision.delay_ms == 0.0:
            given[decision.job].append(decision)
    running, launched = {}, defaultdict(int)
    for task in run.tasks:
        running[task.executor] = task
        held = [one for one in running.values() if one.job == task.job and one.finish_s > task.start_s]
        kept = [
            one
            for one in held
            if one.stage == task.stage or launched[one.place] < run.jobs[one.job].stages[one.stage].tasks
        ]
        launched[task.place] += 1
        count = len(kept) + (task not in kept)  # a task may end when it starts
        before = [one.limit for one in given[task.job] if one.time_ms < task.start_ms - TOLERANCE_MS]
        at_once = [one.limit for one in given[task.job] if abs(one.time_ms - task.start_ms) <= TOLERANCE_MS]
        most = max([*before[-1:], *at_once], default=0)
        if count > most:
            yield f"{task}: {count} tasks of the job at once, limit {most}"


def granted(run):
    """No executor begins a stage without a decision for it, nor enters a job without one a moving delay before."""
    if not run.settings["reoffer"]:
        return
    begins, enters = defaultdict(list), defaultdict(list)
    for task, before in zip(run.tasks, run.before, strict=True):
        if before is None or before.place != task.place:
            begins[task.place].append(task.start_ms)
        if before is None or before.job != task.job:
            enters[task.job].append(task.start_ms - run.delay_ms)
    for place, times in begins.items():
        yield from _without_decision(f"{place} begins", times, [one for one in run.decisions if one.place == place])
    for job, times in enters.items():
        yield from _without_decision(f"job {job} is entered", times, [one for one in run.decisions if one.job == job])


def _without_decision(what, times, grants):
    for count, time_ms in enumerate(sorted(times), start=1):
        if sum(one.used for one in grants if one.time_ms <= time_ms + TOLERANCE_MS) < count:
            yield f"{what} by executor {count} without a decision up to {time_ms} ms"


def completions(run):
    """Stages and jobs end with their last task; the result file says so, in order."""
    result = run.result
    completion_ms = result["completion_ms"]
    for number, job in enumerate(run.jobs):
        ends = [run.finish_s(number, index) for index in range(len(job.stages))]
        for index, (end_s, said_ms) in enumerate(zip(ends, result["node_finish_ms"][number], strict=True)):
            if run.result["truncated"] and run.result.get("losses", {}).get("executors"):
                continue  # it may run again
            if end_s != _seconds(said_ms):
                yield f"job {number}, stage {index} ends at {end_s} s, result file: {said_ms} ms"
        if max(ends) != _seconds(completion_ms[number]):
            yield f"job {number} ends at {max(ends)} s, result file: {completion_ms[number]} ms"
    order = result["completion_order"]
    done = [number for number, when in enumerate(completion_ms) if when is not None]
    if sorted(order) != done:
        yield f"finished jobs {done}, completion_order {order}"
    elif any(completion_ms[one] > completion_ms[other] for one, other in pairwise(order)):
        yield f"completion_order {order} is not that of the times"


def critical_paths(run):
    """No job is quicker than the moving delay and its longest path of shortest tasks."""
    for number, job in enumerate(run.jobs):
        longest = {}
        while len(longest) < len(job.stages):
            for index, stage in enumerate(job.stages):
                if index not in longest and all(parent in longest for parent in stage.parents):
                    above = max((longest[parent] for parent in stage.parents), default=0.0)
                    longest[index] = above + least_ms(stage, run.settings)
        completion_ms = run.result["completion_ms"][number]
        least = run.delay_ms + max(longest.values())
        if completion_ms is not None and completion_ms - job.arrival_ms < least * (1.0 - RELATIVE):
            yield f"job {number} takes {completion_ms - job.arrival_ms} ms, its critical path {least} ms"


def totals(run):
    """Counts, means and sums of the result file are those of the log."""
    result = run.result
    finished = [
        (end_ms - job.arrival_ms)
        for end_ms, job in zip(result["completion_ms"], run.jobs, strict=True)
        if end_ms is not None
    ]
    completed = [task for task in run.tasks if task.finish_s <= run.limit_s and task.done]
    cut = len(finished) < len(run.jobs)
    last_ms = max((end_ms for end_ms in result["completion_ms"] if end_ms is not None), default=math.nan)
    end_ms = run.limit_ms if cut else last_ms
    busy_ms = math.fsum(task.finish_ms - task.start_ms for task in run.tasks)
    moves = sum(before is None or before.job != task.job for task, before in zip(run.tasks, run.before, strict=True))
    slot_ms = run.settings["executors"] * end_ms
    if run.changes:
        lives = [life for found in run.lives.values() for life in found]
        held_ms = math.fsum(min(end, end_ms) - begin for begin, end, _ in lives)
        slot_ms = run.settings["executor_cores"] * held_ms
        if not _same(result["executor_hours"], held_ms / 3.6e6):
            yield f"executor_hours is {result['executor_hours']}, by the registrations {held_ms / 3.6e6}"
    expected = {
        "truncated": cut,
        "num_unfinished": len(run.jobs) - len(finished),
        "num_decisions": len(run.decisions),
        "avg_jct_ms": math.fsum(finished) / len(finished) if finished else None,
        "makespan_ms": None if cut else last_ms,
        "end_ms": end_ms,
        "utilization": busy_ms / slot_ms if slot_ms else 0.0,
    }
    for name, value in expected.items():
        if not _same(result[name], value):
            yield f"{name} is {result[name]}, by the log {value}"
    events = result["num_events"]
    if events["task"] != len(completed):
        yield f"{events['task']} task events, {len(completed)} tasks ended"
    arrived = sum(not job.initial and job.arrival_ms <= run.limit_ms for job in run.jobs)
    if events["job"] != arrived:
        yield f"{events['job']} job events, {arrived} jobs arrived"
    if events["executor"] < moves:
        yield f"{events['executor']} executor events, {moves} tasks on executors that had moved"
    for number, (job, said) in enumerate(zip(run.jobs, result["jobs"], strict=True)):
        if (job.arrival_ms, job.initial) != (said["arrival_ms"], said["initial"]):
            yield f"job {number}: {said} in the result file, {job.arrival_ms} ms, {job.initial} in the job file"


def _outputs_there(run, number, index, stage):
    """At the launch of a task, every task of a parent has ended on a Spark executor that was not lost since."""
    ends = {}
    for parent in stage.parents:
        done = [task for task in run.of_stage[number, parent] if task.done]
        gone = [run.life(task) or (0.0, math.inf, False) for task in done]
        stays = run.settings["shuffle_service"]
        gone_ms = [end_ms if lost and not stays else math.inf for _, end_ms, lost in gone]
        ends[parent] = [(task.finish_ms, end_ms) for task, end_ms in zip(done, gone_ms, strict=True)]
    for task in run.of_stage[number, index]:
        for parent, found in ends.items():
            there = sum(
                end_ms <= task.start_ms + TOLERANCE_MS and task.start_ms <= gone_ms + TOLERANCE_MS
                for end_ms, gone_ms in found
            )
            if there < run.jobs[number].stages[parent].tasks:
                yield f"{task} starts with {there} outputs of stage {parent}"


def registrations(run):
    """A Spark executor is registered while its tasks run; only idle ones are removed, and not below the fewest."""
    if not run.changes:
        return
    settings = run.settings
    cores, dynamic = settings["executor_cores"], settings["dynamic"]
    most = settings["executors"] // cores
    first = (settings["initial_executors"] or settings["min_executors"]) if dynamic else most
    lives = sorted((begin, end, unit, lost) for unit, found in run.lives.items() for begin, end, lost in found)
    losses = sum(lost for *_, lost in lives)
    if sum(begin == 0.0 for begin, *_ in lives) < first or losses != run.result["losses"]["executors"]:
        yield f"{lives[:5]}: {first} at the beginning, losses {run.result['losses']}"
    on_unit = defaultdict(list)
    for task in run.tasks:
        on_unit[task.executor // cores].append(task)
        life = run.life(task)
        if life is None or (task.lost and not (life[2] and _near(life[1], task.finish_ms))):
            yield f"{task} outside of a registration {run.lives.get(task.executor // cores)}, or lost without a loss"
    for unit, found in run.lives.items():
        if not 0 <= unit < most or any(one[1] > other[0] for one, other in pairwise(found)):
            yield f"Spark executor {unit} of {most} is registered twice: {found}"
    for begin, end, unit, lost in lives:
        if 0.0 < begin < settings["executor_startup_ms"] - TOLERANCE_MS:
            yield f"Spark executor {unit} is registered at {begin} ms, sooner than it starts"
        if lost:
            if not settings["loss_rate"] and end not in settings["loss_times_ms"]:
                yield f"Spark executor {unit} is lost at {end} ms, not in {settings['loss_times_ms']}"
            continue
        if end == math.inf:
            continue
        there = sum(one <= end < other or (one <= end == other) for one, other, _, _ in lives)
        if not dynamic or there <= settings["min_executors"]:
            yield f"Spark executor {unit} is removed at {end} ms, {there} are there"
        if end - begin < settings["idle_timeout_ms"] - TOLERANCE_MS:
            yield f"Spark executor {unit} is removed at {end} ms, registered at {begin} ms"
        for task in on_unit[unit]:
            if run.life(task) != (begin, end, lost):
                continue
            if task.finish_ms + settings["idle_timeout_ms"] > end + TOLERANCE_MS:
                yield f"Spark executor {unit} is removed at {end} ms after {task}"
            read = task.done and any(task.stage in stage.parents for stage in run.jobs[task.job].stages)
            done_ms = run.result["completion_ms"][task.job]
            if read and not settings["shuffle_service"] and (done_ms is None or done_ms > end + TOLERANCE_MS):
                yield f"Spark executor {unit} is removed at {end} ms with the output of {task}"


def copies(run):
    """Of two copies of a task one is killed when the other ends; the later one began after a check that allows it."""
    killed = [task for task in run.tasks if task.killed]
    if len(killed) > run.result.get("losses", {}).get("copies", 0):
        yield f"{len(killed)} tasks killed, losses {run.result.get('losses')}"
    for task in killed:
        others = [
            other
            for other in run.of_stage[task.place]
            if other.done and _near(other.finish_ms, task.finish_ms) and _may_copy(run, task, other)
        ]
        if not others:
            yield f"{task} is killed, and no other copy of it ends then"


def _may_copy(run, task, other):
    """Whether one of two tasks of a stage may be a copy of the other, by a check before the later one began."""
    first, second = sorted((task, other), key=lambda each: each.start_ms)
    settings, number = run.settings, run.jobs[task.job].stages[task.stage].tasks
    done = sorted((each for each in run.of_stage[task.place] if each.done), key=lambda each: each.finish_ms)
    step_ms = settings["speculation_interval_ms"]
    for changed in done:  # the median changes when a task ends; of the time until the next end the last check is best
        ended = [each for each in done if each.finish_ms <= changed.finish_ms + TOLERANCE_MS]
        later = [each.finish_ms for each in done if each.finish_ms > changed.finish_ms + TOLERANCE_MS]
        check_ms = step_ms * math.floor((min([second.start_ms, *later]) + TOLERANCE_MS) / step_ms)
        median_ms = sorted(each.finish_ms - each.start_ms for each in ended[:number])[min(len(ended), number) // 2]
        long_ms = max(settings["speculation_multiplier"] * median_ms, settings["speculation_min_runtime_ms"])
        enough = len(ended) >= max(math.floor(settings["speculation_quantile"] * number), 1)
        began = changed.finish_ms <= second.start_ms + TOLERANCE_MS
        if number > 1 and enough and began and first.start_ms + long_ms <= check_ms + TOLERANCE_MS:
            return True
    return False


def _seconds(time_ms):
    return math.inf if time_ms is None else time_ms / 1000.0


def _same(said, value):
    if said is None or value is None or isinstance(value, (bool, int)):
        return said == value
    return math.isclose(said, value, rel_tol=RELATIVE)


RULES = (
    task_counts,
    time,
    one_task_at_a_time,
    sizes,
    parents_first,
    arrivals,
    moving_delay,
    waves,
    durations,
    decisions,
    slots,
    limits,
    granted,
    completions,
    critical_paths,
    totals,
    registrations,
    copies,
)


def violations(run):
    """One line per violation, beginning with the name of the rule."""
    return [f"{rule.__name__}: {text}" for rule in RULES for text in rule(run)]
