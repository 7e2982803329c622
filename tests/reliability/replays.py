"""What the files of a run say, beside what an oracle in plain Python finds from its inputs and decisions.

Each function reads the files of one system and returns two documents with the same keys: said, and found.
"""

import csv
import json
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import decima
from decima.systems.heterogeneous.json_format import load_instance, load_schedule
from decima.systems.heterogeneous.result import violations
from decima.systems.spark.settings import Settings
from tests.differential.heterogeneous_program import shortest_s
from tests.differential.side_by_side import oracle_for, oracle_run, shortened
from tests.placement_oracle import PlainPlacement

WAVES = ("fresh", "first", "rest")
# Sums in another order, and seconds that became ms again, differ in the last digits.
RELATIVE, ABSOLUTE = 1e-9, 1e-6
# Scores of placement that have another name in the file.
SCORES = {"duration_s": "mean_duration_s", "good": "good_placements"}
# The proof of an optimum leaves a millionth open.
PROOF = 2e-6


def differences(said, found):
    """A sentence for every value that is not as the oracle finds it, or that only one of the two has."""
    one, other = dict(_leaves(said)), dict(_leaves(found))
    return [
        f"{path}: {one.get(path, 'nothing')} in the files, {other.get(path, 'nothing')} by the oracle"
        for path in [*one, *(other.keys() - one.keys())]
        if path not in one or path not in other or not _same(one[path], other[path])
    ]


def _leaves(value, path=""):
    if isinstance(value, (dict, list, tuple)):
        yield f"{path} has", len(value)
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(each, f"{path}/{key}")
    else:
        yield path, value


