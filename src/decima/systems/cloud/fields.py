"""Fields of an episode's memory, for Python and compiled code."""

from decima.core.record import ADDRESS, BOUND, F64, I64, FieldGroup, RecordType, fields

# Values of ``status``: the episode goes on, all jobs are placed, or which action ended it.
GOES_ON, COMPLETE, NO_ROOM, PARTLY_PLACED, NOTHING_RUNS, NEXT_DOES_NOT_FIT = range(6)
STATUS_TEXTS = (
    "the episode continues",
    "all jobs are placed",
    "the executor does not fit the VM",
    "waited with a job partly placed",
    "waited although nothing runs",
    "too little room for the job that is shown next",
)

SETTINGS = FieldGroup.of(
    "sizes and settings",
    fields(
        I64,
        None,
        num_vms="VMs",
        num_jobs="jobs",
        clock_back="1: the clock is set to the next arrival, even back",
        lookahead="1: the next job has to fit, in shares of executors",
        frees_one="1: a wait frees one job",
        idle_waits="waits until one while nothing runs ends the episode",
        per_second="1: billed as in the paper",
    ),
    fields(
        F64,
        None,
        penalty="slowdown of a badly placed job, %",
        wait_reward="Table 3",
        placement_reward="Table 3",
        invalid_reward="Table 3",
        partial_reward="of a wait with a job partly placed",
        fixed_reward="R_fixed of Eq. 14",
        beta="weight of cost",
        granularity_s="billing: granularity in seconds",
        minimum_s="billing: least paid time",
        boot_s="billing: from rental until executors can run",
        cost_max="Cost_max of Eq. 7",
        mean_min_s="Avg_Tmin of Eq. 10",
        mean_max_s="Avg_Tmax of Eq. 11",
    ),
)
TABLES = FieldGroup.of(
    "VMs and jobs",
    fields(
        I64, "vm", BOUND, vm_cores="cores of the empty VM", vm_memory="its memory, MiB", vm_type="index of its type"
    ),
    fields(F64, "vm", BOUND, vm_rate="price per second"),
    fields(
        I64,
        "job",
        BOUND,
        job_type="1 CPU-bound, 2 memory-bound, 3 network-bound",
        job_cores="cores of an executor",
        job_memory="MiB of an executor",
        job_executors="number of executors",
    ),
    fields(F64, "job", BOUND, arrival_s="arrival", duration_s="run time when well placed"),
    fields(I64, "job + 1", BOUND, first="place of a job's first executor among all"),
    fields(I64, "executor", BOUND, wanted="VM that a given plan wants each executor on; -1: where it costs least"),
    fields(I64, "job", BOUND, wanted_waits="waits that a given plan wants before the job"),
)
EPISODE = FieldGroup.of(
    "the episode",
    fields(
        I64,
        None,
        job="the job that is shown",
        placed="its executors placed so far",
        running="jobs that run: size of the heap",
        waits="waits so far",
        job_waits="waits since the job is shown",
        steps="actions so far",
        status="GOES_ON, COMPLETE, or what ended the episode",
        last_vm="VM of the last executor placed, -1: none yet",
        num_good="jobs well placed",
    ),
    fields(F64, None, now_s="the clock", cost="bill so far"),
    fields(
        I64,
        "vm",
        free_cores="free cores",
        free_memory="free memory, MiB",
        room="scratch of rules: executors of the job that fit",
        order="scratch of rules",
        taken="scratch of rules: executors of the job put here",
    ),
    fields(
        F64,
        "vm",
        until_s="end of the last job, -1 at first",
        ready_s="end of its last boot, -1 at first",
        used_s="billed seconds",
        key="scratch of rules",
    ),
    fields(
        I64,
        "vm",
        rented_us="begin of the present rental; not used where billed by the second",
        paid_us="end of what is paid for, -1 at first; as before",
        used_us="billed time; as before",
    ),
    fields(I64, "executor", where="VM of each executor"),
    fields(
        F64,
        "job",
        placed_s="when the last executor was placed",
        start_s="the same, later by the boot time where a VM had to boot",
        finish_s="end of the run",
        run_s="run time",
        job_price="what the job added to the bill",
        heap_finish="jobs that run: a heap by finish",
    ),
    fields(
        I64, "job", well_placed="whether the job is well placed", heap_job="jobs that run, in the order of heap_finish"
    ),
    fields(I64, "plan", plan="VMs that a rule chose for the executors of the job", best="scratch of rules"),
    fields(F64, "plan + 1", cover="scratch of rules"),
    fields(I64, "cell", choice="scratch of rules: executors x VMs"),
    fields(I64, "step", action="what was chosen in each step"),
    fields(F64, "step", action_s="when"),
)
CHANCE = FieldGroup.of(
    "addresses of what else an episode needs",
    fields(I64, None, ADDRESS, rng="state of the bit generator", rng_next="its next_uint64"),
)
PLACEMENT = RecordType("executor placement", SETTINGS, CHANCE, TABLES, EPISODE)
#: Compiled function from an address to the record there.
placement_at = PLACEMENT.at
