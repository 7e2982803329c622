"""Checks plans of heterogeneous executors from files alone: instance and result (json).

Nothing of the package is imported: the rules are written down a second time, from ``docs/heterogeneous.md``. Times are
seconds. The result is a schedule file as the command line writes it, with ``optimum`` where it is said to be one.
"""

import json
import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

# Sums in another order; the proof of an optimum leaves a millionth open.
RELATIVE, PROOF = 1e-9, 2e-6


@dataclass
class Copy:
    job: int
    node: str
    executor: int
    start_s: float
    finish_s: float
    duplicate: bool = False
    executed: bool = False

    @property
    def place(self):
        return self.job, self.node


@dataclass
class Run:
    """What the two files say."""

    instance: dict
    result: dict

    def anew(self):
        """The same with nothing remembered, for a run that was changed."""
        return Run(self.instance, self.result)

    @property
    def jobs(self):
        return self.instance["jobs"]

    @property
    def is_plan(self):
        return "copies" in self.result

    @property
    def executors(self):
        return len(self.instance["cluster"]["names"])

    @cached_property
    def times(self):
        """(job, node) -> how long it takes on each executor."""
        cluster, rows = self.instance["cluster"], iter(self.instance["cluster"].get("costs", ()))
        return {
            (number, node["name"]): next(rows)
            if "costs" in cluster
            else [node["work"] / speed for speed in cluster["speeds"]]
            for number, job in enumerate(self.jobs)
            for node in job["nodes"]
        }

    @cached_property
    def parents(self):
        """(job, node) -> [(parent, data)]."""
        found = defaultdict(list)
        for number, job in enumerate(self.jobs):
            for edge in job["edges"]:
                found[number, edge["child"]].append(((number, edge["parent"]), edge["data"]))
        return found

    def transfer_s(self, data, sender, receiver):
        if sender == receiver:
            return 0.0
        rate = self.instance["cluster"]["rate"]
        if isinstance(rate, list):
            rate = rate[sender][receiver]
        return self.instance["cluster"]["latency_s"] + (0.0 if rate == "inf" else data / rate)

    def there_s(self, data, copies, executor):
        """When data of a node is on an executor, from the copy whose data comes first."""
        return min((one.finish_s + self.transfer_s(data, one.executor, executor) for one in copies), default=math.inf)

    @cached_property
    def copies(self):
        """Of a plan."""
        numbers = {name: number for number, name in enumerate(self.instance["cluster"]["names"])}
        return [
            Copy(each["job"], each["node"], numbers.get(each["executor"], -1), *map(each.get, ("start_s", "finish_s")))
            for each in self.result.get("copies", ())
        ]

    @cached_property
    def of_node(self):
        groups = defaultdict(list)
        for copy in self.copies:
            groups[copy.place].append(copy)
        return groups


def read_run(instance_path, result_path):
    """Read the two files."""
    return Run(*(json.loads(Path(path).read_text(encoding="utf-8")) for path in (instance_path, result_path)))


def slack(*times):
    return RELATIVE * max([1.0, *(abs(each) for each in times if math.isfinite(each))])


# ---- plans ----------------------------------------------------------------------------------------------------------


def whole(run):
    """Every node has a copy, on an executor that there is, at finite times; none is twice on one executor."""
    for copy in run.copies:
        if copy.place not in run.times or not 0 <= copy.executor < run.executors:
            yield f"{copy}: no such node or executor"
        if not (math.isfinite(copy.start_s) and math.isfinite(copy.finish_s)):
            yield f"{copy}: not at finite times"
    for place in run.times if run.is_plan else ():
        used = [copy.executor for copy in run.of_node[place]]
        if not used:
            yield f"node {place} has no copy"
        if len(set(used)) < len(used):
            yield f"node {place} is twice on an executor"


def known(run):
    """The copies whose node and executor there are."""
    return [one for one in run.copies if one.place in run.times and 0 <= one.executor < run.executors]


def durations(run):
    """A copy takes as long as its executor needs."""
    for copy in known(run):
        expected_s = run.times[copy.place][copy.executor]
        if abs(copy.finish_s - copy.start_s - expected_s) > slack(copy.finish_s):
            yield f"{copy}: takes {copy.finish_s - copy.start_s} s, expected {expected_s} s"


def arrivals(run):
    """Nothing begins before its job has arrived."""
    for copy in known(run):
        if copy.start_s < run.jobs[copy.job]["arrival_s"] - slack(copy.start_s):
            yield f"{copy}: before its job arrives"


def inputs(run):
    """Nothing begins before the data of all parents is there, of each from the copy whose data comes first."""
    for copy in known(run):
        for parent, data in run.parents[copy.place]:
            there_s = run.there_s(data, run.of_node[parent], copy.executor)
            if not copy.start_s >= there_s - slack(copy.start_s):
                yield f"{copy}: data of {parent} is there at {there_s} s"


