"""What the oracle keeps: jobs, stages, executors and pools as Python objects, and the outcome of a run."""

import math
from dataclasses import dataclass

LOSSES = ("executors", "tasks", "outputs", "copies")


class Pool:
    """Ordered idle executors of one job, or of nobody (job None); also a source of commitments."""

    def __init__(self, job):
        self.job = job
        self.executors = {}  # ordered: executor -> None; assigning a member again does not move it
        # ordered: (class, destination: StageState, or None = stay idle) -> number of executors
        self.commitments = {}
        self.marked = False  # to be offered again (`reoffer`)
        self.decided = {}  # class -> `OracleSimulator.calls` when its commitments were made

    @property
    def open(self):
        """Whether some executor is not reserved."""
        return not all(executor.reserved for executor in self.executors)

    def of_classes(self, classes):
        """Members of these classes, class by class."""
        return [executor for kind in sorted(classes) for executor in self.executors if executor.kind == kind]


class Executor:
    """`job` it is attached to, `stage` it stands on, `last_stage` whose task it ran last without a break."""

    def __init__(self, index, kind=0):
        self.index = index
        self.kind = kind  # its class
        self.job = None
        self.stage = None
        self.last_stage = None
        self.reserved = False  # idles for a stage of its job that cannot run yet
        self.decided = -1  # `OracleSimulator.calls` when a policy chose its destination; -1 if none did


class StageState:
    """Progress of one stage; also a source of commitments (of the executors running on it)."""

    def __init__(self, job, index, profile, request, classes):
        self.job = job
        self.index = index
        self.profile = profile
        self.num_tasks = profile.num_tasks
        memory, cpu = request
        # classes that its tasks fit; without classes there is one, which everything fits
        self.fits = {k for k, (most, _, cpus) in enumerate(classes) if memory <= most and cpu <= cpus}
        self.fits = self.fits if classes else {0}
        self.parents = []
        self.children = []
        self.next_task = 0
        self.finished_tasks = 0
        self.finish_ms = None
        self.executors = {}  # ordered: those whose current stage is this one
        self.committed = 0  # executors committed to this stage by any source
        self.moving = 0  # executors on their way to this stage
        self.withheld = False  # in a slot
        self.delayed = False  # a slot has begun
        self.durations_ms = []  # of the tasks launched so far
        self.commitments = {}
        self.decided = {}

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

    def __init__(self, index, job, classes=()):
        self.index = index
        self.arrival_ms = float(job.arrival_ms)
        self.completion_ms = math.inf
        requests = [(stage.memory or 0.0, stage.cpu) for stage in job.profile.stages]
        if job.requests is not None:
            requests = job.requests.tolist()
        places = enumerate(zip(job.profile.stages, requests, strict=True))
        self.stages = [StageState(self, i, stage, request, classes) for i, (stage, request) in places]
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

    def keeps(self, kind):
        """Whether an idle executor of the class may stay: a stage with tasks to launch fits it, or none is left."""
        left = [stage for stage in self.stages if not stage.exhausted]
        return not left or any(kind in stage.fits for stage in left)


@dataclass
class Outcome:
    """Everything a run leaves behind; times in ms, jobs and stages as indices, None of what has not finished.

    `decisions` rows: time, source job, executors of the source, frontier size, job, stage, limit, used,
    delay and class where they were chosen.
    `tasks` rows, in order of launch: job, stage, executor, start, finish, wave (what the executor ran before:
    0 fresh, 1 first, 2 rest).
    """

    decisions: list
    tasks: list
    completion_ms: list
    completion_order: list
    stage_finish_ms: list  # per job
    num_events: dict
    slot_ends: int
    now_ms: float
    truncated: bool
    busy_ms: float
    lives: list  # registrations of Spark executors that have ended: number, begin, end, whether it was lost
    losses: dict  # by `LOSSES`
    error: str = ""  # why it ended early
