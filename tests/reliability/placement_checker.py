"""Checks a run of executors on cloud VMs from its files alone: jobs (csv), result (json), log of the executors (csv).

Nothing of the package is imported: the rules are written down a second time, from ``docs/cloud.md``, in exact fractions
of the decimals that the job file has. From the log come the VMs alone; moments, bills and rewards are worked out anew
and compared with what the files say. Times are seconds. Only runs with a true clock are checked.
"""

import csv
import json
import math
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

# What the files may be off: they hold floats. Every comparison that decides something is of exact fractions.
MOMENT_S = Fraction(1, 10**6)
SHARE = Fraction(1, 10**9)
SPREAD_TYPES = (1, 2)  # CPU-bound and memory-bound jobs want all executors on different VMs, others all on one


@dataclass
class Executor:
    job: int
    vm: int
    placed_s: Fraction
    start_s: Fraction
    finish_s: Fraction
    well_placed: bool
    job_cost: Fraction


class Rental(NamedTuple):
    """A VM from the moment it is rented to the last end of what ran on it."""

    begin_s: Fraction
    end_s: Fraction
    ready_s: Fraction


@dataclass
class Placed:
    """The first jobs placed: what runs where, all rentals of every VM, sums so far."""

    clock_s: Fraction = Fraction(0)
    running: list = field(default_factory=list)  # (finish_s, job, VMs)
    rentals: dict = field(default_factory=dict)  # VM -> tuple of rentals
    cost: Fraction = Fraction(0)
    run_s: Fraction = Fraction(0)

    def place(self, run, job, vms):
        """The same with one more job, in memory of its own."""
        billing, rentals, rented = run.result["settings"]["billing"], dict(self.rentals), {}
        for vm in set(vms):
            *earlier, rental = self.rentals.get(vm, (None,))
            if rental is None or self.clock_s > rental.begin_s + charged_s(billing, rental.end_s - rental.begin_s):
                earlier = self.rentals.get(vm, ())
                rental = Rental(self.clock_s, self.clock_s, self.clock_s + Fraction(billing["boot_s"]))
            rented[vm] = earlier, rental
        start_s = max([self.clock_s, *(rental.ready_s for _, rental in rented.values())])
        took_s, cost = duration_s(run, job, vms), self.cost
        for vm, (earlier, rental) in rented.items():
            before_s = charged_s(billing, rental.end_s - rental.begin_s) if rental.end_s > rental.begin_s else 0
            longer = rental._replace(end_s=max(rental.end_s, start_s + took_s))
            cost += run.vms[vm][2] / 3600 * (charged_s(billing, longer.end_s - longer.begin_s) - before_s)
            rentals[vm] = (*earlier, longer)
        running = [*self.running, (start_s + took_s, job, vms)]
        return Placed(self.clock_s, running, rentals, cost, self.run_s + took_s)


@dataclass
class Moments:
    """What follows from the VMs of the executors: the moments of every job in turn, what it adds to the bill."""

    placed_s: list = field(default_factory=list)
    start_s: list = field(default_factory=list)
    finish_s: list = field(default_factory=list)
    run_s: list = field(default_factory=list)
    cost: list = field(default_factory=list)
    wrong: list = field(default_factory=list)  # moments of the log at which nothing happened
    rentals: dict = field(default_factory=dict)  # VM -> tuple of rentals


@dataclass
class Run:
    """What the three files say."""

    jobs: list  # dicts of numbers, in order of arrival
    result: dict
    executors: list

    def anew(self):
        """The same with nothing remembered, for a run that was changed."""
        return Run(self.jobs, self.result, self.executors)

    @cached_property
    def vms(self):
        """Cores, memory and price per hour of every VM."""
        types = self.result["settings"]["cluster"]["types"]
        one_each = [each for each in types for _ in range(each["quantity"])]
        return [(each["cores"], each["memory_gb"], Fraction(each["price_per_hour"])) for each in one_each]

    @property
    def rules(self):
        return self.result["settings"]["rules"]

    def of_jobs(self):
        """(job, its executors) of all jobs."""
        groups = defaultdict(list)
        for executor in self.executors:
            groups[executor.job].append(executor)
        return [(job, groups[job["id"]]) for job in self.jobs]

    @cached_property
    def moments(self):
        return moments(self)