def overlaps(copies):
    """Pairs of copies of one executor that are executed at the same time."""
    latest = {}
    for copy in sorted(copies, key=lambda one: (one.executor, one.start_s, one.finish_s)):
        before = latest.get(copy.executor)
        if before is not None and copy.start_s < before.finish_s - slack(before.finish_s):
            yield before, copy
        if before is None or copy.finish_s >= before.finish_s:
            latest[copy.executor] = copy


def one_at_a_time(run):
    """An executor executes one node at a time and finishes what it has begun."""
    for before, copy in overlaps(run.copies):
        yield f"{copy}: while {before} is executed"


def further_copies(run):
    """The first copy told of a node is no duplicate, others are; there are none where the settings forbid them."""
    seen = set()
    for copy, said in zip(run.copies, run.result.get("copies", ()), strict=True):
        if said["duplicate"] != (copy.place in seen):
            yield f"{copy}: is called {'' if said['duplicate'] else 'no '}duplicate"
        seen.add(copy.place)
    if run.copies and not run.result["settings"].get("duplicate", True) and len(run.copies) > len(seen):
        yield f"{len(run.copies) - len(seen)} further copies, none is allowed"


def totals(run):
    """Makespan and completions are those of the copies; no schedule is shorter than a path or the work."""
    if not run.is_plan:
        return
    first = {place: min((one.finish_s for one in run.of_node[place]), default=math.inf) for place in run.times}
    ends = [max(first[number, node["name"]] for node in job["nodes"]) for number, job in enumerate(run.jobs)]
    if abs(run.result["makespan_s"] - max(ends)) > slack(max(ends)):
        yield f"makespan is {run.result['makespan_s']} s, by the copies {max(ends)} s"
    for number, (job, end_s) in enumerate(zip(run.result.get("jobs", ()), ends, strict=False)):
        if abs(job["finish_s"] - end_s) > slack(end_s):
            yield f"job {number} completes at {job['finish_s']} s, by the copies at {end_s} s"
    least, path_s = {place: min(each) for place, each in run.times.items()}, {}

    def longest_s(place):
        if place not in path_s:
            above = [longest_s(parent) for parent, _ in run.parents[place]]
            path_s[place] = max([run.jobs[place[0]]["arrival_s"], *above]) + least[place]
        return path_s[place]

    floor_s = max(*map(longest_s, least), sum(least.values()) / run.executors)
    if run.result["makespan_s"] < floor_s - slack(floor_s):
        yield f"makespan is {run.result['makespan_s']} s, no schedule takes less than {floor_s} s"


def shortest(run):
    """What is called the optimum is as short as the shortest of all schedules, tried one by one."""
    if "optimum" not in run.result:
        return
    found, duplicate = run.result["makespan_s"], run.result["optimum"]["duplicate"]
    least_s = brute_force_s(run, duplicate, found)
    if abs(found - least_s) > PROOF * max(1.0, least_s):
        yield f"the optimum is {found} s, the shortest of all schedules takes {least_s} s"


def brute_force_s(run, duplicate, known_s):
    """Makespan of the shortest schedule, no longer than ``known_s``: copies one behind the other in every order."""
    places, best = list(run.times), known_s * (1.0 + 1e-12)
    held, free_s = {place: {} for place in places}, [0.0] * run.executors

    def go_on(open_nodes, longest_s):
        nonlocal best
        if not open_nodes:
            best = min(best, longest_s)
            return
        for place in places:
            if (held[place] and not duplicate) or not all(held[parent] for parent, _ in run.parents[place]):
                continue
            for executor in range(run.executors):
                if executor in held[place]:
                    continue
                ready_s = [
                    min(end + run.transfer_s(data, sender, executor) for sender, end in held[parent].items())
                    for parent, data in run.parents[place]
                ]
                before_s = free_s[executor]
                start_s = max([before_s, run.jobs[place[0]]["arrival_s"], *ready_s])
                end_s = start_s + run.times[place][executor]
                first = not held[place]
                if end_s >= best:
                    continue
                held[place][executor], free_s[executor] = end_s, end_s
                # A further copy may finish before the first one that was placed.
                ends = [min(each.values()) for each in held.values() if each]
                go_on(open_nodes - first, max(ends))
                del held[place][executor]
                free_s[executor] = before_s

    go_on(len(places), 0.0)
    return best


RULES = (whole, durations, arrivals, inputs, one_at_a_time, further_copies, totals, shortest)


def violations(run):
    """One line per violation, beginning with the name of the rule."""
    return [f"{rule.__name__}: {text}" for rule in RULES for text in rule(run)]
