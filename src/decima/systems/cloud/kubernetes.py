"""Plans for Spark on Kubernetes: one executor pod template per job, and the options of ``spark-submit``.

A template lets the executors of a job run on the nodes that its plan uses, and spreads or packs them. All executors of
a Spark application share one template, so some of a plan cannot be said; :data:`LIMITS` names it, and every file of
options says what of it concerns its job.

Source: Spark's "Running on Kubernetes" (pod templates), Kubernetes' API of pods, version v1.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from decima.core.errors import ConfigError
from decima.systems.cloud.result import PlacementResult
from decima.systems.cloud.workload import NETWORK_BOUND, PlacementJob

HOSTNAME = "kubernetes.io/hostname"
JOB_LABEL = "decima-job"
# Part of an executor's memory that Spark requests on top of the heap, and the least of it in MiB.
OVERHEAD, LEAST_OVERHEAD_MIB = 0.1, 384
LIMITS = (
    "How many executors each VM gets cannot be said: all share one template, and the scheduler of Kubernetes chooses "
    "among the listed nodes.",
    "Executors come one by one: other pods may take the room of those that are still to come, unless a gang scheduler "
    "such as Volcano or YuniKorn is used. The job starts when all have registered, or after the longest wait for them.",
    "The time of submission is not part of a template: submit at submit_s.",
    "The driver needs room of its own, which plans do not know.",
    "VMs are neither rented nor given back by this: nodes must be there under their names, or be labelled so.",
)
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True)
class SparkJob:
    """What Kubernetes and Spark are told of one job."""

    job: int
    template: dict[str, Any]  # a pod, for ``spark.kubernetes.executor.podTemplateFile``
    options: dict[str, str]  # of ``spark-submit --conf``
    notes: tuple[str, ...]  # what of the plan these do not say


def spark_jobs(result: PlacementResult, folder: str = ".") -> list[SparkJob]:
    """Templates and options of all jobs of a plan.

    Args:
        result: A complete episode.
        folder: Where the templates will lie, for the options.

    Raises:
        ConfigError: Not all jobs were placed, the name of a VM is no label of Kubernetes, or an executor has no memory
            beside Spark's overhead.
    """
    names = result.require_complete().settings.cluster.names
    for name in names:
        if not _LABEL.fullmatch(name):
            raise ConfigError(
                f"VM {name!r} cannot be a label of Kubernetes: expected at most 63 letters, digits, '-', '_' and '.'"
            )
    made, place = [], 0
    for number, job in enumerate(result.workload.jobs):
        vms = [names[vm] for vm in result.where[place : place + job.executors]]
        place += job.executors
        template = _template(job, vms)
        check_template(template)
        made.append(SparkJob(job.id, template, _options(job, folder), _notes(result, number, vms)))
    return made


def file_name(job: int) -> str:
    """Name of the template of a job."""
    return f"job-{job}.yaml"


def _template(job: PlacementJob, vms: list[str]) -> dict[str, Any]:
    label = {JOB_LABEL: str(job.id)}
    nodes = sorted(set(vms))
    affinity: dict[str, Any] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": nodes}]}]
            }
        }
    }
    selector = {"labelSelector": {"matchLabels": label}, "topologyKey": HOSTNAME}
    spec: dict[str, Any] = {"affinity": affinity}
    if len(nodes) == len(vms) > 1:
        affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [selector]}
    elif job.type == NETWORK_BOUND:
        if len(nodes) > 1:
            affinity["podAffinity"] = {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": selector}]
            }
    elif len(nodes) > 1:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": max(Counter(vms).values()),
                "topologyKey": HOSTNAME,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": label},
            }
        ]
    # Spark fills the container in; it takes the first one of the template.
    spec["containers"] = [{"name": "spark-kubernetes-executor"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": label}, "spec": spec}


def _options(job: PlacementJob, folder: str) -> dict[str, str]:
    # Spark requests heap + max(overhead * heap, least overhead); together this is what the plan counts.
    heap = min(math.floor(job.memory_mib / (1.0 + OVERHEAD)), job.memory_mib - LEAST_OVERHEAD_MIB)
    if heap < LEAST_OVERHEAD_MIB:
        raise ConfigError(
            f"job {job.id}: {job.memory_gb:g} GB per executor leave {heap} MiB of heap beside Spark's overhead; "
            f"expected {LEAST_OVERHEAD_MIB} MiB at least"
        )
    return {
        "spark.executor.instances": str(job.executors),
        "spark.executor.cores": str(job.cores),
        "spark.executor.memory": f"{heap}m",
        "spark.executor.memoryOverhead": f"{job.memory_mib - heap}m",
        "spark.dynamicAllocation.enabled": "false",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
        "spark.kubernetes.executor.podTemplateFile": f"{folder}/{file_name(job.id)}",
    }


def _notes(result: PlacementResult, number: int, vms: list[str]) -> tuple[str, ...]:
    counts = Counter(vms)
    shown = ", ".join(f"{count} on {vm}" for vm, count in sorted(counts.items()))
    notes = [f"plan: submit at {result.placed_s[number]:g} s, {shown}"]
    if len(set(counts.values())) > 1 or (len(counts) > 1 and max(counts.values()) > 1):
        notes.append(LIMITS[0])
    return (*notes, *LIMITS[1:])


def check_template(template: dict[str, Any]) -> None:
    """Check a template against what the API of pods admits, as far as templates of this module go.

    Raises:
        ConfigError: Something in it would be refused; says where.
    """
    spec = _keys(template, "pod", {"apiVersion": "v1", "kind": "Pod", "metadata": dict, "spec": dict})["spec"]
    _labels(template["metadata"].get("labels"), "metadata.labels")
    for container in spec["containers"]:
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", container.get("name", "")):
            raise ConfigError(f"pod template: container name {container.get('name')!r} is no name of Kubernetes")
    affinity = spec.get("affinity", {})
    terms = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    for term in terms:
        for expression in term["matchExpressions"]:
            _keys(expression, "matchExpressions", {"key": str, "operator": "In", "values": list})
            for value in expression["values"]:
                _label(value, "matchExpressions.values")
    for term in affinity.get("podAntiAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", []):
        _selector(term, "podAntiAffinity")
    for term in affinity.get("podAffinity", {}).get("preferredDuringSchedulingIgnoredDuringExecution", []):
        _keys(term, "podAffinity", {"weight": int, "podAffinityTerm": dict})
        if not 1 <= term["weight"] <= 100:
            raise ConfigError(f"pod template: weight is {term['weight']}; expected 1 to 100")
        _selector(term["podAffinityTerm"], "podAffinity")
    for constraint in spec.get("topologySpreadConstraints", []):
        _keys(
            constraint,
            "topologySpreadConstraints",
            {"maxSkew": int, "topologyKey": str, "whenUnsatisfiable": str, "labelSelector": dict},
        )
        if constraint["maxSkew"] < 1 or constraint["whenUnsatisfiable"] not in ("DoNotSchedule", "ScheduleAnyway"):
            raise ConfigError("pod template: topologySpreadConstraints has a skew below 1 or an unknown choice")
        _labels(constraint["labelSelector"].get("matchLabels"), "labelSelector")


def _keys(part: Any, where: str, expected: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(part, dict) or set(part) != set(expected):
        raise ConfigError(f"pod template: {where} must have the keys {', '.join(expected)}, got {part!r:.80}")
    for key, kind in expected.items():
        right = isinstance(part[key], kind) if isinstance(kind, type) else part[key] == kind
        if not right:
            raise ConfigError(f"pod template: {where}.{key} is {part[key]!r:.60}")
    return part


def _selector(term: dict[str, Any], where: str) -> None:
    _keys(term, where, {"labelSelector": dict, "topologyKey": str})
    _labels(term["labelSelector"].get("matchLabels"), f"{where}.labelSelector")


def _labels(labels: Any, where: str) -> None:
    if not isinstance(labels, dict) or not labels:
        raise ConfigError(f"pod template: {where} is {labels!r:.60}; expected labels")
    for value in labels.values():
        _label(value, where)


def _label(value: Any, where: str) -> None:
    if not isinstance(value, str) or not _LABEL.fullmatch(value):
        raise ConfigError(f"pod template: {where}: {value!r:.60} is no label of Kubernetes")
