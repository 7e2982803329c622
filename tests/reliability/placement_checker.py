"""Checks a run of executors on cloud VMs from its files alone: jobs (csv), result (json), log of the executors (csv).

Nothing of the package is imported: the rules are written down a second time, from ``docs/cloud.md``. Times are seconds.
Only runs with a true clock that are billed by the second are checked.
"""

import csv
import json
import math
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

TOLERANCE = 1e-6
SPREAD_TYPES = (1, 2)  # CPU-bound and memory-bound jobs want all executors on different VMs, others all on one


@dataclass
class Executor:
    job: int
    vm: int
    placed_s: float
    start_s: float
    finish_s: float


@dataclass
class Run:
    """What the three files say."""

    jobs: list  # dicts of numbers, in order of arrival
    result: dict
    executors: list

    def anew(self):
        """The same with nothing remembered, for a run that was changed."""
        return Run(self.jobs, self.result, self.executors)

    @property
    def vms(self):
        """Cores, memory and price per hour of every VM."""
        types = self.result["settings"]["cluster"]["types"]
        one_each = [each for each in types for _ in range(each["quantity"])]
        return [(each["cores"], each["memory_gb"], each["price_per_hour"]) for each in one_each]

    def of_jobs(self):
        """(job, its executors) of all jobs."""
        groups = defaultdict(list)
        for executor in self.executors:
            groups[executor.job].append(executor)
        return [(job, groups[job["id"]]) for job in self.jobs]


def read_run(jobs_path, result_path, executors_path):
    """Read the three files."""
    with open(jobs_path, encoding="utf-8", newline="") as file:
        jobs = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    with open(executors_path, encoding="utf-8", newline="") as file:
        names = ("job", "vm", "placed_s", "start_s", "finish_s")
        executors = [Executor(*(float(row[name]) for name in names)) for row in csv.DictReader(file)]
    return Run(jobs, json.loads(Path(result_path).read_text(encoding="utf-8")), executors)


def whole_jobs(run):
    """Every executor of every job is placed once, on a VM that there is."""
    for job, executors in run.of_jobs():
        if len(executors) != job["executors"]:
            yield f"job {job['id']:g}: {len(executors)} of {job['executors']:g} executors"
    known = {job["id"] for job in run.jobs}
    for executor in run.executors:
        if executor.job not in known or not 0 <= executor.vm < len(run.vms):
            yield f"{executor}: no such job or VM"


def order(run):
    """Jobs are placed in order of arrival, not before it; all executors of a job start when the last one is placed."""
    placed_s = 0.0
    for job, executors in run.of_jobs():
        for executor in executors:
            if executor.placed_s < max(placed_s, job["arrival_s"]) - TOLERANCE:
                yield f"{executor}: before its arrival or the job before"
            if executor.start_s != max(one.placed_s for one in executors):
                yield f"{executor}: does not start with its job"
        placed_s = max([placed_s, *(one.placed_s for one in executors)])


def capacity(run):
    """No VM holds more cores or memory than it has at any time."""
    needs = {job["id"]: (job["cores"], job["memory_gb"]) for job in run.jobs}
    for vm, (cores, memory_gb, _) in enumerate(run.vms):
        here = [one for one in run.executors if one.vm == vm]
        for moment in {one.placed_s for one in here}:
            held = [needs[one.job] for one in here if one.placed_s <= moment < one.finish_s]
            if sum(each for each, _ in held) > cores or sum(each for _, each in held) > memory_gb + TOLERANCE:
                yield f"VM {vm} at {moment} s: more than {cores} cores or {memory_gb} GB"


def well_placed(job, executors):
    """Whether the executors of a job are on different VMs, or all on one, as its type wants."""
    used = len({one.vm for one in executors})
    return used == (len(executors) if job["type"] in SPREAD_TYPES else 1)


def durations(run):
    """A job takes its duration where it is well placed, else 30 % longer."""
    longer = 1.0 + run.result["settings"]["rules"]["penalty_percent"] / 100.0
    for job, executors in run.of_jobs():
        expected_s = job["duration_s"] * (1.0 if well_placed(job, executors) else longer)
        for executor in executors:
            if not math.isclose(executor.finish_s - executor.start_s, expected_s, rel_tol=1e-9):
                yield f"{executor}: takes {executor.finish_s - executor.start_s} s, expected {expected_s} s"


def bills(run):
    """A VM is billed while an executor is placed on it, overlapping times once; the cost is the sum over the VMs."""
    total = 0.0
    said = {row["vm"]: row for row in run.result["vms"]}
    for vm, (_, _, price) in enumerate(run.vms):
        billed_s, until_s = 0.0, -math.inf
        for one in sorted((each for each in run.executors if each.vm == vm), key=lambda each: each.placed_s):
            billed_s += max(0.0, one.finish_s - max(one.placed_s, until_s))
            until_s = max(until_s, one.finish_s)
        total += billed_s / 3600.0 * price
        row = said.get(vm, {"billed_s": 0.0, "cost": 0.0})
        if not math.isclose(row["billed_s"], billed_s, rel_tol=1e-9, abs_tol=TOLERANCE):
            yield f"VM {vm}: billed {row['billed_s']} s, used {billed_s} s"
        if not math.isclose(row["cost"], billed_s / 3600.0 * price, rel_tol=1e-9, abs_tol=1e-9):
            yield f"VM {vm}: costs {row['cost']}, {billed_s} s at {price} per hour"
    if not math.isclose(run.result["cost"], total, rel_tol=1e-9, abs_tol=1e-9):
        yield f"cost {run.result['cost']}, by the log {total}"


def totals(run):
    """Means and counts of the result file are those of the log."""
    rows = run.of_jobs()
    number = len(rows)
    expected = {
        "mean_duration_s": sum(executors[0].finish_s - executors[0].start_s for _, executors in rows) / number,
        "response_s": sum(executors[0].finish_s - job["arrival_s"] for job, executors in rows) / number,
        "good_placements": sum(well_placed(job, executors) for job, executors in rows),
    }
    for name, value in expected.items():
        if not math.isclose(run.result[name], value, rel_tol=1e-9):
            yield f"{name} is {run.result[name]}, by the log {value}"


RULES = (whole_jobs, order, capacity, durations, bills, totals)


def violations(run):
    """One line per violation, beginning with the name of the rule."""
    return [f"{rule.__name__}: {text}" for rule in RULES for text in rule(run)]