def _same(one, other):
    if any(each is None or isinstance(each, (str, bool)) for each in (one, other)):
        return one == other
    return math.isclose(one, other, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def _rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def spark(jobs_path, result_path, tasks_path):
    """The oracle takes the decisions of the file and draws the durations of the seed."""
    result = json.loads(Path(result_path).read_text(encoding="utf-8"))
    values = result["settings"]
    settings = Settings(**values | ({"time_limit_ms": math.inf} if values["time_limit_ms"] is None else {}))
    oracle = oracle_for(decima.workload.load(jobs_path), settings, result["seed"])
    run = oracle_run(oracle, [shortened(row) for row in result["decisions"]])
    ends_ms = [end for end in run.completion_ms if end is not None]
    times_ms = [end - job.arrival_ms for end, job in zip(run.completion_ms, oracle.all_jobs, strict=True) if end]
    whole = len(ends_ms) == len(run.completion_ms)
    end_ms = max(ends_ms) if whole else oracle.time_limit_ms
    mean_ms, makespan_ms = math.fsum(times_ms) / len(times_ms) if times_ms else None, end_ms if whole else None
    slots_ms = settings.executors * end_ms
    tasks = [
        (
            *map(str, task[:3]),
            WAVES[task[5]],
            task[3] / 1000.0,
            task[4] / 1000.0,
            row in getattr(oracle, "lost_rows", ()),
            row in getattr(oracle, "killed_rows", ()),
        )
        for row, task in enumerate(run.tasks)
    ]
    found = {
        "error": run.error,
        "decisions": run.decisions,
        "tasks": tasks,
        "completion_ms": run.completion_ms,
        "completion_order": run.completion_order,
        "node_finish_ms": run.stage_finish_ms,
        "num_events": run.num_events,
        "num_decisions": len(run.decisions),
        "num_unfinished": len(run.completion_ms) - len(ends_ms),
        "truncated": run.truncated,
        "end_ms": end_ms,
        "avg_jct_ms": mean_ms,
        "makespan_ms": makespan_ms,
        "scores": {"avg_jct_s": mean_ms and mean_ms / 1000.0, "makespan_s": makespan_ms and makespan_ms / 1000.0},
    }
    if settings.elastic:
        there = [(unit.index, unit.since_ms, None, 0) for unit in oracle.present()]
        lives = sorted([*run.lives, *there], key=lambda life: life[:2])
        held_ms = math.fsum(min(end_ms, end_ms if end is None else end) - begin for _, begin, end, _ in lives)
        slots_ms = settings.executor_cores * held_ms
        result["registrations"].sort(key=lambda life: life[:2])
        losses = {name: lost for name, lost in run.losses.items() if lost or name in result["losses"]}
        found |= {"registrations": lives, "losses": losses, "executor_hours": held_ms / 3.6e6}
        found["scores"] |= {"executor_hours_h": held_ms / 3.6e6}
    found["utilization"] = run.busy_ms / slots_ms if slots_ms else 0.0
    said = {"error": "", "tasks": []} | {key: result[key] for key in found.keys() - {"error", "tasks"}}
    said["decisions"] = [shortened(row) for row in said["decisions"]]
    for row in _rows(tasks_path):
        where, times = [row[name] for name in ("job", "stage", "executor", "wave")], (row["start_s"], row["finish_s"])
        marks = (row.get(name, "0") == "1" for name in ("lost", "killed"))
        said["tasks"].append((*where, *map(float, times), *marks))
    return said, found


def exact(settings):
    """Settings of placement as a namespace whose numbers are the fractions that their decimals say."""
    text = json.dumps(settings)
    found = json.loads(text, parse_float=Fraction, object_hook=lambda values: SimpleNamespace(**values))
    vms = [kind for kind in found.cluster.types for _ in range(kind.quantity)]
    found.cluster = SimpleNamespace(vms=vms, price_per_hour=sum(vm.price_per_hour for vm in vms))
    billing = found.billing
    billing.per_second = not (billing.granularity_s or billing.minimum_s or billing.boot_s)
    return found


def exact_jobs(rows):
    """Jobs of rows of texts or numbers, whose decimals become fractions."""
    jobs = [SimpleNamespace(**{name: Fraction(value) for name, value in row.items()}) for row in rows]
    return SimpleNamespace(jobs=jobs)


def cloud(jobs_path, result_path, executors_path):
    """The oracle places the executors of the file, in exact fractions, and waits until their moments."""
    result, log = json.loads(Path(result_path).read_text(encoding="utf-8")), _rows(executors_path)
    jobs = exact_jobs(_rows(jobs_path))
    oracle, waits, moments, costs = PlainPlacement(jobs, exact(result["settings"])), 0, [], [0.0]
    for row in log:
        while not oracle.over and oracle.heap and oracle.now_s + Fraction(1, 10**6) < Fraction(row["placed_s"]):
            oracle.step(0)
            waits += 1
        now_s, reward = oracle.now_s, oracle.step(int(row["vm"]) + 1)
        if len(oracle.run_s) > len(moments):
            moments.append(now_s)
            costs.append(oracle.cost())
    number, executors = len(oracle.run_s), []
    for job, placed_s, run_s, finish_s, before, after in zip(
        jobs.jobs, moments, oracle.run_s, oracle.finish_s, costs, costs[1:], strict=False
    ):
        good = str(run_s == job.duration_s)
        row = (int(job.id), job.cores, job.memory_gb, placed_s, finish_s - run_s, finish_s, good, after - before)
        executors += [(*row, each) for each in range(int(job.executors))]
    responses_s = [end - job.arrival_s for job, end in zip(jobs.jobs, oracle.finish_s, strict=False)]
    bills = [(oracle.billed_s(vm), kind.price_per_hour / 3600) for vm, kind in enumerate(oracle.vms)]
    used = Counter(int(row["vm"]) for row in log)
    found = {
        "executors": executors,
        "complete": oracle.complete,
        "cost": oracle.cost(),
        "mean_duration_s": sum(oracle.run_s) / number,
        "response_s": sum(responses_s) / number,
        "good_placements": oracle.good,
        "steps": len(log) + waits,
        "waits": waits,
        "reward": reward,
        "vms": {vm: (billed_s, billed_s * price, used[vm]) for vm, (billed_s, price) in enumerate(bills)},
    }
    found["scores"] = {key: found[SCORES.get(key, key)] for key in result["scores"]}
    said = {key: result[key] for key in found.keys() - {"executors"}}
    said["vms"] = {row["vm"]: (row["billed_s"], row["cost"], row["executors"]) for row in result["vms"]}
    numbers = ("cores", "memory_gb", "placed_s", "start_s", "finish_s")
    said["executors"] = [
        (
            int(row["job"]),
            *(float(row[name]) for name in numbers),
            row["well_placed"],
            float(row["job_cost"]),
            int(row["executor"]),
        )
        for row in log
    ]
    return said, found


def heterogeneous(instance_path, result_path):
    """The copies of the file are valid, and an optimum is as short as a mixed-integer program finds."""
    result = json.loads(Path(result_path).read_text(encoding="utf-8"))
    instance = load_instance(instance_path)
    schedule = load_schedule(result_path, instance)
    ends_s = [max(first) for first in _by_job(instance, schedule)]
    allowed = result["settings"].get("duplicate", True)
    found = {"violations": list(violations(instance, schedule)), "makespan_s": max(ends_s), "shortest": True}
    found |= {
        "duplicate": schedule.duplicate.tolist(),
        "forbidden": [] if allowed else [True] * sum(schedule.duplicate),
    }
    said = {"violations": [], "makespan_s": result["makespan_s"], "shortest": True, "forbidden": []}
    said |= {"duplicate": [copy["duplicate"] for copy in result["copies"]]}
    if "jobs" in result:
        found["jobs"], said["jobs"] = ends_s, [job["finish_s"] for job in result["jobs"]]
    if "optimum" in result:
        shortest = shortest_s(instance, duplicate=result["optimum"]["duplicate"])
        found["shortest"] = abs(result["makespan_s"] - shortest) <= PROOF * max(1.0, shortest)
    return said, found


def _by_job(instance, schedule):
    """First end of every node, job by job."""
    first = [math.inf] * len(instance)
    for node, finish_s in zip(schedule.node.tolist(), schedule.finish_s.tolist(), strict=True):
        first[node] = min(first[node], finish_s)
    begins = instance.first_node.tolist()
    return [first[begin : begin + len(job)] for begin, job in zip(begins, instance.jobs, strict=False)]