def read_run(jobs_path, result_path, executors_path):
    """Read the three files; decimals become the fractions that they say."""
    with open(jobs_path, encoding="utf-8", newline="") as file:
        jobs = [{name: Fraction(value) for name, value in row.items()} for row in csv.DictReader(file)]
    with open(executors_path, encoding="utf-8", newline="") as file:
        names = ("placed_s", "start_s", "finish_s")
        executors = [
            Executor(
                int(row["job"]),
                int(row["vm"]),
                *(Fraction(row[name]) for name in names),
                row["well_placed"] == "True",
                Fraction(row["job_cost"]),
            )
            for row in csv.DictReader(file)
        ]
    return Run(jobs, json.loads(Path(result_path).read_text(encoding="utf-8"), parse_float=Fraction), executors)


# ---- what follows from where the executors are ---------------------------------------------------------------------


def charged_s(billing, length_s):
    """Seconds to be paid for a rental of a length."""
    if billing["granularity_s"]:
        part_s = Fraction(billing["granularity_s"])
        length_s = math.ceil(length_s / part_s) * part_s
    return max(length_s, Fraction(billing["minimum_s"]))


def well_placed(job, vms):
    """Whether the executors of a job are on different VMs, or all on one, as its type wants."""
    return len(set(vms)) == (len(vms) if job["type"] in SPREAD_TYPES else 1)


def duration_s(run, job, vms):
    longer = 1 + Fraction(run.rules["penalty_percent"]) / 100
    return job["duration_s"] * (1 if well_placed(job, vms) else longer)


def moments(run):
    """Walk through the jobs: when each was placed, starts and ends, and what it adds to the bill."""
    found, before = Moments(), Placed()
    for job, executors in run.of_jobs():
        before.clock_s = clock_s = max(before.clock_s, job["arrival_s"])
        said_s = max((one.placed_s for one in executors), default=clock_s)
        # A job that waits is placed when one before it ends.
        for at_s in sorted({clock_s, *(end_s for end_s in found.finish_s if end_s > clock_s)}):
            if abs(at_s - said_s) <= MOMENT_S:
                before.clock_s = at_s
                break
        else:
            found.wrong.append(f"job {job['id']}: placed at {float(said_s)} s, when nothing happens")
        after = before.place(run, job, [one.vm for one in executors])
        finish_s, run_s = after.running[-1][0], after.run_s - before.run_s
        found.placed_s.append(after.clock_s)
        found.start_s.append(finish_s - run_s)
        found.finish_s.append(finish_s)
        found.run_s.append(run_s)
        found.cost.append(after.cost - before.cost)
        before = after
    found.rentals = before.rentals
    return found


def near(said, expected):
    """Whether a float of the files is what was worked out."""
    return abs(Fraction(said) - expected) <= max(SHARE * abs(expected), SHARE)


# ---- the rules ------------------------------------------------------------------------------------------------------


def whole_jobs(run):
    """Every executor of every job is placed once, on a VM that there is."""
    for job, executors in run.of_jobs():
        if len(executors) != job["executors"]:
            yield f"job {job['id']}: {len(executors)} of {job['executors']} executors"
    known = {job["id"] for job in run.jobs}
    for executor in run.executors:
        if executor.job not in known or not 0 <= executor.vm < len(run.vms):
            yield f"{executor}: no such job or VM"


def order(run):
    """Jobs are placed in order of arrival, at an arrival or at the end of a job that was placed before."""
    yield from run.moments.wrong
    for (job, executors), placed_s in zip(run.of_jobs(), run.moments.placed_s, strict=True):
        for executor in executors:
            if abs(executor.placed_s - placed_s) > MOMENT_S:
                yield f"{executor}: job {job['id']} is placed at {float(placed_s)} s"


def capacity(run):
    """No VM holds more cores or memory than it has at any time."""
    needs = {job["id"]: (job["cores"], job["memory_gb"]) for job in run.jobs}
    holds = defaultdict(list)
    spans = zip(run.of_jobs(), run.moments.placed_s, run.moments.finish_s, strict=True)
    for (job, executors), placed_s, finish_s in spans:
        for executor in executors:
            holds[executor.vm].append((placed_s, finish_s, *needs[job["id"]]))
    for vm, held in holds.items():
        cores, memory_gb, _ = run.vms[vm]
        for moment in {placed_s for placed_s, _, _, _ in held}:
            now = [need for placed_s, finish_s, *need in held if placed_s <= moment < finish_s]
            if sum(each for each, _ in now) > cores or sum(each for _, each in now) > memory_gb:
                yield f"VM {vm} at {float(moment)} s: more than {cores} cores or {memory_gb} GB"


