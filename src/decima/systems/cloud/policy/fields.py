"""The memory of a placement policy, without that of an episode: weights, workspace, recorded decisions."""

from decima.core.record import BOUND, CODE, F32, F64, I32, I64, FieldGroup, RecordType, fields

# Whose decisions are recorded: the policy's own, those of the per-job program with beta, those of a given plan.
NO_TEACHER, TEACHER_PROGRAM, TEACHER_PLAN = range(3)

POLICY = FieldGroup.of(
    "what the policy is",
    fields(I64, None, CODE, net_dense="the compiled dense layer"),
    fields(
        I64,
        None,
        vector="1: the input is the vector of the paper, 0: one row per action",
        masked="1: invalid actions are left out",
        most_waits="voluntary waits before a job",
        scaled="1: numbers of the vector are divided by their largest values",
        num_layers="layers of the network",
        inputs="width of the input",
        width="widest layer",
        greedy="1: the best action, 0: drawn",
        record="1: decisions are recorded",
        per_job="1: rewards are the losses of jobs, 0: those of Table 3",
        teacher="whose decisions are recorded",
        limit="decisions until the kernel stops",
        num_forced="actions at the beginning of the episode that are given",
    ),
    fields(
        F64,
        None,
        explore="probability of a random action in place of the best one (eps-greedy)",
        teacher_share="probability that the teacher's decision is carried out",
    ),
    fields(F32, "weight", BOUND, weights="all kernels and biases"),
    fields(I64, "layer x 4", BOUND, layers="per layer: kernel, bias, inputs, outputs"),
    fields(I64, "forced", BOUND, forced="the given actions"),
)
WORKSPACE = FieldGroup.of(
    "workspace",
    fields(
        I64,
        None,
        shown="job that was seen last",
        voluntary="voluntary waits before it",
        fits="1: it could be placed when it was seen first",
        taught_wait="1: the teacher waits",
        queue_at="first job that has not arrived",
    ),
    fields(F64, None, core_rate="mean price of a core per second", total="sum of rewards"),
    fields(
        F64,
        None,
        unit_cores="what cores are divided by in the vector",
        unit_memory="memory",
        unit_job="number or type of the job",
        unit_executors="executors left",
    ),
    fields(
        I64,
        "vm",
        planned="executors of the job that the per-job program puts there",
        taught="the same of the teacher",
        here="executors of the job there",
    ),
    fields(I64, "action", actions="actions to choose from"),
    fields(F32, "action x input", x="inputs"),
    fields(F32, "buffer", hidden="activations, two buffers"),
    fields(F32, "action", score="outputs"),
    fields(F64, "action", weight="exponentials of scores"),
)
RECORDING = FieldGroup.of(
    "recorded decisions",
    fields(I64, None, decisions="decisions", rows="(decision, action) pairs"),
    fields(I64, "decision + 1", rec_first="first pair"),
    fields(I32, "pair", rec_action="action of the pair"),
    fields(F32, "recorded input", rec_x="inputs, per pair or, of a vector, per decision"),
    fields(I32, "decision", rec_chosen="place of the chosen action among the pairs of the decision"),
    fields(F32, "decision", rec_log_prob="its log-probability"),
    fields(F64, "decision", rec_reward="rewards from this decision up to the next one"),
    fields(I64, "decision", rec_job="job that was shown", rec_step="step of the episode"),
)
PLACEMENT_POLICY = RecordType("placement policy", POLICY, WORKSPACE, RECORDING)
#: Compiled function from an address to the record there.
policy_at = PLACEMENT_POLICY.at
