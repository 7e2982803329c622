"""Fields of a plan: instance, rules and schedule for compiled code."""

from decima.core.record import BOUND, CODE, F64, I64, FieldGroup, RecordType, fields

INSTANCE = FieldGroup.of(
    "instance",
    fields(I64, None, nodes="number of nodes", executors="number of executors", jobs="number of jobs"),
    fields(I64, None, has_costs="execution times are given", has_rates="each pair of executors has its own rate"),
    fields(F64, None, rate="transfer rate of all pairs", latency="of a transfer, s"),
    fields(F64, "nodes", BOUND, work="work of a node", arrival="arrival of its job, s", mean_time="mean time, s"),
    fields(F64, "nodes", BOUND, least_time="time on the executor that is fastest for a node, s"),
    fields(I64, "nodes", BOUND, job="job of a node"),
    fields(F64, "executors", BOUND, speeds="speed of an executor; 1 where execution times are given"),
    fields(F64, "costs", BOUND, costs="execution times, node x executor, s"),
    fields(F64, "rates", BOUND, rates="transfer rates, sender x receiver"),
    fields(I64, "nodes + 1", BOUND, parent_start="first edge of a node's parents", child_start="of its children"),
    fields(I64, "edges", BOUND, parent="parents of all nodes", child="children of all nodes"),
    fields(F64, "edges", BOUND, parent_data="data from each of the parents"),
)
RULES = FieldGroup.of(
    "rules",
    fields(I64, None, insertion="into gaps", duplicate="copies of parents", on_decision="data is sent at decisions"),
    fields(I64, None, decision="0: plan, 1: event, 2: idle", only_free="only executors without work"),
    fields(I64, None, choice="how the next node is chosen", taken="place in the pool that a network chose"),
    fields(I64, None, CODE, chooser="the compiled network"),
    fields(I64, None, policy="address of the network's record"),
    fields(I64, None, has_bias="finishes have an addend", has_forced="nodes have their executor"),
    fields(F64, "bias", BOUND, bias="addend to finishes, node x executor"),
    fields(I64, "forced", BOUND, forced="executor of a node, or -1"),
)
SCHEDULE = FieldGroup.of(
    "schedule",
    fields(I64, None, copies="copies so far", gaps="gaps so far"),
    fields(F64, "executors", available="end of the last node of an executor, s"),
    fields(I64, "nodes", first_copy="latest copy of a node's list, or -1"),
    fields(F64, "nodes", finish="finish of a node's first copy, s"),
    fields(I64, "copies", next_copy="earlier copy of the same node, or -1", copy_node="node of a copy"),
    fields(I64, "copies", copy_executor="executor of a copy"),
    fields(F64, "copies", copy_start="start of a copy, s", copy_finish="finish of a copy, s"),
    fields(I64, "executors", gap_last="latest gap of an executor's list, or -1"),
    fields(I64, "gaps", gap_before="gap before a gap, or -1"),
    fields(F64, "gaps", gap_start="begin of a gap, s", gap_end="end of a gap, s"),
)
DECISION = FieldGroup.of(
    "one decision",
    fields(F64, None, now="time of the decision, s", sent_from="data is not sent before, s"),
    fields(I64, None, chosen="best executor without a copy, or -1", behind="with one", common_parent="copied, or -1"),
    fields(F64, None, least="earliest finish without a copy, s", least_copied="with one, s"),
    fields(I64, "executors", seen="node that an executor was looked at for on its own, or -1"),
    fields(F64, "executors", eft="finish without a copy, s", copied="finish behind a copy of a parent, s"),
    fields(I64, "executors", copied_parent="that parent, or -1"),
)
ORDER = FieldGroup.of(
    "order",
    fields(I64, None, size="nodes that can be decided", running="finishes to come", arrived="nodes that arrived"),
    fields(I64, "nodes", by_rank="node of a rank", rank="rank of a node", waiting="parents to wait for"),
    fields(I64, "nodes", pool="ranks or nodes that can be decided", arriving="nodes by arrival"),
    fields(F64, "nodes", since="when a node could be decided, s"),
    fields(F64, "jobs", left="mean time of a job's nodes not yet placed, s"),
    fields(F64, "nodes", finish_time="heap of finishes: time, s"),
    fields(I64, "nodes", finish_node="heap of finishes: node"),
)
PLAN = RecordType("heterogeneous plan", INSTANCE, RULES, SCHEDULE, DECISION, ORDER)
plan_at = PLAN.at