def starts(run):
    """A job starts when it is placed and the last of its VMs is up."""
    for (_, executors), start_s in zip(run.of_jobs(), run.moments.start_s, strict=True):
        for executor in executors:
            if abs(executor.start_s - start_s) > MOMENT_S:
                yield f"{executor}: starts at {float(executor.start_s)} s, expected {float(start_s)} s"


def durations(run):
    """A job takes its duration where it is well placed, else so many per cent longer."""
    for (job, executors), run_s in zip(run.of_jobs(), run.moments.run_s, strict=True):
        good = well_placed(job, [one.vm for one in executors])
        for executor in executors:
            if abs(executor.finish_s - executor.start_s - run_s) > MOMENT_S:
                took_s = float(executor.finish_s - executor.start_s)
                yield f"{executor}: takes {took_s} s, expected {float(run_s)} s"
            if executor.well_placed != good:
                yield f"{executor}: well placed is {executor.well_placed}"


def bills(run):
    """Rentals are billed as the settings say, overlapping use once; jobs and VMs add up to the cost."""
    found, billing, total = run.moments, run.result["settings"]["billing"], Fraction(0)
    said = {row["vm"]: row for row in run.result["vms"]}
    for vm, (_, _, price) in enumerate(run.vms):
        rentals = found.rentals.get(vm, ())
        billed_s = sum((charged_s(billing, each.end_s - each.begin_s) for each in rentals), Fraction(0))
        total += billed_s / 3600 * price
        row = said.get(vm, {"billed_s": 0.0, "cost": 0.0})
        if not near(row["billed_s"], billed_s):
            yield f"VM {vm}: billed {float(row['billed_s'])} s, expected {float(billed_s)} s"
        if not near(row["cost"], billed_s / 3600 * price):
            yield f"VM {vm}: costs {float(row['cost'])}, {float(billed_s)} s at {float(price)} per hour"
    if not near(run.result["cost"], total):
        yield f"cost {float(run.result['cost'])}, by the log {float(total)}"
    for (job, executors), cost in zip(run.of_jobs(), found.cost, strict=True):
        for executor in executors:
            if not near(executor.job_cost, cost):
                yield f"job {job['id']}: adds {float(executor.job_cost)} to the bill, expected {float(cost)}"


def totals(run):
    """Means and counts of the result file are those of the log."""
    rows, found, number = run.of_jobs(), run.moments, len(run.jobs)
    expected = {
        "mean_duration_s": sum(found.run_s) / number,
        "response_s": sum(map(Fraction.__sub__, found.finish_s, (job["arrival_s"] for job in run.jobs))) / number,
        "good_placements": sum(well_placed(job, [one.vm for one in executors]) for job, executors in rows),
        "steps": len(run.executors) + run.result["waits"],
    }
    for name, value in expected.items():
        if not near(run.result[name], value):
            yield f"{name} is {float(run.result[name])}, by the log {float(value)}"


def reward_of(run, cost, run_s):
    """R_epi: cost over that of all VMs for the worst durations, mean duration between best and worst (Eq. 14)."""
    rules, beta = run.rules, Fraction(run.result["settings"]["beta"])
    best_s = sum(job["duration_s"] for job in run.jobs)
    longer = Fraction(rules["penalty_percent"]) / 100
    most_s = best_s * (1 + longer) if rules["penalty_in_cost_max"] else best_s
    share = cost / (most_s / 3600 * sum(price for _, _, price in run.vms))
    slow = (run_s - best_s) / (best_s * longer)
    return Fraction(rules["fixed_reward"]) * (beta * (1 - share) + (1 - beta) * (1 - slow))


def reward(run):
    """The reward is that of the costs and run times of the log."""
    expected = reward_of(run, sum(run.moments.cost), sum(run.moments.run_s))
    if abs(Fraction(run.result["reward"]) - expected) > SHARE * Fraction(run.rules["fixed_reward"]):
        yield f"reward {float(run.result['reward'])}, by the log {float(expected)}"


RULES = (whole_jobs, order, capacity, starts, durations, bills, totals, reward)


def violations(run):
    """One line per violation, beginning with the name of the rule; nothing else where executors or VMs are missing."""
    first, *others = RULES
    found = [f"{first.__name__}: {text}" for text in first(run)]
    return found or [f"{rule.__name__}: {text}" for rule in others for text in rule(run)]
