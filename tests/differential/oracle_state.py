"""What the oracle keeps: jobs, stages, executors and pools as Python objects, and the result of a run."""

import math
from dataclasses import dataclass, field


class Pool:
    """Ordered idle executors of one job, or of nobody (job None); also a source of commitments."""

    def __init__(self, job):
        self.job = job
        self.executors = {}  # ordered: executor -> None; assigning a member again does not move it
        self.commitments = {}  # ordered: destination (StageState, or None = stay idle) -> number of executors
        self.marked = False  # to be offered again (`reoffer`)
        self.decided = 0  # `OracleSimulator.calls` when its commitments were made

    @property
    def open(self):
        """Whether some executor is not reserved."""
        return not all(executor.reserved for executor in self.executors)


class Executor:
    """`job` it is attached to, `stage` it stands on, `last_stage` whose task it ran last without a break."""

    def __init__(self, index):
        self.index = index
        self.job = None
        self.stage = None
        self.last_stage = None
        self.reserved = False  # idles for a stage of its job that cannot run yet
        self.decided = -1  # `OracleSimulator.calls` when a policy chose its destination; -1 if none did


class StageState:
    """Progress of one stage; also a source of commitments (of the executors running on it)."""

    def __init__(self, job, index, profile):
        self.job = job
        self.index = index
        self.profile = profile
        self.num_tasks = profile.num_tasks
        self.parents = []
        self.children = []
        self.next_task = 0
        self.finished_tasks = 0
        self.finish_ms = math.nan
        self.executors = {}  # ordered: those whose current stage is this one
        self.committed = 0  # executors committed to this stage by any source
        self.moving = 0  # executors on their way to this stage
        self.withheld = False  # in a slot
        self.delayed = False  # a slot has begun
        self.durations_ms = []  # of the tasks launched so far
        self.commitments = {}
        self.decided = 0

    @property
    def exhausted(self):
        return self.next_task >= self.num_tasks

    @property
    def finished(self):
        return self.finished_tasks == self.num_tasks

    @property
    def room(self):
        """Tasks that nobody has launched, been committed to or is moving towards; can be negative."""
        return self.num_tasks - self.next_task - self.committed - self.moving

    @property
    def saturated(self):
        return self.room <= 0


class JobState:
    """One job of the workload while it is in the system."""

    def __init__(self, index, job):
        self.index = index
        self.arrival_ms = float(job.arrival_ms)
        self.completion_ms = math.inf
        self.stages = [StageState(self, i, stage) for i, stage in enumerate(job.profile.stages)]
        for child in self.stages:
            for parent in sorted(child.profile.parents):
                child.parents.append(self.stages[parent])
                self.stages[parent].children.append(child)
        # parents finished and tasks left to launch, in order of becoming so
        self.runnable = {stage: None for stage in self.stages if not stage.parents}
        self.attached = {}  # ordered set of executors
        self.pool = Pool(self)
        self.called = 0  # `OracleSimulator.calls` when a stage last became runnable after another

    @property
    def finished(self):
        return self.completion_ms < math.inf


@dataclass
class OracleResult:
    """Everything a run leaves behind; times in ms, jobs and stages as indices.

    `decisions` rows: time, source job, executors of the source, frontier size, job, stage, limit, used,
    delay.
    `tasks` rows, in order of launch: job, stage, executor, start, finish, wave (what the executor ran before:
    0 fresh, 1 first, 2 rest). Unfinished jobs and stages have NaN.
    """

    completion_ms: list
    completion_order: list
    makespan_ms: float
    avg_jct_ms: float
    num_events: dict
    node_finish_ms: list
    busy_ms: float
    total_reward: float
    now_ms: float
    truncated: bool
    decisions: list = field(repr=False)
    tasks: list = field(repr=False)

    @property
    def num_decisions(self):
        return len(self.decisions)
