"""Record of the learned policy: weights, workspace, recorded decisions.

x are features, e, y, z the embeddings of stage, job and cluster.
"""

from decima.core.jit import njit
from decima.core.record import BOUND, BUFFER, CODE, F32, F64, I32, I64, FieldGroup, RecordType, fields

# What buffers of recorded decisions are sized by.
CAPACITIES = ("decisions", "instances", "nodes", "pairs", "candidates")

NET = FieldGroup.of(
    "what the policy is",
    fields(
        I64,
        None,
        CODE,
        net_dense="the compiled dense layer",
        net_teacher="the compiled scheduler to imitate, 0: none",
        net_ask="function in Python that computes the scores of a network in Python, 0: none",
    ),
    fields(
        I64,
        None,
        net_ready="1: the caches belong to this run",
        net_greedy="1: take the most probable choice, 0: sample",
        net_record="1: record decisions",
        net_teacher_idles="1: that the teacher idles, or does not, is recorded too",
        net_num_levels="levels of the deepest profile",
        net_asked="which scores Python is to compute: q, w or d of decima.systems.spark.policy.kernel.layout",
        net_asked_scores="how many",
        net_chosen="index of the candidate whose limit or idle slot is chosen",
    ),
    fields(
        F64,
        None,
        net_teacher_share="probability that the teacher's decision is carried out instead of the policy's",
        net_hint_ms="mean interarrival time, an input of the policy",
    ),
    fields(
        I32,
        "layout entry",
        BOUND,
        net_layout="options, and where the layers of each perceptron are (decima.systems.spark.policy.kernel.layout)",
    ),
    fields(I32, "level", BOUND, net_levels="limits to choose from, ascending; none: every limit"),
    fields(F32, "weight", BOUND, net_weights="all kernels and biases"),
)
CACHES = FieldGroup.of(
    "what is known of stages and jobs",
    fields(
        I32,
        "stage",
        net_position="index among the unfinished stages of its job, -1: finished",
        net_slot="row in the group being embedded",
    ),
    fields(
        I32,
        "choice",
        net_candidates="stages of the frontier, jobs in order of arrival; with classes one after the other for each",
        net_candidate_class="class of the pair, -1: best fit",
    ),
    fields(F32, "choice x class", net_class="[candidate] what q sees of the class of the pair"),
    fields(
        I32,
        "job",
        net_job_size="unfinished stages when it was embedded, 0: never",
        net_job_instance="its recorded graph, -1: changed since",
        net_seen_tasks="tasks launched and finished when it was last seen",
        net_seen_held="executors that it kept then",
        net_seen_active="active jobs then, 0: never seen",
    ),
    fields(F32, "stage x (x, e)", net_xe="x and e of every stage, one after the other"),
    fields(F32, "job x y", net_y="y", net_cluster_f="f_cluster(y)"),
    fields(
        F64,
        "job x shape",
        net_shape_ms="[job] critical path of the whole job in ms, its average width; where the policy sees them",
    ),
    fields(F32, "job x shape", net_shape="the same as inputs of the heads"),
    fields(F32, "embedding", net_z="z"),
    fields(I32, "job x kept", net_kept_offer="[job, place] executors on offer in a kept embedding, -1: none is kept"),
    fields(F32, "job x kept y", net_kept_y="[job, place] y and f_cluster(y) with that offer"),
    fields(F32, "stage x kept e", net_kept_e="[stage, place] e with that offer"),
)
WORKSPACE = FieldGroup.of(
    "workspace of one decision",
    fields(
        I32,
        "group",
        net_stages="stages of the group being embedded",
        net_order="the same, children first",
        net_jobs="jobs of the group being embedded",
    ),
    fields(I32, "2 levels + 1", net_level_end="ends of the levels in net_order"),
    fields(F32, "group x (x, e)", net_rows="[row of the group] x and e"),
    fields(
        F32,
        "group x e",
        net_h="[row of the group] h, later y of its jobs",
        net_message="[row of the group] outputs of f",
        net_sum="[row of the group] sums of messages",
    ),
    fields(F32, "hidden", net_hidden="two buffers for activations inside a perceptron"),
    fields(F32, "input", net_input="inputs of q or d, or of w without the limit"),
    fields(F32, "width", net_base="what all rows share in the first layer of q or w"),
    fields(F32, "first", net_first="activations of the first layer of q or w"),
    fields(F32, "score", net_score="outputs of q, w or d"),
    fields(F32, "limit", net_limits="limits as inputs of w"),
    fields(F64, "sum", net_total="sums over jobs; work of jobs"),
    fields(F64, "score", net_weight="exponentials of the scores"),
)
RECORDING = FieldGroup.of(
    "recorded decisions",
    fields(
        I64,
        None,
        rec_decisions="decisions recorded",
        rec_instances="job graphs recorded",
        rec_nodes="stages of these graphs",
        rec_pairs="(decision, active job) recorded",
        rec_candidates="(decision, frontier stage) recorded",
        rec_full="1: a record was too small",
        **{f"rec_max_{name}": "capacity" for name in CAPACITIES},
    ),
    fields(I32, "graph + 1", BUFFER, rec_instance_first="first stage"),
    fields(F32, "graph x shape", BUFFER, rec_shape="shape of the job as an input of the heads"),
    fields(
        I32, "node", BUFFER, rec_node_row="profile row of the stage", rec_node_local="index of the stage in its job"
    ),
    fields(F32, "node x feature", BUFFER, rec_x="x"),
    fields(I32, "decision + 1", BUFFER, rec_decision_pairs="first pair", rec_decision_candidates="first candidate"),
    fields(I32, "pair", BUFFER, rec_pair_instance="graph of the job"),
    fields(
        I32,
        "candidate",
        BUFFER,
        rec_candidate_node="node",
        rec_candidate_instance="graph",
        rec_candidate_class="class, -1: best fit",
    ),
    fields(F32, "candidate x class", BUFFER, rec_class="what q saw of the class"),
    fields(
        I32,
        "decision x choice",
        BUFFER,
        rec_choice="columns of decima.systems.spark.policy.kernel.recording.CHOICE_COLUMNS",
    ),
    fields(
        F64,
        "decision x value",
        BUFFER,
        rec_values="columns of decima.systems.spark.policy.kernel.recording.VALUE_COLUMNS",
    ),
    fields(F32, "decision x critic", BUFFER, rec_critic="state summary for a baseline"),
)

POLICY = RecordType("the record of a policy", NET, CACHES, WORKSPACE, RECORDING)
POLICY_SLOT = "policy_record"
_policy_at = POLICY.at


@njit
def policy_of(state):
    """Record of the policy that decides about a cluster state."""
    return _policy_at(state.policy_record)
