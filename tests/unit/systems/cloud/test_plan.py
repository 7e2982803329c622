"""Plans: rows with costs, Spark pod templates against the schema of the API, and what these cannot say."""

import json

import jsonschema
import pytest

from decima.core.errors import ConfigError
from decima.core.files import plain
from decima.systems.cloud import Cluster, PlacementSettings, VmType, place
from decima.systems.cloud.generator import Generator
from decima.systems.cloud.kubernetes import HOSTNAME, JOB_LABEL, LIMITS, check_template, spark_jobs
from decima.systems.cloud.plan import PLAN_COLUMNS, plan_document, plan_frame
from decima.systems.cloud.workload import jobs_of_rows

# The parts of Kubernetes' published API of pods (v1) that templates use; nothing else is allowed.
_LABELS = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {
        "type": "string",
        "maxLength": 63,
        "pattern": r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$",
    },
}
_SELECTOR = {
    "type": "object",
    "properties": {"matchLabels": _LABELS},
    "required": ["matchLabels"],
    "additionalProperties": False,
}
_TERM = {
    "type": "object",
    "properties": {"labelSelector": _SELECTOR, "topologyKey": {"type": "string", "minLength": 1}},
    "required": ["topologyKey"],
    "additionalProperties": False,
}


def _object(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _list(items):
    return {"type": "array", "minItems": 1, "items": items}


_EXPRESSION = _object(
    ("key", "operator"),
    key={"type": "string"},
    operator={"enum": ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]},
    values=_list({"type": "string"}),
)
_NODES = _object(("nodeSelectorTerms",), nodeSelectorTerms=_list(_object(matchExpressions=_list(_EXPRESSION))))
POD = _object(
    ("apiVersion", "kind", "spec"),
    apiVersion={"const": "v1"},
    kind={"const": "Pod"},
    metadata=_object(labels=_LABELS),
    spec=_object(
        ("containers",),
        affinity=_object(
            nodeAffinity=_object(requiredDuringSchedulingIgnoredDuringExecution=_NODES),
            podAntiAffinity=_object(requiredDuringSchedulingIgnoredDuringExecution=_list(_TERM)),
            podAffinity=_object(
                preferredDuringSchedulingIgnoredDuringExecution=_list(
                    _object(
                        ("weight", "podAffinityTerm"),
                        weight={"type": "integer", "minimum": 1, "maximum": 100},
                        podAffinityTerm=_TERM,
                    )
                )
            ),
        ),
        topologySpreadConstraints=_list(
            _object(
                ("maxSkew", "topologyKey", "whenUnsatisfiable"),
                maxSkew={"type": "integer", "minimum": 1},
                topologyKey={"type": "string"},
                whenUnsatisfiable={"enum": ["DoNotSchedule", "ScheduleAnyway"]},
                labelSelector=_SELECTOR,
            )
        ),
        containers=_list(_object(("name",), name={"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"})),
    ),
)


@pytest.fixture(scope="module")
def result():
    return place(Generator("burst", n=25).draw(3), "ilp_exact")


def test_rows_add_up(result):
    table = plan_frame(result)
    assert tuple(table.columns) == PLAN_COLUMNS
    assert len(table) == sum(job.executors for job in result.workload.jobs)
    assert table.groupby("job")["job_cost"].first().sum() == pytest.approx(result.cost)
    assert (table["submit_s"] >= 0).all()
    document = json.loads(json.dumps(plain(plan_document(result))))
    assert [len(job["executors"]) for job in document["jobs"]] == [job.executors for job in result.workload.jobs]
    assert document["cost"] == result.cost


@pytest.mark.parametrize("rule", ["rr", "fill", "ilp_exact", "aep"])
def test_templates_keep_to_the_schema(rule):
    found = place(Generator("burst", n=25).draw(3), rule)
    made, place_of, names = spark_jobs(found), 0, found.settings.cluster.names
    for job, each in zip(found.workload.jobs, made, strict=True):
        jsonschema.validate(each.template, POD)
        vms = [names[vm] for vm in found.where[place_of : place_of + job.executors]]
        place_of += job.executors
        affinity = each.template["spec"]["affinity"]
        terms = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert terms[0]["matchExpressions"][0] == {"key": HOSTNAME, "operator": "In", "values": sorted(set(vms))}
        assert ("podAntiAffinity" in affinity) == (len(set(vms)) == len(vms) > 1)
        options = each.options
        assert options["spark.executor.instances"] == str(job.executors)
        heap, overhead = (int(options[f"spark.executor.{name}"][:-1]) for name in ("memory", "memoryOverhead"))
        assert heap + overhead == job.memory_mib
        assert overhead >= 384
        assert overhead >= int(0.1 * heap)
        assert each.template["metadata"]["labels"] == {JOB_LABEL: str(job.id)}
        uneven = len({vms.count(vm) for vm in vms}) > 1 or len(set(vms)) not in (1, len(vms))
        assert (LIMITS[0] in each.notes) == uneven


def test_what_the_check_refuses(result):
    for damage, message in (
        (lambda pod: pod.pop("kind"), "pod must have the keys"),
        (lambda pod: pod.update(kind="Deployment"), "pod.kind is 'Deployment'"),
        (lambda pod: pod["metadata"].update(labels={}), "expected labels"),
        (lambda pod: pod["metadata"].update(labels={"a": "no label!"}), "is no label of Kubernetes"),
        (lambda pod: pod["spec"].update(containers=[{"name": "Executor"}]), "container name 'Executor'"),
        (
            lambda pod: pod["spec"].update(topologySpreadConstraints=[{"maxSkew": 1}]),
            "topologySpreadConstraints must have",
        ),
    ):
        template = spark_jobs(result)[0].template
        damage(template)
        with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
            check_template(template)


def test_what_cannot_be_planned():
    named = Cluster((VmType("my vm", 4, 8.0, 1, 1.0),))
    jobs = jobs_of_rows([(0, 1, 1, 1, 4, 1, 10)], "one")
    with pytest.raises(ConfigError, match="VM 'my vm-1' cannot be a label of Kubernetes"):
        spark_jobs(place(jobs, "rr", PlacementSettings(cluster=named)))
    small = jobs_of_rows([(0, 1, 1, 1, 0.5, 1, 10)], "small")
    with pytest.raises(ConfigError, match=r"job 1: 0\.5 GB per executor leave 128 MiB of heap"):
        spark_jobs(place(small, "rr"))
