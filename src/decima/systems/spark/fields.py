"""The fields of the simulated cluster: one table that Python and the compiled rules share.

A field is added here and nowhere else; :mod:`decima.core.record` makes it known to Python and compiled code.

Words: *stage id* is global over all jobs of the run (``job_first_stage[j] + local index``); ``-1`` means none.
Source ids of commitments: a stage id, ``num_stages + job`` for a job's pool, ``num_stages + num_jobs`` for the
null pool. Pool ids: a job, or ``num_jobs`` for the null pool. What an integer refers to (``refers``) decides what
becomes of it in a copy with other jobs; ``job list`` and ``stage list`` are arrays that hold ids in some order.
"""

import numpy as np

from decima.core.heap import heap_fields
from decima.core.record import (
    ADDRESS,
    BUFFER,
    CODE,
    F64,
    GIVEN,
    I32,
    I64,
    LOCAL,
    PLAIN,
    RUN,
    U8,
    FieldGroup,
    RecordType,
    fields,
)
from decima.systems.spark.decision import DECISION_COLUMNS

NONE = -1
ARRIVING, ACTIVE, FINISHED = 0, 1, 2  # values of job_state
WITHHELD, OVER = 1, 2  # values of stage_slot; 0: it was never delayed
TASK, MOVE = 0, 1  # kinds of events: an executor ends a task, or reaches the job it moved to; subject: the executor

