"""The fields of the cluster state: one table that Python and the compiled kernels share.

``ClusterState`` is one block of memory. Its header holds the scalars and, for every array, the array's address;
``state_type`` makes the same names available inside compiled code. A field is added here and nowhere else.

Words: *stage id* is global over all jobs of the run (``job_first_stage[j] + local index``); ``-1`` means none.
Source ids of commitments: a stage id, ``num_stages + job`` for a job's pool, ``num_stages + num_jobs`` for the
null pool. Pool ids: a job, or ``num_jobs`` for the null pool.
"""

from dataclasses import dataclass

import numpy as np

I32, I64, F32, F64, U8 = np.dtype("i4"), np.dtype("i8"), np.dtype("f4"), np.dtype("f8"), np.dtype("u1")


@dataclass(frozen=True)
class Field:
    """One scalar (``extent is None``) or array of the state.

    ``extent`` names the length of an array owned by the state; ``"static"`` arrays belong to the workload tables and
    are shared between runs, ``"log"`` arrays exist only while a log is on, ``"policy"`` arrays only while a learned
    policy is bound to the state (``decima.policy.scheduler``).
    """

    name: str
    dtype: np.dtype
    extent: str | None
    doc: str


def _fields(dtype: np.dtype, extent: str | None, **docs: str) -> list[Field]:
    return [Field(name, dtype, extent, doc) for name, doc in docs.items()]


