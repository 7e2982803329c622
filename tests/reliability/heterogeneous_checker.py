"""Checks plans of heterogeneous executors, and a service's answers, from files alone: instance and result (json).

Nothing of the package is imported: the rules are written down a second time, from ``docs/heterogeneous.md`` and
``scheduler.proto``. Times are seconds. The result is a schedule file as the command line writes it, with ``optimum``
where it is said to be one, and may hold a ``dialogue``: what a client told the service and what it was answered
(``heterogeneous_client.py``).
"""

import json
import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

# Sums in another order; the proof of an optimum leaves a millionth open.
RELATIVE, PROOF = 1e-9, 2e-6
# What a client that does wrong is told.
STATUSES = ("INVALID_ARGUMENT", "FAILED_PRECONDITION", "RESOURCE_EXHAUSTED", "NOT_FOUND")


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
    def rules(self):
        """Settings of the scheduler that the service was asked for."""
        return self.result["asked"]

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

    @property
    def calls(self):
        return self.result.get("dialogue", ())


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


# ---- dialogues with a service ---------------------------------------------------------------------------------------


@dataclass
class Moment:
    """What a client knew when it asked, and what it was answered."""

    call: dict
    before: dict  # (job, node, executor) -> Copy, with times as the client told or was told them
    jobs: set
    available: dict
    told: list  # copies in the order of the answer, duplicates before the nodes that they are for
    pairs: list  # (copy, its duplicate or None)

    @property
    def now_s(self):
        return self.call["now_s"]

    def running(self):
        """Copies so far; what was to be finished and was not executed finishes now at the earliest."""
        late = [(one, one.finish_s if one.executed else max(one.finish_s, self.now_s)) for one in self.before.values()]
        return [Copy(*one.place, one.executor, one.start_s, end_s, executed=one.executed) for one, end_s in late]


def moments(run):
    """One by one the answered calls of a client that does nothing wrong, with what it knew."""
    for call in run.calls:
        copies = [Copy(*said[:5], executed=said[5]) for said in call["copies"]]
        known_copies = {(*one.place, one.executor): one for one in copies}
        available = {int(executor): time_s for executor, time_s in call["executors"].items()}
        told, pairs = [], []
        for said in call["answer"] or ():
            copy = Copy(said["job"], said["node"], said["executor"], said["start_s"], said["finish_s"])
            other = said["duplicate"] and Copy(
                copy.job, said["duplicate"][0], copy.executor, *said["duplicate"][1:], duplicate=True
            )
            told += [other, copy] if other else [copy]
            pairs.append((copy, other))
        if call["lawful"]:
            yield Moment(call, known_copies, set(call["jobs"]), available, told, pairs)


def answers(run):
    """A lawful call is answered; others are, or are refused with one of the documented codes."""
    for number, call in enumerate(run.calls):
        if call["refused"] and (call["lawful"] or call["refused"][0] not in STATUSES):
            yield f"call {number} is refused: {call['refused']}"
        if call["answer"] is not None and not call["lawful"]:
            times = [each[key] for each in call["answer"] for key in ("start_s", "finish_s")]
            if not all(map(math.isfinite, times)):
                yield f"call {number}: times that are not finite"


def assigned(run):
    """Only nodes that are known and have no copy are assigned, no more than asked for, for as long as they take."""
    for moment in moments(run):
        placed = {one.place for one in moment.before.values()}
        most = moment.call["most"]
        if most and len(moment.pairs) > most:
            yield f"{len(moment.pairs)} nodes are assigned, {most} were asked for"
        for copy, _ in moment.pairs:
            if copy.job not in moment.jobs or copy.place not in run.times or not 0 <= copy.executor < run.executors:
                yield f"{copy}: no such node or executor"
            elif copy.place in placed:
                yield f"{copy}: has a copy already"
            placed.add(copy.place)
        for copy in moment.told:
            expected_s = run.times.get(copy.place, [math.nan] * run.executors)[copy.executor % run.executors]
            if not abs(copy.finish_s - copy.start_s - expected_s) <= slack(copy.finish_s):
                yield f"{copy}: takes {copy.finish_s - copy.start_s} s, expected {expected_s} s"


