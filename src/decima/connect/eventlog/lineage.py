"""DAGs of queries, each merged from the Spark jobs that the query ran as.

Without adaptive execution a query is one job, or two when a subquery comes first. With it, each shuffle stage is a
job of its own, whose ancestors are announced again under new stage ids and skipped. Announcements of one stage are
recognised by the RDD that the stage computes.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import networkx

from decima.connect.eventlog.events import JobRecord, StageRecord

RESULT, SHUFFLE = "result", "shuffle"
_ROUNDS = 32  # more stages in a row than any query has; a job group may have thousands
_NUMBER = re.compile(r" \(\d+\)$")


@dataclass(frozen=True)
class MergedStage:
    """Stage of the merged DAG of a query."""

    stage_ids: tuple[int, ...]  # the ids under which it ran, ascending; more than one when it ran again for a later job
    num_tasks: int  # tasks as announced for the first of them
    parents: tuple[int, ...]  # positions of its parents in the list of merged stages
    operators: tuple[str, ...]  # names of the SQL operators or RDDs inside, sorted
    role: str  # `shuffle` or `result`


@dataclass
class _Node:
    role: str
    ran: list[int]
    record: StageRecord
    parents: set


def merge_jobs(
    jobs: Sequence[JobRecord], stages: Mapping[int, StageRecord], ran: set[int], result_stages: set[int]
) -> list[MergedStage]:
    """Merge the jobs of one query into its DAG, ordered without ids and timing.

    The DAG holds the stages that ran; one that never ran, as for a cached table, passes its parents on. Edges
    are the shuffles of the RDD lineage and, where the result of a job goes back to the driver (broadcast tables,
    subqueries), inferred: such a job comes before the entry stages of the next job submitted after its end.

    Args:
        jobs: the jobs of the query that succeeded.
        stages: announced stages by id.
        ran: ids of stages of which a task ended.
        result_stages: ids of stages whose tasks returned results to the driver.

    Returns:
        The stages; none when nothing ran or, in a damaged log, the parents form a cycle.
    """
    nodes, members = _identify(sorted(jobs, key=lambda job: (job.submit_ms, job.job_id)), stages, ran, result_stages)
    edges = {key: _nearest_run(key, nodes) for key, node in nodes.items() if node.ran}
    _add_driver_edges(edges, nodes, members)
    graph = networkx.DiGraph()
    graph.add_nodes_from(edges)
    graph.add_edges_from((parent, key) for key, parents in edges.items() for parent in parents)
    if not networkx.is_directed_acyclic_graph(graph):
        return []
    order = _canonical_order(graph, nodes)
    position = {key: index for index, key in enumerate(order)}
    return [
        MergedStage(
            tuple(sorted(nodes[key].ran)),
            nodes[key].record.num_tasks,
            tuple(sorted(position[parent] for parent in edges[key])),
            nodes[key].record.operators,
            nodes[key].role,
        )
        for key in order
    ]


def _identify(jobs, stages, ran, result_stages):
    """Nodes by key, and executed stages per job; a key is (RDD, type, occurrence)."""
    nodes: dict[tuple, _Node] = {}
    key_of_id: dict[int, tuple] = {}
    members: list[tuple[JobRecord, list[tuple]]] = []
    for job in jobs:
        seen: dict[tuple, int] = defaultdict(int)
        new: list[tuple] = []
        for stage_id in job.stage_ids:
            if stage_id in key_of_id:  # without adaptive execution, a later job names the same stage
                continue
            record = stages[stage_id]
            role = RESULT if stage_id in result_stages else SHUFFLE
            base = ("rdd", record.rdd_id, role) if record.rdd_id is not None else ("stage", stage_id, role)
            key = (*base, seen[base])
            if role == RESULT:  # a second action on one RDD runs its result stage anew
                while key in nodes:
                    seen[base] += 1
                    key = (*base, seen[base])
            seen[base] += 1
            key_of_id[stage_id] = key
            node = nodes.get(key)
            if node is None:
                node = nodes[key] = _Node(role, [], record, set())
            if stage_id in ran:
                if not node.ran:
                    node.record = record
                    new.append(key)
                node.ran.append(stage_id)
        members.append((job, new))
    for stage_id, key in key_of_id.items():
        parents = {key_of_id[parent] for parent in stages[stage_id].parent_ids if parent in key_of_id}
        nodes[key].parents |= parents - {key}
    return nodes, members


def _nearest_run(key: tuple, nodes: dict[tuple, _Node]) -> set[tuple]:
    """Parents that ran; a skipped parent is replaced by its parents."""
    executed, visited, stack = set(), {key}, list(nodes[key].parents)
    while stack:
        parent = stack.pop()
        if parent in visited:
            continue
        visited.add(parent)
        if nodes[parent].ran:
            executed.add(parent)
        else:
            stack.extend(nodes[parent].parents)
    return executed


def _add_driver_edges(edges: dict[tuple, set], nodes: dict[tuple, _Node], members) -> None:
    used = set().union(*edges.values()) if edges else set()
    members = [(job, keys) for job, keys in members if keys]  # by submission
    submitted = [job.submit_ms for job, _ in members]
    for number, (job, keys) in enumerate(members):
        sinks = [key for key in keys if key not in used]
        following = max(number + 1, bisect_left(submitted, job.finish_ms))
        if not sinks or following == len(members):
            continue
        new = members[following][1]
        next_keys = set(new)
        entries = [key for key in new if not edges[key] & next_keys]
        for entry in entries:
            edges[entry] |= set(sinks) - {entry}


def _canonical_order(graph: networkx.DiGraph, nodes: dict[tuple, _Node]) -> list[tuple]:
    """Canonical order of the stages in which parents come first.

    Among equals, what a stage and its neighbourhood compute decides, then parents, then the RDD id. Labels are refined
    from the neighbours' (Weisfeiler and Lehman) until they see the whole graph. Numbers of code generation stages are
    left out at first: with adaptive execution they depend on which stage ended first. RDD ids follow the order in which
    the driver built the query.
    """
    label = {
        key: _digest(nodes[key].role, *(_NUMBER.sub("", name) for name in nodes[key].record.operators)) for key in graph
    }
    for _ in range(min(len(graph), _ROUNDS)):
        refined = {
            key: _digest(
                label[key],
                *sorted(label[parent] for parent in graph.predecessors(key)),
                "|",
                *sorted(label[child] for child in graph.successors(key)),
            )
            for key in graph
        }
        if len(set(refined.values())) == len(set(label.values())):
            break
        label = refined
    position: dict[tuple, int] = {}

    def rank(key: tuple) -> tuple:
        parents = sorted(position[parent] for parent in graph.predecessors(key))
        return label[key], parents, nodes[key].record.operators, key

    for generation in networkx.topological_generations(graph):
        for key in sorted(generation, key=rank):
            position[key] = len(position)
    return list(position)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