FIELDS: tuple[Field, ...] = (
    # ---- sizes and settings -------------------------------------------------------------------------------------
    *_fields(
        I64,
        None,
        num_jobs="jobs of the workload",
        num_stages="stages of all jobs",
        num_executors="executors of the cluster",
        num_commits="capacity of the commitment records",
        grid_width="entries per level grid",
        sampled="1: draw durations, 0: use means",
        job_limit="1: a decision's limit is the job's parallelism, 0: executors taken from this source",
        reoffer="1: offer idle executors again whenever a stage becomes runnable",
        commit_ahead="1: a drained stage's running executors are offered with the first free one",
        keep_warm="1: an executor idling in its own job keeps its JVM",
        runnable_only="1: the frontier holds only stages whose parents have finished",
        log_tasks="1: record every task",
        log_decisions="1: record every decision",
        decide_fn="address of the compiled scheduler, 0: ask the caller",
        duration_rng="address of the bit generator's state, durations",
        duration_next="address of its next_uint64",
        policy_rng="address of the bit generator's state, scheduler",
        policy_next="address of its next_uint64",
    ),
    *_fields(
        F64,
        None,
        moving_delay_ms="time an executor needs to join another job",
        time_limit_ms="the run is cut when the next event is later",
        now_ms="simulated time",
        area_ms="integral of active jobs over time up to area_time_ms",
        area_time_ms="when area_ms was last brought up to date",
        busy_ms="sum of the durations of all launched tasks",
    ),
    # ---- counters of the run ------------------------------------------------------------------------------------
    *_fields(
        I64,
        None,
        sequence="events pushed so far; breaks ties in time",
        heap_size="events waiting (tasks and moves)",
        next_arrival="index into arrival_order",
        num_arrivals="length of arrival_order",
        num_active="jobs in the system",
        num_done="finished jobs",
        num_frontier="stages of the frontier",
        num_jobs_unsaturated="active jobs with an unsaturated stage",
        num_runnable_open="runnable, unsaturated stages",
        num_marked="pools marked for an offer",
        calls="how often all idle executors were called up; a decision to wait holds until the next call",
        task_events="task completions",
        job_events="job arrivals",
        executor_events="executor arrivals",
        num_decisions="decisions taken",
        num_tasks_logged="rows of the task log",
        num_decisions_logged="rows of the decision log",
        max_decisions_logged="capacity of the decision log",
        truncated="1: the time limit ended the run",
        error="code of an invalid decision, 0: none",
    ),
    # ---- the open round -----------------------------------------------------------------------------------------
    *_fields(
        I64,
        None,
        source="source id the free executors belong to",
        source_job="job of the source (may be finished), -1: null pool",
        num_source="executors of the source still to be assigned; 0: no round is open",
        num_free="executors in free_executors",
        num_selected="stages in selected",
        idle_selected="1: idling was chosen in this round",
        has_action="1: action_* hold a decision of the caller",
        action_stage="chosen stage id, -1: idle",
        action_limit="chosen limit (meaning: job_limit)",
        commit_free="head of the list of unused commitment records",
    ),
    # ---- learned policy: what it is, what it records (decima.policy) ------------------------------------------------
    *_fields(
        I64,
        None,
        net_ready="1: the caches belong to this run",
        net_invalid="1: a score is not a finite number",
        net_greedy="1: take the likeliest choice, 0: sample",
        net_record="1: record decisions",
        net_num_levels="levels of the deepest profile",
        net_dense="address of the compiled dense layer",
        net_teacher="address of the compiled scheduler to imitate, 0: none",
        rec_decisions="decisions recorded",
        rec_instances="job graphs recorded",
        rec_nodes="stages of these graphs",
        rec_pairs="(decision, active job) recorded",
        rec_candidates="(decision, frontier stage) recorded",
        rec_full="1: a record was too small",
        rec_max_decisions="capacity",
        rec_max_instances="capacity",
        rec_max_nodes="capacity",
        rec_max_pairs="capacity",
        rec_max_candidates="capacity",
    ),
    *_fields(
        F64,
        None,
        net_teacher_share="probability that the teacher's decision is carried out instead of the policy's",
        net_hint_ms="mean interarrival time told to the policy",
    ),
    # ---- workload tables, shared --------------------------------------------------------------------------------
    *_fields(
        I32,
        "static",
        stage_job="[stage] its job",
        stage_tasks="[stage] number of tasks",
        stage_row="[stage] row of its profile in the profile tables",
        job_first_stage="[job+1] first stage id",
        arrival_order="jobs that arrive later, by time",
        child_offset="[row+1] into child",
        child="local indices of children",
        parent_offset="[row+1] into parent",
        parent="local indices of parents",
        row_grid="[row] its level grid",
        row_list="[row] its first duration list",
        row_level="[row] edges on the longest path to a stage without children",
        grid_left="[grid, n] level index left of n executors",
        grid_right="[grid, n] level index right of n executors",
        list_offset="[row list, level, situation] first value",
        list_length="[row list, level, situation] number of values",
    ),
    *_fields(U8, "static", job_initial="[job] 1: present at time 0 without an event"),
    *_fields(
        F64,
        "static",
        job_arrival_ms="[job]",
        job_work_ms="[job] tasks x nominal duration over all stages",
        job_priority="[job] free for schedulers that rank jobs from outside",
        job_cap="[job] free for schedulers that cap jobs from outside",
        row_nominal_ms="[row] nominal task duration",
        row_path_work_ms="[row] work along the heaviest path to the sink",
        row_path_ms="[row] one task per stage along the longest path to the sink",
        grid_weight="[grid, n] probability of the right level",
        list_add_ms="[row list, level, situation] warm-up added",
        list_mean_ms="[row list, level, situation] mean, warm-up included",
        values_ms="duration samples",
        params="parameters of the compiled scheduler",
    ),
    # ---- per stage ----------------------------------------------------------------------------------------------
    *_fields(
        I32,
        "stage",
        stage_next="tasks launched",
        stage_finished_tasks="tasks finished",
        stage_commit="commitments to it",
        stage_moving="executors moving to it",
        stage_executors="executors at it",
        stage_unsaturated_parents="parents not saturated",
        stage_unfinished_parents="parents not finished",
        runnable_next="next in the job's runnable list",
        runnable_prev="previous in the job's runnable list",
    ),
    *_fields(
        U8,
        "stage",
        stage_saturated="1: no further executor is useful",
        stage_in_frontier="1: may be chosen now",
        stage_selected="1: chosen in this round",
        stage_runnable="1: parents finished, tasks waiting",
    ),
    *_fields(F64, "stage", stage_finish_ms="when its last task finished, NaN before"),
    # ---- per job ------------------------------------------------------------------------------------------------
    *_fields(
        I32,
        "job",
        job_attached="executors running for it or idle in its pool",
        job_moving="executors moving to it",
        job_commit="commitments to it from other sources than its own",
        job_outgoing="commitments of its own sources to other jobs",
        job_calls="calls when a stage of it last became runnable",
        job_unsaturated="unsaturated stages",
        job_frontier="stages in the frontier",
        job_unexhausted="stages with tasks to launch",
        job_unfinished="stages not finished",
        job_completed_rank="position in the order of completion",
        runnable_head="first runnable stage",
        runnable_tail="last runnable stage",
        active="active jobs in order of arrival",
        completion_order="finished jobs in order of completion",
    ),
    *_fields(U8, "job", job_state="0: to arrive, 1: active, 2: finished"),
    *_fields(
        F64,
        "job",
        job_finish_ms="completion time, NaN before",
        job_key="scheduler: jobs are served in ascending order of it",
        job_share="scheduler: executors the job should hold",
    ),
    # ---- per executor -------------------------------------------------------------------------------------------
    *_fields(
        I32,
        "executor",
        executor_job="job it is attached to",
        executor_stage="stage it is at",
        executor_last="stage of its last task while its JVM is warm",
        executor_destination="stage it moves to",
        executor_calls="calls when its present destination was decided, -1: never",
        executor_pool="pool it idles in",
        pool_next="next in the pool",
        pool_prev="previous in the pool",
        free_executors="immediately free executors of the round",
        heap_executor="event heap: executor",
    ),
    *_fields(
        U8,
        "executor",
        executor_moving="1: under way to another job",
        executor_reserved="1: idles in its job's pool because a stage of that job that is not runnable yet was chosen",
    ),
    *_fields(F64, "executor", heap_ms="event heap: time"),
    *_fields(I64, "executor", heap_sequence="event heap: push counter"),
    # ---- pools, commitments -------------------------------------------------------------------------------------
    *_fields(
        I32,
        "pool",
        pool_head="first member",
        pool_tail="last member",
        pool_size="members",
        pool_open="members not reserved",
    ),
    *_fields(U8, "pool", pool_marked="1: to be offered"),
    *_fields(
        I32,
        "source",
        commit_head="first commitment",
        commit_tail="last commitment",
        source_calls="calls when made",
    ),
    *_fields(
        I32,
        "commit",
        commit_source="source id",
        commit_stage="destination stage, -1: idle",
        commit_count="executors",
        commit_next="next of the same source",
        selected="stages chosen in this round",
    ),
    # ---- learned policy (decima.policy): x features, e, y, z embeddings of stage, job and cluster -------------------
    *_fields(
        I32,
        "policy",
        net_layout="options, and where the layers of each perceptron are (decima.policy.layout)",
        net_position="[stage] index among the unfinished stages of its job",
        net_slot="[stage] row in the group being embedded",
        net_job_size="[job] unfinished stages when it was embedded, 0: never",
        net_job_instance="[job] its recorded graph, -1: changed since",
        net_stages="stages of the group being embedded",
        net_order="the same, children first",
        net_jobs="jobs of the group being embedded",
        net_level_end="ends of the levels in net_order",
        net_candidates="stages of the frontier, jobs in order of arrival",
        rec_instance_first="[graph+1] first stage",
        rec_node_row="[node] profile row of the stage",
        rec_node_local="[node] index of the stage in its job",
        rec_decision_pairs="[decision+1] first pair",
        rec_pair_instance="[pair] graph of the job",
        rec_decision_candidates="[decision+1] first candidate",
        rec_candidate_node="[candidate] node",
        rec_candidate_instance="[candidate] graph",
        rec_choice="[decision, 7] columns of decima.policy.record.CHOICE_COLUMNS",
    ),
    *_fields(
        F32,
        "policy",
        net_weights="all kernels and biases",
        net_xe="[stage] x and e, one after the other",
        net_y="[job] y",
        net_cluster_f="[job] f_cluster(y)",
        net_z="z",
        net_rows="[row of the group] x and e",
        net_h="[row of the group] h, later y of its jobs",
        net_message="[row of the group] outputs of f",
        net_sum="[row of the group] sums of messages",
        net_hidden="two buffers for activations inside a perceptron",
        net_input="inputs of q, or of w without the limit",
        net_base="what all rows share in the first layer of q or w",
        net_first="activations of the first layer of q or w",
        net_score="outputs of q or w",
        net_limits="limits as inputs of w",
        rec_x="[node] x",
        rec_critic="[decision, 8] state summary for a baseline",
    ),
    *_fields(
        F64,
        "policy",
        net_total="sums over jobs; work of jobs",
        net_weight="exponentials of the scores",
        rec_values="[decision, 5] columns of decima.policy.record.VALUE_COLUMNS",
    ),
    # ---- logs ---------------------------------------------------------------------------------------------------
    *_fields(
        I32, "log", task_stage="stage id", task_executor="executor", task_wave="0 fresh, 1 first, 2 rest"
    ),
    *_fields(F64, "log", task_start_ms="launch time", task_finish_ms="finish time"),
    *_fields(
        F64, "log", decision_rows="[n, 8] time, source job, executors, frontier, job, stage, limit, used"
    ),
)

SCALARS = {field.name: field for field in FIELDS if field.extent is None}
ARRAYS = {field.name: field for field in FIELDS if field.extent is not None}
# Header: scalars, then one address per array; every entry takes eight bytes.
OFFSETS = {name: 8 * index for index, name in enumerate([*SCALARS, *ARRAYS])}
HEADER_DTYPE = np.dtype(
    [(name, field.dtype) for name, field in SCALARS.items()] + [(name, I64) for name in ARRAYS]
)
DECISION_COLUMNS = (
    "time_ms",
    "source_job",
    "num_source_exec",
    "frontier_size",
    "job",
    "stage",
    "limit_requested",
    "executors_used",
)