def not_too_early(run):
    """Nothing begins before now, before its executor is available, while it is busy, or before its data is there."""
    for moment in moments(run):
        here = defaultdict(list)
        for one in moment.running():
            here[one.place].append(one)
        for copy in moment.told:
            early = copy.start_s + slack(copy.start_s)
            if not early >= moment.now_s:
                yield f"{copy}: before now, {moment.now_s} s"
            if not early >= moment.available.get(copy.executor, 0.0):
                yield f"{copy}: its executor is available at {moment.available[copy.executor]} s"
            for parent, data in run.parents[copy.place]:
                there_s = run.there_s(data, here[parent], copy.executor)
                if run.rules["transfers"] == "decision":
                    sent = [Copy(*one.place, one.executor, 0.0, max(one.finish_s, moment.now_s)) for one in here[parent]
                            if one.executor != copy.executor]  # fmt: skip
                    same = [one for one in here[parent] if one.executor == copy.executor]
                    there_s = run.there_s(data, sent + same, copy.executor)
                if not early >= there_s:
                    yield f"{copy}: data of {parent} is there at {there_s} s"
            here[copy.place].append(copy)
        new = {id(one) for one in moment.told}
        for before, copy in overlaps([*moment.running(), *moment.told]):
            if id(before) in new or id(copy) in new:
                yield f"{copy}: overlaps {before}"


def duplicates(run):
    """A further copy is of a parent, on an executor that has none of it, before the node; or none is allowed."""
    for moment in moments(run):
        held = {(*one.place, one.executor) for one in moment.before.values()}
        for copy, other in moment.pairs:
            if other is not None:
                if not run.rules["duplicate"]:
                    yield f"{other}: no further copy is allowed"
                if other.place not in [parent for parent, _ in run.parents[copy.place]]:
                    yield f"{other}: no parent of {copy}"
                if (*other.place, other.executor) in held or other.place == copy.place:
                    yield f"{other}: is on that executor already"
                if other.finish_s > copy.start_s + slack(copy.start_s):
                    yield f"{other}: not before {copy}"
                held.add((*other.place, other.executor))
            held.add((*copy.place, copy.executor))


def decisions(run):
    """With ``plan`` all nodes of all jobs are decided, else those whose parents were executed; idle: on free ones."""
    for moment in moments(run):
        done = {one.place for one in moment.before.values() if one.executed}
        placed = {one.place for one in moment.before.values()}
        planned = run.rules["decision"] == "plan"
        for copy, _ in moment.pairs:
            missing = [parent for parent, _ in run.parents[copy.place] if parent not in (placed if planned else done)]
            if missing:
                yield f"{copy}: decided before its parents {missing}"
            placed.add(copy.place)
        if moment.call["most"] or moment.call["answer"] is None or run.rules["decision"] == "idle":
            continue
        for number in moment.jobs:
            for node in run.jobs[number]["nodes"]:
                place = number, node["name"]
                ready = all(parent in (placed if planned else done) for parent, _ in run.parents[place])
                if ready and place not in placed:
                    yield f"node {place} could be decided and was not"


def executed_once(run):
    """At the end of a lawful dialogue all nodes of all jobs were executed."""
    if run.result.get("ended"):
        told = {(each["job"], each["node"]) for call in run.calls for each in call["answer"] or ()}
        for place in run.times:
            if place not in told:
                yield f"node {place} was never assigned"


RULES = (
    *(whole, durations, arrivals, inputs, one_at_a_time, further_copies, totals, shortest),
    *(answers, assigned, not_too_early, duplicates, decisions, executed_once),
)


def violations(run):
    """One line per violation, beginning with the name of the rule."""
    return [f"{rule.__name__}: {text}" for rule in RULES for text in rule(run)]
