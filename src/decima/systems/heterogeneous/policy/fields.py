"""Record of a policy without the plan: its weights, its workspace, and its actions."""

from __future__ import annotations

from decima.core.record import BOUND, F32, F64, I64, FieldGroup, RecordType, fields

NETWORK = FieldGroup.of(
    "network",
    fields(I64, None, dense="the compiled dense layer", features="width of x", embedding="width of e"),
    fields(I64, None, first_width="width of the first layer of q", widest="widest layer"),
    fields(I64, None, layers="layers of Eq. 7; 0: all the way up", graph="embeddings are used"),
    fields(I64, None, logarithms="features are logarithms"),
    fields(I64, None, message_f="children are transformed"),
    fields(I64, "layout", BOUND, layout="where the layers of each perceptron are"),
    fields(F32, "weights", BOUND, weights="all kernels and biases"),
    fields(I64, "changing", BOUND, columns="columns of the features that change, or -1"),
)
INSTANCE = FieldGroup.of(
    "what is known of the instance",
    fields(F32, "nodes x features", BOUND, static="features that do not change"),
    fields(F32, "nodes", BOUND, outgoing="summed features of outgoing edges"),
    fields(F64, "jobs", BOUND, unit="time unit of a job, s"),
    fields(I64, "jobs + 1", BOUND, first_node="first node of a job"),
    fields(I64, "nodes", BOUND, upwards="nodes of each job, children first"),
)
CHOICE = FieldGroup.of(
    "how it chooses",
    fields(I64, None, greedy="most probable; else drawn", ready="this run has begun", failed="a score was not finite"),
    fields(I64, None, teaching="there is a teacher"),
    fields(F64, None, share="probability that the teacher's choice is taken"),
    fields(F64, "2 nodes", BOUND, draws="uniform numbers"),
    fields(F64, "nodes", BOUND, teacher="the teacher's priority"),
)
WORK = FieldGroup.of(
    "workspace",
    fields(I64, None, decisions="decisions so far", arrived="nodes that arrived", active="active jobs"),
    fields(I64, None, dirty="job that lost a node, or -1"),
    fields(F64, None, length="length of the schedule so far, s"),
    fields(I64, "jobs", left="nodes left", active_jobs="jobs with nodes left"),
    fields(F64, "jobs", left_time="their mean time, s"),
    fields(I64, "nodes", assigned="1: assigned"),
    fields(F32, "nodes x features", x="features"),
    fields(F32, "nodes x embedding", edges="h of the outgoing edges", base="h + x", e="embeddings", sums="of messages"),
    fields(F32, "nodes x embedding", out="of perceptrons"),
    fields(F32, "nodes x (features + embedding)", rows="x and e"),
    fields(F32, "nodes x first", first="part of the first layer of q that node and job have"),
    fields(F32, "jobs x embedding", y="summaries of jobs", cluster_f="what is summed for z"),
    fields(F32, "first", shared="part of the first layer that all have"),
    fields(F32, "input", total="sums", z="summary of all jobs"),
    fields(F32, "2 x nodes x widest", hidden="activations inside a perceptron"),
    fields(F32, "nodes x first", inside="activations of the first layer"),
    fields(F32, "nodes", score="scores"),
    fields(F64, "nodes", weight="exponentials of scores"),
)
DONE = FieldGroup.of(
    "what was done, by decision or by node",
    fields(I64, "nodes", chosen="node taken", wanted="node that the teacher wants, or the same"),
    fields(I64, "nodes", offered="first decision at which a node can be decided"),
    fields(I64, "jobs", since="first decision at which a job is active"),
    fields(F64, "nodes", log_prob="log-probability of the wanted node", time="time, s", grown="length before, s"),
)
POLICY = RecordType("heterogeneous policy", NETWORK, INSTANCE, CHOICE, WORK, DONE)
policy_at = POLICY.at