SIZES = FieldGroup.of(
    "sizes and settings",
    fields(
        I64,
        None,
        refers=LOCAL,
        num_jobs="jobs of the workload",
        num_stages="stages of all jobs",
        num_executors="executors of the cluster",
        num_commits="capacity of the commitment records",
        grid_width="entries per level grid",
        num_classes="classes of executors",
        num_groups="groups of stages that fit the same classes",
        sampled="1: draw durations, 0: use means",
        job_limit="1: a decision's limit is the job's parallelism, 0: executors taken from this source",
        reoffer="1: offer idle executors again whenever a stage becomes runnable",
        commit_ahead="1: a drained stage's running executors are offered with the first free one",
        keep_warm="1: an executor idling in its own job keeps its JVM",
        runnable_only="1: the frontier holds only stages whose parents have finished",
        job_bound="1: executors of a job are offered to its own stages only, until it has finished",
        log_tasks="1: record every task",
        log_decisions="1: record every decision",
    ),
    fields(
        F64,
        None,
        refers=LOCAL,
        moving_delay_ms="time an executor needs to join another job",
        time_limit_ms="the run is cut when the next event is later",
    ),
)
ADDRESSES = FieldGroup.of(
    "addresses of what else a run needs",
    fields(
        I64,
        None,
        ADDRESS,
        rule_record="record of the compiled heuristic that decides, 0: none",
        policy_record="record of the learned policy that decides, 0: none",
        duration_rng="the bit generator's state, durations",
        duration_next="its next_uint64",
        policy_rng="the bit generator's state, scheduler",
        policy_next="its next_uint64",
    ),
    fields(I64, None, CODE, decide_fn="the compiled scheduler, 0: ask the caller"),
)
COUNTERS = FieldGroup.of(
    "clock and counters of the run",
    fields(
        F64,
        None,
        now_ms="simulated time",
        area_ms="integral of active jobs over time up to area_time_ms",
        area_time_ms="when area_ms was last brought up to date",
        busy_ms="sum of the durations of all launched tasks",
    ),
    fields(
        I64,
        None,
        refers=LOCAL,
        num_arrivals="length of arrival_order",
        next_arrival="index into arrival_order",
        num_tasks_logged="rows of the task log",
        num_decisions_logged="rows of the decision log",
        max_decisions_logged="capacity of the decision log",
    ),
    fields(
        I64,
        None,
        refers=PLAIN,
        num_active="jobs in the system",
        num_done="finished jobs",
        num_frontier="stages of the frontier",
        num_jobs_unsaturated="active jobs with an unsaturated stage",
        num_runnable_open="runnable, unsaturated stages",
        num_marked="pools marked for an offer",
        marks_seen="1: no marked pool has an executor for a runnable, unsaturated stage, and nothing changed since",
        calls="how often all idle executors were called up; a decision to wait holds until the next call",
        task_events="task completions",
        job_events="job arrivals",
        executor_events="executor arrivals",
        slot_events="ends of slots",
        num_timers="stages whose slots have not ended",
        calling="1: idle executors are being offered without reoffer, because a slot or a bound job ended",
        num_decisions="decisions taken",
        truncated="1: the time limit ended the run",
        error="code of an invalid decision, 0: none",
    ),
)
ROUND = FieldGroup.of(
    "the open round",
    fields(I64, None, refers="source", source="source id the free executors belong to"),
    fields(I64, None, refers="job", source_job="job of the source (may be finished), -1: null pool"),
    fields(I64, None, refers="commit", commit_free="head of the list of unused commitment records"),
    fields(
        I64,
        None,
        refers=PLAIN,
        num_source="executors of the source still to be assigned; 0: no round is open",
        num_free="executors in free_executors",
        offered_classes="bit mask: classes on offer; the frontier holds stages that fit one of them",
        num_selected="stages in selected",
        round_bound="1: the stages of other jobs are kept out of the frontier",
        num_barred="stages in barred",
        idle_selected="1: idling was chosen in this round",
        has_action="1: action holds a decision of the caller",
        no_answer="1: the scheduler has no choice, because a score is not a finite number",
    ),
    fields(F64, "part", refers=LOCAL, action="the decision, parts as in decima.systems.spark.decision"),
    fields(
        I32,
        "class",
        refers=PLAIN,
        class_offers="executors of the class that are still to be assigned, in all num_source",
    ),
)
TABLES = FieldGroup.of(
    "workload tables, shared between runs",
    fields(
        I32,
        "stage",
        GIVEN,
        stage_job="its job",
        stage_tasks="number of tasks",
        stage_row="row of its profile in the profile tables",
        stage_group="group of stages that fit the same classes",
    ),
    fields(F64, "stage", GIVEN, stage_memory="memory that a task asks for, 0: any will do", stage_cpu="CPUs, likewise"),
    fields(F64, "class", GIVEN, class_memory="memory of an executor", class_cpu="CPUs of an executor"),
    fields(I32, "class", GIVEN, class_executors="executors of the class; classes ascend in memory, then in CPUs"),
    fields(I32, "group", GIVEN, group_fits="bit mask: classes that its stages fit"),
    fields(I32, "job + 1", GIVEN, job_first_stage="first stage id"),
    fields(I32, "arrival", GIVEN, arrival_order="jobs that arrive later, by time"),
    fields(I32, "row + 1", GIVEN, child_offset="into child", parent_offset="into parent"),
    fields(I32, "edge", GIVEN, child="local indices of children", parent="local indices of parents"),
    fields(
        I32,
        "row",
        GIVEN,
        row_grid="its level grid",
        row_list="its first duration list",
        row_level="edges on the longest path to a stage without children",
    ),
    fields(
        I32,
        "grid cell",
        GIVEN,
        grid_left="[grid, n] level index left of n executors",
        grid_right="[grid, n] level index right of n executors",
    ),
    fields(F64, "grid cell", GIVEN, grid_weight="[grid, n] probability of the right level"),
    fields(
        I32,
        "duration list",
        GIVEN,
        list_offset="[row list, level, situation] first value",
        list_length="[row list, level, situation] number of values",
    ),
    fields(
        F64,
        "duration list",
        GIVEN,
        list_add_ms="[row list, level, situation] warm-up added",
        list_mean_ms="[row list, level, situation] mean, warm-up included",
    ),
    fields(F64, "duration", GIVEN, values_ms="duration samples"),
    fields(U8, "job", GIVEN, job_initial="1: present at time 0 without an event"),
    fields(
        F64,
        "job",
        GIVEN,
        job_arrival_ms="when it arrives",
        job_work_ms="tasks x nominal duration over all stages",
    ),
    fields(
        F64,
        "row",
        GIVEN,
        row_nominal_ms="nominal task duration",
        row_path_work_ms="work along the heaviest path to the sink",
        row_path_ms="one task per stage along the longest path to the sink",
    ),
)
STAGES = FieldGroup.of(
    "stages",
    fields(
        I32,
        "stage",
        refers=PLAIN,
        stage_next="tasks launched",
        stage_finished_tasks="tasks finished",
        stage_commit="commitments to it",
        stage_moving="executors moving to it",
        stage_executors="executors at it",
        stage_unsaturated_parents="parents not saturated",
        stage_unfinished_parents="parents not finished",
    ),
    fields(
        I32,
        "stage",
        refers="stage",
        runnable_next="next in the job's runnable list",
        runnable_prev="previous in the job's runnable list",
        open_next="next in the list of open stages of its group (more than one class)",
        open_prev="previous in that list",
    ),
    fields(
        I32,
        "stage list",
        refers="stage",
        timer_heap="heap of the withheld stages by the end of their slots",
        barred="stages of other jobs that are kept out of the frontier of this round",
    ),
    fields(I64, "stage", refers=PLAIN, slot_order="order in which slots began; breaks ties in time"),
    fields(F64, "stage", slot_end_ms="end of its slot"),
    fields(
        U8,
        "stage",
        refers=PLAIN,
        stage_saturated="1: no further executor is useful",
        stage_in_frontier="1: may be chosen now",
        stage_open="1: could be chosen if a class that it fits were on offer (more than one class)",
        stage_selected="1: chosen in this round",
        stage_runnable="1: parents finished, tasks waiting, not withheld",
        stage_slot="0: never delayed, 1: withheld by its slot, 2: its slot is over",
    ),
    fields(F64, "stage", RUN, np.nan, stage_finish_ms="when its last task finished, NaN before"),
    fields(
        I32, "stage class", refers=PLAIN, stage_class_executors="[stage, class] executors at it (more than one class)"
    ),
    fields(I32, "group", RUN, NONE, refers="stage", open_head="first open stage"),
    fields(I32, "group", refers=PLAIN, group_runnable_open="runnable, unsaturated stages"),
)
JOBS = FieldGroup.of(
    "jobs",
    fields(
        I32,
        "job",
        refers=PLAIN,
        job_attached="executors running for it or idle in its pool",
        job_moving="executors moving to it",
        job_commit="commitments to it from other sources than its own",
        job_outgoing="commitments of its own sources to other jobs",
        job_calls="calls when a stage of it last became runnable",
        job_unsaturated="unsaturated stages",
        job_frontier="stages in the frontier",
        job_unexhausted="stages with tasks to launch",
        job_unfinished="stages not finished",
    ),
    fields(
        I32,
        "job list",
        refers="job",
        active="active jobs in order of arrival",
        completion_order="finished jobs in order of completion",
    ),
    fields(
        I32,
        "job",
        RUN,
        NONE,
        refers="stage",
        runnable_head="first runnable stage",
        runnable_tail="last runnable stage",
    ),
    fields(
        I32,
        "job class",
        refers=PLAIN,
        job_class_unexhausted="[job, class] stages with tasks to launch that fit the class (more than one class)",
        job_class_kept="[job, class] executors held, less those promised to other jobs (more than one class)",
    ),
    fields(U8, "job", refers=PLAIN, job_state="0: to arrive, 1: active, 2: finished"),
    fields(F64, "job", RUN, np.nan, job_finish_ms="completion time, NaN before"),
)
EXECUTORS = FieldGroup.of(
    "executors",
    fields(
        I32,
        "executor",
        RUN,
        NONE,
        refers="stage",
        executor_stage="stage it is at",
        executor_last="stage of its last task while its JVM is warm",
        executor_destination="stage it moves to",
    ),
    fields(I32, "executor", RUN, NONE, refers="job", executor_job="job it is attached to"),
    fields(I32, "executor", RUN, NONE, refers="pool", executor_pool="pool it idles in"),
    fields(I32, "executor", refers=PLAIN, executor_calls="calls when its present destination was decided, -1: never"),
    fields(
        I32,
        "executor",
        refers="executor",
        pool_next="next in the pool",
        pool_prev="previous in the pool",
        free_executors="immediately free executors of the round",
    ),
    fields(
        U8,
        "executor",
        refers=PLAIN,
        executor_class="its class",
        executor_moving="1: under way to another job",
        executor_reserved="1: idles in its job's pool because a stage of that job that is not runnable yet was chosen",
    ),
    fields(F64, "executor", executor_start_ms="when its present or last task began"),
    heap_fields("executor"),
)
POOLS = FieldGroup.of(
    "pools and commitments",
    fields(
        I32,
        "pool class",
        RUN,
        NONE,
        refers="executor",
        pool_head="[pool, class] first member",
        pool_tail="[pool, class] last member",
    ),
    fields(I32, "pool class", refers=PLAIN, pool_class_open="[pool, class] members not reserved (more than one class)"),
    fields(I32, "pool", refers=PLAIN, pool_size="members", pool_open="members not reserved"),
    fields(U8, "pool", refers=PLAIN, pool_marked="1: to be offered"),
    fields(
        I32,
        "source class",
        RUN,
        NONE,
        refers="commit",
        commit_head="[source, class] first commitment",
        commit_tail="[source, class] last commitment",
    ),
    fields(I32, "source class", refers=PLAIN, source_calls="[source, class] calls when made"),
    fields(I32, "commit", refers="source class", commit_source="source id x classes + class"),
    fields(I32, "commit", refers=PLAIN, commit_count="executors"),
    fields(I32, "commit", refers="commit", commit_next="next of the same source"),
    fields(
        I32,
        "commit",
        refers="stage",
        commit_stage="destination stage, -1: idle",
        selected="stages chosen in this round",
    ),
)
LOGS = FieldGroup.of(
    "logs, of no length while they are off",
    fields(
        I32,
        "logged task",
        BUFFER,
        task_stage="stage id",
        task_executor="executor",
        task_wave="0 fresh, 1 first, 2 rest",
    ),
    fields(F64, "logged task", BUFFER, task_start_ms="launch time", task_finish_ms="finish time"),
    fields(F64, "logged decision x column", BUFFER, decision_rows="[n] " + ", ".join(DECISION_COLUMNS)),
)

CLUSTER = RecordType(
    "the cluster state", SIZES, ADDRESSES, COUNTERS, ROUND, TABLES, STAGES, JOBS, EXECUTORS, POOLS, LOGS
)
SCALARS, ARRAYS = CLUSTER.scalars, CLUSTER.arrays
state_at = CLUSTER.at
